//! The total memory and spool space that all bodies may hold (DESIGN, rule 13).
//!
//! # Design
//!
//! *Why is a part of the memory kept for each use?* Otherwise clients with large, slow uploads could hold all of it.
//! Then no response would be hashed, so readers would get no tags and could write nothing. No probe would find the
//! current tag, and every small write would go through a file. So each use finds its own part free, no matter what the
//! others hold. Beyond its part it may take memory that is kept for no use.
//!
//! *Why have large bodies no part?* They have the spool.
//!
//! *Why a lock?* The memory that is free for one use depends on what the others hold. The lock is held for a few
//! additions at most, and a body takes it only a few times.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use parking_lot::Mutex;

use crate::telemetry::metrics::Gauged;

/// The largest size of a small request body, in bytes. Nearly everything that people edit is small, and so is what
/// programs send to each other.
pub(super) const SMALL_BODY_BYTES: usize = 64 * 1024;

/// The purpose that memory is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryUse {
    /// The body of a request.
    Body,
    /// The body of a response that is held until its client has received it.
    Response,
    /// The body of a response that is only inspected.
    Probe,
}

/// A use with its own part of the total.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BudgetPart {
    LargeBody,
    SmallBody,
    Response,
    Probe,
}

impl BudgetPart {
    const ALL: [Self; 4] = [Self::LargeBody, Self::SmallBody, Self::Response, Self::Probe];

    fn of(purpose: MemoryUse, bytes: u64) -> Self {
        match purpose {
            MemoryUse::Body if bytes > SMALL_BODY_BYTES as u64 => Self::LargeBody,
            MemoryUse::Body => Self::SmallBody,
            MemoryUse::Response => Self::Response,
            MemoryUse::Probe => Self::Probe,
        }
    }

    /// The bytes of a total that are kept for this use.
    const fn of_total(self, total: u64) -> u64 {
        match self {
            Self::LargeBody => 0,
            Self::SmallBody | Self::Probe => total / 8,
            Self::Response => total / 4,
        }
    }
}

/// The totals over all bodies that are held at one time.
#[derive(Debug)]
pub struct BodyBudget {
    /// The number of bytes that each part of the memory holds, in the order of [`BudgetPart::ALL`].
    memory: Mutex<[u64; 4]>,
    spool_free_bytes: AtomicU64,
    /// The room that is free if no body holds any: bytes of memory, and bytes of spool files.
    total: (u64, u64),
}

impl BodyBudget {
    /// A budget with these totals for memory and spool files, in bytes.
    pub fn new(memory_total_bytes: usize, max_spool_size_bytes: u64) -> Self {
        Self {
            memory: Mutex::default(),
            spool_free_bytes: AtomicU64::new(max_spool_size_bytes),
            total: (memory_total_bytes as u64, max_spool_size_bytes),
        }
    }

    /// The bytes of all spool files together.
    pub(super) fn max_spool_bytes(&self) -> u64 {
        self.total.1
    }

    /// Holds `to` instead of `from`, if the total and the parts kept for others allow it.
    fn change_memory(&self, from: (BudgetPart, u64), to: (BudgetPart, u64)) -> bool {
        let mut memory = self.memory.lock();
        let mut held = *memory;
        for (place, part) in held.iter_mut().zip(BudgetPart::ALL) {
            *place -= if part == from.0 { from.1 } else { 0 };
        }
        let kept = |(held, part): (&u64, BudgetPart)| {
            let kept = if part == to.0 { 0 } else { part.of_total(self.total.0) };
            kept.max(*held)
        };
        let fits = held.iter().zip(BudgetPart::ALL).map(kept).sum::<u64>().saturating_add(to.1) <= self.total.0;
        // Giving memory back is always allowed.
        if fits || to.1 == 0 {
            for (place, part) in held.iter_mut().zip(BudgetPart::ALL) {
                *place += if part == to.0 { to.1 } else { 0 };
            }
            *memory = held;
        }
        fits
    }
}

impl Gauged for BodyBudget {
    fn body_bytes(&self) -> (u64, u64) {
        let spooled = self.total.1.saturating_sub(self.spool_free_bytes.load(Ordering::Relaxed));
        (self.memory.lock().iter().sum(), spooled)
    }
}

/// The share of one body in a [`BodyBudget`], given back on drop.
#[derive(Debug)]
pub struct Share {
    budget: Arc<BodyBudget>,
    purpose: MemoryUse,
    memory_bytes: u64,
    spool_bytes: u64,
}

impl Share {
    /// A share of nothing yet.
    pub fn none_of(budget: &Arc<BodyBudget>, purpose: MemoryUse) -> Self {
        Self { budget: Arc::clone(budget), purpose, memory_bytes: 0, spool_bytes: 0 }
    }

