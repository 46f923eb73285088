//! The order of turns at a resource that several processes write to: the signs of the processes that wait.
//!
//! # Design
//!
//! *Why signs?* Each process serves its own writes and grants in order of arrival (`guard/claim/queue.rs`), and has no
//! view of those that wait in another. Without a sign, a stream of writes through one process would keep all others
//! away.
//!
//! *What is a turn?* One mark, or one grant. If the first in the line of a process cannot go on, the process signs the
//! record. The processes line up there in the order of their signs; only the first of them marks, and its mark removes
//! its sign. So with `n` processes a turn comes after at most `n - 1` turns of others.
//!
//! *What if a sign is wrong?* A sign decides only who goes first: a mark is put in by a swap against the very record
//! that it was judged by, with or without signs. A lost sign costs a place. The sign of a dead process keeps the
//! others waiting until it expires, after a few seconds. A live process renews its sign.
//!
//! *Why does a sign belong to a process and not to a write?* A process needs one at a time, for the first write in its
//! line. If that write gives up, the next one has the place.

use std::time::Duration;

use super::record::{Record, Snapshot, WaitingSign};
use crate::core::time::StoreTime;

/// The maximum number of processes that sign a record: each sign costs 60 bytes in it, and every swap copies them.
/// Processes that find no room get their turns at random.
pub const WAITING_MAX: usize = 64;

impl Snapshot {
    /// The time until which a process other than `owner` goes first, unless its turn comes earlier.
    pub fn goes_before(&self, owner: u64) -> Option<StoreTime> {
        let first = self.waiting().next()?;
        (first.owner != owner).then_some(first.until)
    }

    /// The time until which the sign of this process counts, if there is one.
    pub fn is_signed_by(&self, owner: u64) -> Option<StoreTime> {
        self.waiting().find(|waiting| waiting.owner == owner).map(|waiting| waiting.until)
    }

    /// The time for which writes of processes other than `owner` may still be in flight. The mark of a dead process
    /// stays for as long.
    pub fn held_by_others(&self, owner: u64) -> Duration {
        let others = self.record.marks().filter(|mark| mark.owner != owner);
        others.map(|mark| self.now.until(mark.deadline)).max().unwrap_or_default()
    }

    /// True if a write would wait for processes other than `owner`. Only then is a sign of use.
    pub fn is_shared_with_others(&self, owner: u64) -> bool {
        let mut marks = self.record.claim.iter().chain(&self.record.unclaimed);
        marks.any(|mark| mark.owner != owner) || self.waiting().any(|waiting| waiting.owner != owner)
    }

    fn waiting(&self) -> impl Iterator<Item = &WaitingSign> {
        self.record.waiting.iter().filter(|waiting| self.now < waiting.until)
    }
}

/// Adds the sign of a process behind the others, or lets it count for longer in its place. `None` if there is no room.
pub fn sign(snapshot: &Snapshot, owner: u64, until: StoreTime) -> Option<Record> {
    let mut record = living(snapshot);
    let has_room = record.waiting.len() < WAITING_MAX;
    match record.waiting.iter_mut().find(|waiting| waiting.owner == owner) {
        Some(waiting) => waiting.until = waiting.until.max(until),
        None if has_room => record.waiting.push(WaitingSign { owner, until }),
        None => return None,
    }
    Some(record)
}

/// Removes the sign of a process. `None` if there is none.
pub fn unsign(snapshot: &Snapshot, owner: u64) -> Option<Record> {
    snapshot.is_signed_by(owner).map(|_until| served(living(snapshot), owner))
}

/// The record without the sign of a process that has had its turn.
#[must_use]
pub fn served(mut record: Record, owner: u64) -> Record {
    record.waiting.retain(|waiting| waiting.owner != owner);
    record
}

