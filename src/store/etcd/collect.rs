//! Forgetting what is idle, in the background.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::time::{sleep, timeout};

use super::{EtcdShared, encoding::Label, txn};
use crate::{
    core::{
        record::{Revision, Snapshot},
        resource::ResourceKey,
    },
    entropy::random_u64,
    store::{StoreError, labels::is_older},
};

/// Records that are looked at in one request: a few hundred KiB.
const PAGE: usize = 500;

/// The pause between two records that are forgotten: at most some hundred a second, beside the thousands of changes a
/// second that etcd carries.
const FORGET_PAUSE: Duration = Duration::from_millis(2);

/// How often the records are counted: capacity is no sharp limit, and counting them costs etcd a walk over all keys.
const COUNT_INTERVAL: Duration = Duration::from_secs(60);

/// The least time between two searches for room.
const FULL_PAUSE: Duration = Duration::from_secs(1);

/// Passes within an `idle_ttl`, by one of all processes.
const PASSES: u32 = 8;

/// Some of the records, in the order of their keys.
pub(super) struct KeyPage {
    /// Those that can be read.
    pub(super) records: Vec<(ResourceKey, Snapshot, Option<Label>)>,
    /// The last that was looked at, if there are more after it.
    pub(super) last: Option<ResourceKey>,
}

/// Counts and collects for ever.
pub(super) async fn run(shared: Arc<EtcdShared>) {
    let pass_interval = shared.idle_ttl / PASSES;
    let mut turn = CollectTurn::default();
    let mut since_look = Duration::ZERO;
    loop {
        let wait = jittered(COUNT_INTERVAL.min(pass_interval.max(FULL_PAUSE)));
        let is_full = timeout(wait, shared.is_full.notified()).await.is_ok();
        since_look += if is_full { Duration::ZERO } else { wait };
        // What fails is tried again at the next interval; the engine's state is logged by its client.
        if shared.count().await.is_err() {
            continue;
        }
        let records = shared.records.load(Ordering::Relaxed);
        if records >= shared.capacity {
            // One in ten at least, so that this is not needed again at once.
            let surplus = records - shared.capacity + shared.capacity / 10 + 1;
            let _ = shared.collect(Duration::ZERO, surplus).await;
            sleep(FULL_PAUSE).await;
        } else if since_look >= pass_interval {
            since_look = Duration::ZERO;
            if turn.take(&shared).await {
                let _ = shared.collect(shared.idle_ttl, usize::MAX).await;
            }
        }
    }
}

/// Whose turn it is to look through the records: one process of all does in each interval.
#[derive(Default)]
struct CollectTurn {
    seen: Revision,
}

impl CollectTurn {
    /// Takes the turn, if nobody has since this was asked last.
    async fn take(&mut self, shared: &EtcdShared) -> bool {
        let key = shared.keys.collected();
        let Ok(answer) = shared.engine.ask(txn::put_next(&key, self.seen, "")).await else { return false };
        let is_ours = answer.response.succeeded();
        let last = txn::last_get(&answer.response);
        let others = last.and_then(|got| got.kvs().first().map(|pair| txn::revision(pair.mod_revision())));
        self.seen =
            if is_ours { txn::revision_of(&answer.response).unwrap_or_default() } else { others.unwrap_or_default() };
        is_ours
    }
}

impl EtcdShared {
    /// Counts the records.
    pub(super) async fn count(&self) -> Result<(), StoreError> {
        let answer = self.engine.ask(txn::count(&self.keys)).await?;
        let count = txn::last_get(&answer.response).ok_or(StoreError::Unavailable)?.count();
        self.records.store(usize::try_from(count).unwrap_or_default(), Ordering::Relaxed);
        Ok(())
    }

    /// At most `limit` of the records after that of `after`; those that cannot be read are left out, and logged.
    pub(super) async fn page(&self, after: Option<&ResourceKey>, limit: usize) -> Result<KeyPage, StoreError> {
        let answer = self.engine.ask(txn::page(&self.keys, after, limit)).await?;
        let page = txn::last_get(&answer.response).ok_or(StoreError::Unavailable)?;
        let now = self.clock.now();
        let record = |pair: &etcd_client::KeyValue| {
            let key = self.keys.resource(pair.key())?;
            let (snapshot, label) = self.decoded(&key, txn::revision(pair.mod_revision()), pair.value(), now).ok()?;
            Some((key, snapshot, label))
        };
        let records = page.kvs().iter().filter_map(record).collect();
        let last = page.kvs().last().filter(|_| page.more()).and_then(|pair| self.keys.resource(pair.key()));
        Ok(KeyPage { records, last })
    }

    /// Forgets at most `most` idle records that were not written for `idle_ttl`, by the clocks of the machines that
    /// wrote them. Says how many.
    pub(super) async fn collect(&self, idle_ttl: Duration, most: usize) -> Result<usize, StoreError> {
        let (mut forgotten, mut after) = (0, None);
        loop {
            let KeyPage { records, last } = self.page(after.as_ref(), PAGE).await?;
            for (key, snapshot, label) in records {
                if forgotten == most {
                    return Ok(forgotten);
                }
                if snapshot.record.is_idle(snapshot.now) && is_older(label.as_ref(), idle_ttl) {
                    forgotten += usize::from(self.forget(&key, snapshot.revision).await?);
                    sleep(FORGET_PAUSE).await;
                }
            }
            if last.is_none() {
                return Ok(forgotten);
            }
            after = last;
        }
    }

    async fn forget(&self, key: &ResourceKey, revision: Revision) -> Result<bool, StoreError> {
        let answer = self.engine.ask(txn::forget(&self.keys, key, revision)).await?;
        if answer.response.succeeded() {
            self.sights.forget(key);
            let _ = self.records.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |records| records.checked_sub(1));
        }
        Ok(answer.response.succeeded())
    }
}

/// A little more or less, so that processes that were started together do not stay together.
fn jittered(wait: Duration) -> Duration {
    let share = random_u64().map_or(0, |number| u32::try_from(number % 512).unwrap_or_default());
    wait * (768 + share) / 1024
}
