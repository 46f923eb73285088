//! Forgets idle records in the background.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::time::{sleep, timeout};

use super::{EtcdShared, encoding::Label, txn};
use crate::{
    core::{
        records::record::{Revision, Snapshot},
        resource::ResourceKey,
    },
    store::{
        StoreError,
        shared::{
            collect::{FORGET_PAUSE, FULL_PAUSE, PAGE, PASSES},
            jittered,
            labels::is_older,
        },
    },
};

/// The interval between two counts of the records. The capacity is no strict limit, and a count costs etcd a walk over
/// all keys.
const COUNT_INTERVAL: Duration = Duration::from_secs(60);

/// Some of the records, in the order of their keys.
pub(super) struct KeyPage {
    /// The records that can be read.
    pub(super) records: Vec<(ResourceKey, Snapshot, Option<Label>)>,
    /// The key of the last record of the page, if there are more after it.
    pub(super) last: Option<ResourceKey>,
}

/// Counts and collects forever.
pub(super) async fn run(shared: Arc<EtcdShared>) {
    let pass_interval = shared.limits.idle_ttl / PASSES;
    let mut last_turn = Revision::default();
    let mut since_look = Duration::ZERO;
    loop {
        let wait = jittered(COUNT_INTERVAL.min(pass_interval.max(FULL_PAUSE)));
        let is_full = timeout(wait, shared.limits.is_full.notified()).await.is_ok();
        since_look += if is_full { Duration::ZERO } else { wait };
        // A failure is retried at the next interval. The client logs the state of the engine.
        if shared.count().await.is_err() {
            continue;
        }
        let records = shared.records.load(Ordering::Relaxed);
        if records >= shared.limits.capacity {
            // At least a tenth, so that this is not needed again at once.
            let surplus = records - shared.limits.capacity + shared.limits.capacity / 10 + 1;
            let _ = shared.collect(Duration::ZERO, surplus).await;
            sleep(FULL_PAUSE).await;
        } else if since_look >= pass_interval {
            since_look = Duration::ZERO;
            if take_turn(&shared, &mut last_turn).await {
                let _ = shared.collect(shared.limits.idle_ttl, usize::MAX).await;
            }
        }
    }
}

/// Takes the turn to look through the records, unless another process has since the last one that was seen. In each
/// interval, only one of all processes takes it.
async fn take_turn(shared: &EtcdShared, seen: &mut Revision) -> bool {
    let key = shared.keys.collected();
    let Ok(answer) = shared.engine.ask(txn::put_next(&key, *seen, "")).await else { return false };
    let is_ours = answer.response.succeeded();
    let last = txn::last_get(&answer.response);
    let others = last.and_then(|got| got.kvs().first().map(|pair| txn::revision(pair.mod_revision())));
    *seen = if is_ours { answer.at } else { others.unwrap_or_default() };
    is_ours
}

impl EtcdShared {
    /// Counts the records.
    pub(super) async fn count(&self) -> Result<(), StoreError> {
        let answer = self.engine.ask(txn::count(&self.keys)).await?;
        let count = txn::last_get(&answer.response).ok_or(StoreError::Unavailable)?.count();
        self.records.store(usize::try_from(count).unwrap_or_default(), Ordering::Relaxed);
        Ok(())
    }

    /// Reads at most `limit` records after that of `after`. Damaged records are left out, and logged.
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
    /// wrote them. Returns their number.
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
