//! Pages of records, and the background task that forgets idle ones.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::time::{sleep, timeout};
use tokio_postgres::types::ToSql;

use super::{
    PostgresShared,
    rows::{PageRow, decoded, signed},
    statements::Ask,
};
use crate::{
    core::resource::ResourceKey,
    store::{Scanned, StoreError, shared::jittered},
};

/// The number of idle resources that one statement returns.
const PAGE: usize = 500;

/// The pause between two records that are forgotten. It allows at most a few hundred a second, while PostgreSQL handles
/// thousands of changes a second.
const FORGET_PAUSE: Duration = Duration::from_millis(2);

/// The maximum time between two passes. A pass reads the table once.
const PASS_INTERVAL: Duration = Duration::from_secs(60);

/// The minimum time between two passes.
const FULL_PAUSE: Duration = Duration::from_secs(1);

/// The number of passes within an `idle_ttl`.
const PASSES: u32 = 8;

/// Counts and collects forever.
pub(super) async fn run(shared: Arc<PostgresShared>) {
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
        let _ = shared.count().await;
    }
}

impl PostgresShared {
    /// Counts the records.
    pub(super) async fn count(&self) -> Result<(), StoreError> {
        let reply = self.engine.ask(Ask::Count, &[]).await?;
        let count = reply.rows.first().and_then(|row| row.try_get::<_, i64>(0).ok()).ok_or(StoreError::Unavailable)?;
        self.records.store(usize::try_from(count).unwrap_or_default(), Ordering::Relaxed);
        Ok(())
    }

    /// Reads up to `limit` records after that of `after`. Damaged records are left out, and logged.
    pub(super) async fn scan(&self, after: Option<&ResourceKey>, limit: usize) -> Result<Scanned, StoreError> {
        let (mut scanned, mut after) = (Scanned::new(), after.map(|key| key.digest().to_vec()).unwrap_or_default());
        loop {
            let wanted = limit - scanned.len();
            let reached = self.epoch.reached()?;
            let rows = self.engine.ask(Ask::Page, &[&after, &signed(wanted as u64)]).await?.rows;
            for row in &rows {
                let PageRow { key, revision, text, at } = PageRow::read(row).ok_or(StoreError::Unavailable)?;
                let now = self.accept(reached, at, revision)?;
                scanned.extend(decoded(&key, revision, text, now).ok().map(|(snapshot, _)| (key, snapshot)));
            }
            let Some(last) = rows.last().filter(|_| scanned.len() < limit && rows.len() == wanted) else {
                return Ok(scanned);
            };
            after = last.try_get(0).map_err(|_damaged| StoreError::Unavailable)?;
        }
    }

    /// Forgets at most `most` of the records that have been idle for `idle_ttl`, and returns their number.
    pub(super) async fn collect(&self, idle_ttl: Duration, most: usize) -> Result<usize, StoreError> {
        let idle_milliseconds = i64::try_from(idle_ttl.as_millis()).unwrap_or(i64::MAX);
        let (mut forgotten, mut after) = (0, Vec::<u8>::new());
        loop {
            self.epoch.reached()?;
            let rows = self.engine.ask(Ask::Aged, &[&after, &idle_milliseconds, &signed(PAGE as u64)]).await?.rows;
            for row in &rows {
                if forgotten == most {
                    return Ok(forgotten);
                }
                let key: &str = row.try_get(1).map_err(|_damaged| StoreError::Unavailable)?;
                forgotten += usize::from(self.forget(&ResourceKey::from_text(key), idle_milliseconds).await?);
                sleep(FORGET_PAUSE).await;
            }
            let Some(last) = rows.last().filter(|_| rows.len() == PAGE) else { return Ok(forgotten) };
            after = last.try_get(0).map_err(|_damaged| StoreError::Unavailable)?;
        }
    }

    async fn forget(&self, key: &ResourceKey, idle_milliseconds: i64) -> Result<bool, StoreError> {
        let (digest, bucket) = (key.digest(), i32::from(key.bucket()));
        let values: [&(dyn ToSql + Sync); 3] = [&digest.as_slice(), &bucket, &idle_milliseconds];
        let is_gone = !self.engine.ask(Ask::Forget, &values).await?.rows.is_empty();
        if is_gone {
            let _ = self.records.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |records| records.checked_sub(1));
        }
        Ok(is_gone)
    }
}
