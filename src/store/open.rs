//! Opens the store that the configuration describes.

use std::{error::Error, io, path::PathBuf, sync::Arc, time::Duration};

use super::{
    Incarnation, Store,
    disk::{DiskError, DiskStore},
    late::LateStore,
    memory::{MemoryStore, Room},
    shared,
};
use crate::{
    clock::BootClock,
    config::{Config, StoreKind, StoreSettings, Upstream},
    core::{records::owed::Owed, time::StoreTime},
    entropy::random_u64,
    error_causes::with_causes,
};

/// The environment variable that holds the store's password if no file does.
pub const PASSWORD_VARIABLE: &str = "IFMATCH_STORE_PASSWORD";

/// The reason why a store cannot be opened.
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
        /// The reason why the file cannot be read.
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
        /// The reason why it cannot be used.
        #[source]
        error: Box<OpenError>,
    },
    /// The program was built without stores of this kind.
    #[error("this build of ifmatch has no {0} store: `ifmatch --version` lists its stores, `make dist` builds all")]
    NotInBuild(&'static str),
}

impl OpenError {
    /// True if the store gives no answer, which it may do later.
    fn is_silence(&self) -> bool {
        match self {
            Self::Silent => true,
            Self::Shared { error, .. } => error.is_silence(),
            _ => false,
        }
    }
}

/// A store that is in use.
pub struct Opened {
    /// The store itself.
    pub store: Arc<dyn Store>,
    /// Its time at the start. `None` if it does not answer yet, and holds writes back itself when it does.
    pub time: Option<StoreTime>,
    /// How long writes of earlier processes may still be applied of which the store has no record.
    pub hold: Duration,
}

/// Returns the time owed for writes under this configuration when the process ends.
pub fn owed(config: &Config) -> Owed {
    let by_writes = |upstream: &Upstream| Owed::by_writes(upstream.timeout, upstream.late_write_window);
    config.routes.iter().map(|route| by_writes(&route.upstream)).fold(Owed::NONE, Owed::and)
}

/// Opens the store of this configuration. Its background tasks run on the runtime of the caller.
pub async fn open(config: &Config) -> Result<Opened, OpenError> {
    let settings = &config.store;
    let (clock, idle_ttl) = (Arc::new(BootClock), settings.idle_ttl);
    let room = Room { records: settings.capacity, bytes: settings.max_bytes };
    let (store, hold): (Arc<dyn Store>, _) = match &settings.kind {
        StoreKind::Memory => {
            let incarnation = Incarnation(random_u64()?);
            (Arc::new(MemoryStore::new(clock, incarnation, room, idle_ttl)), Duration::ZERO)
        }
        StoreKind::Disk { path } => {
            let (store, hold) = DiskStore::open(path, clock, room, idle_ttl, owed(config)).await?;
            if !hold.is_zero() {
                tracing::warn!(?hold, "writes of an earlier process may still come: writes and grants are held back");
            }
            (Arc::new(store), hold)
        }
        // The store holds the marks of a dead process, with their deadlines, so nothing needs to be held back.
        StoreKind::Etcd(_) | StoreKind::Postgres(_) | StoreKind::Redis(_) => match open_shared(settings).await {
            Ok(store) => (store, Duration::ZERO),
            Err(error) if error.is_silence() => return late(settings, &error),
            Err(error) => return Err(error),
        },
    };
    let time = store.now().await.map_err(|_unavailable| OpenError::Silent)?;
    Ok(Opened { store, time: Some(time), hold })
}

/// Opens a store in the background, because it does not answer now.
fn late(settings: &StoreSettings, error: &OpenError) -> Result<Opened, OpenError> {
    tracing::error!("until the store answers, guarded writes are refused: {}", with_causes(error));
    let owned = settings.clone();
    let attempt = move || {
        let settings = owned.clone();
        async move { open_shared(&settings).await }
    };
    let store = LateStore::new(Incarnation(random_u64()?), settings.start_grace, attempt);
    Ok(Opened { store: Arc::new(store), time: None, hold: Duration::ZERO })
}

/// Opens a store that several proxies share. The error names its address.
async fn open_shared(settings: &StoreSettings) -> Result<Arc<dyn Store>, OpenError> {
    let (address, opened) = match &settings.kind {
        StoreKind::Etcd(etcd) => (etcd.endpoints.join(", "), shared::etcd(etcd, settings, Arc::new(BootClock)).await),
        StoreKind::Postgres(postgres) => (postgres.url.clone(), shared::postgres(postgres, settings).await),
        StoreKind::Redis(redis) => (redis.url.clone(), shared::redis(redis, settings).await),
        // These never keep silent: `open` opens them.
        StoreKind::Memory | StoreKind::Disk { .. } => return Err(OpenError::Silent),
    };
    opened.map_err(|error| OpenError::Shared { address, error: Box::new(error) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_store() {
        let address = "redis://10.0.0.1:6379".to_owned();
        let error = OpenError::Shared { address, error: Box::new(OpenError::Silent) };
        assert_eq!(error.to_string(), "the store at redis://10.0.0.1:6379");
        let cause = error.source().map(ToString::to_string);
        assert!(cause.is_some_and(|cause| cause.starts_with("the store does not answer")));
    }
}
