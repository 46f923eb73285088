//! The Redis store: shared by any number of processes, fast, and as durable as that Redis is set up to be.
//!
//! # Design
//!
//! *What does it promise?* It promises the same as every store, as long as one server keeps all acknowledged writes. A
//! failover may lose the last writes, and with them a claim, a lease or a fence. Two writers may then believe that they
//! hold the same right. Therefore a route with `guarantee = "safety"` is refused on this store. The store detects a
//! loss if it can: each answer carries the revision counter. Once the counter goes back, all operations fail (module
//! `epoch`).
//!
//! *Why scripts?* A swap looks at a record and a floor, and changes up to four keys. A script is the only way to do so
//! atomically in one round trip.
//!
//! *Whose time is it?* It is the server's time, read in the same script: one clock for all processes. It is a wall
//! clock, and a step of it moves every end.
//!
//! *Why is each change published?* So that waiting callers need not poll. A process listens while a caller waits in it,
//! and a little longer. Notifications may be lost, so a wait ends after a second, and the record is read again.

mod client;
mod collect;
mod keys;
mod reply;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use redis::ScriptInvocation;
use tokio::{task::JoinSet, time::timeout};

use self::{
    client::RedisClient,
    keys::RedisKeys,
    reply::{CLOCK, PAGE, PageReply, RAISE, READ, Reply, SWAP, moment, split},
};
use super::{
    collect::{CollectLimits, Collects as _},
    damaged, decoded,
    epoch::Epoch,
    labels::Labels,
    waiters::Waiters,
};
use crate::{
    config,
    core::{
        records::record::{Record, Revision, Snapshot},
        resource::ResourceKey,
        time::StoreTime,
    },
    entropy::random_u64,
    store::{
        Incarnation, OpenError, Scanned, Store, StoreError, Swapped,
        encoding::{self, Label},
    },
};

/// The time for the question whether Redis evicts keys, at the start.
const POLICY_TIMEOUT: Duration = Duration::from_secs(1);

/// Records in Redis.
pub struct RedisStore {
    shared: Arc<RedisShared>,
    incarnation: Incarnation,
    labels: Labels,
    /// The tasks that use what is shared. They end with the store.
    _background: JoinSet<()>,
}

struct RedisShared {
    engine: RedisClient,
    keys: RedisKeys,
    limits: CollectLimits,
    epoch: Epoch,
    waiters: Waiters,
}

/// The result of a script: what it did, and what it found.
struct ScriptResult {
    did: String,
    /// The record with its revision, or if it is absent, the floor.
    snapshot: Snapshot,
    label: Option<Label>,
    /// The revision counter.
    counter: Revision,
    is_repeated: bool,
}

impl RedisStore {
    /// Connects to the store in this Redis. The first process to start draws its incarnation.
    ///
    /// # Errors
    ///
    /// The store cannot be reached, or a file that it requires cannot be read.
    pub async fn connect(settings: &config::Redis, common: &config::StoreSettings) -> Result<Self, OpenError> {
        let keys = RedisKeys::new(&settings.prefix);
        let engine = RedisClient::new(settings, common.timeout, &keys.channel)?;
        let incarnation = incarnation(&engine, &keys).await?;
        let shared = Arc::new(RedisShared {
            engine,
            keys,
            limits: CollectLimits::of(common),
            epoch: Epoch::default(),
            waiters: Waiters::default(),
        });
        shared.warn_of_eviction().await;
        let (mut background, listener) = (JoinSet::new(), Arc::clone(&shared));
        background.spawn(super::collect::run(Arc::clone(&shared)));
        background.spawn(async move { listener.waiters.listen_to(&listener.engine).await });
        Ok(Self { shared, incarnation, labels: Labels::new()?, _background: background })
    }

    /// Forgets the records that have been idle for `idle_ttl`, and returns their number.
    pub async fn collect(&self, idle_ttl: Duration) -> Result<usize, StoreError> {
        self.shared.collect(idle_ttl, usize::MAX).await
    }
}

