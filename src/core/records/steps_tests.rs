//! The steps against the rules of DESIGN section 3.

use std::{sync::Arc, time::Duration};

use super::*;
use crate::core::{
    records::record::VariantName,
    tags::{
        entity_tag::EntityTag,
        validators::{Representation, Validators},
    },
};

#[path = "touch_steps_tests.rs"]
mod touches;

const LATE_WRITE_WINDOW: Duration = Duration::from_millis(50);

fn at(milliseconds: u64) -> StoreTime {
    StoreTime::from_milliseconds(milliseconds)
}

/// A model store of one record: each swap gets the next revision.
struct Resource {
    snapshot: Snapshot,
}

impl Resource {
    fn new() -> Self {
        let floor = Revision(7);
        Self { snapshot: Snapshot::new(floor, Record::absent(floor), at(1_000)) }
    }

    fn swap(&mut self, record: Record) -> Revision {
        let revision = Revision(self.snapshot.revision.0 + 1);
        self.snapshot = Snapshot::new(revision, record.resolved(revision), self.snapshot.now);
        revision
    }

    fn pass(&mut self, milliseconds: u64) {
        self.snapshot.now = self.snapshot.now.plus(Duration::from_millis(milliseconds));
    }

    fn mark(&self, nonce: u64) -> Mark {
        let deadline = self.snapshot.now.plus(Duration::from_millis(100));
        Mark { owner: 1, nonce, deadline, late_write_window: LATE_WRITE_WINDOW, leaves_lease: false }
    }

    fn claim(&mut self, nonce: u64) -> Revision {
        let record = claim(&self.snapshot, self.mark(nonce)).expect("the resource is free");
        self.swap(record)
    }

    fn append(&mut self, nonce: u64) -> Revision {
        let record = add_unclaimed(&self.snapshot, self.mark(nonce)).expect("there is room");
        self.swap(record)
    }

    fn settle(&mut self, nonce: u64, marked_at: Revision, outcome: Outcome, learned: Option<Known>) {
        let settlement =
            Settlement { mark: self.mark(nonce), marked_at, outcome, leaves: None, learned, shown: None, end: None };
        let record = settle(&self.snapshot, settlement).expect("the mark is there");
        self.swap(record);
    }
}

fn known(tag: &'static str) -> Known {
    let tag = Some(EntityTag::strong(tag).expect("a tag"));
    let representation = Representation::Present(Validators { tag, modified: None });
    Known { variant: VariantName([0; 16]), representation }
}

/// Rule 1: a record with a claim takes no second one.
#[test]
fn a_claimed_resource_cannot_be_claimed() {
    let mut resource = Resource::new();
    resource.claim(1);
    assert_eq!(claim(&resource.snapshot, resource.mark(2)), None);
}

#[test]
fn a_claim_waits_for_unclaimed_writes_but_not_they_for_it() {
    let mut resource = Resource::new();
    let marked_at = resource.append(1);
    assert_eq!(claim(&resource.snapshot, resource.mark(2)), None);
    resource.settle(1, marked_at, Outcome::Applied, None);
    resource.claim(2);
    resource.append(3);
    assert_eq!(resource.snapshot.record.unclaimed.len(), 1);
}

#[test]
fn an_applied_write_mints_a_version_and_keeps_what_was_learned() {
    let mut resource = Resource::new();
    let before = resource.snapshot.version();
    let marked_at = resource.claim(1);
    assert_eq!(resource.snapshot.version(), before, "a claim alone changes no version");
    resource.settle(1, marked_at, Outcome::Applied, Some(known("new")));
    assert_eq!(resource.snapshot.version(), resource.snapshot.revision);
    assert_eq!(resource.snapshot.known(), Some(&known("new")));
}

#[test]
fn a_write_that_was_not_applied_changes_nothing_but_the_touch() {
    let mut resource = Resource::new();
    let first = resource.claim(1);
    resource.settle(1, first, Outcome::Applied, Some(known("kept")));
    let version = resource.snapshot.version();
    let second = resource.claim(2);
    resource.settle(2, second, Outcome::NotApplied, None);
    assert_eq!(resource.snapshot.version(), version);
    assert_eq!(resource.snapshot.known(), Some(&known("kept")));
    assert!(resource.snapshot.touched() > second, "reads that overlapped the write are not kept");
}

