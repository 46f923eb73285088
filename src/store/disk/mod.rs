//! The disk store: for one process. Its leases and fences survive its end, a crash, and a loss of power.
//!
//! # Design
//!
//! *What is written?* Leases with their fences, and the highest revision that may be given. A proxy can learn
//! everything else again, so that stays in the memory store in front of the file.
//!
//! *When is it written?* A swap that changes a lease takes effect, and returns, once the file has it. Until then the
//! record stays unchanged, and its next swap waits. So every grant that a client has seen survives a crash, and no
//! fence is given twice.
//!
//! *What if it cannot be written?* Then the swap has not happened, for any reader. Parts of it may be in the file all
//! the same, so the next commit overwrites it, repeatedly until the disk accepts one. The store keeps nothing of a
//! refused swap: clients continue to send requests while a disk fails, and each refused one would make that commit
//! longer.
//!
//! *What if the disk is full?* The file is allocated with room to spare, and is used to its end if there is no room for
//! a larger one. So the holder of a lease can renew it and release it, whatever else fills the disk.
//!
//! *What about marks?* A mark that a crash has lost may belong to a write that the upstream still applies. Marks are
//! not written down. Instead the file records whether its last user closed it cleanly. If not,
//! [`Opened::left`](super::Opened::left) reports that, and writes and grants are held back for as long as a write may
//! come late. If the machine has restarted since, the upstream may not have learned that the connection is gone. It may
//! then continue for as long as the write could last.
//!
//! *How does time pass while no process runs?* It does not. The file keeps how long each lease had left at its last
//! change, and the lease has that time again after a restart. It may end late, but never early.

use std::{io, path::Path, sync::Arc, time::Duration};

use super::{
    Left,
    memory::{Inheritance, MemoryStore, Room},
};
use crate::clock::Clock;

mod file;
mod frame;
mod lasting;
mod log;
mod queue;
mod writer;

use file::Contents;
pub use file::DiskError;
use log::Log;
pub use writer::DiskWriter;

/// Records in memory, with leases on disk.
pub type DiskStore = MemoryStore<DiskWriter>;

impl MemoryStore<DiskWriter> {
    /// Opens the store in this file, which is created if it does not exist. Also returns how its last user left it.
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

    /// Continues from the contents of a file.
    async fn begin(log: Log, contents: Contents, clock: Arc<dyn Clock>, limits: (Room, Duration)) -> io::Result<Self> {
        let Contents { incarnation, reserved, records, .. } = contents;
        let writer = DiskWriter::start(log, reserved.0)?;
        if !writer.reserve_next().is_made().await {
            return Err(io::Error::other("it cannot be written"));
        }
        let inheritance = Inheritance { revision: reserved, records };
        Ok(Self::inheriting(inheritance, writer, clock, incarnation, limits))
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
