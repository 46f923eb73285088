//! The Redis store: shared by any number of processes, fast, and as durable as that Redis is set up to be.
//!
//! # Design
//!
//! *What does it promise?* It promises the same as every store, as long as one server keeps all acknowledged writes. A
//! failover may lose the last writes, and with them a claim, a lease or a fence. Two writers may then believe that they
//! hold the same right. Therefore a route with `guarantee = "safety"` is refused on this store. The store detects a
//! loss if it can: each answer carries the revision counter and a record. Once one of them goes back, all operations
//! fail (module `epoch`).
//!
//! *What if a connection leads to a replica?* Redis leaves connections open to a primary that becomes a replica. A replica
//! may be behind, so the scripts that read contain a command that replicas refuse. The next attempt connects anew.
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
mod keys;
mod reply;

use std::{ops::RangeInclusive, time::Duration};

use redis::cmd;
use tokio::time::timeout;

use self::{
    client::{RedisClient, RedisReply},
    keys::RedisKeys,
    reply::{AGED, FORGET, PAGE, PageReply, RAISE, READ, Reply, SWAP, answer, kept, kept_or_floor},
};
use super::{
    engine::{Engine, EngineAnswer, KeptText, KeyRange, Swap, SwapOutcome, TextPage, first_beyond},
    store::SharedStore,
    waiters::Waiters,
};
use crate::{
    config,
    core::{records::record::Revision, resource::ResourceKey},
    entropy::random_u64,
    store::{Incarnation, OpenError, StoreError, encoding::milliseconds},
};

/// The time for the question whether Redis evicts keys, at the start.
const POLICY_TIMEOUT: Duration = Duration::from_secs(1);

/// Records in Redis.
pub type RedisStore = SharedStore<RedisEngine>;

/// A Redis as an engine.
pub struct RedisEngine {
    client: RedisClient,
    keys: RedisKeys,
    capacity: usize,
    waiters: Waiters,
}

impl RedisStore {
    /// Connects to the store in this Redis. The first process to start draws its incarnation.
    ///
    /// # Errors
    ///
    /// The store cannot be reached, or a file that it requires cannot be read.
    pub async fn connect(settings: &config::Redis, common: &config::StoreSettings) -> Result<Self, OpenError> {
        let keys = RedisKeys::new(&settings.prefix);
        let client = RedisClient::new(settings, common.timeout, &keys.channel)?;
        let engine = RedisEngine { client, keys, capacity: common.capacity, waiters: Waiters::default() };
        let (place, drawn) = (engine.keys.incarnation.clone(), Incarnation(random_u64()?));
        let kept = engine.incarnation(drawn).await.map_err(|_unavailable| OpenError::Silent)?;
        engine.warn_of_eviction().await;
        Self::start(engine, (&place, kept), common).await
    }
}

impl RedisEngine {
    /// Returns the incarnation of this store, which is `drawn` if it has none yet.
    async fn incarnation(&self, drawn: Incarnation) -> Result<Option<String>, StoreError> {
        let mut put = cmd("SET");
        put.arg(&self.keys.incarnation).arg(drawn.to_string()).arg("NX");
        self.client.send::<Option<String>>(&put).await?;
        self.client.send(cmd("GET").arg(&self.keys.incarnation)).await
    }

    /// Warns if Redis evicts keys, because it would forget records in use. Logs nothing if Redis does not report its
    /// policy.
    async fn warn_of_eviction(&self) {
        let mut question = cmd("CONFIG");
        question.arg("GET").arg("maxmemory-policy");
        let answer = timeout(POLICY_TIMEOUT, self.client.send::<Vec<String>>(&question)).await;
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

    /// Returns at most `limit` resources of a selection that have a record.
    async fn resources(&self, selection: KeyRange<'_>, limit: usize) -> Result<Vec<ResourceKey>, StoreError> {
        let KeyRange { prefix, after } = selection;
        let start = after.map_or_else(|| format!("[{prefix}"), |after| format!("({after}"));
        let end = if prefix.is_empty() { b"+".to_vec() } else { [b"(", first_beyond(prefix).as_slice()].concat() };
        let mut question = cmd("ZRANGEBYLEX");
        question.arg(&self.keys.records).arg(start).arg(end).arg("LIMIT").arg(0).arg(limit);
        let names: Vec<String> = self.client.send(&question).await?;
        Ok(names.iter().map(|name| ResourceKey::from_text(name)).collect())
    }

    /// Reads the records of these resources.
    async fn texts(&self, resources: &[ResourceKey]) -> Result<EngineAnswer<Vec<Option<Vec<u8>>>>, StoreError> {
        let mut script = PAGE.key(&self.keys.counter);
        for resource in resources {
            script.key(self.keys.record(resource));
        }
        let (texts, counter, seconds, microseconds) = self.client.run::<PageReply>(&script).await?.reply;
        Ok(answer(texts, counter, (seconds, microseconds)))
    }
}

impl Engine for RedisEngine {
    /// A script takes a few hundred microseconds for these. A script for all buckets at once would block Redis.
    const RAISED_AT_ONCE: u16 = 1_024;

