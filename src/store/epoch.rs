//! Whether an engine still is what it was: revisions that go back mean that acknowledged writes are lost, by a failover,
//! a restored backup or a deleted database.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::StoreError;
use crate::core::record::Revision;

/// The greatest revision that this process has seen, and whether a smaller one came after it.
#[derive(Default)]
pub(super) struct Epoch {
    greatest: AtomicU64,
    is_over: AtomicBool,
}

impl Epoch {
    /// The revision that the engine must have reached, for [`Epoch::accept`]. To be taken before it is asked: answers
    /// may overtake each other on their way.
    pub(super) fn reached(&self) -> Result<Revision, StoreError> {
        if self.is_over.load(Ordering::Relaxed) {
            return Err(StoreError::Unavailable);
        }
        Ok(Revision(self.greatest.load(Ordering::Acquire)))
    }

    /// Takes note of the engine's revision in an answer. From the first that is smaller than what was `reached` before
    /// the question, every operation fails.
    pub(super) fn accept(&self, reached: Revision, current: Revision) -> Result<(), StoreError> {
        if current >= reached {
            self.greatest.fetch_max(current.0, Ordering::AcqRel);
            return Ok(());
        }
        if !self.is_over.swap(true, Ordering::Relaxed) {
            tracing::error!(
                seen = reached.0,
                found = current.0,
                "the store has lost writes that it had acknowledged: its revisions go back. Guarded writes are refused \
                 until this process is started again, once the store's `incarnation` key was deleted"
            );
        }
        Err(StoreError::Unavailable)
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

    #[test]
    fn a_store_that_went_back_is_trusted_no_longer() {
        let epoch = Epoch::default();
        epoch.accept(Revision(0), Revision(5)).unwrap();
        let reached = epoch.reached().unwrap();
        assert_eq!(epoch.accept(reached, Revision(4)), Err(StoreError::Unavailable));
        assert_eq!(epoch.reached(), Err(StoreError::Unavailable));
    }
}