#[test]
fn an_answer_that_contradicts_what_was_known_makes_the_validator_unknown() {
    let mut resource = Resource::new();
    let first = resource.claim(1);
    resource.settle(1, first, Outcome::Applied, Some(known("wrong")));
    let version = resource.snapshot.version();
    let second = resource.claim(2);
    resource.settle(2, second, Outcome::NotAppliedAsKnown, None);
    assert_eq!(resource.snapshot.known(), None);
    assert_eq!(resource.snapshot.version(), version);
}

#[test]
fn an_unclear_outcome_mints_a_version_and_gives_the_claim_back() {
    let mut resource = Resource::new();
    let first = resource.claim(1);
    resource.settle(1, first, Outcome::Applied, Some(known("old")));
    let version = resource.snapshot.version();
    let second = resource.claim(2);
    resource.settle(2, second, Outcome::Unclear, None);
    assert!(resource.snapshot.version() > version);
    assert_eq!(resource.snapshot.known(), None);
    assert_eq!(resource.snapshot.availability(), Availability::Free);
}

#[test]
fn what_was_learned_is_dropped_when_an_unclaimed_write_ran_beside() {
    let mut resource = Resource::new();
    let put = resource.claim(1);
    let post = resource.append(2);
    resource.settle(2, post, Outcome::Applied, None);
    resource.settle(1, put, Outcome::Applied, Some(known("without-the-post")));
    assert_eq!(resource.snapshot.known(), None);
}

#[test]
fn a_doubt_holds_the_resource_until_late_write_window_has_passed() {
    let mut resource = Resource::new();
    let before = resource.snapshot.version();
    let marked_at = resource.claim(1);
    resource.settle(1, marked_at, Outcome::Doubt, None);
    let until = resource.snapshot.now.plus(LATE_WRITE_WINDOW);
    assert_eq!(resource.snapshot.availability(), Availability::InDoubt { until });
    assert_eq!(claim(&resource.snapshot, resource.mark(2)), None);
    assert!(!resource.snapshot.has_no_pending_writes());
    assert_eq!(resource.snapshot.version(), before, "a read during the doubt gets a tag that dies with it");
    resource.pass(50);
    assert_eq!(resource.snapshot.availability(), Availability::Free);
    assert!(resource.snapshot.version() > before);
    assert_eq!(resource.snapshot.known(), None);
}

#[test]
fn the_version_after_a_doubt_is_the_same_before_and_after_the_next_swap() {
    let mut resource = Resource::new();
    let first = resource.claim(1);
    resource.settle(1, first, Outcome::Doubt, None);
    resource.pass(50);
    let after = resource.snapshot.version();
    let second = resource.claim(2);
    resource.settle(2, second, Outcome::NotApplied, None);
    assert_eq!(resource.snapshot.version(), after);
    assert_eq!(resource.snapshot.record.doubt, None);
}

#[test]
fn no_version_that_was_read_during_a_doubt_outlives_it() {
    let mut resource = Resource::new();
    let put = resource.claim(1);
    let post = resource.append(2);
    resource.settle(2, post, Outcome::Doubt, None);
    resource.settle(1, put, Outcome::Applied, None);
    let during = resource.snapshot.version();
    resource.pass(50);
    assert_ne!(resource.snapshot.version(), during);
}

/// The version of an absent record is the floor that forgetting the record has raised (DESIGN, section 3, rule 8).
#[test]
fn no_version_that_was_read_during_a_doubt_comes_back_when_the_record_is_forgotten() {
    let mut resource = Resource::new();
    let first = resource.append(1);
    let second = resource.append(2);
    resource.settle(1, first, Outcome::Doubt, None);
    let before = resource.snapshot.version();
    resource.settle(2, second, Outcome::Applied, None);
    let during = resource.snapshot.version();
    assert_ne!(during, before, "the second write has changed the resource");
    resource.pass(50);
    let forgotten = Record::absent(resource.snapshot.revision);
    assert_ne!(forgotten.version.resolve(resource.snapshot.revision), during);
}

