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
//! a larger one. So the holder of a lease can renew it and release it, even if other files fill the disk.
//!
//! *What about marks?* A mark that a crash has lost may belong to a write that the upstream still applies. Marks are
//! not written down. Instead each commit records the debt of the process ([`Owed`]): for how long the next one must
//! hold writes and grants back. While the process runs, that is the longer of two times: that within which its writes
//! may come late, and the rest of its own hold. When it ends in good order, only the rest of its hold is left.
//!
//! *How does time pass while no process runs?* It does not. The file keeps how long each lease had left at its last
//! change, and the lease has that time again after a restart. It may end late, but never early.

use std::{io, path::Path, sync::Arc, time::Duration};

use super::memory::{Inheritance, MemoryStore, Room};
use crate::{clock::Clock, core::records::owed::Owed};

mod debt;
mod file;
mod frame;
mod lasting;
mod log;
mod permissions;
mod queue;
mod writer;

use debt::Debt;
use file::Contents;
pub use file::DiskError;
use log::Log;
pub use writer::DiskWriter;

/// Records in memory, with leases on disk.
pub type DiskStore = MemoryStore<DiskWriter>;

impl MemoryStore<DiskWriter> {
    /// Opens the store in this file, which is created if it does not exist. Also returns how long
    /// writes of its earlier users may still be applied. Writes of this process leave what is `owed`.
    pub async fn open(
        path: &Path,
        clock: Arc<dyn Clock>,
        room: Room,
        idle_ttl: Duration,
        owed: Owed,
    ) -> Result<(Self, Duration), DiskError> {
        let (log, contents) = file::open(path, clock.now())?;
        let hold = contents.hold;
        let store = Self::begin(log, contents, clock, (room, idle_ttl), owed).await;
        Ok((store.map_err(|source| DiskError::Io { path: path.to_owned(), source })?, hold))
    }

    /// Continues from the contents of a file.
    async fn begin(
        log: Log,
        contents: Contents,
        clock: Arc<dyn Clock>,
        limits: (Room, Duration),
        owed: Owed,
    ) -> io::Result<Self> {
        let Contents { incarnation, reserved, records, hold } = contents;
        let now = clock.now();
        let writer = DiskWriter::start(log, reserved.0, Debt::new(owed, now.plus(hold)))?;
        if !writer.begin(now).is_made().await {
            return Err(io::Error::other("it cannot be written"));
        }
        let inheritance = Inheritance { revision: reserved, records };
        Ok(Self::inheriting(inheritance, writer, clock, incarnation, limits))
    }
}

#[cfg(test)]
mod log_tests;
#[cfg(test)]
mod owed_tests;
#[cfg(test)]
mod refused_tests;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod torn_tests;
