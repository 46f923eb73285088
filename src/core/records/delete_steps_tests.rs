use std::{sync::Arc, time::Duration};

use super::*;
use crate::core::{
    lease::{
        Action, Denied, Done, Usage, judge_use,
        testing::{Resource, TARGET, acquire, fixed, id, share},
    },
    policy::{LeaseGuards, LeaseRules},
    records::{
        pending_delete::REQUEST_BYTES_MAX,
        record::{Floor, Mark, Record, Revision},
        steps::{take_over, touch},
    },
};

const A: u8 = 0xa;
const B: u8 = 0xb;
const C: u8 = 0xc;
const OTHER: TargetName = TargetName([9; 16]);

fn delete_of(name: TargetName) -> PendingDelete {
    PendingDelete {
        host: (*b"docs.test").into(),
        target: (*b"/drawings/7?a=1").into(),
        name,
        conditions: Box::default(),
    }
}

/// Returns the DELETE of the state with this tag.
fn delete_of_state(tag: &str) -> PendingDelete {
    let conditions = [("if-match".into(), tag.as_bytes().into())].into();
    PendingDelete { conditions, ..delete_of(TARGET) }
}

/// Returns a resource that A has deleted in this way while B and C hold its lease too.
fn pending_by(delete: PendingDelete) -> Resource {
    let mut resource = shared_by([A, B, C]);
    let record = defer(&resource.snapshot, delete, Some(id(A)), None);
    resource.swap(record);
    resource
}

/// Returns a resource whose lease these clients share for 60 seconds each.
fn shared_by(holders: impl IntoIterator<Item = u8>) -> Resource {
    let mut resource = Resource::new();
    for holder in holders {
        resource.must(share(id(holder), fixed(60)));
    }
    resource
}

/// Returns a resource that A has deleted while B and C hold its lease too.
fn pending() -> Resource {
    pending_by(delete_of(TARGET))
}

/// The same after B and C have released the lease.
fn due() -> Resource {
    let mut resource = pending();
    resource.must(Action::Release { id: id(B) });
    assert_eq!(resource.snapshot.due_delete(), None, "C holds the lease");
    resource.must(Action::Release { id: id(C) });
    resource
}

fn is_pending(resource: &Resource) -> bool {
    resource.snapshot.record.pending_delete.as_deref() == Some(&delete_of(TARGET))
}

#[test]
fn a_delete_waits_for_other_holders_of_its_target() {
    let by = |resource: &Resource, target| deletion(&resource.snapshot, target, Some(id(A)), None);
    let mut resource = shared_by([A]);
    assert_eq!(by(&resource, TARGET), Deletion::Now, "it is alone");
    resource.must(share(id(B), fixed(30)));
    assert_eq!(by(&resource, TARGET), Deletion::Later);
    assert_eq!(by(&resource, OTHER), Deletion::Now, "nobody leased that part of the resource");
    resource.pass_seconds(30);
    assert_eq!(by(&resource, TARGET), Deletion::Now, "the other lease has run out");
    resource.must(share(id(C), fixed(30)));
    resource.must(Action::Break { period: Some(Duration::from_secs(5)) });
    assert_eq!(by(&resource, TARGET), Deletion::Later, "a holder whose lease is breaking still finishes");
}

#[test]
fn a_second_delete_joins_the_first_unless_it_means_another_target() {
    let mut resource = pending();
    assert_eq!(deletion(&resource.snapshot, TARGET, Some(id(B)), None), Deletion::Later);
    for lease in &mut Arc::make_mut(&mut resource.snapshot.record).leases {
        lease.target = OTHER;
    }
    assert_eq!(deletion(&resource.snapshot, OTHER, Some(id(B)), None), Deletion::Never);
    let again = defer(&resource.snapshot, delete_of(OTHER), Some(id(B)), None);
    assert_eq!(again.pending_delete.as_deref(), Some(&delete_of(TARGET)), "the first one counts");
}

#[test]
fn who_deletes_gives_the_lease_up_and_no_other_client_does() {
    let resource = pending();
    let held: Vec<_> = resource.snapshot.held_leases().map(|lease| lease.id).collect();
    assert!(is_pending(&resource));
    assert_eq!(held, [id(B), id(C)]);
    assert_eq!(resource.snapshot.fence(), shared_by([A, B, C]).snapshot.fence());
}

