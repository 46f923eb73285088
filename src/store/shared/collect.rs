//! Forgets idle records in the background.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use tokio::{
    sync::Notify,
    time::{sleep, timeout},
};

use super::jittered;
use crate::{config::StoreSettings, store::StoreError};

/// The number of resources that one request returns. Their records together have a few hundred KiB.
pub(super) const PAGE: usize = 500;

/// The pause between two records that are forgotten. It allows at most a few hundred a second, while an engine handles
/// thousands of changes a second.
pub(super) const FORGET_PAUSE: Duration = Duration::from_millis(2);

/// The maximum time between two passes. A pass that finds nothing costs one look at the engine's idle records.
const PASS_INTERVAL: Duration = Duration::from_secs(60);

/// The minimum time between two passes.
pub(super) const FULL_PAUSE: Duration = Duration::from_secs(1);

/// The number of passes within an `idle_ttl`.
pub(super) const PASSES: u32 = 8;

/// The room of a store, and how long an idle record takes some of it.
pub(super) struct CollectLimits {
    pub(super) capacity: usize,
    pub(super) idle_ttl: Duration,
    /// Notified when a swap was refused for lack of room.
    pub(super) is_full: Notify,
}

impl CollectLimits {
    pub(super) fn of(settings: &StoreSettings) -> Self {
        Self { capacity: settings.capacity, idle_ttl: settings.idle_ttl, is_full: Notify::new() }
    }
}

/// A store whose engine finds idle records.
#[async_trait]
pub(super) trait Collects: Send + Sync {
    fn limits(&self) -> &CollectLimits;

    /// Forgets at most `most` of the records that have been idle for `idle_ttl`, and returns their number.
    async fn collect(&self, idle_ttl: Duration, most: usize) -> Result<usize, StoreError>;

    /// Counts the records, if this process decides whether there is room for more.
    async fn count(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

/// Counts and collects forever.
pub(super) async fn run(store: Arc<impl Collects>) {
    let CollectLimits { capacity, idle_ttl, is_full } = store.limits();
    loop {
        let interval = (*idle_ttl / PASSES).clamp(FULL_PAUSE, PASS_INTERVAL);
        let is_full = timeout(jittered(interval), is_full.notified()).await.is_ok();
        // A failure is retried at the next interval. The client logs the state of the engine.
        if is_full {
            // At least a tenth, so that this is not needed again at once.
            let _ = store.collect(Duration::ZERO, capacity / 10 + 1).await;
            sleep(FULL_PAUSE).await;
        } else {
            let _ = store.collect(*idle_ttl, usize::MAX).await;
        }
        let _ = store.count().await;
    }
}
