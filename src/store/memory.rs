//! The memory store: one process, nothing survives it.
//!
//! # Design
//!
//! *Why not a cache such as moka for the idle records?* A cache that evicts on its own tells afterwards. Between the
//! eviction and the telling, a reader finds neither the record nor the raised floor, and a tag that died long ago
//! would live again. Here an idle record leaves and its floor rises under one lock.
//!
//! *Why is the lock a plain one?* It is never held across a wait, and nothing under it takes more than a map look-up.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use lru::LruCache;
use tokio::sync::Notify;

use super::{Incarnation, Store, StoreError, Swapped};
use crate::{
    clock::Clock,
    core::{
        record::{Record, Revision, Snapshot},
        resource::ResourceKey,
        time::StoreTime,
    },
};

/// A power of two, far above the number of threads, so that two of them rarely meet at one lock.
const SHARDS: u16 = 64;

/// Idle records looked at for their age in one swap: more than one, so that the old leave faster than new ones come.
const AGED_PER_SWAP: usize = 4;

/// Records in memory.
pub struct MemoryStore {
    clock: Arc<dyn Clock>,
    incarnation: Incarnation,
    capacity: usize,
    idle_ttl: Duration,
    /// The last revision that was given.
    revision: AtomicU64,
    /// Records in all shards.
    records: AtomicUsize,
    shards: Vec<Shard>,
}

struct Shard {
    records: Mutex<Records>,
    change: Notify,
}

struct Records {
    /// Pinned. Many become idle without a swap, by the end of a doubt or of a lease: `resting` finds them then.
    busy: HashMap<ResourceKey, Entry>,
    /// Forgettable, the one used longest ago first to go.
    idle: LruCache<ResourceKey, Entry>,
    /// When pinned records become idle by time alone.
    resting: BTreeMap<(StoreTime, Revision), ResourceKey>,
    /// The floors of this shard's buckets.
    floors: HashMap<u16, Revision>,
}

struct Entry {
    revision: Revision,
    record: Record,
    /// When it was last written or became idle.
    since: StoreTime,
}

impl MemoryStore {
    /// An empty store for at most `capacity` records, of which an idle one is forgotten after `idle_ttl`.
    pub fn new(clock: Arc<dyn Clock>, incarnation: Incarnation, capacity: usize, idle_ttl: Duration) -> Self {
        let shard = |_| Shard { records: Mutex::new(Records::new()), change: Notify::new() };
        let shards = (0..SHARDS).map(shard).collect();
        let (revision, records) = (AtomicU64::new(0), AtomicUsize::new(0));
        Self { clock, incarnation, capacity, idle_ttl, revision, records, shards }
    }

    fn shard(&self, key: &ResourceKey) -> Option<&Shard> {
        self.shards.get(usize::from(key.bucket() % SHARDS))
    }

    /// Takes the place of one more record, if there is one.
    fn take_place(&self) -> bool {
        let one_more = |records| (records < self.capacity).then_some(records + 1);
        self.records.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_ok()
    }

    fn give_places(&self, records: usize) {
        self.records.fetch_sub(records, Ordering::Relaxed);
    }

    /// Forgets one idle record of any shard, beginning with that of bucket `first`. No shard's lock may be held.
    fn make_room(&self, first: u16) -> Result<(), StoreError> {
        let now = self.clock.now();
        for offset in 0..SHARDS {
            let Some(shard) = self.shards.get(usize::from(first.wrapping_add(offset) % SHARDS)) else { continue };
            let mut records = shard.lock();
            records.rest(now);
            if records.forget_oldest() {
                self.give_places(1);
                return Ok(());
            }
        }
        Err(StoreError::Full)
    }
}

