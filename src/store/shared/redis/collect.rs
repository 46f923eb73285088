//! Finds idle records, and forgets them.

use std::time::Duration;

use async_trait::async_trait;
use tokio::time::sleep;

use super::{
    RedisShared,
    reply::{AGED, FORGET},
};
use crate::{
    core::resource::ResourceKey,
    store::{
        StoreError,
        shared::collect::{CollectLimits, Collects, FORGET_PAUSE, PAGE},
    },
};

#[async_trait]
impl Collects for RedisShared {
    fn limits(&self) -> &CollectLimits {
        &self.limits
    }

    async fn collect(&self, idle_ttl: Duration, most: usize) -> Result<usize, StoreError> {
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
}

impl RedisShared {
    async fn forget(&self, key: &ResourceKey, idle_milliseconds: u64) -> Result<usize, StoreError> {
        let keys = &self.keys;
        let mut script = FORGET.key(keys.record(key));
        script.key(&keys.floors).key(&keys.records).key(&keys.idle);
        script.arg(key.bucket()).arg(key.as_str()).arg(idle_milliseconds);
        Ok(self.engine.run(&script).await?.reply)
    }
}