/// Returns the incarnation of this store. The first process draws it.
async fn incarnation(engine: &RedisClient, keys: &RedisKeys) -> Result<Incarnation, OpenError> {
    let drawn = Incarnation(random_u64()?);
    let silent = |_unavailable| OpenError::Silent;
    let mut put = redis::cmd("SET");
    put.arg(&keys.incarnation).arg(drawn.to_string()).arg("NX");
    engine.send::<Option<String>>(&put).await.map_err(silent)?;
    let kept: Option<String> = engine.send(redis::cmd("GET").arg(&keys.incarnation)).await.map_err(silent)?;
    let number = kept.and_then(|text| u64::from_str_radix(&text, 16).ok());
    number.map(Incarnation).ok_or_else(|| OpenError::Damaged(keys.incarnation.clone()))
}

impl RedisShared {
    /// Warns if Redis evicts keys, because it would forget records in use. Logs nothing if Redis does not report its
    /// policy.
    async fn warn_of_eviction(&self) {
        let mut question = redis::cmd("CONFIG");
        question.arg("GET").arg("maxmemory-policy");
        let answer = timeout(POLICY_TIMEOUT, self.engine.send::<Vec<String>>(&question)).await;
        if let Ok(Ok(answer)) = answer
            && let Some(policy) = answer.get(1)
            && policy.starts_with("allkeys-")
        {
            tracing::warn!(
                policy,
                "this Redis evicts keys when its memory is full, including records in use: set maxmemory-policy to \
                 noeviction"
            );
        }
    }

    /// Runs a script about one record.
    async fn ask(&self, key: &ResourceKey, script: &ScriptInvocation<'_>) -> Result<ScriptResult, StoreError> {
        let reached = self.epoch.reached()?;
        let answer = self.engine.run::<Reply>(script).await?;
        let (did, kept, floor, counter, seconds, microseconds) = answer.reply;
        let (floor, counter) = (Revision(floor), Revision(counter));
        self.epoch.accept(reached, counter)?;
        let now = moment(seconds, microseconds);
        let (snapshot, label) = match kept {
            Some(kept) => read_kept(key, &kept, now)?,
            None => (Snapshot::new(floor, Record::absent(floor), now), None),
        };
        Ok(ScriptResult { did, snapshot, label, counter, is_repeated: answer.is_repeated })
    }

    async fn read(&self, key: &ResourceKey) -> Result<Snapshot, StoreError> {
        let keys = &self.keys;
        let mut script = READ.key(keys.record(key));
        script.key(&keys.floors).key(&keys.counter).arg(key.bucket());
        Ok(self.ask(key, &script).await?.snapshot)
    }

    /// Reads the records of these resources. Absent records are left out, and so are damaged ones, which are logged.
    async fn records(&self, resources: &[ResourceKey]) -> Result<Scanned, StoreError> {
        let reached = self.epoch.reached()?;
        let mut script = PAGE.key(&self.keys.counter);
        for resource in resources {
            script.key(self.keys.record(resource));
        }
        let (kept, counter, seconds, microseconds) = self.engine.run::<PageReply>(&script).await?.reply;
        self.epoch.accept(reached, Revision(counter))?;
        let now = moment(seconds, microseconds);
        let record = |(key, kept): (&ResourceKey, Option<Vec<u8>>)| {
            let (snapshot, _) = read_kept(key, &kept?, now).ok()?;
            Some((key.clone(), snapshot))
        };
        Ok(resources.iter().zip(kept).filter_map(record).collect())
    }

    /// Returns at most `limit` resources that have a record, after `after`.
    async fn resources(&self, after: Option<&ResourceKey>, limit: usize) -> Result<Vec<ResourceKey>, StoreError> {
        let start = after.map_or_else(|| "-".to_owned(), |after| format!("({after}"));
        let mut question = redis::cmd("ZRANGEBYLEX");
        question.arg(&self.keys.records).arg(start).arg("+").arg("LIMIT").arg(0).arg(limit);
        let names: Vec<String> = self.engine.send(&question).await?;
        Ok(names.iter().map(|name| ResourceKey::from_text(name)).collect())
    }
}

