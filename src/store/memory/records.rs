//! The records of one part of the store, under one lock.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use lru::LruCache;

use super::{
    super::Counts,
    journal::Journal,
    room::RecordPlaces,
    weight::{MemoryEntry, weight},
};
use crate::core::{
    record::{Floor, Record, Revision, Snapshot},
    resource::ResourceKey,
    time::StoreTime,
};

/// Idle records looked at for their age in one swap: more than one, so that the old leave faster than new ones come.
const AGED_PER_SWAP: usize = 4;

/// The records, and what is left of those that were forgotten.
pub(super) struct RecordTable<J: Journal> {
    /// Pinned. Many become idle without a swap, by the end of a doubt or of a lease: `resting` finds them then.
    busy: HashMap<ResourceKey, MemoryEntry>,
    /// Changes that are not in force yet. What they are to replace is pinned meanwhile.
    awaited: HashMap<ResourceKey, AwaitedRecord<J::Entry>>,
    /// Forgettable, the one used longest ago first to go.
    idle: LruCache<ResourceKey, MemoryEntry>,
    /// When pinned records become idle by time alone.
    resting: BTreeMap<(StoreTime, Revision), ResourceKey>,
    /// The floors of this shard's buckets.
    floors: HashMap<u16, Floor>,
    /// The floor of all others.
    least_floor: Floor,
}

/// A change that is in force when something has ended well, and never if that has not.
struct AwaitedRecord<E> {
    next: MemoryEntry,
    until: E,
    /// Whether a record without content stands where there was none.
    was_absent: bool,
}

impl<J: Journal> RecordTable<J> {
    pub(super) fn new(least_floor: Revision) -> Self {
        let (busy, idle) = (HashMap::new(), LruCache::unbounded());
        let least_floor = Floor::at(least_floor);
        Self { busy, awaited: HashMap::new(), idle, resting: BTreeMap::new(), floors: HashMap::new(), least_floor }
    }

    /// The place of a record that is there.
    pub(super) fn places(&self, key: &ResourceKey) -> RecordPlaces {
        self.written(key).map_or(RecordPlaces::NONE, |(record, _)| RecordPlaces::one(weight(key, record)))
    }

    /// The place that a record needs: none, if it is not kept.
    pub(super) fn needed(&self, key: &ResourceKey, record: &Record) -> RecordPlaces {
        if self.is_as_absent(key, record) { RecordPlaces::NONE } else { RecordPlaces::one(weight(key, record)) }
    }

    fn is_as_absent(&self, key: &ResourceKey, record: &Record) -> bool {
        record.says_no_more_than(&Record::absent_above(self.floor(key)))
    }

    /// Keeps a change back until it is known what has become of `until`. There must be none that is kept back already.
    /// The places of what is there then: the record as it is, and as it is to be.
    pub(super) fn hold_back(&mut self, key: &ResourceKey, next: MemoryEntry, until: J::Entry) -> RecordPlaces {
        let was_absent = self.revision(key).is_none();
        if was_absent {
            let floor = self.floor(key);
            let since = next.since;
            let absent = Record::absent_above(floor);
            self.busy.insert(key.clone(), MemoryEntry { revision: floor.revision, record: absent, since });
        } else if let Some(idle) = self.idle.pop(key) {
            self.busy.insert(key.clone(), idle);
        }
        let next_bytes = RecordPlaces { records: 0, bytes: weight(key, &next.record) };
        self.awaited.insert(key.clone(), AwaitedRecord { next, until, was_absent });
        self.places(key).and(next_bytes)
    }

    /// What the next change of a record has to wait for.
    pub(super) fn awaited(&self, key: &ResourceKey) -> Option<&J::Entry> {
        self.awaited.get(key).map(|awaited| &awaited.until)
    }

    /// Ends a change that was kept back, if it is known how: it is in force, or has not happened. The places that are
    /// free by that.
    pub(super) fn end_awaited(&mut self, key: &ResourceKey) -> Option<RecordPlaces> {
        let is_made = J::outcome(&self.awaited.get(key)?.until)?;
        let AwaitedRecord { next, was_absent, .. } = self.awaited.remove(key)?;
        let both = self.places(key).and(RecordPlaces { records: 0, bytes: weight(key, &next.record) });
        let current = self.take(key)?;
        if is_made {
            self.put(key, next);
        } else if !was_absent {
            self.put(key, current);
        }
        Some(both.less(self.places(key)))
    }

    /// The same for all of them.
    pub(super) fn end_all_awaited(&mut self) -> RecordPlaces {
        let keys: Vec<_> = self.awaited.keys().cloned().collect();
        keys.iter().filter_map(|key| self.end_awaited(key)).fold(RecordPlaces::NONE, RecordPlaces::and)
    }

