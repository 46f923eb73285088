//! The stores that several proxies share, and what they have in common. The feature `shared-stores` compiles them in.

mod batch;
mod breaker;
mod collect;
mod engine;
mod epoch;
pub mod etcd;
mod first_seen;
mod health;
mod labels;
pub mod postgres;
mod records;
pub mod redis;
mod secret;
mod store;
mod waiters;

use std::{error::Error, fmt::Display, sync::Arc, time::Duration};

use self::{breaker::Breaker, etcd::EtcdStore, postgres::PostgresStore, redis::RedisStore};
use super::{
    OpenError, Store, StoreError,
    encoding::{self, Label},
};
use crate::{
    clock::Clock,
    config::{self, StoreSettings},
    core::{records::record::Record, resource::ResourceKey, time::StoreTime},
    entropy::random_u64,
};

/// The kinds of shared stores in this build, as `store.kind` names them.
pub const SHARED_KINDS: &[&str] = &["etcd", "postgres", "redis"];

/// Opens a store in etcd. Its background tasks run on the runtime of the caller.
pub(super) async fn etcd(
    etcd: &config::Etcd,
    settings: &StoreSettings,
    clock: Arc<dyn Clock>,
) -> Result<Arc<dyn Store>, OpenError> {
    let store = EtcdStore::connect(etcd, settings, clock).await?;
    Ok(Arc::new(Breaker::new(Arc::new(store), settings.timeout)))
}

/// Opens a store in PostgreSQL. Its background tasks run on the runtime of the caller.
pub(super) async fn postgres(
    postgres: &config::Postgres,
    settings: &StoreSettings,
) -> Result<Arc<dyn Store>, OpenError> {
    let store = PostgresStore::connect(postgres, settings).await?;
    Ok(Arc::new(Breaker::new(Arc::new(store), settings.timeout)))
}

/// Opens a store in Redis. Its background tasks run on the runtime of the caller.
pub(super) async fn redis(redis: &config::Redis, settings: &StoreSettings) -> Result<Arc<dyn Store>, OpenError> {
    let store = RedisStore::connect(redis, settings).await?;
    Ok(Arc::new(Breaker::new(Arc::new(store), settings.timeout)))
}

/// Reads the text of a record, whose moments count from `base`. A damaged one is logged.
fn decoded(key: &ResourceKey, text: &[u8], base: StoreTime) -> Result<(Record, Option<Label>), StoreError> {
    encoding::decode_labelled(text, base).map_err(|error| damaged(key, &error))
}

/// Logs that a record cannot be read, and returns the error of its reader.
fn damaged(key: &ResourceKey, error: &dyn Display) -> StoreError {
    tracing::error!(%key, %error, "writes to this resource are refused");
    StoreError::Damaged
}

/// The error of an engine that cannot be used with this configuration.
fn unusable(error: impl Into<Box<dyn Error + Send + Sync>>) -> OpenError {
    OpenError::Engine(error.into())
}

/// Varies a wait a little, so that processes that were started together drift apart.
fn jittered(wait: Duration) -> Duration {
    let share = random_u64().map_or(0, |number| u32::try_from(number % 512).unwrap_or_default());
    wait * (768 + share) / 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The store answers. To say that it does not would send its operator to the wrong place.
    #[test]
    fn a_record_that_cannot_be_read_is_not_a_store_that_does_not_answer() {
        let key = ResourceKey::from_text("docs:/a");
        for text in ["", "{", "[]", "{\"format\":9999}"] {
            let read = decoded(&key, text.as_bytes(), StoreTime::default()).map(drop);
            assert_eq!(read, Err(StoreError::Damaged), "{text:?}");
        }
    }
}
