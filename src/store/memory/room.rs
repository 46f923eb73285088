//! The limits of a store, and how much of them is taken.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The most that a store holds: busy and idle records, with their keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// The maximum number of records.
    pub records: usize,
    /// The maximum number of bytes of memory.
    pub bytes: u64,
}

/// An amount of room: a number of records, and of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RecordPlaces {
    pub(super) records: usize,
    pub(super) bytes: u64,
}

impl RecordPlaces {
    pub(super) const NONE: Self = Self { records: 0, bytes: 0 };

    /// The place of one record with this many bytes.
    pub(super) const fn one(bytes: u64) -> Self {
        Self { records: 1, bytes }
    }

    /// The part of these places that exceeds the others.
    pub(super) const fn less(self, others: Self) -> Self {
        Self { records: self.records.saturating_sub(others.records), bytes: self.bytes.saturating_sub(others.bytes) }
    }

    /// The greater number of records, and the greater number of bytes.
    pub(super) fn most(self, others: Self) -> Self {
        Self { records: self.records.max(others.records), bytes: self.bytes.max(others.bytes) }
    }

    /// These places, with more bytes for the same records.
    pub(super) fn with_bytes(self, bytes: u64) -> Self {
        Self { bytes: self.bytes + bytes, ..self }
    }

    pub(super) fn and(self, others: Self) -> Self {
        Self { records: self.records + others.records, bytes: self.bytes + others.bytes }
    }
}

/// The taken part of a [`Room`]. The numbers guard no other memory, so relaxed order is enough.
#[derive(Debug)]
pub(super) struct RoomAccount {
    room: Room,
    records: AtomicUsize,
    bytes: AtomicU64,
}

impl RoomAccount {
    /// Creates an account with this much already taken, which may exceed the room.
    pub(super) fn new(room: Room, taken: RecordPlaces) -> Self {
        Self { room, records: AtomicUsize::new(taken.records), bytes: AtomicU64::new(taken.bytes) }
    }

    /// Takes places, if there are enough. Returns whether it took them.
    pub(super) fn take(&self, more: RecordPlaces) -> bool {
        let records = |taken: usize| taken.checked_add(more.records).filter(|all| *all <= self.room.records);
        let bytes = |taken: u64| taken.checked_add(more.bytes).filter(|all| *all <= self.room.bytes);
        // A need of zero always succeeds, even if that limit is exceeded.
        if more.records > 0 && self.records.fetch_update(Ordering::Relaxed, Ordering::Relaxed, records).is_err() {
            return false;
        }
        let has_bytes = more.bytes == 0 || self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, bytes).is_ok();
        if !has_bytes {
            self.records.fetch_sub(more.records, Ordering::Relaxed);
        }
        has_bytes
    }

    /// Takes places even if there are not enough.
    pub(super) fn take_anyway(&self, more: RecordPlaces) {
        self.records.fetch_add(more.records, Ordering::Relaxed);
        self.bytes.fetch_add(more.bytes, Ordering::Relaxed);
    }

    pub(super) fn give(&self, places: RecordPlaces) {
        self.records.fetch_sub(places.records, Ordering::Relaxed);
        self.bytes.fetch_sub(places.bytes, Ordering::Relaxed);
    }

    /// The places that are taken now.
    pub(super) fn taken(&self) -> RecordPlaces {
        RecordPlaces { records: self.records.load(Ordering::Relaxed), bytes: self.bytes.load(Ordering::Relaxed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_taken_up_to_either_limit_and_given_back() {
        let account = RoomAccount::new(Room { records: 2, bytes: 100 }, RecordPlaces::NONE);
        assert!(account.take(RecordPlaces::one(60)));
        assert!(!account.take(RecordPlaces::one(41)), "there are not enough bytes");
        assert_eq!(account.taken(), RecordPlaces::one(60), "and no record was taken");
        assert!(account.take(RecordPlaces::one(40)));
        assert!(!account.take(RecordPlaces::one(0)), "there is no third record");
        assert!(account.take(RecordPlaces::NONE), "a need of nothing succeeds");
        account.take_anyway(RecordPlaces { records: 0, bytes: 10 });
        account.give(RecordPlaces::one(60));
        assert!(
            account.take(RecordPlaces { records: 0, bytes: 50 })
                && !account.take(RecordPlaces { records: 0, bytes: 1 })
        );
    }
}
