//! From the configuration to a store.

use std::{error::Error, io, path::PathBuf, sync::Arc};

use super::{
    Incarnation, Store,
    breaker::Breaker,
    disk::{DiskError, DiskStore},
    etcd::EtcdStore,
    memory::MemoryStore,
    redis::RedisStore,
    secret::PASSWORD_VARIABLE,
};
use crate::{
    clock::BootClock,
    config::{self, StoreKind},
    entropy::random_u64,
};

/// Why there is no store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The operating system has no random number to give.
    #[error("no random numbers: {0}")]
    NoRandomNumbers(#[from] getrandom::Error),
    /// Its file is of no use.
    #[error(transparent)]
    Disk(#[from] DiskError),
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

/// A store that is ready for use.
pub struct Opened {
    /// It.
    pub store: Arc<dyn Store>,
    /// Whether the process that used it before may have left writes under way, of which the store knows nothing.
    pub unclean: bool,
}

/// The store that a configuration asks for. What it does in the background runs where this was called.
pub async fn open(settings: &config::Store) -> Result<Opened, OpenError> {
    let (clock, capacity, idle_ttl) = (Arc::new(BootClock), settings.capacity, settings.idle_ttl);
    let clean = |store: Arc<dyn Store>| Opened { store, unclean: false };
    let elsewhere = |store: Arc<dyn Store>| clean(Arc::new(Breaker::new(store, settings.timeout)));
    Ok(match &settings.kind {
        StoreKind::Memory => {
            let incarnation = Incarnation(random_u64()?);
            clean(Arc::new(MemoryStore::new(clock, incarnation, capacity, idle_ttl)))
        }
        StoreKind::Disk { path } => {
            let (store, unclean) = DiskStore::open(path, clock, capacity, idle_ttl).await?;
            Opened { store: Arc::new(store), unclean }
        }
        // The marks of a dead process are in the store, with their deadlines: nothing needs to be held back.
        StoreKind::Etcd(etcd) => elsewhere(Arc::new(EtcdStore::connect(etcd, settings, clock).await?)),
        StoreKind::Redis(redis) => elsewhere(Arc::new(RedisStore::connect(redis, settings).await?)),
    })
}
