//! From the configuration to a store.

use std::{error::Error, io, path::PathBuf, sync::Arc, time::Duration};

use super::{
    Incarnation, Store,
    breaker::Breaker,
    disk::{DiskError, DiskStore},
    etcd::EtcdStore,
    memory::{MemoryStore, Room},
    redis::RedisStore,
    secret::PASSWORD_VARIABLE,
};
use crate::{
    clock::BootClock,
    config::{self, Config, StoreKind, Upstream},
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
    /// How the process that used it before has left it.
    pub left: Left,
}

/// How the process that used a store before has left it: whether it may have left writes under way, of which the store
/// knows nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// It has left none.
    InOrder,
    /// It died: its connections were closed then.
    ByDeath,
    /// The machine was started since, or it was another machine: nobody may have closed the connections.
    ByPowerLoss,
}

impl Left {
    /// How long writes and grants are held back after the start: until no write of an earlier process can come any more.
    pub fn hold(self, config: &Config) -> Duration {
        let late = |upstream: &Upstream| match self {
            Self::InOrder => Duration::ZERO,
            Self::ByDeath => upstream.late_max,
            // The upstream may still wait for the rest of a write, or work on it, as if its client were there.
            Self::ByPowerLoss => upstream.timeout.saturating_add(upstream.late_max),
        };
        let late = config.routes.iter().map(|route| late(&route.upstream)).max().unwrap_or_default();
        let hold = config.store.start_grace.max(late);
        if self != Self::InOrder {
            tracing::warn!(?hold, left = ?self, "the store was not closed in good order: writes and grants are held back");
        }
        hold
    }
}

/// The store that a configuration asks for. What it does in the background runs where this was called.
pub async fn open(settings: &config::StoreSettings) -> Result<Opened, OpenError> {
    let (clock, idle_ttl) = (Arc::new(BootClock), settings.idle_ttl);
    let room = Room { records: settings.capacity, bytes: settings.max_bytes };
    let clean = |store: Arc<dyn Store>| Opened { store, left: Left::InOrder };
    let elsewhere = |store: Arc<dyn Store>| clean(Arc::new(Breaker::new(store, settings.timeout)));
    Ok(match &settings.kind {
        StoreKind::Memory => {
            let incarnation = Incarnation(random_u64()?);
            clean(Arc::new(MemoryStore::new(clock, incarnation, room, idle_ttl)))
        }
        StoreKind::Disk { path } => {
            let (store, left) = DiskStore::open(path, clock, room, idle_ttl).await?;
            Opened { store: Arc::new(store), left }
        }
        // The marks of a dead process are in the store, with their deadlines: nothing needs to be held back.
        StoreKind::Etcd(etcd) => elsewhere(Arc::new(EtcdStore::connect(etcd, settings, clock).await?)),
        StoreKind::Redis(redis) => elsewhere(Arc::new(RedisStore::connect(redis, settings).await?)),
    })
}