impl Shard {
    /// A panic under the lock cannot leave a half-made change behind: each change is one insertion or removal.
    fn lock(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Records {
    fn new() -> Self {
        Self { busy: HashMap::new(), idle: LruCache::unbounded(), resting: BTreeMap::new(), floors: HashMap::new() }
    }

    fn snapshot(&mut self, key: &ResourceKey, now: StoreTime) -> Snapshot {
        if let Some(entry) = self.busy.get(key).or_else(|| self.idle.get(key)) {
            return Snapshot { revision: entry.revision, record: entry.record.clone(), now };
        }
        let floor = self.floors.get(&key.bucket()).copied().unwrap_or_default();
        Snapshot { revision: floor, record: Record::absent(floor), now }
    }

    fn holds(&self, key: &ResourceKey) -> bool {
        self.busy.contains_key(key) || self.idle.contains(key)
    }

    /// The first records after that of `after`, by their keys.
    fn page(&self, after: Option<&ResourceKey>, limit: usize, now: StoreTime) -> Vec<(ResourceKey, Snapshot)> {
        let entries = self.busy.iter().chain(self.idle.iter());
        let mut page: Vec<_> = entries.filter(|(key, _)| after.is_none_or(|after| after < *key)).collect();
        page.sort_unstable_by_key(|(key, _)| *key);
        let snapshot = |entry: &Entry| Snapshot { revision: entry.revision, record: entry.record.clone(), now };
        page.into_iter().take(limit).map(|(key, entry)| (key.clone(), snapshot(entry))).collect()
    }

    /// Puts a record in its place.
    fn put(&mut self, key: &ResourceKey, entry: Entry) {
        let earlier = self.busy.remove(key).or_else(|| self.idle.pop(key));
        if let Some(Entry { revision, record, .. }) = &earlier
            && let Some(from) = record.idle_from()
        {
            self.resting.remove(&(from, *revision));
        }
        if entry.record.is_idle(entry.since) {
            self.idle.put(key.clone(), entry);
        } else {
            if let Some(from) = entry.record.idle_from() {
                self.resting.insert((from, entry.revision), key.clone());
            }
            self.busy.insert(key.clone(), entry);
        }
    }

    /// Lets go of records that time alone has made idle.
    fn rest(&mut self, now: StoreTime) {
        while let Some(first) = self.resting.first_entry() {
            if first.key().0 > now {
                break;
            }
            let key = first.remove();
            if let Some(entry) = self.busy.remove(&key) {
                self.idle.put(key, Entry { since: now, ..entry });
            }
        }
    }

    /// Forgets the idle record that was used longest ago, and raises its floor in the same step.
    fn forget_oldest(&mut self) -> bool {
        let Some((key, entry)) = self.idle.pop_lru() else { return false };
        let floor = self.floors.entry(key.bucket()).or_default();
        *floor = entry.revision.max(*floor);
        true
    }

    /// Forgets some of the records that have been idle for `idle_ttl`, and says how many.
    fn forget_aged(&mut self, now: StoreTime, idle_ttl: Duration) -> usize {
        let is_aged = |entry: &Entry| entry.since.plus(idle_ttl) <= now;
        let aged = |records: &mut Self| {
            records.idle.peek_lru().is_some_and(|(_, entry)| is_aged(entry)) && records.forget_oldest()
        };
        (0..AGED_PER_SWAP).take_while(|_| aged(self)).count()
    }
}

#[async_trait]
impl Store for MemoryStore {
    fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    async fn now(&self) -> Result<StoreTime, StoreError> {
        Ok(self.clock.now())
    }

    async fn read(&self, key: &ResourceKey) -> Result<Snapshot, StoreError> {
        let shard = self.shard(key).ok_or(StoreError::Unavailable)?;
        let mut records = shard.lock();
        Ok(records.snapshot(key, self.clock.now()))
    }

    async fn swap(&self, key: &ResourceKey, expected: Revision, next: Record) -> Result<Swapped, StoreError> {
        let shard = self.shard(key).ok_or(StoreError::Unavailable)?;
        loop {
            let mut records = shard.lock();
            let now = self.clock.now();
            records.rest(now);
            let current = records.snapshot(key, now);
            if current.revision != expected {
                return Ok(Swapped::Conflict(current));
            }
            if !records.holds(key) && !self.take_place() {
                drop(records);
                self.make_room(key.bucket())?;
                continue;
            }
            let revision = Revision(self.revision.fetch_add(1, Ordering::Relaxed) + 1);
            let record = next.resolved(revision);
            records.put(key, Entry { revision, record: record.clone(), since: now });
            self.give_places(records.forget_aged(now, self.idle_ttl));
            drop(records);
            shard.change.notify_waiters();
            return Ok(Swapped::Done(Snapshot { revision, record, now }));
        }
    }

    async fn scan(
        &self,
        after: Option<&ResourceKey>,
        limit: usize,
    ) -> Result<Vec<(ResourceKey, Snapshot)>, StoreError> {
        let first = after.map_or(0, |key| usize::from(key.bucket() % SHARDS));
        let mut found = Vec::new();
        for (number, shard) in self.shards.iter().enumerate().skip(first) {
            let after = after.filter(|_| number == first);
            found.extend(shard.lock().page(after, limit - found.len(), self.clock.now()));
            if found.len() == limit {
                break;
            }
        }
        Ok(found)
    }

    async fn changed(&self, key: &ResourceKey, seen: Revision) {
        let Some(shard) = self.shard(key) else { return };
        let change = shard.change.notified();
        if shard.lock().snapshot(key, self.clock.now()).revision == seen {
            change.await;
        }
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