/// The record without its expired signs.
fn living(snapshot: &Snapshot) -> Record {
    let mut record = snapshot.draft();
    record.waiting.retain(|waiting| snapshot.now < waiting.until);
    record
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::records::{
        record::{Mark, Revision},
        steps::{add_unclaimed, claim, touch},
    };

    const LASTS: Duration = Duration::from_secs(10);

    fn absent() -> Snapshot {
        let floor = Revision(7);
        Snapshot::new(floor, Record::absent(floor), StoreTime::from_milliseconds(1_000))
    }

    fn put(snapshot: &mut Snapshot, next: Record) {
        let revision = Revision(snapshot.revision.0 + 1);
        *snapshot = Snapshot::new(revision, next.resolved(revision), snapshot.now);
    }

    fn signed(owners: impl IntoIterator<Item = u64>) -> Snapshot {
        let mut snapshot = absent();
        for owner in owners {
            let next = sign(&snapshot, owner, snapshot.now.plus(LASTS)).expect("there is room");
            put(&mut snapshot, next);
        }
        snapshot
    }

    fn mark(owner: u64) -> Mark {
        Mark {
            owner,
            nonce: 1,
            deadline: StoreTime::from_milliseconds(60_000),
            leaves_lease: false,
            late_write_window: Duration::ZERO,
        }
    }

    #[test]
    fn processes_go_by_the_order_of_their_signs() {
        let mut snapshot = signed([1, 2, 3]);
        for owner in 1..=3 {
            let others = (1..=3).filter(|other| *other != owner);
            assert_eq!(snapshot.goes_before(owner), None);
            assert!(others.into_iter().all(|other| snapshot.goes_before(other).is_some()), "{owner} goes first");
            let next = add_unclaimed(&snapshot, mark(owner)).expect("there is room");
            put(&mut snapshot, next);
        }
        assert!(snapshot.record.waiting.is_empty(), "a mark takes its sign along");
    }

    #[test]
    fn a_claim_takes_the_sign_of_its_own_process_along() {
        let snapshot = signed([1, 2]);
        let claimed = claim(&snapshot, mark(1)).expect("the resource is free");
        assert_eq!(claimed.waiting.iter().map(|waiting| waiting.owner).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn a_sign_that_is_renewed_keeps_its_place() {
        let mut snapshot = signed([1, 2]);
        let later = snapshot.now.plus(LASTS * 2);
        let next = sign(&snapshot, 1, later).expect("it is there");
        put(&mut snapshot, next);
        assert_eq!((snapshot.goes_before(1), snapshot.goes_before(2)), (None, Some(later)));
    }

    #[test]
    fn a_dead_sign_keeps_nobody_waiting() {
        let mut snapshot = signed([1, 2]);
        snapshot.now = snapshot.now.plus(LASTS);
        assert_eq!((snapshot.goes_before(3), snapshot.is_signed_by(1)), (None, None));
        let next = sign(&snapshot, 3, snapshot.now.plus(LASTS)).expect("there is room");
        assert_eq!(next.waiting.len(), 1, "expired signs are removed");
    }

    #[test]
    fn there_is_a_limit() {
        let mut snapshot = signed(0..64);
        assert_eq!(sign(&snapshot, 64, snapshot.now.plus(LASTS)), None);
        assert!(sign(&snapshot, 63, snapshot.now.plus(LASTS)).is_some(), "a process that has signed stays");
        let next = unsign(&snapshot, 0).expect("it is there");
        put(&mut snapshot, next);
        assert!(sign(&snapshot, 64, snapshot.now.plus(LASTS)).is_some());
        assert_eq!(unsign(&snapshot, 0), None);
    }

    /// The known state of a resource stays valid, no matter which process waits for it.
    #[test]
    fn a_sign_changes_nothing_of_the_resource() {
        let mut before = absent();
        let next = touch(&before, None);
        put(&mut before, next);
        let next = sign(&before, 1, before.now.plus(LASTS)).expect("there is room");
        let mut after = before.clone();
        put(&mut after, next);
        assert_eq!(
            (after.version(), after.touched(), after.fence()),
            (before.version(), before.touched(), before.fence())
        );
        assert!(after.has_no_pending_writes() && after.record.is_idle(after.now));
    }

    #[test]
    fn a_process_alone_needs_no_signs() {
        let mut snapshot = absent();
        let next = add_unclaimed(&snapshot, mark(1)).expect("there is room");
        put(&mut snapshot, next);
        assert!(!snapshot.is_shared_with_others(1) && snapshot.is_shared_with_others(2));
        let signed = signed([1]);
        assert!(!signed.is_shared_with_others(1) && signed.is_shared_with_others(2));
    }
}
