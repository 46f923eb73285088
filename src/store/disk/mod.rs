//! The disk store: one process; its leases and fences survive its end, a crash, and a loss of power.
//!
//! # Design
//!
//! *What is written?* Leases, with their fences, and how far revisions were given. All else is what a proxy can learn
//! again: it lives in the memory store that stands before the file.
//!
//! *When?* A swap that changes a lease is in force, and returns, when the file has it: until then the record is as it was,
//! and the next swap of it waits. So whoever is told of a grant finds it after a crash, and no fence is given twice.
//!
//! *And where it cannot be written?* Then the swap has not happened, for anybody. What was written of it may be in the
//! file all the same, so the next commit is written over it, again and again until the disk takes one. Nothing of it is
//! kept: while a disk fails clients go on to ask, and each request that is refused would make that commit longer.
//!
//! *And where the disk is full?* The file has its room from the beginning, and is used to its end where there is no room for
//! a larger one. So who holds a lease can renew it and give it back, whatever else fills the disk.
//!
//! *What about marks?* A mark that a crash has lost may belong to a write that the upstream still applies. Instead of
//! writing each mark down, the file knows whether its last user has given it back in good order; if not,
//! [`Opened::left`](super::Opened::left) says so, and writes and grants are held back for as long as a write may come
//! late. Where the machine itself was started since, nobody may have told the upstream that the connection is gone, so
//! it may go on for as long as the write could last.
//!
//! *How does time pass while nobody looks?* It does not: what is kept of a lease is how long it had from its last
//! change on, and it has that again after a restart. It may end late, and never early.

use std::{io, path::Path, sync::Arc, time::Duration};

use async_trait::async_trait;

use super::{
    Counts, Incarnation, Left, Store, StoreError, Swapped,
    memory::{Inheritance, MemoryStore, Room},
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
use writer::DiskWriter;

/// Records in memory, with leases on disk.
pub struct DiskStore {
    memory: MemoryStore<DiskWriter>,
    clock: Arc<dyn Clock>,
}

impl DiskStore {
    /// The store in this file, which is created where there is none; and how its last user left it.
    pub async fn open(
        path: &Path,
        clock: Arc<dyn Clock>,
        room: Room,
        idle_ttl: Duration,
    ) -> Result<(Self, Left), DiskError> {
        let (log, contents) = file::open(path, clock.now())?;
        let left = contents.left;
        let store = Self::begin(log, contents, clock, (room, idle_ttl)).await;
        Ok((store.map_err(|source| DiskError::Io { path: path.to_owned(), source })?, left))
    }

    /// Goes on from what a file held.
    async fn begin(log: Log, contents: Contents, clock: Arc<dyn Clock>, limits: (Room, Duration)) -> io::Result<Self> {
        let Contents { incarnation, reserved, records, .. } = contents;
        let writer = DiskWriter::start(log, reserved.0)?;
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
        self.memory.swap(key, expected, next).await
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
        self.memory.raise_floors().await
    }

    fn count(&self) -> Option<Counts> {
        self.memory.count()
    }

    async fn try_out(&self) -> Result<(), StoreError> {
        if self.memory.journal().try_out().is_made().await { Ok(()) } else { Err(StoreError::Unavailable) }
    }

    async fn close(&self) {
        if self.memory.has_no_pending_writes() {
            self.memory.journal().give_back().is_made().await;
        } else {
            tracing::warn!("the process ends with writes in flight or in doubt: the next start waits for them");
        }
    }
}

#[cfg(test)]
mod log_tests;
#[cfg(test)]
mod refused_tests;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod torn_tests;
