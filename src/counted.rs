//! Counts of the work that is in flight at this moment.

use std::sync::atomic::{AtomicUsize, Ordering};

/// One that is counted until this is dropped.
pub(crate) struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    /// Counts one more, unless there are `max` already.
    pub(crate) fn up_to(max: usize, count: &'a AtomicUsize) -> Option<Self> {
        let counted = Self(count);
        (count.fetch_add(1, Ordering::Relaxed) < max).then_some(counted)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