/// A settlement that needs no time is the same at all times, and one that needs the time is not.
#[test]
fn a_settlement_knows_whether_it_depends_on_the_time() {
    let doubt = Doubt { until: at(1_050), version: Stamp::Itself };
    for (doubt, outcome, depends) in [
        (None, Outcome::Applied, false),
        (None, Outcome::Unclear, false),
        (None, Outcome::NotApplied, false),
        (None, Outcome::NotAppliedAsKnown, false),
        (None, Outcome::Doubt, true),
        (Some(doubt), Outcome::Applied, true),
    ] {
        let mut resource = Resource::new();
        Arc::make_mut(&mut resource.snapshot.record).doubt = doubt;
        let marked_at = resource.append(1);
        let mark = resource.mark(1);
        let settlement = Settlement { mark, marked_at, outcome, leaves: None, learned: None, shown: None, end: None };
        let early = settle(&resource.snapshot, settlement.clone());
        assert_eq!(settlement.needs_time(&resource.snapshot.record), depends, "{outcome:?} {doubt:?}");
        resource.pass(60_000);
        assert_eq!(early != settle(&resource.snapshot, settlement), depends, "{outcome:?} {doubt:?}");
    }
}

#[test]
fn a_second_doubt_never_shortens_the_first() {
    let mut resource = Resource::new();
    let put = resource.claim(1);
    let mark = Mark { late_write_window: Duration::ZERO, ..resource.mark(2) };
    let record = add_unclaimed(&resource.snapshot, mark).expect("there is room");
    let post = resource.swap(record);
    resource.settle(1, put, Outcome::Doubt, None);
    let first_until = resource.snapshot.now.plus(LATE_WRITE_WINDOW);
    let settlement = Settlement {
        mark,
        marked_at: post,
        outcome: Outcome::Doubt,
        leaves: None,
        learned: None,
        shown: None,
        end: None,
    };
    let record = settle(&resource.snapshot, settlement).expect("the mark is there");
    assert_eq!(record.doubt.map(|doubt| doubt.until), Some(first_until));
}

#[test]
fn the_mark_of_a_dead_owner_becomes_a_doubt() {
    let mut resource = Resource::new();
    let marked_at = resource.claim(1);
    assert_eq!(take_over(&resource.snapshot), None, "its owner may be alive");
    resource.pass(100);
    assert_eq!(resource.snapshot.availability(), Availability::Orphaned);
    let record = take_over(&resource.snapshot).expect("its owner is dead");
    resource.swap(record);
    let until = resource.snapshot.now.plus(LATE_WRITE_WINDOW);
    assert_eq!(resource.snapshot.availability(), Availability::InDoubt { until });
    let late = Settlement {
        mark: resource.mark(1),
        marked_at,
        outcome: Outcome::Applied,
        leaves: None,
        learned: None,
        shown: None,
        end: None,
    };
    assert_eq!(settle(&resource.snapshot, late), None, "its owner comes too late to settle");
}

/// Rule 7: each mark counts its own `late_write_window`, and the longest decides.
#[test]
fn what_dead_owners_leave_is_in_doubt_for_the_time_that_stands_in_their_marks() {
    let seconds = Duration::from_secs;
    for late_write_window in [[Some(7), None, None], [Some(1), Some(9), Some(3)], [None, Some(2), Some(5)]] {
        let mut resource = Resource::new();
        let marks = late_write_window.map(|late_write_window| {
            Some(Mark { late_write_window: seconds(late_write_window?), ..resource.mark(late_write_window?) })
        });
        let [claim, first, second] = marks;
        let unclaimed = first.into_iter().chain(second).collect();
        resource.swap(Record { claim, unclaimed, ..resource.snapshot.draft() });
        resource.pass(100);
        let record = take_over(&resource.snapshot).expect("all owners are dead");
        let longest = late_write_window.into_iter().flatten().max().expect("there is one");
        assert_eq!(record.doubt.map(|doubt| doubt.until), Some(resource.snapshot.now.plus(seconds(longest))));
    }
}

