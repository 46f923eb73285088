//! Each step of a settled read, and the answers that it may relay.

use super::*;
use crate::core::{
    records::{
        record::{Mark, Record, Revision},
        steps::{Outcome, Settlement, add_unclaimed, claim, settle, take_over, touch},
        waiting::sign,
    },
    time::StoreTime,
};

const NONE: Duration = Duration::ZERO;
const LONG: Duration = Duration::from_secs(30);
/// The time in which a mark of these tests ends, and the window in which its write may still be applied.
const MARK: Duration = Duration::from_secs(10);
const WINDOW: Duration = Duration::from_secs(3);

fn free() -> Snapshot {
    let floor = Revision(7);
    Snapshot::new(floor, Record::absent(floor), StoreTime::from_milliseconds(1_000))
}

fn mark(snapshot: &Snapshot) -> Mark {
    let deadline = snapshot.now.plus(MARK);
    Mark { owner: 1, nonce: 1, deadline, leaves_lease: false, late_write_window: WINDOW }
}

fn after(before: &Snapshot, next: Record) -> Snapshot {
    let revision = Revision(before.revision.0 + 1);
    Snapshot::new(revision, next.resolved(revision), before.now)
}

fn claimed() -> Snapshot {
    let free = free();
    after(&free, claim(&free, mark(&free)).expect("the resource is free"))
}

fn appended() -> Snapshot {
    let free = free();
    after(&free, add_unclaimed(&free, mark(&free)).expect("there is room"))
}

fn ended(claimed: &Snapshot, outcome: Outcome) -> Snapshot {
    let settlement = Settlement {
        mark: mark(&free()),
        marked_at: claimed.revision,
        outcome,
        leaves: None,
        learned: None,
        shown: None,
        end: None,
    };
    after(claimed, settle(claimed, settlement).expect("the mark is there"))
}

fn later(snapshot: &Snapshot, by: Duration) -> Snapshot {
    Snapshot { now: snapshot.now.plus(by), ..snapshot.clone() }
}

#[test]
fn a_settled_resource_is_read_at_once() {
    for outcome in [Outcome::Applied, Outcome::NotApplied] {
        assert_eq!(next_step(&ended(&claimed(), outcome), NONE, NONE), ReadStep::Ask, "{outcome:?}");
    }
    assert_eq!(next_step(&free(), NONE, NONE), ReadStep::Ask);
}

#[test]
fn a_read_waits_for_every_kind_of_write_in_flight() {
    for busy in [claimed(), appended()] {
        assert_eq!(next_step(&busy, NONE, LONG), ReadStep::Wait(MARK), "no longer than the mark may last");
        let short = Duration::from_secs(1);
        assert_eq!(next_step(&busy, NONE, short), ReadStep::Wait(short), "no longer than the read may");
        let gives_up = ReadStep::GiveUp { reason: Reason::WriteInFlight, settled_after: MARK };
        assert_eq!(next_step(&busy, NONE, NONE), gives_up);
        assert_eq!(next_step(&later(&busy, MARK), NONE, LONG), ReadStep::TakeOver);
    }
}

#[test]
fn a_read_waits_for_the_end_of_a_doubt_if_it_lives_to_see_it() {
    let orphaned = later(&claimed(), MARK);
    let taken = after(&orphaned, take_over(&orphaned).expect("its owner is dead"));
    for doubt in [ended(&claimed(), Outcome::Doubt), taken] {
        assert_eq!(next_step(&doubt, NONE, WINDOW), ReadStep::Wait(WINDOW));
        let gives_up = ReadStep::GiveUp { reason: Reason::WriteInDoubt, settled_after: WINDOW };
        assert_eq!(next_step(&doubt, NONE, WINDOW.saturating_sub(Duration::from_millis(1))), gives_up);
        assert_eq!(next_step(&later(&doubt, WINDOW), NONE, NONE), ReadStep::Ask, "the doubt is over");
    }
}

#[test]
fn a_read_waits_for_writes_of_a_predecessor() {
    assert_eq!(next_step(&free(), WINDOW, LONG), ReadStep::Wait(WINDOW));
    let gives_up = ReadStep::GiveUp { reason: Reason::StartGrace, settled_after: WINDOW };
    assert_eq!(next_step(&free(), WINDOW, NONE), gives_up);
}

#[test]
fn an_answer_counts_only_if_no_write_was_under_way() {
    let (free, busy) = (free(), claimed());
    assert!(shows_settled_state(&free, &free));
    for write in [&busy, &appended()] {
        assert!(!shows_settled_state(&free, write), "it has begun meanwhile");
        assert!(!shows_settled_state(write, write), "it was in flight all the time");
    }
    for outcome in [Outcome::Applied, Outcome::NotApplied, Outcome::Doubt] {
        let settled = ended(&busy, outcome);
        assert!(!shows_settled_state(&free, &settled), "it has begun and ended meanwhile: {outcome:?}");
        assert!(!shows_settled_state(&busy, &settled), "it has ended meanwhile: {outcome:?}");
    }
    let touched = after(&free, touch(&free, None));
    assert!(!shows_settled_state(&free, &touched), "a related write has begun and ended");
    let signed = after(&free, sign(&free, 2, free.now.plus(MARK)).expect("there is room"));
    assert!(shows_settled_state(&free, &signed), "the wait of a write changes nothing yet");
}