    pub(super) fn snapshot(&mut self, key: &ResourceKey, now: StoreTime) -> Snapshot {
        if let Some(entry) = self.busy.get(key).or_else(|| self.idle.get(key)) {
            return Snapshot { revision: entry.revision, record: entry.record.clone(), now };
        }
        let floor = self.floor(key);
        Snapshot { revision: floor.revision, record: Record::absent_above(floor), now }
    }

    /// The revision of a record that is there.
    pub(super) fn revision(&self, key: &ResourceKey) -> Option<Revision> {
        self.busy.get(key).or_else(|| self.idle.peek(key)).map(|entry| entry.revision)
    }

    /// What stands for one that is not.
    pub(super) fn floor(&self, key: &ResourceKey) -> Floor {
        self.floors.get(&key.bucket()).copied().unwrap_or(self.least_floor)
    }

    /// The record that is there, and when it was put in.
    pub(super) fn written(&self, key: &ResourceKey) -> Option<(&Record, StoreTime)> {
        self.busy.get(key).or_else(|| self.idle.peek(key)).map(|entry| (&entry.record, entry.since))
    }

    pub(super) fn has_no_pending_writes(&self, now: StoreTime) -> bool {
        let awaited = self.awaited.values().map(|awaited| &awaited.next);
        self.busy.values().chain(awaited).all(|entry| entry.record.has_no_pending_writes(now))
    }

    /// Adds what is live in them: all of it is pinned.
    pub(super) fn count_live(&self, counts: &mut Counts, now: StoreTime) {
        for entry in self.busy.values() {
            counts.add_live(&entry.record, now);
        }
    }

    /// The first records after that of `after`, by their keys.
    pub(super) fn page(
        &self,
        after: Option<&ResourceKey>,
        limit: usize,
        now: StoreTime,
    ) -> Vec<(ResourceKey, Snapshot)> {
        let entries = self.busy.iter().chain(self.idle.iter());
        let mut page: Vec<_> = entries.filter(|(key, _)| after.is_none_or(|after| after < *key)).collect();
        page.sort_unstable_by_key(|(key, _)| *key);
        let snapshot = |entry: &MemoryEntry| Snapshot { revision: entry.revision, record: entry.record.clone(), now };
        page.into_iter().take(limit).map(|(key, entry)| (key.clone(), snapshot(entry))).collect()
    }

    /// Puts a record in its place. One that says what its absence would is forgotten in the same step; its version stands
    /// in the floor already.
    pub(super) fn put(&mut self, key: &ResourceKey, entry: MemoryEntry) {
        self.take(key);
        if self.is_as_absent(key, &entry.record) {
            self.raise_floor(key, Floor { revision: entry.revision, version: Revision(0) });
        } else if entry.record.is_idle(entry.since) {
            self.idle.put(key.clone(), entry);
        } else {
            if let Some(from) = entry.record.idle_from() {
                self.resting.insert((from, entry.revision), key.clone());
            }
            self.busy.insert(key.clone(), entry);
        }
    }

    /// Takes a record out.
    fn take(&mut self, key: &ResourceKey) -> Option<MemoryEntry> {
        let entry = self.busy.remove(key).or_else(|| self.idle.pop(key))?;
        if let Some(from) = entry.record.idle_from() {
            self.resting.remove(&(from, entry.revision));
        }
        Some(entry)
    }

    /// Lets go of records that time alone has made idle.
    pub(super) fn rest(&mut self, now: StoreTime) {
        while let Some(first) = self.resting.first_entry() {
            if first.key().0 > now {
                break;
            }
            let key = first.remove();
            // What is about to be replaced stays until it is known whether it is.
            if !self.awaited.contains_key(&key)
                && let Some(entry) = self.busy.remove(&key)
            {
                self.idle.put(key, MemoryEntry { since: now, ..entry });
            }
        }
    }

    /// Forgets the idle record that was used longest ago, and raises its floor in the same step. The place that it had.
    pub(super) fn forget_oldest(&mut self, journal: &J) -> Option<RecordPlaces> {
        let (key, entry) = self.idle.pop_lru()?;
        journal.forgotten(&key, &entry.record);
        self.raise_floor(&key, Floor::at(entry.revision));
        Some(RecordPlaces::one(weight(&key, &entry.record)))
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

    /// Forgets some of the records that have been idle for `idle_ttl`. The places that they had.
    pub(super) fn forget_aged(&mut self, now: StoreTime, idle_ttl: Duration, journal: &J) -> RecordPlaces {
        let is_aged = |entry: &MemoryEntry| entry.since.plus(idle_ttl) <= now;
        let aged = |records: &mut Self| {
            let (_, oldest) = records.idle.peek_lru()?;
            if is_aged(oldest) { records.forget_oldest(journal) } else { None }
        };
        (0..AGED_PER_SWAP).map_while(|_| aged(self)).fold(RecordPlaces::NONE, RecordPlaces::and)
    }
}
