//! The memory store: for one process, and nothing survives its end.
//!
//! # Design
//!
//! *Why not a cache such as moka for the idle records?* Such a cache reports an eviction only afterwards. In between, a
//! reader finds neither the record nor the raised floor, and a tag that died long ago would become valid again. Here an
//! idle record leaves and its floor rises under one lock.
//!
//! *Why does a swap immediately forget a record without content?* A write that the upstream refused leaves a record
//! that is equal to its absence. If such records were kept for `idle_ttl`, a client without any rights could fill a
//! store with them. The floor rises to the record's revision, so a caller that read it as absent before finds another
//! revision. The version of the floor stays, so no tag is refused because of a write that did nothing.
//!
//! *Why may the end of a write exceed the room?* The write has happened and must be recorded. The mark that it ends had
//! its room.
//!
//! *Why a plain lock?* It is never held across a wait, and nothing under it takes longer than a map look-up.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

mod entry;
mod idle;
mod journal;
mod records;
mod room;
pub(super) mod weight;

use entry::MemoryEntry;
pub use journal::{Journal, NoJournal};
use records::RecordTable;
pub use room::Room;
use room::{RecordPlaces, RoomAccount};
use weight::weight;

use super::{Counts, Incarnation, Scanned, Store, StoreError, Swapped};
use crate::{
    clock::Clock,
    core::{
        records::{
            owed::Owed,
            record::{Record, Revision, Snapshot, Stamp},
            trees::TreeRoot,
        },
        resource::ResourceKey,
        time::StoreTime,
    },
};

/// The number of shards. It is a power of two far above the number of threads, so that two threads rarely meet at one
/// lock.
const SHARDS: u16 = 64;

/// The state that the store of an earlier process left.
#[derive(Debug, Default)]
pub(super) struct Inheritance {
    /// The last revision that must not be given again.
    pub(super) revision: Revision,
    /// The records that the store kept.
    pub(super) records: Vec<(ResourceKey, Record)>,
}

/// Records in memory.
pub struct MemoryStore<J: Journal = NoJournal> {
    journal: J,
    clock: Arc<dyn Clock>,
    incarnation: Incarnation,
    idle_ttl: Duration,
    /// The last revision that was given.
    revision: AtomicU64,
    /// The room taken by all shards.
    account: RoomAccount,
    shards: Vec<Shard<J>>,
}

struct Shard<J: Journal> {
    records: Mutex<RecordTable<J>>,
    change: Notify,
}

/// The state of a swap that has begun.
enum BegunSwap<E> {
    /// The swap is over.
    Over(Swapped),
    /// The swap takes effect if this entry is written down, and not otherwise.
    HeldBack(Snapshot, E),
    /// Another swap must end first.
    Behind(E),
}

/// Wakes the callers that wait for a change when the swap behind it ends or is dropped. If it is dropped, they wait for
/// the outcome themselves.
struct Passing<'a>(&'a Notify);

impl Drop for Passing<'_> {
    fn drop(&mut self) {
        self.0.notify_waiters();
    }
}

impl MemoryStore {
    /// Creates an empty store with this much room, in which an idle record is forgotten after `idle_ttl`.
    pub fn new(clock: Arc<dyn Clock>, incarnation: Incarnation, room: Room, idle_ttl: Duration) -> Self {
        Self::inheriting(Inheritance::default(), NoJournal, clock, incarnation, (room, idle_ttl))
    }
}

impl<J: Journal> MemoryStore<J> {
    /// Like [`MemoryStore::new`], but continues from the state that an earlier store left.
    pub(super) fn inheriting(
        inheritance: Inheritance,
        journal: J,
        clock: Arc<dyn Clock>,
        incarnation: Incarnation,
        (room, idle_ttl): (Room, Duration),
    ) -> Self {
        let Inheritance { revision, records: kept } = inheritance;
        let taken = kept
            .iter()
            .map(|(key, record)| RecordPlaces::one(weight(key, record)))
            .fold(RecordPlaces::NONE, RecordPlaces::and);
        let shard = |_| Shard { records: Mutex::new(RecordTable::new(revision)), change: Notify::new() };
        let shards = (0..SHARDS).map(shard).collect();
        let (revision, account) = (AtomicU64::new(revision.0), RoomAccount::new(room, taken));
        let store = Self { journal, clock, incarnation, idle_ttl, revision, account, shards };
        let since = store.clock.now();
        for (key, record) in kept {
            let revision = store.next_revision();
            if let Some(shard) = store.shard(&key) {
                let record = Arc::new(record.resolved(revision));
                shard.records.lock().put(&key, MemoryEntry::weighed(&key, revision, record, since));
            }
        }
        store
    }