    async fn now(&self) -> Result<EngineAnswer<()>, StoreError> {
        let EngineAnswer { now, told, .. } = self.texts(&[]).await?;
        Ok(EngineAnswer { found: (), now, told })
    }

    async fn read(&self, key: &ResourceKey) -> Result<EngineAnswer<KeptText>, StoreError> {
        let keys = &self.keys;
        let mut script = READ.key(keys.record(key));
        script.key(&keys.floors).key(&keys.counter).arg(key.bucket());
        let (_, record, floor, counter, seconds, microseconds) = self.client.run::<Reply>(&script).await?.reply;
        Ok(answer(kept_or_floor(key, record, floor)?, counter, (seconds, microseconds)))
    }

    async fn swap(&self, swap: Swap) -> Result<EngineAnswer<SwapOutcome>, StoreError> {
        let Swap { key, expected, text, idle_from, .. } = swap;
        let idle_from = idle_from.map(|from| from.milliseconds().to_string()).unwrap_or_default();
        let keys = &self.keys;
        let mut script = SWAP.key(keys.record(&key));
        script.key(&keys.floors).key(&keys.counter).key(&keys.records).key(&keys.idle);
        script.arg(key.bucket()).arg(expected.0).arg(text).arg(idle_from).arg(key.as_str());
        script.arg(self.capacity).arg(&keys.channel);
        let RedisReply { reply, is_repeated } = self.client.run::<Reply>(&script).await?;
        let (did, record, floor, counter, seconds, microseconds) = reply;
        let outcome = match did.as_str() {
            // Redis itself counts the records.
            "done" => SwapOutcome::Made { revision: Revision(counter), is_new: false },
            "conflict" => SwapOutcome::Other { kept: Some(kept_or_floor(&key, record, floor)?), is_repeated },
            "full" => SwapOutcome::NoRoom,
            _ => return Err(StoreError::Unavailable),
        };
        Ok(answer(outcome, counter, (seconds, microseconds)))
    }

    async fn page(&self, selection: KeyRange<'_>, limit: usize) -> Result<EngineAnswer<TextPage>, StoreError> {
        let resources = self.resources(selection, limit).await?;
        let EngineAnswer { found, now, told } = self.texts(&resources).await?;
        let last = resources.last().filter(|_| resources.len() == limit).cloned();
        // A record that was forgotten meanwhile has no text.
        let record = |(key, text): (ResourceKey, Option<Vec<u8>>)| {
            let kept = kept(&key, &text?).ok()?;
            Some((key, kept))
        };
        let records = resources.into_iter().zip(found).filter_map(record).collect();
        Ok(EngineAnswer { found: TextPage { records, last }, now, told })
    }

    /// Begins anew each time, because the records of the pass before have been forgotten since.
    async fn aged(
        &self,
        _after: Option<&ResourceKey>,
        limit: usize,
        idle_ttl: Duration,
    ) -> Result<Option<Vec<ResourceKey>>, StoreError> {
        let mut script = AGED.key(&self.keys.idle);
        script.arg(milliseconds(idle_ttl)).arg(limit);
        let aged = self.client.run::<Vec<String>>(&script).await?.reply;
        Ok(Some(aged.iter().map(|name| ResourceKey::from_text(name)).collect()))
    }

    async fn forget(&self, key: &ResourceKey, _revision: Revision, idle_ttl: Duration) -> Result<bool, StoreError> {
        let keys = &self.keys;
        let mut script = FORGET.key(keys.record(key));
        script.key(&keys.floors).key(&keys.records).key(&keys.idle);
        script.arg(key.bucket()).arg(key.as_str()).arg(milliseconds(idle_ttl));
        Ok(self.client.run(&script).await?.reply)
    }

    async fn raise(&self, buckets: RangeInclusive<u16>) -> Result<(), StoreError> {
        let mut script = RAISE.key(&self.keys.floors);
        script.key(&self.keys.counter).arg(*buckets.start()).arg(*buckets.end());
        self.client.run::<Reply>(&script).await.map(drop)
    }

    async fn changed(&self, key: &ResourceKey, seen: Revision) {
        self.waiters.wait(self, key, seen).await;
    }

    async fn listen(&self) {
        self.waiters.listen_to(&self.client).await;
    }
}