#[test]
fn only_holders_use_what_is_about_to_be_deleted() {
    for guards in [LeaseGuards::Write, LeaseGuards::ReadAndWrite, LeaseGuards::Delete] {
        for usage in [Usage::Read, Usage::Write, Usage::Delete] {
            for rules in [None, Some(LeaseRules { guards, ..crate::core::lease::testing::rules() })] {
                let by = |resource: &Resource, number: Option<u8>| {
                    judge_use(&resource.snapshot, rules.as_ref(), usage, number.map(id), None)
                };
                let hidden = Err(UseDenied::DeletePending);
                for other in [None, Some(A), Some(0xd)] {
                    assert_eq!(by(&pending(), other), hidden, "{other:?} {usage:?} {guards:?}");
                }
                assert_eq!(by(&pending(), Some(B)), Ok(Standing::Holder));
                for other in [None, Some(A), Some(B)] {
                    assert_eq!(by(&due(), other), hidden, "{other:?} {usage:?} {guards:?}");
                }
            }
        }
    }
}

#[test]
fn no_client_gets_the_lease_of_what_is_about_to_be_deleted() {
    let mut resource = pending();
    for action in [acquire(None, fixed(60)), share(id(A), fixed(60)), share(id(0xd), fixed(60))] {
        assert_eq!(resource.lease(action.clone()), Err(Denied::DeletePending));
        assert_eq!(due().lease(action), Err(Denied::DeletePending));
    }
    resource.must(Action::Renew { id: id(B), duration: None });
    resource.must(share(id(B), fixed(60)));
    resource.must(Action::Change { id: id(B), proposed: id(0xd) });
    assert_eq!(resource.lease(Action::Release { id: id(A) }), Ok(Done::AlreadyReleased));
    resource.pass_seconds(60);
    assert!(resource.snapshot.due_delete().is_some(), "the last leases have run out");
    assert_eq!(resource.lease(Action::Renew { id: id(C), duration: None }), Err(Denied::DeletePending));
    assert!(is_pending(&resource));
}

#[test]
fn only_a_holder_withdraws_a_delete() {
    let withdraw = |id| Action::WithdrawDelete { id };
    for delete in [delete_of(TARGET), delete_of_state("\"1\"")] {
        let mut resource = pending_by(delete);
        for other in [A, 0xd] {
            assert_eq!(resource.lease(withdraw(id(other))), Err(Denied::IdMismatch));
        }
        assert!(resource.snapshot.record.pending_delete.is_some());
        assert_eq!(resource.must(withdraw(id(B))), Done::DeleteWithdrawn);
        assert_eq!(resource.snapshot.record.pending_delete, None);
        assert_eq!(resource.must(withdraw(id(C))), Done::DeleteWithdrawn, "it may be repeated");
        resource.must(share(id(0xd), fixed(60)));
    }
    let mut resource = due();
    assert_eq!(resource.lease(withdraw(id(B))), Err(Denied::NotPresent), "the DELETE may be on its way");
    let mut expired = pending();
    expired.pass_seconds(60);
    assert_eq!(expired.lease(withdraw(id(B))), Err(Denied::NotPresent));
    assert!(is_pending(&resource) && is_pending(&expired));
}

#[test]
fn a_late_delete_is_judged_by_what_waits() {
    let judged = |resource: &Resource, target| judge_late_delete(&resource.snapshot, target);
    assert_eq!(judged(&due(), TARGET), Ok(Standing::Holder));
    for (resource, target) in [(due(), OTHER), (pending(), TARGET), (shared_by([]), TARGET)] {
        assert_eq!(judged(&resource, target), Err(UseDenied::NotPresent));
    }
}

#[test]
fn a_deletion_ends_the_wait_and_nothing_else_does() {
    let end = |outcome, removes| {
        let mut resource = due();
        let version = resource.snapshot.version();
        let begun = resource.begin(Standing::Holder);
        resource.end(begun, outcome, removes);
        (is_pending(&resource), resource.snapshot.version() > version)
    };
    assert_eq!(end(Outcome::Applied, true), (false, true));
    assert_eq!(end(Outcome::Applied, false), (true, true), "it was a deletion of another target");
    for outcome in [Outcome::NotApplied, Outcome::NotAppliedAsKnown, Outcome::Unclear, Outcome::Doubt] {
        assert!(end(outcome, true).0, "{outcome:?}");
    }
}

/// The one rule for all writes beside a DELETE that waits: whether it still does after each outcome.
#[test]
fn a_write_withdraws_a_delete_that_means_the_state_before_it() {
    for outcome in [Outcome::Applied, Outcome::Unclear, Outcome::Doubt, Outcome::NotApplied, Outcome::NotAppliedAsKnown]
    {
        let waits = |delete: PendingDelete, removes: bool| {
            let mut resource = pending_by(delete);
            let begun = resource.begin(Standing::Holder);
            resource.end(begun, outcome, removes);
            resource.snapshot.record.pending_delete.is_some()
        };
        let may_change = !matches!(outcome, Outcome::NotApplied | Outcome::NotAppliedAsKnown);
        assert!(waits(delete_of(TARGET), false), "{outcome:?}: it means whatever is there");
        assert_eq!(waits(delete_of_state("1"), false), !may_change, "{outcome:?}");
        let is_done = outcome == Outcome::Applied;
        assert_eq!(waits(delete_of_state("1"), true), !is_done, "{outcome:?}: it is judged again");
    }
}

