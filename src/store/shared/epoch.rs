//! Detects an engine that has lost acknowledged writes, through a failover, a restored backup or a deleted database.
//! The sign is a revision that goes back.
//!
//! # Design
//!
//! *Why does each record count too?* Other processes may write until the engine's last revision is beyond the lost ones.
//! The lost record still has an earlier revision than this process has seen. Records that exist no more have a floor,
//! which never goes back either.

use std::{
    num::NonZeroUsize,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};

use lru::LruCache;
use parking_lot::Mutex;

use crate::{
    core::{records::record::Revision, resource::ResourceKey},
    store::StoreError,
};

/// How many records are remembered with the revision that this process has seen last. A failover loses the last writes,
/// and seldom more than these.
const RECORDS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(9_999);

/// The revisions that came with an answer of an engine.
#[derive(Clone, Copy, Debug)]
pub struct ToldRevisions {
    /// The last revision of the engine. It may belong to a change that is not committed yet: a crash takes that back.
    pub current: Revision,
    /// The greatest revision in the answer that is committed. It must be reached from now on.
    pub seen: Revision,
}

impl ToldRevisions {
    /// Returns what an engine tells whose last revision is committed.
    pub(super) fn committed(revision: Revision) -> Self {
        Self { current: revision, seen: revision }
    }
}

/// The greatest revisions that this process has seen, and whether a smaller one followed.
pub(super) struct Epoch {
    greatest: AtomicU64,
    by_record: Mutex<LruCache<ResourceKey, Revision>>,
    is_over: AtomicBool,
}

impl Default for Epoch {
    fn default() -> Self {
        let by_record = Mutex::new(LruCache::new(RECORDS));
        Self { greatest: AtomicU64::default(), by_record, is_over: AtomicBool::default() }
    }
}

impl Epoch {
    /// Returns the revision that the engine must have reached, for [`Epoch::accept`]. The caller takes it before it
    /// sends the request, because answers may overtake each other.
    pub(super) fn reached(&self) -> Result<Revision, StoreError> {
        if self.is_over.load(Ordering::Relaxed) {
            return Err(StoreError::LostWrites);
        }
        Ok(Revision(self.greatest.load(Ordering::Acquire)))
    }

    /// Notes the revisions from an answer. Once the engine's is smaller than what was `reached` before the request, every
    /// operation fails.
    pub(super) fn accept(
        &self,
        reached: Revision,
        ToldRevisions { current, seen }: ToldRevisions,
    ) -> Result<(), StoreError> {
        if current >= reached {
            self.greatest.fetch_max(seen.0, Ordering::AcqRel);
            return Ok(());
        }
        self.end(reached, current)
    }

    /// Returns the revision that a record must have reached, for [`Epoch::accept_record`]. The caller takes it before it
    /// sends the request.
    pub(super) fn record_reached(&self, key: &ResourceKey) -> Revision {
        self.by_record.lock().get(key).copied().unwrap_or_default()
    }

    /// Notes the revision of a record from an answer. Once it is smaller than what was `reached` before the request, every
    /// operation fails.
    pub(super) fn accept_record(
        &self,
        key: &ResourceKey,
        reached: Revision,
        found: Revision,
    ) -> Result<(), StoreError> {
        if found < reached {
            return self.end(reached, found);
        }
        if found > reached {
            let mut by_record = self.by_record.lock();
            if let Some(seen) = by_record.get_mut(key) {
                *seen = found.max(*seen);
            } else {
                by_record.put(key.clone(), found);
            }
        }
        Ok(())
    }

    fn end(&self, seen: Revision, found: Revision) -> Result<(), StoreError> {
        if !self.is_over.swap(true, Ordering::Relaxed) {
            tracing::error!(
                seen = seen.0,
                found = found.0,
                "the store has lost acknowledged writes: its revisions have gone back. Guarded writes are refused \
                 until the store's `incarnation` key is deleted and this process is restarted"
            );
        }
        Err(StoreError::LostWrites)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn committed(revision: u64) -> ToldRevisions {
        ToldRevisions::committed(Revision(revision))
    }

    #[test]
    fn answers_may_overtake_each_other() {
        let epoch = Epoch::default();
        let reached = epoch.reached().unwrap();
        assert_eq!(epoch.accept(reached, committed(5)), Ok(()));
        assert_eq!(epoch.accept(reached, committed(4)), Ok(()));
        assert_eq!(epoch.reached(), Ok(Revision(5)));
    }

    /// A crash takes back the number of a change that was not committed.
    #[test]
    fn only_what_was_seen_must_be_reached_again() {
        let epoch = Epoch::default();
        let told = ToldRevisions { current: Revision(7), seen: Revision(5) };
        assert_eq!(epoch.accept(Revision(0), told), Ok(()));
        assert_eq!(epoch.reached(), Ok(Revision(5)));
        assert_eq!(epoch.accept(Revision(5), committed(6)), Ok(()));
        assert_eq!(epoch.accept(Revision(6), committed(5)), Err(StoreError::LostWrites));
    }

    /// Other processes have gone on after the loss.
    #[test]
    fn a_record_that_went_back_shows_the_loss_that_the_last_revision_hides() {
        let (epoch, key, other) = (Epoch::default(), ResourceKey::from_text("a"), ResourceKey::from_text("b"));
        for (reached, found) in [(0, 3), (3, 7), (0, 5), (7, 7)] {
            assert_eq!(epoch.accept_record(&key, Revision(reached), Revision(found)), Ok(()), "answers may overtake");
        }
        assert_eq!((epoch.record_reached(&key), epoch.record_reached(&other)), (Revision(7), Revision(0)));
        assert_eq!(epoch.accept_record(&key, Revision(7), Revision(6)), Err(StoreError::LostWrites));
        assert_eq!(epoch.reached(), Err(StoreError::LostWrites));
    }

    #[test]
    fn a_store_that_went_back_is_trusted_no_longer() {
        let epoch = Epoch::default();
        epoch.accept(Revision(0), committed(5)).unwrap();
        let reached = epoch.reached().unwrap();
        assert_eq!(epoch.accept(reached, committed(4)), Err(StoreError::LostWrites));
        assert_eq!(epoch.reached(), Err(StoreError::LostWrites));
    }
}
