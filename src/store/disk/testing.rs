//! A disk that forgets what was not synced, for tests: its power fails, or its syncs do.

use std::{
    io,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use super::log::Medium;
use crate::{
    core::{
        lease::{Lease, LeaseDuration, LeaseId, TargetName, Term},
        policy::LeaseGuards,
        record::{Record, Revision, Stamp},
        time::StoreTime,
    },
    store::memory::Room,
};

/// So small that the log often begins anew, and soon needs larger ones.
pub(super) const REGION_BYTES: usize = 2_048;
/// More than any test needs.
pub(super) const ROOM: Room = Room { records: 1_000, bytes: 1 << 30 };
/// The start of the machine that tests run under.
pub(super) const BOOT: Option<u128> = Some(7);
/// Less than that of any disk, so that a frame with one lease has several.
const SECTOR_BYTES: usize = 128;

/// What a disk is given while it caches.
#[derive(Clone, Debug)]
enum Change {
    Write(u64, Vec<u8>),
    /// Another file in the place of this one.
    Replacement(Vec<u8>),
}

#[derive(Debug, Default)]
pub(super) struct Platter {
    /// What a reader sees.
    pub(super) current: Vec<u8>,
    /// What is there without power.
    pub(super) synced: Vec<u8>,
    /// What was changed since.
    unsynced: Vec<Change>,
    /// How many more operations there is power for.
    pub(super) power: Option<u64>,
    /// Whether no other file fits on it.
    pub(super) is_full: bool,
    /// Whether the sync fails that makes another file the one of this name.
    pub(super) fails_sync_after_replacement: bool,
    /// Bytes of all writes, those that failed too.
    pub(super) tried_bytes: usize,
}

/// A disk that loses its power after so many operations.
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

    /// What is found when the power is back: of each unsynced write all sectors are there, or none, or some.
    pub(super) fn after_crash(&self, random: &mut Random) -> Vec<u8> {
        let platter = self.platter();
        let mut found = platter.synced.clone();
        for change in &platter.unsynced {
            let (all, some) = (random.below(3) == 0, random.below(2) == 0);
            match change {
                Change::Replacement(bytes) if all || some => found.clone_from(bytes),
                // The old name, and so the old file; the new one is lost, with all that was written to it.
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

/// Numbers that look random and follow from a seed (xorshift).
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// A record with a lease without an end.
pub(super) fn leased(now: StoreTime) -> Record {
    let lease = Lease {
        id: LeaseId::from_random([1; 16]),
        term: Term::Held(None),
        duration: LeaseDuration::Infinite,
        granted: now,
        holder: None,
        principal: None,
        remember: Duration::from_secs(600),
        guards: LeaseGuards::Write,
        target: TargetName::default(),
    };
    Record { lease: Some(lease), ..free() }
}

/// A record without one.
pub(super) fn free() -> Record {
    Record { version: Stamp::Itself, touched: Stamp::Itself, fence: Stamp::Itself, ..Record::absent(Revision(0)) }
}