    /// Makes the share of memory at least `bytes`; returns false, and changes nothing, if that much is not free.
    pub fn hold_memory(&mut self, bytes: usize) -> bool {
        let bytes = bytes as u64;
        bytes <= self.memory_bytes || self.change_memory(bytes)
    }

    /// Makes the share of spool space at least `bytes`; returns false, and changes nothing, if that much is not free.
    pub fn hold_spool(&mut self, bytes: u64) -> bool {
        let more = bytes.saturating_sub(self.spool_bytes);
        let (free, order) = (&self.budget.spool_free_bytes, Ordering::Relaxed);
        let is_held = free.fetch_update(order, order, |free| free.checked_sub(more)).is_ok();
        if is_held {
            self.spool_bytes += more;
        }
        is_held
    }

    /// Gives the whole share of memory back.
    pub fn release_memory(&mut self) {
        if self.memory_bytes > 0 {
            self.change_memory(0);
        }
    }

    fn change_memory(&mut self, bytes: u64) -> bool {
        let part = |bytes| (BudgetPart::of(self.purpose, bytes), bytes);
        let is_changed = self.budget.change_memory(part(self.memory_bytes), part(bytes)) || bytes == 0;
        if is_changed {
            self.memory_bytes = bytes;
        }
        is_changed
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

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn shares(budget: &Arc<BodyBudget>, purpose: MemoryUse, bytes: usize) -> Vec<Share> {
        let mut shares = Vec::new();
        loop {
            let mut share = Share::none_of(budget, purpose);
            if !share.hold_memory(bytes) {
                return shares;
            }
            shares.push(share);
        }
    }

    fn held(budget: &Arc<BodyBudget>) -> (u64, u64) {
        budget.body_bytes()
    }

    #[test]
    fn a_share_grows_until_the_total_is_used_up() {
        let budget = Arc::new(BodyBudget::new(16, 0));
        let mut first = Share::none_of(&budget, MemoryUse::Body);
        let mut second = Share::none_of(&budget, MemoryUse::Body);
        assert!(first.hold_memory(6));
        assert!(!second.hold_memory(5), "only 4 unreserved bytes are left");
        assert!(first.hold_memory(10), "growing takes the difference alone");
        assert!(!first.hold_memory(11));
        assert!(first.hold_memory(3), "it has as much already");
        assert_eq!(held(&budget), (10, 0));
    }

    #[test]
    fn a_dropped_share_is_free_again() {
        let budget = Arc::new(BodyBudget::new(16, 10));
        let mut first = Share::none_of(&budget, MemoryUse::Body);
        assert!(first.hold_memory(10) && first.hold_spool(10));
        drop(first);
        assert_eq!(held(&budget), (0, 0));
        let mut second = Share::none_of(&budget, MemoryUse::Body);
        assert!(second.hold_memory(10) && second.hold_spool(10) && !second.hold_spool(11));
    }

    /// A use that holds as much as it can leaves the parts of all others.
    #[test]
    fn no_use_takes_the_part_of_another() {
        for (first, bytes, most) in [
            (MemoryUse::Body, MIB, 8 * MIB),
            (MemoryUse::Body, SMALL_BODY_BYTES, 10 * MIB),
            (MemoryUse::Response, MIB, 12 * MIB),
            (MemoryUse::Probe, MIB, 10 * MIB),
        ] {
            let budget = Arc::new(BodyBudget::new(16 * MIB, 0));
            let greedy = shares(&budget, first, bytes);
            assert_eq!(greedy.len() * bytes, most, "{first:?} of {bytes} bytes");
            for (other, bytes, part) in [
                (MemoryUse::Body, SMALL_BODY_BYTES, 2 * MIB),
                (MemoryUse::Response, MIB, 4 * MIB),
                (MemoryUse::Probe, MIB, 2 * MIB),
            ] {
                let is_other =
                    BudgetPart::of(other, bytes as u64) != BudgetPart::of(first, (most / greedy.len()) as u64);
                let got = shares(&budget, other, bytes).len() * bytes;
                assert_eq!(got, if is_other { part } else { 0 }, "{other:?} of {bytes} bytes beside {first:?}");
            }
        }
    }

    /// A body that has grown large is counted as large, with all its bytes.
    #[test]
    fn a_body_that_grows_gives_the_part_of_small_ones_back() {
        let budget = Arc::new(BodyBudget::new(MIB, 0));
        let mut body = Share::none_of(&budget, MemoryUse::Body);
        assert!(body.hold_memory(SMALL_BODY_BYTES) && body.hold_memory(512 * 1024));
        assert!(!body.hold_memory(512 * 1024 + 1), "half of it is kept for others");
        assert_eq!(shares(&budget, MemoryUse::Body, SMALL_BODY_BYTES).len(), 2);
        drop(body);
        assert_eq!(held(&budget), (0, 0));
    }
}
