//! Forgets idle records in the background.

use std::{sync::Arc, time::Duration};

use tokio::time::{sleep, timeout};

use super::{
    engine::{Engine, KeyRange},
    jittered,
    labels::is_older,
    records::EngineRecords,
};
use crate::{
    core::{records::record::Revision, resource::ResourceKey},
    store::StoreError,
};

/// The number of resources that one request returns. Their records together have a few hundred KiB.
const PAGE: usize = 500;

/// The pause between two records that are forgotten. It allows at most a few hundred a second, while an engine handles
/// thousands of changes a second.
const FORGET_PAUSE: Duration = Duration::from_millis(2);

/// The maximum time between two counts. The capacity is no strict limit, and a count costs some engines a walk over all
/// keys.
const INTERVAL_MAX: Duration = Duration::from_secs(60);

/// The minimum time between two passes.
const FULL_PAUSE: Duration = Duration::from_secs(1);

/// The number of passes within an `idle_ttl`.
const PASSES: u32 = 8;

/// Counts and collects forever.
pub(super) async fn run<E: Engine>(records: Arc<EngineRecords<E>>) {
    let pass_interval = records.idle_ttl / PASSES;
    loop {
        let wait = jittered(pass_interval.clamp(FULL_PAUSE, INTERVAL_MAX));
        let is_refused = timeout(wait, records.is_full.notified()).await.is_ok();
        // A failure is retried at the next interval. The client logs the state of the engine.
        let Ok(counted) = records.count().await else { continue };
        if counted.map_or(is_refused, |counted| counted >= records.capacity) {
            // At least a tenth, so that this is not needed again at once.
            let surplus = counted.unwrap_or_default().saturating_sub(records.capacity) + records.capacity / 10 + 1;
            let _ = records.collect(Duration::ZERO, surplus).await;
            sleep(FULL_PAUSE).await;
        } else if records.engine.takes_turn(pass_interval).await {
            let _ = records.collect(records.idle_ttl, usize::MAX).await;
        }
    }
}

impl<E: Engine> EngineRecords<E> {
    /// Forgets at most `most` of the records that have been idle for `idle_ttl`, and returns their number.
    pub(super) async fn collect(&self, idle_ttl: Duration, most: usize) -> Result<usize, StoreError> {
        let (mut forgotten, mut after) = (0, None);
        loop {
            let (aged, last) = self.aged(after.as_ref(), idle_ttl).await?;
            for (key, revision) in aged {
                if forgotten == most {
                    return Ok(forgotten);
                }
                if self.engine.forget(&key, revision, idle_ttl).await? {
                    self.forgotten(&key);
                    forgotten += 1;
                }
                sleep(FORGET_PAUSE).await;
            }
            if last.is_none() {
                return Ok(forgotten);
            }
            after = last;
        }
    }

    /// Returns some records that have been idle for `idle_ttl`, with their revisions, and the resource after which there
    /// may be more. If all records are read for that, their age is that by the clocks of the machines that wrote them.
    async fn aged(
        &self,
        after: Option<&ResourceKey>,
        idle_ttl: Duration,
    ) -> Result<(Vec<(ResourceKey, Revision)>, Option<ResourceKey>), StoreError> {
        self.reached()?;
        if let Some(aged) = self.engine.aged(after, PAGE, idle_ttl).await? {
            let last = aged.last().filter(|_| aged.len() == PAGE).cloned();
            return Ok((aged.into_iter().map(|key| (key, Revision::default())).collect(), last));
        }
        let (records, last) = self.page(KeyRange { after, ..KeyRange::default() }, PAGE).await?;
        let aged = records.into_iter().filter(|(_, (snapshot, label))| {
            snapshot.record.is_idle(snapshot.now) && is_older(label.as_ref(), idle_ttl)
        });
        Ok((aged.map(|(key, (snapshot, _))| (key, snapshot.revision)).collect(), last))
    }
}
