//! The Redis store: shared by any number of processes, fast, and as durable as that Redis is set up to be.
//!
//! # Design
//!
//! *What does it promise?* While one server keeps all that it has acknowledged, what every store promises. A failover
//! may lose the last writes, and a claim, a lease or a fence with them: then two writers may believe in one right. This
//! is why a route with `guarantee = "safety"` is refused on it. What can be seen of a loss is seen: each answer carries
//! the counter of revisions, and where it goes back, the store answers nothing more (module `epoch`).
//!
//! *Why scripts?* A swap looks at a record and a floor, and changes up to four keys. A script is the one way to do so
//! in one round trip with nobody in between.
//!
//! *Whose time?* The server's, in the same script: one clock for all processes. It is a wall clock, and a step of it
//! moves every end.
//!
//! *Why is each change published?* So that who waits need not ask. A process listens while somebody waits in it, and a
//! little longer. Notifications may be lost: the wait ends by itself after a second, and the record is read again.

mod client;
mod collect;
mod floors;
mod keys;
mod reply;
mod waiters;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use redis::ScriptInvocation;
use tokio::{sync::Notify, task::AbortHandle, time::timeout};

use self::{
    client::RedisClient,
    keys::RedisKeys,
    reply::{CLOCK, PAGE, PageReply, READ, Reply, SWAP, moment, split},
    waiters::Waiters,
};
use super::{
    Incarnation, OpenError, Store, StoreError, Swapped, encoding, encoding::Label, epoch::Epoch, labels::Labels,
};
use crate::{
    config,
    core::{
        record::{Record, Revision, Snapshot},
        resource::ResourceKey,
        time::StoreTime,
    },
    entropy::random_u64,
};

/// How long a wait goes on before the record is read again, should the notification be lost.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// Records in Redis.
pub struct RedisStore {
    shared: Arc<RedisShared>,
    background: [AbortHandle; 2],
}

struct RedisShared {
    engine: RedisClient,
    keys: RedisKeys,
    incarnation: Incarnation,
    capacity: usize,
    idle_ttl: Duration,
    epoch: Epoch,
    labels: Labels,
    waiters: Waiters,
    /// Somebody was refused for want of room.
    is_full: Notify,
}

/// What a script did, and what it found.
struct ScriptResult {
    did: String,
    /// The record's revision, the record, and its label; the floor and nothing where there is none.
    snapshot: Snapshot,
    label: Option<Label>,
    /// The counter of revisions.
    counter: Revision,
    is_repeated: bool,
}

impl RedisStore {
    /// The store in this Redis, whose incarnation is drawn at the first start of any process.
    ///
    /// # Errors
    ///
    /// It cannot be asked, or a file that is needed for it cannot be read.
    pub async fn connect(settings: &config::Redis, common: &config::StoreSettings) -> Result<Self, OpenError> {
        let engine = RedisClient::new(settings, common.timeout)?;
        let keys = RedisKeys::new(&settings.prefix);
        let incarnation = incarnation(&engine, &keys).await?;
        let shared = Arc::new(RedisShared {
            engine,
            keys,
            incarnation,
            capacity: common.capacity,
            idle_ttl: common.idle_ttl,
            epoch: Epoch::default(),
            labels: Labels::new()?,
            waiters: Waiters::default(),
            is_full: Notify::new(),
        });
        shared.warn_of_eviction().await;
        let background = [
            tokio::spawn(collect::run(Arc::clone(&shared))).abort_handle(),
            tokio::spawn(collect::listen(Arc::clone(&shared))).abort_handle(),
        ];
        Ok(Self { shared, background })
    }

    /// Forgets the records that have been idle for `idle_ttl`, and says how many.
    pub async fn collect(&self, idle_ttl: Duration) -> Result<usize, StoreError> {
        self.shared.collect(idle_ttl, usize::MAX).await
    }
}

impl Drop for RedisStore {
    fn drop(&mut self) {
        self.background.iter().for_each(AbortHandle::abort);
    }
}

