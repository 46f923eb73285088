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
    config::{Config, StoreKind, Upstream},
    core::records::owed::Owed,
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
    /// How long writes of earlier processes may still be applied of which the store has no record.
    pub hold: Duration,
}

/// What writes under this configuration leave when the process ends.
pub fn owed(config: &Config) -> Owed {
    let by_writes = |upstream: &Upstream| Owed::by_writes(upstream.timeout, upstream.late_write_window);
    config.routes.iter().map(|route| by_writes(&route.upstream)).fold(Owed::NONE, Owed::and)
}

/// Adds the address of a shared store to the reason why it cannot be used.
fn at(address: String, error: OpenError) -> OpenError {
    OpenError::Shared { address, error: Box::new(error) }
}

/// Opens the store of this configuration. Its background tasks run on the runtime of the caller.
pub async fn open(config: &Config) -> Result<Opened, OpenError> {
    let settings = &config.store;
    let (clock, idle_ttl) = (Arc::new(BootClock), settings.idle_ttl);
    let room = Room { records: settings.capacity, bytes: settings.max_bytes };
    let clean = |store: Arc<dyn Store>| Opened { store, hold: Duration::ZERO };
    Ok(match &settings.kind {
        StoreKind::Memory => {
            let incarnation = Incarnation(random_u64()?);
            clean(Arc::new(MemoryStore::new(clock, incarnation, room, idle_ttl)))
        }
        StoreKind::Disk { path } => {
            let (store, hold) = DiskStore::open(path, clock, room, idle_ttl, owed(config)).await?;
            if !hold.is_zero() {
                tracing::warn!(?hold, "writes of an earlier process may still come: writes and grants are held back");
            }
            Opened { store: Arc::new(store), hold }
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