#[test]
fn the_mark_of_one_who_may_live_adds_nothing_to_the_doubt_of_the_dead() {
    let mut resource = Resource::new();
    resource.append(1);
    resource.pass(60);
    let living = Mark { late_write_window: Duration::from_secs(60), ..resource.mark(2) };
    let record = Record { claim: Some(living), ..resource.snapshot.draft() };
    resource.swap(record);
    resource.pass(40);
    let record = take_over(&resource.snapshot).expect("one owner is dead");
    assert_eq!(record.doubt.map(|doubt| doubt.until), Some(resource.snapshot.now.plus(LATE_WRITE_WINDOW)));
}

#[test]
fn a_dead_unclaimed_write_is_taken_over_beside_a_living_claim() {
    let mut resource = Resource::new();
    resource.append(1);
    resource.pass(60);
    let record = Record { claim: Some(resource.mark(2)), ..resource.snapshot.draft() };
    resource.swap(record);
    resource.pass(40);
    let record = take_over(&resource.snapshot).expect("one owner is dead");
    assert!(record.unclaimed.is_empty());
    assert_eq!(record.claim.map(|mark| mark.nonce), Some(2));
}

#[test]
fn unclaimed_writes_are_bounded() {
    let mut resource = Resource::new();
    for nonce in 0..UNCLAIMED_MARKS_MAX {
        resource.append(nonce as u64);
    }
    assert_eq!(add_unclaimed(&resource.snapshot, resource.mark(u64::MAX)), None);
}

/// Rule 3: 307 and 308 say that nothing was done.
#[test]
fn each_status_has_the_outcome_of_the_design() {
    let outcome = |status: u16| Outcome::of_status(StatusCode::from_u16(status).expect("a status"));
    for status in 200..600 {
        let expected = match status {
            202 | 207 | 408 | 499 => Outcome::Unclear,
            307 | 308 => Outcome::NotApplied,
            404 | 409 | 410 | 412 => Outcome::NotAppliedAsKnown,
            502 | 504 => Outcome::Doubt,
            _ if status < 300 => Outcome::Applied,
            _ if (400..500).contains(&status) => Outcome::NotApplied,
            _ => Outcome::Unclear,
        };
        assert_eq!(outcome(status), expected, "status {status}");
    }
}

#[test]
fn only_a_record_without_marks_and_doubts_is_idle() {
    let mut resource = Resource::new();
    assert!(resource.snapshot.has_no_pending_writes());
    let put = resource.claim(1);
    assert!(!resource.snapshot.has_no_pending_writes());
    resource.settle(1, put, Outcome::Applied, None);
    assert!(resource.snapshot.has_no_pending_writes());
    resource.append(2);
    assert!(!resource.snapshot.has_no_pending_writes());
}

/// Rule 8: a write that may still arrive pins its record, and a dead owner does not pin it without end.
#[test]
fn the_mark_of_a_dead_owner_pins_its_record_until_its_write_is_over() {
    for make in [Resource::claim, Resource::append] {
        let mut resource = Resource::new();
        make(&mut resource, 1);
        let over = resource.mark(1).deadline.plus(LATE_WRITE_WINDOW);
        assert_eq!(resource.snapshot.record.idle_from(), Some(over));
    }
}

#[test]
fn what_is_known_does_not_count_while_a_write_is_in_flight_or_in_doubt() {
    let mut resource = Resource::new();
    let marked_at = resource.claim(1);
    resource.settle(1, marked_at, Outcome::Applied, Some(known("kept")));
    let marked_at = resource.claim(2);
    assert_eq!(resource.snapshot.known(), None, "a write is in flight");
    resource.settle(2, marked_at, Outcome::NotApplied, None);
    assert_eq!(resource.snapshot.known(), Some(&known("kept")));
    let marked_at = resource.append(3);
    assert_eq!(resource.snapshot.known(), None, "an unclaimed write is in flight");
    resource.settle(3, marked_at, Outcome::Doubt, None);
    assert_eq!(resource.snapshot.known(), None, "a write is in doubt");
}
