//! Finds idle records, counts all records, and forgets the idle ones.

use std::{sync::atomic::Ordering, time::Duration};

use async_trait::async_trait;
use tokio::time::sleep;
use tokio_postgres::types::ToSql;

use super::{PostgresShared, rows::signed, statements::Ask};
use crate::{
    core::resource::ResourceKey,
    store::{
        StoreError,
        shared::collect::{CollectLimits, Collects, FORGET_PAUSE, PAGE},
    },
};

#[async_trait]
impl Collects for PostgresShared {
    fn limits(&self) -> &CollectLimits {
        &self.limits
    }

    async fn collect(&self, idle_ttl: Duration, most: usize) -> Result<usize, StoreError> {
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

    async fn count(&self) -> Result<(), StoreError> {
        let reply = self.engine.ask(Ask::Count, &[]).await?;
        let count = reply.rows.first().and_then(|row| row.try_get::<_, i64>(0).ok()).ok_or(StoreError::Unavailable)?;
        self.records.store(usize::try_from(count).unwrap_or_default(), Ordering::Relaxed);
        Ok(())
    }
}

impl PostgresShared {
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
