//! The records of one shard, under one lock.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use foldhash::HashMap;
use lru::LruCache;

use super::{
    super::{Counts, Scanned},
    entry::MemoryEntry,
    idle::IdleEntry,
    journal::Journal,
    room::RecordPlaces,
};
use crate::core::{
    records::{
        record::{Floor, Record, Revision, Snapshot},
        trees::TreeRoot,
    },
    resource::ResourceKey,
    time::StoreTime,
};

/// The number of idle records that one swap checks for their age. It is more than one, so that old records leave faster
/// than new ones come.
const AGED_PER_SWAP: usize = 4;

/// The records, and the floors of those that were forgotten.
pub(super) struct RecordTable<J: Journal> {
    /// The pinned records. Many become idle without a swap, when a doubt or a lease ends: `resting` then finds them.
    busy: HashMap<ResourceKey, MemoryEntry>,
    /// The changes that are not in force yet. The records that they will replace stay pinned meanwhile.
    awaited: HashMap<ResourceKey, AwaitedRecord<J::Entry>>,
    /// The records that may be forgotten, the least recently used first.
    idle: LruCache<ResourceKey, IdleEntry>,
    /// The times at which pinned records become idle without a swap.
    resting: BTreeMap<(StoreTime, Revision), ResourceKey>,
    /// The floors of this shard's buckets.
    floors: HashMap<u16, Floor>,
    /// The floor of all buckets that are not in `floors`.
    least_floor: Floor,
}

/// A change that takes effect if its journal entry is written down, and never if it is not.
struct AwaitedRecord<E> {
    next: MemoryEntry,
    until: E,
    /// True if a record without content stands in for an absent one.
    was_absent: bool,
}

impl<J: Journal> RecordTable<J> {
    pub(super) fn new(least_floor: Revision) -> Self {
        let (busy, awaited, idle) = (HashMap::default(), HashMap::default(), LruCache::unbounded());
        let least_floor = Floor::at(least_floor);
        Self { busy, awaited, idle, resting: BTreeMap::new(), floors: HashMap::default(), least_floor }
    }

    /// The place that the current record takes, or none if it is absent.
    pub(super) fn places(&self, key: &ResourceKey) -> RecordPlaces {
        let busy = self.busy.get(key).map(|entry| entry.bytes);
        let bytes = busy.or_else(|| self.idle.peek(key).map(|entry| entry.bytes(key)));
        bytes.map_or(RecordPlaces::NONE, RecordPlaces::one)
    }

    /// True if a record will not be kept, because it is equal to its absence.
    pub(super) fn is_as_absent(&self, key: &ResourceKey, record: &Record) -> bool {
        record.says_no_more_than_absence(self.floor(key))
    }

    /// Holds a change back until the outcome of `until` is known. No change of this record may be held back already.
    /// Returns the places that the current and the next record take together.
    pub(super) fn hold_back(&mut self, key: &ResourceKey, next: MemoryEntry, until: J::Entry) -> RecordPlaces {
        let idle = self.idle.pop(key).map(|idle| idle.entry(key));
        let was_absent = idle.is_none() && !self.busy.contains_key(key);
        let absent = || {
            let floor = self.floor(key);
            MemoryEntry::weighed(key, floor.revision, Arc::new(Record::absent_above(floor)), next.since)
        };
        if let Some(pinned) = idle.or_else(|| was_absent.then(absent)) {
            self.busy.insert(key.clone(), pinned);
        }
        let both = self.places(key).with_bytes(next.bytes);
        self.awaited.insert(key.clone(), AwaitedRecord { next, until, was_absent });
        both
    }

    /// The journal entry that the next change of a record must wait for.
    pub(super) fn awaited(&self, key: &ResourceKey) -> Option<&J::Entry> {
        self.awaited.get(key).map(|awaited| &awaited.until)
    }

    /// Ends a change that was held back, if its outcome is known: it takes effect, or has not happened. Returns the
    /// places that this frees.
    pub(super) fn end_awaited(&mut self, key: &ResourceKey) -> Option<RecordPlaces> {
        let is_made = J::outcome(&self.awaited.get(key)?.until)?;
        let AwaitedRecord { next, was_absent, .. } = self.awaited.remove(key)?;
        let both = self.places(key).with_bytes(next.bytes);
        if is_made {
            self.put(key, next);
        } else {
            let current = self.unpin(key)?;
            if !was_absent {
                self.put(key, current);
            }
        }
        Some(both.less(self.places(key)))
    }

    /// Like [`Self::end_awaited`], but for all changes that were held back.
    pub(super) fn end_all_awaited(&mut self) -> RecordPlaces {
        let keys: Vec<_> = self.awaited.keys().cloned().collect();
        keys.iter().filter_map(|key| self.end_awaited(key)).fold(RecordPlaces::NONE, RecordPlaces::and)
    }

    pub(super) fn snapshot(&mut self, key: &ResourceKey, now: StoreTime) -> Snapshot {
        if let Some(entry) = self.busy.get(key) {
            return entry.snapshot(now);
        }
        if let Some(entry) = self.idle.get(key) {
            return entry.snapshot(now);
        }
        let floor = self.floor(key);
        Snapshot::new(floor.revision, Record::absent_above(floor), now)
    }

    /// The floor that stands for the record if it is absent.
    pub(super) fn floor(&self, key: &ResourceKey) -> Floor {
        self.floors.get(&key.bucket()).copied().unwrap_or(self.least_floor)
    }

