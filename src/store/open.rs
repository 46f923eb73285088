//! Opens the store that the configuration describes.

use std::{error::Error, io, path::PathBuf, sync::Arc, time::Duration};

use super::{
    Incarnation, Store,
    disk::{DiskError, DiskStore},
    memory::{MemoryStore, Room},
    shared,
};
use crate::{
    clock::BootClock,
    config::{self, Config, StoreKind, Upstream},
    entropy::random_u64,
};

/// The environment variable that holds the store's password if no file does.
pub const PASSWORD_VARIABLE: &str = "IFMATCH_STORE_PASSWORD";

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The operating system has no random number to give.
    #[error("no random numbers: {0}")]
    NoRandomNumbers(#[from] getrandom::Error),
    /// The file of the store cannot be used.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The store did not answer within `store.timeout`.
    #[error("the store does not answer: is it running, and is store.timeout long enough?")]
    Silent,
    /// The store answered with an error, or cannot be reached with this configuration.
    #[error("the store cannot be used")]
    Engine(#[source] Box<dyn Error + Send + Sync>),
    /// A file that the store requires cannot be read.
    #[error("{} cannot be read", .path.display())]
    File {
        /// The path of the file.
        path: PathBuf,
        /// Why the file cannot be read.
        #[source]
        error: io::Error,
    },
    /// Neither a file nor the environment holds the store's password.
    #[error("store.user needs a password: name a file in store.password_file, or set {PASSWORD_VARIABLE}")]
    NoPassword,
    /// The value of this key was not written by this program.
    #[error("the store's value of {0} was not written by ifmatch")]
    Damaged(String),
    /// A shared store at this address cannot be used.
    #[error("the store at {address}")]
    Shared {
        /// The URLs of the store.
        address: String,
        /// Why it cannot be used.
        #[source]
        error: Box<OpenError>,
    },
    /// The program was built without stores of this kind.
    #[error("this build of ifmatch has no {0} store: `ifmatch --version` lists its stores, `make dist` builds all")]
    NotInBuild(&'static str),
}

/// A store that is ready for use.
pub struct Opened {
    /// The store itself.
    pub store: Arc<dyn Store>,
    /// How the previous process left the store.
    pub left: Left,
}

/// How the previous process left a store: whether writes may still be in progress that the store has no record of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// The process left no writes in progress.
    InOrder,
    /// The process died, and its connections were closed with it.
    ByDeath,
    /// The machine has restarted since, or was another one: the connections may never have been closed.
    ByPowerLoss,
}

impl Left {
    /// Returns how long writes and grants are held back after the start: until no write of an earlier process can
    /// arrive any more.
    pub fn hold(self, config: &Config) -> Duration {
        let late = |upstream: &Upstream| match self {
            Self::InOrder => Duration::ZERO,
            Self::ByDeath => upstream.late_write_window,
            // The upstream may still wait for the rest of a write, or process it, as if its client were connected.
            Self::ByPowerLoss => upstream.timeout.saturating_add(upstream.late_write_window),
        };
        let late = config.routes.iter().map(|route| late(&route.upstream)).max().unwrap_or_default();
        let hold = config.store.start_grace.max(late);
        if self != Self::InOrder {
            tracing::warn!(?hold, left = ?self, "the store was not closed cleanly: writes and grants are held back");
        }
        hold
    }
}

/// Adds the address of a shared store to the reason why it cannot be used.
fn at(address: String, error: OpenError) -> OpenError {
    OpenError::Shared { address, error: Box::new(error) }
}

/// Opens the configured store. Its background tasks run on the runtime of the caller.
pub async fn open(settings: &config::StoreSettings) -> Result<Opened, OpenError> {
    let (clock, idle_ttl) = (Arc::new(BootClock), settings.idle_ttl);
    let room = Room { records: settings.capacity, bytes: settings.max_bytes };
    let clean = |store: Arc<dyn Store>| Opened { store, left: Left::InOrder };
    Ok(match &settings.kind {
        StoreKind::Memory => {
            let incarnation = Incarnation(random_u64()?);
            clean(Arc::new(MemoryStore::new(clock, incarnation, room, idle_ttl)))
        }
        StoreKind::Disk { path } => {
            let (store, left) = DiskStore::open(path, clock, room, idle_ttl).await?;
            Opened { store: Arc::new(store), left }
        }
        // The store holds the marks of a dead process, with their deadlines, so nothing needs to be held back.
        StoreKind::Etcd(etcd) => {
            clean(shared::etcd(etcd, settings, clock).await.map_err(|error| at(etcd.endpoints.join(", "), error))?)
        }
        StoreKind::Postgres(postgres) => {
            clean(shared::postgres(postgres, settings).await.map_err(|error| at(postgres.url.clone(), error))?)
        }
        StoreKind::Redis(redis) => {
            clean(shared::redis(redis, settings).await.map_err(|error| at(redis.url.clone(), error))?)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_store() {
        let error = at("redis://10.0.0.1:6379".to_owned(), OpenError::Silent);
        assert_eq!(error.to_string(), "the store at redis://10.0.0.1:6379");
        let cause = error.source().map(ToString::to_string);
        assert!(cause.is_some_and(|cause| cause.starts_with("the store does not answer")));
    }
}
