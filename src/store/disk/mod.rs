//! The disk store: one process; its leases and fences survive its end, a crash, and a loss of power.
//!
//! # Design
//!
//! *What is written?* Leases, with their fences, and how far revisions were given. All else is what a proxy can learn
//! again: it lives in the memory store that stands before the file.
//!
//! *When?* A swap that changes a lease returns when the file has it. So whoever is told of a grant finds it after a
//! crash, and no fence is given twice.
//!
//! *What about marks?* A mark that a crash has lost may belong to a write that the upstream still applies. Instead of
//! writing each mark down, the file knows whether its last user has given it back in good order; if not,
//! [`Opened::unclean`](super::Opened::unclean) says so, and writes and grants are held back for as long as a write may
//! come late.
//!
//! *How does time pass while nobody looks?* It does not: what is kept of a lease is how long it had from its last
//! change on, and it has that again after a restart. It may end late, and never early.

use std::{io, path::Path, sync::Arc, time::Duration};

use async_trait::async_trait;

use super::{
    Counts, Incarnation, Store, StoreError, Swapped,
    memory::{Inheritance, MemoryStore},
};
use crate::{
    clock::Clock,
    core::{
        record::{Record, Revision, Snapshot},
        resource::ResourceKey,
        time::StoreTime,
    },
};

mod file;
mod frame;
mod log;
mod queue;
mod writer;

use file::Contents;
pub use file::DiskError;
use log::Log;
use queue::Commit;
use writer::Writer;

/// Records in memory, with leases on disk.
pub struct DiskStore {
    memory: MemoryStore<Writer>,
    clock: Arc<dyn Clock>,
}

impl DiskStore {
    /// The store in this file, which is created where there is none; and whether its last user left it in disorder.
    pub async fn open(
        path: &Path,
        clock: Arc<dyn Clock>,
        capacity: usize,
        idle_ttl: Duration,
    ) -> Result<(Self, bool), DiskError> {
        let (log, contents) = file::open(path, clock.now())?;
        let unclean = !contents.was_closed;
        let store = Self::begin(log, contents, clock, (capacity, idle_ttl)).await;
        Ok((store.map_err(|source| DiskError::Io { path: path.to_owned(), source })?, unclean))
    }

    /// Goes on from what a file held.
    async fn begin(log: Log, contents: Contents, clock: Arc<dyn Clock>, limits: (usize, Duration)) -> io::Result<Self> {
        let Contents { incarnation, reserved, records, .. } = contents;
        let writer = Writer::start(log, reserved.0)?;
        if !writer.begin().is_made().await {
            return Err(io::Error::other("it cannot be written"));
        }
        let inheritance = Inheritance { revision: reserved, records };
        let memory = MemoryStore::inheriting(inheritance, writer, Arc::clone(&clock), incarnation, limits);
        Ok(Self { memory, clock })
    }
}

#[async_trait]
impl Store for DiskStore {
    fn incarnation(&self) -> Incarnation {
        self.memory.incarnation()
    }

    async fn now(&self) -> Result<StoreTime, StoreError> {
        Ok(self.clock.now())
    }

    async fn read(&self, key: &ResourceKey) -> Result<Snapshot, StoreError> {
        self.memory.read(key).await
    }

    async fn swap(&self, key: &ResourceKey, expected: Revision, next: Record) -> Result<Swapped, StoreError> {
        let (swapped, awaited) = self.memory.swap_now(key, expected, next)?;
        if is_made(awaited.flatten()).await { Ok(swapped) } else { Err(StoreError::Unavailable) }
    }

    async fn scan(
        &self,
        after: Option<&ResourceKey>,
        limit: usize,
    ) -> Result<Vec<(ResourceKey, Snapshot)>, StoreError> {
        self.memory.scan(after, limit).await
    }

    async fn changed(&self, key: &ResourceKey, seen: Revision) {
        self.memory.changed(key, seen).await;
    }

    async fn raise_floors(&self) -> Result<(), StoreError> {
        let awaited = self.memory.raise_floors_now()?;
        if is_made(awaited.flatten()).await { Ok(()) } else { Err(StoreError::Unavailable) }
    }

    fn count(&self) -> Option<Counts> {
        self.memory.count()
    }

    async fn close(&self) {
        if self.memory.is_quiet() {
            self.memory.journal().give_back().is_made().await;
        } else {
            tracing::warn!("the process ends with writes in flight or in doubt: the next start waits for them");
        }
    }
}

/// Waits until a swap is on the disk, if it has to be there.
async fn is_made(commit: Option<Arc<Commit>>) -> bool {
    match commit {
        Some(commit) => commit.is_made().await,
        None => true,
    }
}

#[cfg(test)]
mod log_tests;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod torn_tests;