    /// The record, if it is present.
    pub(super) fn written(&self, key: &ResourceKey) -> Option<MemoryEntry> {
        self.busy.get(key).cloned().or_else(|| self.idle.peek(key).map(|idle| idle.entry(key)))
    }

    pub(super) fn has_no_pending_writes(&self, now: StoreTime) -> bool {
        let awaited = self.awaited.values().map(|awaited| &awaited.next);
        self.busy.values().chain(awaited).all(|entry| entry.record.has_no_pending_writes(now))
    }

    /// Adds the live parts of the records to the counts. Only pinned records have any.
    pub(super) fn count_live(&self, counts: &mut Counts, now: StoreTime) {
        for entry in self.busy.values() {
            counts.add_live(&entry.record, now);
        }
    }

    /// Returns the first records after that of `after`, in the order of their keys.
    pub(super) fn page(&self, after: Option<&ResourceKey>, limit: usize, now: StoreTime) -> Scanned {
        let keys = self.busy.keys().chain(self.idle.iter().map(|(key, _)| key));
        let mut page: Vec<_> = keys.filter(|key| after.is_none_or(|after| after < *key)).collect();
        page.sort_unstable();
        let snapshot = |key: &ResourceKey| {
            let busy = self.busy.get(key).map(|entry| entry.snapshot(now));
            busy.or_else(|| self.idle.peek(key).map(|entry| entry.snapshot(now)))
        };
        page.into_iter().take(limit).filter_map(|key| Some((key.clone(), snapshot(key)?))).collect()
    }

    /// Returns records below these collections that are pinned. They are in no order, because those of one collection are in
    /// all shards anyway, and only few records are pinned.
    pub(super) fn pinned_below(&self, roots: &[TreeRoot], limit: usize, now: StoreTime) -> Scanned {
        let below = self.busy.iter().filter(|(key, _)| roots.iter().any(|root| root.is_above(key)));
        below.take(limit).map(|(key, entry)| (key.clone(), entry.snapshot(now))).collect()
    }

    /// Puts a record in its place. A record that is equal to its absence is forgotten in the same step: its version is
    /// already in the floor.
    pub(super) fn put(&mut self, key: &ResourceKey, entry: MemoryEntry) {
        if self.unpin(key).is_none() {
            self.idle.pop(key);
        }
        if self.is_as_absent(key, &entry.record) {
            self.raise_floor(key, Floor { revision: entry.revision, version: Revision(0) });
        } else if entry.record.is_idle(entry.since) {
            self.idle.put(key.clone(), entry.into());
        } else {
            if let Some(from) = entry.record.idle_from() {
                self.resting.insert((from, entry.revision), key.clone());
            }
            self.busy.insert(key.clone(), entry);
        }
    }

    /// Removes a record that is pinned, and returns it.
    fn unpin(&mut self, key: &ResourceKey) -> Option<MemoryEntry> {
        let entry = self.busy.remove(key)?;
        if let Some(from) = entry.record.idle_from() {
            self.resting.remove(&(from, entry.revision));
        }
        Some(entry)
    }

    /// Unpins the records that have become idle without a swap.
    pub(super) fn rest(&mut self, now: StoreTime) {
        while let Some(first) = self.resting.first_entry() {
            if first.key().0 > now {
                break;
            }
            let key = first.remove();
            // A record with a pending change stays pinned until the outcome is known.
            if !self.awaited.contains_key(&key)
                && let Some(entry) = self.busy.remove(&key)
            {
                self.idle.put(key, MemoryEntry { since: now, ..entry }.into());
            }
        }
    }

    /// Forgets the least recently used idle record, and raises its floor in the same step. Returns the place that it
    /// had.
    pub(super) fn forget_oldest(&mut self, journal: &J) -> Option<RecordPlaces> {
        let (key, entry) = self.idle.pop_lru()?;
        let entry = entry.entry(&key);
        journal.forgotten(&key, &entry.record);
        self.raise_floor(&key, Floor::at(entry.revision));
        Some(entry.places())
    }

    fn raise_floor(&mut self, key: &ResourceKey, to: Floor) {
        let floor = self.floors.entry(key.bucket()).or_insert(self.least_floor);
        *floor = floor.raised_to(to);
    }

    /// Raises the floors of all buckets to this revision.
    pub(super) fn raise_floors(&mut self, to: Revision) {
        self.least_floor = self.least_floor.raised_to(Floor::at(to));
        for floor in self.floors.values_mut() {
            *floor = floor.raised_to(self.least_floor);
        }
        self.floors.retain(|_, floor| *floor != self.least_floor);
    }

    /// Forgets some of the records that have been idle for `idle_ttl`. Returns the places that they had.
    pub(super) fn forget_aged(&mut self, now: StoreTime, idle_ttl: Duration, journal: &J) -> RecordPlaces {
        let is_aged = |entry: &IdleEntry| entry.since().plus(idle_ttl) <= now;
        let aged = |records: &mut Self| {
            let (_, oldest) = records.idle.peek_lru()?;
            if is_aged(oldest) { records.forget_oldest(journal) } else { None }
        };
        (0..AGED_PER_SWAP).map_while(|_| aged(self)).fold(RecordPlaces::NONE, RecordPlaces::and)
    }
}
