//! The records of one part of the store, under one lock.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use lru::LruCache;

use super::{super::Counts, journal::Journal};
use crate::core::{
    record::{Record, Revision, Snapshot},
    resource::ResourceKey,
    time::StoreTime,
};

/// Idle records looked at for their age in one swap: more than one, so that the old leave faster than new ones come.
const AGED_PER_SWAP: usize = 4;

/// The records, and what is left of those that were forgotten.
pub(super) struct Records<J: Journal> {
    /// Pinned. Many become idle without a swap, by the end of a doubt or of a lease: `resting` finds them then.
    busy: HashMap<ResourceKey, Entry>,
    /// Changes that are not in force yet. What they are to replace is pinned meanwhile.
    awaited: HashMap<ResourceKey, Awaited<J::Entry>>,
    /// Forgettable, the one used longest ago first to go.
    idle: LruCache<ResourceKey, Entry>,
    /// When pinned records become idle by time alone.
    resting: BTreeMap<(StoreTime, Revision), ResourceKey>,
    /// The floors of this shard's buckets.
    floors: HashMap<u16, Revision>,
    /// The floor of all others.
    least_floor: Revision,
}

/// A record in its place.
pub(super) struct Entry {
    pub(super) revision: Revision,
    pub(super) record: Record,
    /// When it was last written or became idle.
    pub(super) since: StoreTime,
}

/// A change that is in force when something has ended well, and never if that has not.
struct Awaited<E> {
    next: Entry,
    until: E,
    /// Whether a record without content stands where there was none.
    was_absent: bool,
}

impl<J: Journal> Records<J> {
    pub(super) fn new(least_floor: Revision) -> Self {
        let (busy, idle) = (HashMap::new(), LruCache::unbounded());
        Self { busy, awaited: HashMap::new(), idle, resting: BTreeMap::new(), floors: HashMap::new(), least_floor }
    }

    /// Keeps a change back until it is known what has become of `until`. There must be none that is kept back already.
    pub(super) fn hold_back(&mut self, key: &ResourceKey, next: Entry, until: J::Entry) {
        let was_absent = self.revision(key).is_none();
        if was_absent {
            let floor = self.floor(key);
            let since = next.since;
            self.busy.insert(key.clone(), Entry { revision: floor, record: Record::absent(floor), since });
        } else if let Some(idle) = self.idle.pop(key) {
            self.busy.insert(key.clone(), idle);
        }
        self.awaited.insert(key.clone(), Awaited { next, until, was_absent });
    }

    /// What the next change of a record has to wait for.
    pub(super) fn awaited(&self, key: &ResourceKey) -> Option<&J::Entry> {
        self.awaited.get(key).map(|awaited| &awaited.until)
    }

    /// Ends a change that was kept back, if it is known how: it is in force, or has not happened. How many places of
    /// records are free by that.
    pub(super) fn end_awaited(&mut self, key: &ResourceKey) -> Option<usize> {
        let is_made = J::outcome(&self.awaited.get(key)?.until)?;
        let Awaited { next, was_absent, .. } = self.awaited.remove(key)?;
        let current = self.take(key)?;
        if !is_made && was_absent {
            self.raise_floor(key, current.revision);
            return Some(1);
        }
        self.put(key, if is_made { next } else { current });
        Some(0)
    }

    /// The same for all of them.
    pub(super) fn end_all_awaited(&mut self) -> usize {
        let keys: Vec<_> = self.awaited.keys().cloned().collect();
        keys.iter().filter_map(|key| self.end_awaited(key)).sum()
    }

    pub(super) fn snapshot(&mut self, key: &ResourceKey, now: StoreTime) -> Snapshot {
        if let Some(entry) = self.busy.get(key).or_else(|| self.idle.get(key)) {
            return Snapshot { revision: entry.revision, record: entry.record.clone(), now };
        }
        let floor = self.floor(key);
        Snapshot { revision: floor, record: Record::absent(floor), now }
    }

    /// The revision of a record that is there.
    pub(super) fn revision(&self, key: &ResourceKey) -> Option<Revision> {
        self.busy.get(key).or_else(|| self.idle.peek(key)).map(|entry| entry.revision)
    }

    /// The revision of one that is not.
    pub(super) fn floor(&self, key: &ResourceKey) -> Revision {
        self.floors.get(&key.bucket()).copied().unwrap_or(self.least_floor)
    }

    /// The record that is there, and when it was put in.
    pub(super) fn written(&self, key: &ResourceKey) -> Option<(&Record, StoreTime)> {
        self.busy.get(key).or_else(|| self.idle.peek(key)).map(|entry| (&entry.record, entry.since))
    }

    pub(super) fn is_quiet(&self, now: StoreTime) -> bool {
        let awaited = self.awaited.values().map(|awaited| &awaited.next);
        self.busy.values().chain(awaited).all(|entry| entry.record.is_quiet(now))
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
        let snapshot = |entry: &Entry| Snapshot { revision: entry.revision, record: entry.record.clone(), now };
        page.into_iter().take(limit).map(|(key, entry)| (key.clone(), snapshot(entry))).collect()
    }

    /// Puts a record in its place.
    pub(super) fn put(&mut self, key: &ResourceKey, entry: Entry) {
        self.take(key);
        if entry.record.is_idle(entry.since) {
            self.idle.put(key.clone(), entry);
        } else {
            if let Some(from) = entry.record.idle_from() {
                self.resting.insert((from, entry.revision), key.clone());
            }
            self.busy.insert(key.clone(), entry);
        }
    }

    /// Takes a record out.
    fn take(&mut self, key: &ResourceKey) -> Option<Entry> {
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
                self.idle.put(key, Entry { since: now, ..entry });
            }
        }
    }

    /// Forgets the idle record that was used longest ago, and raises its floor in the same step.
    pub(super) fn forget_oldest(&mut self, journal: &J) -> bool {
        let Some((key, entry)) = self.idle.pop_lru() else { return false };
        journal.forgotten(&key, &entry.record);
        self.raise_floor(&key, entry.revision);
        true
    }

    fn raise_floor(&mut self, key: &ResourceKey, to: Revision) {
        let floor = self.floors.entry(key.bucket()).or_insert(self.least_floor);
        *floor = to.max(*floor);
    }

    /// Raises the floors of all buckets to this revision.
    pub(super) fn raise_floors(&mut self, to: Revision) {
        self.floors.retain(|_, floor| *floor > to);
        self.least_floor = self.least_floor.max(to);
    }

    /// Forgets some of the records that have been idle for `idle_ttl`, and says how many.
    pub(super) fn forget_aged(&mut self, now: StoreTime, idle_ttl: Duration, journal: &J) -> usize {
        let is_aged = |entry: &Entry| entry.since.plus(idle_ttl) <= now;
        let aged = |records: &mut Self| {
            records.idle.peek_lru().is_some_and(|(_, entry)| is_aged(entry)) && records.forget_oldest(journal)
        };
        (0..AGED_PER_SWAP).take_while(|_| aged(self)).count()
    }
}
