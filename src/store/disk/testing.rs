//! A test disk that forgets unsynced data. Its power can fail, and so can its syncs.

use std::{
    io,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use super::log::Medium;
use crate::{
    core::{
        lease::{Lease, LeaseDuration, LeaseId, LeaseMode, LeaseSet, TargetName, Term},
        policy::LeaseGuards,
        records::record::{Record, Revision, Stamp},
        time::StoreTime,
    },
    store::memory::Room,
};

/// A size so small that the log often starts over, and soon needs larger regions.
pub(super) const REGION_BYTES: usize = 2_048;
/// More than any test needs.
pub(super) const ROOM: Room = Room { records: 1_000, bytes: 1 << 30 };
/// The boot of the machine that tests run under.
pub(super) const BOOT: Option<u128> = Some(7);
/// The size of a sector. It is smaller than on any real disk, so that a frame with one lease has several.
const SECTOR_BYTES: usize = 128;

/// A change in the cache of a disk.
#[derive(Clone, Debug)]
enum Change {
    Write(u64, Vec<u8>),
    /// Another file that replaces this one.
    Replacement(Vec<u8>),
}

#[derive(Debug, Default)]
pub(super) struct Platter {
    /// The bytes that a reader sees.
    pub(super) current: Vec<u8>,
    /// The bytes that would survive a loss of power.
    pub(super) synced: Vec<u8>,
    /// The changes since the last sync.
    unsynced: Vec<Change>,
    /// The number of operations until the power fails.
    pub(super) power: Option<u64>,
    /// True if the disk has no room for another file.
    pub(super) is_full: bool,
    /// True if the sync of the name fails after another file has replaced this one.
    pub(super) fails_sync_after_replacement: bool,
    /// The bytes of all writes, including those that failed.
    pub(super) tried_bytes: usize,
}

/// A disk that can lose its power after a number of operations.
#[derive(Clone, Debug, Default)]
pub(super) struct Disk(Arc<Mutex<Platter>>);

impl Disk {
    pub(super) fn holding(bytes: Vec<u8>) -> Self {
        Self(Arc::new(Mutex::new(Platter { synced: bytes.clone(), current: bytes, ..Platter::default() })))
    }

    pub(super) fn platter(&self) -> MutexGuard<'_, Platter> {
        self.0.lock().unwrap()
    }

    fn change(&self, change: Change) -> io::Result<()> {
        self.platter().tried_bytes += match &change {
            Change::Write(_, data) => data.len(),
            Change::Replacement(bytes) => bytes.len(),
        };
        let mut platter = self.powered()?;
        match &change {
            Change::Write(offset, data) => put(&mut platter.current, *offset, data),
            Change::Replacement(bytes) => platter.current = bytes.clone(),
        }
        platter.unsynced.push(change);
        Ok(())
    }

    fn powered(&self) -> io::Result<MutexGuard<'_, Platter>> {
        let mut platter = self.platter();
        match &mut platter.power {
            Some(0) => return Err(io::Error::other("there is no power")),
            Some(left) => *left -= 1,
            None => {}
        }
        Ok(platter)
    }

    /// Returns the bytes that are found when the power is back. Of each unsynced write, all sectors survive, or none,
    /// or some.
    pub(super) fn after_crash(&self, random: &mut Random) -> Vec<u8> {
        let platter = self.platter();
        let mut found = platter.synced.clone();
        for change in &platter.unsynced {
            let (all, some) = (random.below(3) == 0, random.below(2) == 0);
            match change {
                Change::Replacement(bytes) if all || some => found.clone_from(bytes),
                // The old name survives, and with it the old file. The new file is lost with all its writes.
                Change::Replacement(_) => return found,
                Change::Write(offset, data) => {
                    let mut at = *offset;
                    for sector in data.chunks(SECTOR_BYTES) {
                        if all || (some && random.below(2) == 0) {
                            put(&mut found, at, sector);
                        }
                        at += sector.len() as u64;
                    }
                }
            }
        }
        found
    }
}

fn put(bytes: &mut [u8], offset: u64, data: &[u8]) {
    bytes[place(offset)..][..data.len()].copy_from_slice(data);
}

pub(super) fn place(number: u64) -> usize {
    usize::try_from(number).unwrap()
}

impl Medium for Disk {
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        bytes.copy_from_slice(&self.platter().current[place(offset)..][..bytes.len()]);
        Ok(())
    }

    fn write_at(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.change(Change::Write(offset, data.to_vec()))
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut platter = self.powered()?;
        let replaces = platter.unsynced.iter().any(|change| matches!(change, Change::Replacement(_)));
        if platter.fails_sync_after_replacement && replaces {
            return Err(io::Error::other("it cannot be synced"));
        }
        platter.synced = platter.current.clone();
        platter.unsynced.clear();
        Ok(())
    }

    fn replace(&mut self, beginning: &[u8], length: u64) -> io::Result<()> {
        if self.platter().is_full {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        let mut bytes = beginning.to_vec();
        bytes.resize(place(length), 0);
        self.change(Change::Replacement(bytes))
    }
}

/// Pseudorandom numbers from a seed (xorshift).
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// A record with an infinite lease.
pub(super) fn leased(now: StoreTime) -> Record {
    let lease = Lease {
        id: LeaseId::from_random([1; 16]),
        mode: LeaseMode::Exclusive,
        fence: Stamp::Itself,
        term: Term::Held(None),
        duration: LeaseDuration::Infinite,
        granted: now,
        holder: None,
        note: None,
        keeper: None,
        principal: None,
        remember_time: Duration::from_secs(600),
        guards: LeaseGuards::Write,
        target: TargetName::default(),
    };
    Record { leases: LeaseSet::from_iter([lease]), fence: Stamp::Itself, ..free() }
}

/// A record without a lease.
pub(super) fn free() -> Record {
    Record { version: Stamp::Itself, touched: Stamp::Itself, fence: Stamp::Itself, ..Record::absent(Revision(0)) }
}
