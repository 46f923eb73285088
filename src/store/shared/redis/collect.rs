//! Forgets idle records in the background.

use std::{sync::Arc, time::Duration};

use tokio::time::{sleep, timeout};

use super::{
    RedisShared,
    reply::{AGED, FORGET},
};
use crate::{
    core::resource::ResourceKey,
    store::{StoreError, shared::jittered},
};

/// The number of idle resources that one request returns.
const PAGE: usize = 500;

/// The pause between two records that are forgotten. It allows at most a few hundred a second, while Redis handles tens
/// of thousands of operations a second.
const FORGET_PAUSE: Duration = Duration::from_millis(2);

/// The maximum time between two passes. A pass that finds nothing costs one look at a sorted set.
const PASS_INTERVAL: Duration = Duration::from_secs(60);

/// The minimum time between two passes.
const FULL_PAUSE: Duration = Duration::from_secs(1);

/// The number of passes within an `idle_ttl`.
const PASSES: u32 = 8;

/// Collects forever.
pub(super) async fn run(shared: Arc<RedisShared>) {
    loop {
        let interval = (shared.idle_ttl / PASSES).clamp(FULL_PAUSE, PASS_INTERVAL);
        let is_full = timeout(jittered(interval), shared.is_full.notified()).await.is_ok();
        // A failure is retried at the next interval. The client logs the state of the engine.
        if is_full {
            // At least a tenth, so that this is not needed again at once.
            let _ = shared.collect(Duration::ZERO, shared.capacity / 10 + 1).await;
            sleep(FULL_PAUSE).await;
        } else {
            let _ = shared.collect(shared.idle_ttl, usize::MAX).await;
        }
    }
}

impl RedisShared {
    /// Forgets at most `most` of the records that have been idle for `idle_ttl`, and returns their number.
    pub(super) async fn collect(&self, idle_ttl: Duration, most: usize) -> Result<usize, StoreError> {
        let idle_milliseconds = u64::try_from(idle_ttl.as_millis()).unwrap_or(u64::MAX);
        let mut forgotten = 0;
        loop {
            self.epoch.reached()?;
            let mut script = AGED.key(&self.keys.idle);
            script.arg(idle_milliseconds).arg(PAGE);
            let aged = self.engine.run::<Vec<String>>(&script).await?.reply;
            for resource in &aged {
                if forgotten == most {
                    return Ok(forgotten);
                }
                forgotten += self.forget(&ResourceKey::from_text(resource), idle_milliseconds).await?;
                sleep(FORGET_PAUSE).await;
            }
            if aged.len() < PAGE {
                return Ok(forgotten);
            }
        }
    }

    async fn forget(&self, key: &ResourceKey, idle_milliseconds: u64) -> Result<usize, StoreError> {
        let keys = &self.keys;
        let mut script = FORGET.key(keys.record(key));
        script.key(&keys.floors).key(&keys.records).key(&keys.idle);
        script.arg(key.bucket()).arg(key.as_str()).arg(idle_milliseconds);
        Ok(self.engine.run(&script).await?.reply)
    }
}