/// The incarnation of this store; the first to ask draws it.
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
    /// A Redis that evicts keys forgets records that are in use. Where it does not tell, nothing is said.
    async fn warn_of_eviction(&self) {
        let mut question = redis::cmd("CONFIG");
        question.arg("GET").arg("maxmemory-policy");
        let answer = timeout(WAIT_MAX, self.engine.send::<Vec<String>>(&question)).await;
        if let Ok(Ok(answer)) = answer
            && let Some(policy) = answer.get(1)
            && policy.starts_with("allkeys-")
        {
            tracing::warn!(
                policy,
                "this Redis evicts keys when its memory is full, records that are in use too: set maxmemory-policy to \
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
            Some(kept) => decoded(key, &kept, now)?,
            None => (Snapshot { revision: floor, record: Record::absent(floor), now }, None),
        };
        Ok(ScriptResult { did, snapshot, label, counter, is_repeated: answer.is_repeated })
    }

    async fn read(&self, key: &ResourceKey) -> Result<Snapshot, StoreError> {
        let keys = &self.keys;
        let mut script = READ.key(keys.record(key));
        script.key(&keys.floors).key(&keys.counter).arg(key.bucket());
        Ok(self.ask(key, &script).await?.snapshot)
    }

    async fn swap(&self, key: &ResourceKey, expected: Revision, next: Record) -> Result<Swapped, StoreError> {
        let label = self.labels.next();
        let text = encoding::encode_labelled(&next, StoreTime::default(), Some(label.clone()));
        let idle_from = next.idle_from().map(|from| from.milliseconds().to_string()).unwrap_or_default();
        let keys = &self.keys;
        let mut script = SWAP.key(keys.record(key));
        script.key(&keys.floors).key(&keys.counter).key(&keys.records).key(&keys.idle);
        script.arg(key.bucket()).arg(expected.0).arg(text).arg(idle_from).arg(key.as_str());
        script.arg(self.capacity).arg(&keys.channel);
        let found = self.ask(key, &script).await?;
        match found.did.as_str() {
            "done" => {
                let (revision, now) = (found.counter, found.snapshot.now);
                Ok(Swapped::Done(Snapshot { revision, record: next.resolved(revision), now }))
            }
            // An earlier attempt, whose answer was lost.
            "conflict" if found.label.as_ref() == Some(&label) => Ok(Swapped::Done(found.snapshot)),
            // Others have changed the record since: whether an earlier attempt was carried out before, nobody can say.
            "conflict" if found.is_repeated => Err(StoreError::Unavailable),
            "conflict" => Ok(Swapped::Conflict(found.snapshot)),
            "full" => {
                self.is_full.notify_one();
                Err(StoreError::Full)
            }
            _ => Err(StoreError::Unavailable),
        }
    }

    async fn now(&self) -> Result<StoreTime, StoreError> {
        let reached = self.epoch.reached()?;
        let (_, _, _, counter, seconds, microseconds) =
            self.engine.run::<Reply>(&CLOCK.key(&self.keys.counter)).await?.reply;
        self.epoch.accept(reached, Revision(counter))?;
        Ok(moment(seconds, microseconds))
    }

    /// The records of these resources that are there; those that cannot be read are left out, and logged.
    async fn records(&self, resources: &[ResourceKey]) -> Result<Vec<(ResourceKey, Snapshot)>, StoreError> {
        let reached = self.epoch.reached()?;
        let mut script = PAGE.key(&self.keys.counter);
        for resource in resources {
            script.key(self.keys.record(resource));
        }
        let (kept, counter, seconds, microseconds) = self.engine.run::<PageReply>(&script).await?.reply;
        self.epoch.accept(reached, Revision(counter))?;
        let now = moment(seconds, microseconds);
        let record = |(key, kept): (&ResourceKey, Option<Vec<u8>>)| {
            let (snapshot, _) = decoded(key, &kept?, now).ok()?;
            Some((key.clone(), snapshot))
        };
        Ok(resources.iter().zip(kept).filter_map(record).collect())
    }

    /// At most `limit` resources that have a record, after `after`.
    async fn resources(&self, after: Option<&ResourceKey>, limit: usize) -> Result<Vec<ResourceKey>, StoreError> {
        let start = after.map_or_else(|| "-".to_owned(), |after| format!("({after}"));
        let mut question = redis::cmd("ZRANGEBYLEX");
        question.arg(&self.keys.records).arg(start).arg("+").arg("LIMIT").arg(0).arg(limit);
        let names: Vec<String> = self.engine.send(&question).await?;
        Ok(names.iter().map(|name| ResourceKey::from_text(name)).collect())
    }
}

fn decoded(key: &ResourceKey, kept: &[u8], now: StoreTime) -> Result<(Snapshot, Option<Label>), StoreError> {
    let damaged = |what: &dyn std::fmt::Display| {
        tracing::error!(?key, error = %what, "writes to this resource are refused");
        StoreError::Unavailable
    };
    let (revision, text) = split(kept).ok_or_else(|| damaged(&"a record in the store has no revision"))?;
    let (record, label) = encoding::decode_labelled(text, StoreTime::default()).map_err(|error| damaged(&error))?;
    Ok((Snapshot { revision, record: record.resolved(revision), now }, label))
}

#[async_trait]
impl Store for RedisStore {
    fn incarnation(&self) -> Incarnation {
        self.shared.incarnation
    }

    async fn now(&self) -> Result<StoreTime, StoreError> {
        self.shared.now().await
    }

    async fn read(&self, key: &ResourceKey) -> Result<Snapshot, StoreError> {
        self.shared.read(key).await
    }

    async fn swap(&self, key: &ResourceKey, expected: Revision, next: Record) -> Result<Swapped, StoreError> {
        self.shared.swap(key, expected, next).await
    }

    async fn scan(
        &self,
        after: Option<&ResourceKey>,
        limit: usize,
    ) -> Result<Vec<(ResourceKey, Snapshot)>, StoreError> {
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
        let waiter = self.shared.waiters.join(key);
        let change = waiter.change();
        // What has happened before this one was waiting. A store that is not available is asked again after a pause.
        if !self.shared.read(key).await.is_ok_and(|current| current.revision != seen) {
            let _ = timeout(WAIT_MAX, change).await;
        }
    }

    async fn raise_floors(&self) -> Result<(), StoreError> {
        self.shared.raise_floors().await
    }
}
