//! What all request bodies together may hold: memory and spool space (DESIGN, rule 13).

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use crate::telemetry::metrics::Gauged;

/// The totals over all request bodies that are held at one time.
#[derive(Debug)]
pub struct BodyBudget {
    memory_free_bytes: AtomicU64,
    spool_free_bytes: AtomicU64,
    /// What is free where nothing is held: bytes of memory, and bytes of spool files.
    total: (u64, u64),
}

impl BodyBudget {
    /// A budget of so many bytes of memory and so many bytes of spool files.
    pub fn new(memory_total_bytes: usize, spool_total_bytes: u64) -> Self {
        Self {
            memory_free_bytes: AtomicU64::new(memory_total_bytes as u64),
            spool_free_bytes: AtomicU64::new(spool_total_bytes),
            total: (memory_total_bytes as u64, spool_total_bytes),
        }
    }
}

impl Gauged for BodyBudget {
    fn body_bytes(&self) -> (u64, u64) {
        let held = |total: u64, free: &AtomicU64| total.saturating_sub(free.load(Ordering::Relaxed));
        (held(self.total.0, &self.memory_free_bytes), held(self.total.1, &self.spool_free_bytes))
    }
}

/// What one body holds of a [`BodyBudget`]; given back when it is dropped.
#[derive(Debug)]
pub(super) struct Share {
    budget: Arc<BodyBudget>,
    memory_bytes: u64,
    spool_bytes: u64,
}

impl Share {
    pub(super) fn none_of(budget: &Arc<BodyBudget>) -> Self {
        Self { budget: Arc::clone(budget), memory_bytes: 0, spool_bytes: 0 }
    }

    /// Makes the share of memory at least `bytes`; false, and unchanged, where that much is not free.
    pub(super) fn hold_memory(&mut self, bytes: usize) -> bool {
        hold(&self.budget.memory_free_bytes, &mut self.memory_bytes, bytes as u64)
    }

    /// Makes the share of spool space at least `bytes`; false, and unchanged, where that much is not free.
    pub(super) fn hold_spool(&mut self, bytes: u64) -> bool {
        hold(&self.budget.spool_free_bytes, &mut self.spool_bytes, bytes)
    }

    /// Gives the whole share of memory back.
    pub(super) fn release_memory(&mut self) {
        self.budget.memory_free_bytes.fetch_add(std::mem::take(&mut self.memory_bytes), Ordering::Relaxed);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.release_memory();
        if self.spool_bytes > 0 {
            self.budget.spool_free_bytes.fetch_add(self.spool_bytes, Ordering::Relaxed);
        }
    }
}

/// The counters guard no other memory, so relaxed order is enough.
fn hold(free: &AtomicU64, held: &mut u64, wanted: u64) -> bool {
    let more = wanted.saturating_sub(*held);
    let taken = free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |free| free.checked_sub(more)).is_ok();
    if taken {
        *held += more;
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_grows_until_the_total_is_used_up() {
        let budget = Arc::new(BodyBudget::new(10, 0));
        let (mut first, mut second) = (Share::none_of(&budget), Share::none_of(&budget));
        assert!(first.hold_memory(6));
        assert!(!second.hold_memory(5), "only 4 bytes are free");
        assert!(first.hold_memory(10), "growing takes the difference alone");
    }

    #[test]
    fn a_dropped_share_is_free_again() {
        let budget = Arc::new(BodyBudget::new(10, 10));
        let mut first = Share::none_of(&budget);
        assert!(first.hold_memory(10) && first.hold_spool(10));
        drop(first);
        let mut second = Share::none_of(&budget);
        assert!(second.hold_memory(10) && second.hold_spool(10));
    }
}