/// Reads a record with its revision. A damaged one is logged.
fn read_kept(key: &ResourceKey, kept: &[u8], now: StoreTime) -> Result<(Snapshot, Option<Label>), StoreError> {
    let (revision, text) = split(kept).ok_or_else(|| damaged(key, &"a record in the store has no revision"))?;
    decoded(key, revision, text, StoreTime::default(), now)
}

#[async_trait]
impl Store for RedisStore {
    fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    async fn now(&self) -> Result<StoreTime, StoreError> {
        let RedisShared { engine, keys, epoch, .. } = &*self.shared;
        let reached = epoch.reached()?;
        let (_, _, _, counter, seconds, microseconds) = engine.run::<Reply>(&CLOCK.key(&keys.counter)).await?.reply;
        epoch.accept(reached, Revision(counter))?;
        Ok(moment(seconds, microseconds))
    }

    async fn read(&self, key: &ResourceKey) -> Result<Snapshot, StoreError> {
        self.shared.read(key).await
    }

    async fn swap(&self, key: &ResourceKey, expected: Revision, next: Record) -> Result<Swapped, StoreError> {
        let (shared, label) = (&self.shared, self.labels.next());
        let text = encoding::encode_labelled(&next, StoreTime::default(), Some(label.clone()));
        let idle_from = next.idle_from().map(|from| from.milliseconds().to_string()).unwrap_or_default();
        let keys = &shared.keys;
        let mut script = SWAP.key(keys.record(key));
        script.key(&keys.floors).key(&keys.counter).key(&keys.records).key(&keys.idle);
        script.arg(key.bucket()).arg(expected.0).arg(text).arg(idle_from).arg(key.as_str());
        script.arg(shared.limits.capacity).arg(&keys.channel);
        let found = shared.ask(key, &script).await?;
        match found.did.as_str() {
            "done" => {
                let (revision, now) = (found.counter, found.snapshot.now);
                Ok(Swapped::Done(Snapshot::new(revision, next.resolved(revision), now)))
            }
            // An earlier attempt was carried out, and its answer was lost.
            "conflict" if found.label.as_ref() == Some(&label) => Ok(Swapped::Done(found.snapshot)),
            // An earlier attempt may have been carried out before others changed the record: that cannot be determined.
            "conflict" if found.is_repeated => Err(StoreError::Unavailable),
            "conflict" => Ok(Swapped::Conflict(found.snapshot)),
            "full" => {
                shared.limits.is_full.notify_one();
                Err(StoreError::Full)
            }
            _ => Err(StoreError::Unavailable),
        }
    }

    async fn scan(&self, after: Option<&ResourceKey>, limit: usize) -> Result<Scanned, StoreError> {
        let (mut found, mut after) = (Vec::new(), after.cloned());
        loop {
            let wanted = limit - found.len();
            let resources = self.shared.resources(after.as_ref(), wanted).await?;
            found.extend(self.shared.records(&resources).await?);
            if found.len() == limit || resources.len() < wanted {
                return Ok(found);
            }
            after = resources.last().cloned();
        }
    }

    async fn changed(&self, key: &ResourceKey, seen: Revision) {
        let is_same = async { !self.shared.read(key).await.is_ok_and(|current| current.revision != seen) };
        self.shared.waiters.wait(key, is_same).await;
    }

    async fn raise_floors(&self) -> Result<(), StoreError> {
        /// The number of buckets in one script, which takes a few hundred microseconds. A script for all of them at once
        /// would block Redis.
        const RANGE: u16 = 1_024;
        let RedisShared { engine, keys, epoch, .. } = &*self.shared;
        for first in (0..=u16::MAX).step_by(usize::from(RANGE)) {
            let reached = epoch.reached()?;
            let mut script = RAISE.key(&keys.floors);
            script.key(&keys.counter).arg(first).arg(first + (RANGE - 1));
            let (_, _, _, counter, _, _) = engine.run::<Reply>(&script).await?.reply;
            epoch.accept(reached, Revision(counter))?;
        }
        Ok(())
    }
}
