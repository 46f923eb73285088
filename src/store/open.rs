//! From the configuration to a store.

use std::{error::Error, io, path::PathBuf, sync::Arc};

use super::{Incarnation, Store, etcd::EtcdStore, memory::MemoryStore, redis::RedisStore, secret::PASSWORD_VARIABLE};
use crate::{
    clock::BootClock,
    config::{self, Engine},
    entropy::random_u64,
};

/// Why there is no store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The operating system has no random number to give.
    #[error("no random numbers")]
    Random(#[from] getrandom::Error),
    /// It did not answer within `store.timeout`.
    #[error("the store does not answer: is it running, and is store.timeout long enough?")]
    Silent,
    /// It answered with an error, or cannot be reached as it is configured.
    #[error("the store cannot be used")]
    Engine(#[source] Box<dyn Error + Send + Sync>),
    /// A file that is needed for it cannot be read.
    #[error("{} cannot be read", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        error: io::Error,
    },
    /// Neither a file nor the environment has its password.
    #[error("store.user needs a password: name a file in store.password_file, or set {PASSWORD_VARIABLE}")]
    NoPassword,
    /// What stands there was not written by this program.
    #[error("the store holds something else than ifmatch wrote at {0}")]
    Damaged(String),
}

/// The store that a configuration asks for. What it does in the background runs where this was called.
pub async fn open(settings: &config::Store) -> Result<Arc<dyn Store>, OpenError> {
    let clock = Arc::new(BootClock);
    Ok(match &settings.engine {
        Engine::Memory => {
            let incarnation = Incarnation(random_u64()?);
            Arc::new(MemoryStore::new(clock, incarnation, settings.capacity, settings.idle_ttl))
        }
        Engine::Etcd(etcd) => Arc::new(EtcdStore::connect(etcd, settings, clock).await?),
        Engine::Redis(redis) => Arc::new(RedisStore::connect(redis, settings).await?),
    })
}

/// What a store promises, in one line.
pub const fn promise(engine: &Engine) -> &'static str {
    match engine {
        Engine::Memory => {
            "memory: leases, fences and marks end with the process; \
             one process only: two proxies in front of one backend need a shared store"
        }
        Engine::Etcd(_) => {
            "etcd: shared by all proxies; linearizable, survives the loss of a minority of its members; \
             guarded writes are refused while it has no majority"
        }
        Engine::Redis(_) => {
            "redis: shared by all proxies, and as durable as that Redis; a failover may lose the last writes, and with \
             them claims, leases and fences"
        }
    }
}