#[test]
fn a_change_by_another_resource_or_a_dead_owner_withdraws_it_too() {
    for (delete, stays) in [(delete_of(TARGET), true), (delete_of_state("1"), false)] {
        let mut resource = pending_by(delete);
        assert_eq!(touch(&resource.snapshot, None).pending_delete.is_some(), stays);
        let now = resource.snapshot.now;
        let dead = Mark { owner: 2, nonce: 1, deadline: now, late_write_window: Duration::ZERO, leaves_lease: true };
        let claimed = Record { claim: Some(dead), ..resource.snapshot.draft() };
        resource.swap(claimed);
        let doubted = take_over(&resource.snapshot).expect("its owner is dead");
        assert_eq!(doubted.pending_delete.is_some(), stays);
    }
}

#[test]
fn of_two_deletes_the_one_that_means_more_waits() {
    for (first, second, expected) in [
        (delete_of(TARGET), delete_of_state("2"), delete_of(TARGET)),
        (delete_of_state("1"), delete_of(TARGET), delete_of(TARGET)),
        (delete_of_state("1"), delete_of_state("2"), delete_of_state("2")),
    ] {
        let both = defer(&pending_by(first).snapshot, second, Some(id(B)), None);
        assert_eq!(both.pending_delete.as_deref(), Some(&expected));
    }
}

#[test]
fn only_the_very_delete_that_is_outdated_is_withdrawn() {
    let outdated = pending_by(delete_of_state("1")).snapshot;
    let withdrawn = withdraw(&outdated, &delete_of_state("1")).expect("it waits");
    assert_eq!(withdrawn, Record { pending_delete: None, ..outdated.draft() });
    assert_eq!(withdraw(&outdated, &delete_of_state("2")), None, "another one waits by now");
    assert_eq!(withdraw(&pending().snapshot, &delete_of(TARGET)), None, "it means every state");
}

#[test]
fn a_resource_is_free_after_the_late_delete() {
    let mut resource = due();
    let begun = resource.begin(Standing::Holder);
    resource.end(begun, Outcome::Applied, true);
    assert_eq!(judge_use(&resource.snapshot, None, Usage::Write, None, None), Ok(Standing::Free));
    resource.must(acquire(None, fixed(60)));
}

/// Until the late DELETE is done, nothing makes the store or another write forget it.
#[test]
fn what_waits_is_never_forgotten() {
    let mut resource = due();
    resource.pass(Duration::from_secs(1_000_000));
    let record = &resource.snapshot.record;
    assert_eq!((record.is_idle(resource.snapshot.now), record.idle_from()), (false, None));
    assert!(!record.says_no_more_than_absence(Floor::at(Revision(1_000))));
    let touched = touch(&resource.snapshot, None);
    resource.swap(touched);
    assert!(is_pending(&resource));
    let (now, late_write_window) = (resource.snapshot.now, Duration::from_secs(1));
    let dead = Mark { owner: 2, nonce: 1, deadline: now, late_write_window, leaves_lease: true };
    let claimed = Record { claim: Some(dead), ..resource.snapshot.draft() };
    resource.swap(claimed);
    let doubted = take_over(&resource.snapshot).expect("its owner is dead");
    resource.swap(doubted);
    assert!(is_pending(&resource));
}

#[test]
fn a_late_delete_of_what_is_gone_is_done() {
    for (status, expected) in [
        (204, Outcome::Applied),
        (404, Outcome::Applied),
        (410, Outcome::Applied),
        (202, Outcome::Unclear),
        (403, Outcome::NotApplied),
        (409, Outcome::NotAppliedAsKnown),
        (500, Outcome::Unclear),
        (504, Outcome::Doubt),
    ] {
        let status = StatusCode::from_u16(status).expect("a status");
        assert_eq!(outcome_of_late_delete(status), expected, "{status}");
    }
}

#[test]
fn a_long_target_uri_is_not_kept() {
    let delete = |bytes: usize| PendingDelete { target: vec![b'a'; bytes].into(), ..delete_of(TARGET) };
    let room = REQUEST_BYTES_MAX - b"docs.test".len();
    assert!(delete(room).fits());
    assert!(!delete(room + 1).fits());
    let conditional = |bytes: usize| PendingDelete { conditions: delete_of_state("1").conditions, ..delete(bytes) };
    assert!(conditional(room - b"if-match1".len()).fits());
    assert!(!conditional(room - b"if-match".len()).fits());
}
