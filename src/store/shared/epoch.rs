//! Detects an engine that has lost acknowledged writes, through a failover, a restored backup or a deleted database.
//! The sign is a revision that goes back.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::{core::records::record::Revision, store::StoreError};

/// The greatest revision that this process has seen, and whether a smaller one followed.
#[derive(Default)]
pub(super) struct Epoch {
    greatest: AtomicU64,
    is_over: AtomicBool,
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

    /// Notes the engine's revision from an answer, which is one that it has committed. Once a revision is smaller than what was `reached` before the
    /// request, every operation fails.
    pub(super) fn accept(&self, reached: Revision, current: Revision) -> Result<(), StoreError> {
        self.accept_seen(reached, current, current)
    }

    /// Like [`Epoch::accept`], for an engine whose revision may belong to a change that is not committed yet: a crash
    /// takes that back. So only the revision that was `seen` in the answer must be reached from now on.
    pub(super) fn accept_seen(&self, reached: Revision, current: Revision, seen: Revision) -> Result<(), StoreError> {
        if current >= reached {
            self.greatest.fetch_max(seen.0, Ordering::AcqRel);
            return Ok(());
        }
        if !self.is_over.swap(true, Ordering::Relaxed) {
            tracing::error!(
                seen = reached.0,
                found = current.0,
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

    #[test]
    fn answers_may_overtake_each_other() {
        let epoch = Epoch::default();
        let reached = epoch.reached().unwrap();
        assert_eq!(epoch.accept(reached, Revision(5)), Ok(()));
        assert_eq!(epoch.accept(reached, Revision(4)), Ok(()));
        assert_eq!(epoch.reached(), Ok(Revision(5)));
    }

    /// A crash takes back the number of a change that was not committed.
    #[test]
    fn only_what_was_seen_must_be_reached_again() {
        let epoch = Epoch::default();
        assert_eq!(epoch.accept_seen(Revision(0), Revision(7), Revision(5)), Ok(()));
        assert_eq!(epoch.reached(), Ok(Revision(5)));
        assert_eq!(epoch.accept_seen(Revision(5), Revision(6), Revision(6)), Ok(()));
        assert_eq!(epoch.accept_seen(Revision(6), Revision(5), Revision(5)), Err(StoreError::LostWrites));
    }

    #[test]
    fn a_store_that_went_back_is_trusted_no_longer() {
        let epoch = Epoch::default();
        epoch.accept(Revision(0), Revision(5)).unwrap();
        let reached = epoch.reached().unwrap();
        assert_eq!(epoch.accept(reached, Revision(4)), Err(StoreError::LostWrites));
        assert_eq!(epoch.reached(), Err(StoreError::LostWrites));
    }
}