    /// True if no write is in flight or in doubt.
    fn has_no_pending_writes(&self) -> bool {
        let now = self.clock.now();
        self.shards.iter().all(|shard| self.ended(shard).has_no_pending_writes(now))
    }

    /// Locks the records of a shard, and first completes all changes whose outcome is known.
    fn ended<'a>(&self, shard: &'a Shard<J>) -> MutexGuard<'a, RecordTable<J>> {
        let mut records = shard.records.lock();
        self.account.give(records.end_all_awaited());
        records
    }

    /// Like [`Self::ended`], but for one record only.
    fn ended_at<'a>(&self, shard: &'a Shard<J>, key: &ResourceKey) -> MutexGuard<'a, RecordTable<J>> {
        let mut records = shard.records.lock();
        if let Some(places) = records.end_awaited(key) {
            self.account.give(places);
        }
        records
    }

    fn next_revision(&self) -> Revision {
        Revision(self.revision.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Replaces the record with `next` if it has the revision `expected`, up to the part that needs waiting.
    fn begin_swap(
        &self,
        shard: &Shard<J>,
        key: &ResourceKey,
        expected: Revision,
        next: &mut Arc<Record>,
    ) -> Result<BegunSwap<J::Entry>, StoreError> {
        loop {
            let mut records = self.ended_at(shard, key);
            let now = self.clock.now();
            records.rest(now);
            let before = records.written(key);
            let current = before.as_ref().map(|entry| entry.revision);
            if current.unwrap_or_else(|| records.floor(key).revision) != expected {
                return Ok(BegunSwap::Over(Swapped::Conflict(records.snapshot(key, now))));
            }
            if let Some(until) = records.awaited(key) {
                return Ok(BegunSwap::Behind(until.clone()));
            }
            let held = before.as_ref().map_or(RecordPlaces::NONE, MemoryEntry::places);
            let bytes = weight(key, next);
            let needed = if records.is_as_absent(key, next) { RecordPlaces::NONE } else { RecordPlaces::one(bytes) };
            let marks_before = before.as_ref().map_or(0, |entry| entry.record.marks().count());
            let ends_write = next.marks().count() < marks_before;
            if ends_write {
                self.account.take_anyway(needed.less(held));
            } else if !self.account.take(needed.less(held)) {
                drop(records);
                self.make_room(key.bucket())?;
                continue;
            }
            let revision = self.next_revision();
            Arc::make_mut(next).resolve(revision);
            let snapshot = Snapshot::new(revision, Arc::clone(next), now);
            let entry = MemoryEntry { revision, record: Arc::clone(next), since: now, bytes };
            let before = before.as_ref().map(|entry| (&entry.record, entry.since));
            let until = self.journal.swaps(key, before, &snapshot);
            let is_over = until.is_none();
            let begun = if let Some(until) = until {
                // Both records take room until it is known which of them stays.
                self.account.take_anyway(records.hold_back(key, entry, until.clone()).less(needed.most(held)));
                BegunSwap::HeldBack(snapshot, until)
            } else {
                records.put(key, entry);
                self.account.give(held.less(needed));
                BegunSwap::Over(Swapped::Done(snapshot))
            };
            self.account.give(records.forget_aged(now, self.idle_ttl, &self.journal));
            drop(records);
            if is_over {
                shard.change.notify_waiters();
            }
            return Ok(begun);
        }
    }

    fn shard(&self, key: &ResourceKey) -> Option<&Shard<J>> {
        self.shards.get(usize::from(key.bucket() % SHARDS))
    }

    /// Forgets one idle record of any shard, beginning with the shard of bucket `first`. The caller must not hold the
    /// lock of any shard.
    fn make_room(&self, first: u16) -> Result<(), StoreError> {
        let now = self.clock.now();
        for offset in 0..SHARDS {
            let Some(shard) = self.shards.get(usize::from(first.wrapping_add(offset) % SHARDS)) else { continue };
            let mut records = shard.records.lock();
            records.rest(now);
            if let Some(places) = records.forget_oldest(&self.journal) {
                self.account.give(places);
                return Ok(());
            }
        }
        Err(StoreError::Full)
    }
}

#[async_trait]
impl<J: Journal> Store for MemoryStore<J> {
    fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    async fn now(&self) -> Result<StoreTime, StoreError> {
        Ok(self.clock.now())
    }

    async fn read(&self, key: &ResourceKey) -> Result<Snapshot, StoreError> {
        let shard = self.shard(key).ok_or(StoreError::Unavailable)?;
        Ok(self.ended_at(shard, key).snapshot(key, self.clock.now()))
    }

    async fn swap(&self, key: &ResourceKey, expected: Revision, next: Record) -> Result<Swapped, StoreError> {
        let shard = self.shard(key).ok_or(StoreError::Unavailable)?;
        let mut next = Arc::new(next);
        loop {
            let (until, snapshot) = match self.begin_swap(shard, key, expected, &mut next)? {
                BegunSwap::Over(swapped) => return Ok(swapped),
                BegunSwap::HeldBack(snapshot, until) => (until, Some(snapshot)),
                BegunSwap::Behind(until) => (until, None),
            };
            let passing = Passing(&shard.change);
            J::ended(&until).await;
            drop(self.ended_at(shard, key));
            drop(passing);
            match snapshot {
                Some(snapshot) if J::outcome(&until) == Some(true) => return Ok(Swapped::Done(snapshot)),
                Some(_) => return Err(StoreError::Unavailable),
                None => {}
            }
        }
    }

    async fn scan(&self, after: Option<&ResourceKey>, limit: usize) -> Result<Scanned, StoreError> {
        let first = after.map_or(0, |key| usize::from(key.bucket() % SHARDS));
        let mut found = Vec::new();
        for (number, shard) in self.shards.iter().enumerate().skip(first) {
            let after = after.filter(|_| number == first);
            found.extend(self.ended(shard).page(after, limit - found.len(), self.clock.now()));
            if found.len() == limit {
                break;
            }
        }
        Ok(found)
    }

    async fn pinned_below(&self, roots: &[TreeRoot], limit: usize) -> Result<Scanned, StoreError> {
        let mut found = Vec::new();
        for shard in &self.shards {
            found.extend(self.ended(shard).pinned_below(roots, limit - found.len(), self.clock.now()));
        }
        Ok(found)
    }

    async fn try_out(&self) -> Result<(), StoreError> {
        if self.journal.try_out().await { Ok(()) } else { Err(StoreError::Unavailable) }
    }

    async fn owe(&self, owed: Owed) -> Result<(), StoreError> {
        let is_written = self.journal.owe(owed, self.clock.now()).await;
        if is_written { Ok(()) } else { Err(StoreError::Unavailable) }
    }

    async fn close(&self) {
        self.journal.close(self.has_no_pending_writes(), self.clock.now()).await;
    }

    fn count(&self) -> Option<Counts> {
        let taken = self.account.taken();
        let mut counts = Counts { records: taken.records as u64, bytes: Some(taken.bytes), ..Counts::default() };
        for shard in &self.shards {
            self.ended(shard).count_live(&mut counts, self.clock.now());
        }
        Some(counts)
    }

    async fn changed(&self, key: &ResourceKey, seen: Revision) {
        let Some(shard) = self.shard(key) else { return };
        let change = shard.change.notified();
        let until = {
            let mut records = self.ended_at(shard, key);
            if records.snapshot(key, self.clock.now()).revision != seen {
                return;
            }
            records.awaited(key).cloned()
        };
        match until {
            Some(until) => tokio::select! {
                biased;
                () = change => {}
                () = J::ended(&until) => {}
            },
            None => change.await,
        }
    }

    async fn raise_floors(&self) -> Result<(), StoreError> {
        // The record of no resource gets a later revision than any floor, and the journal receives that change.
        let none = ResourceKey::from_text("raised floors");
        loop {
            let before = self.read(&none).await?;
            let next = Record { version: Stamp::Itself, ..before.draft() };
            if let Swapped::Done(snapshot) = self.swap(&none, before.revision, next).await? {
                for shard in &self.shards {
                    shard.records.lock().raise_floors(snapshot.revision);
                    shard.change.notify_waiters();
                }
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests;
