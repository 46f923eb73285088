//! Detects an engine that has lost acknowledged writes, through a failover, a restored backup or a deleted database.
//! The sign is a revision that goes back.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::{core::records::record::Revision, store::StoreError};

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

    #[test]
    fn a_store_that_went_back_is_trusted_no_longer() {
        let epoch = Epoch::default();
        epoch.accept(Revision(0), committed(5)).unwrap();
        let reached = epoch.reached().unwrap();
        assert_eq!(epoch.accept(reached, committed(4)), Err(StoreError::LostWrites));
        assert_eq!(epoch.reached(), Err(StoreError::LostWrites));
    }
}
