//! Tests beyond the tables: operations beside writes, the fate of a lease when a write ends, and the passing of time.

use std::time::Duration;

use super::{
    testing::{Resource, TARGET, acquire, fixed, id},
    *,
};
use crate::core::records::{
    presence::Presence,
    record::{Availability, Record},
    steps::{Outcome, Settlement, settle, take_over, touch},
};

const A: u8 = 1;
const B: u8 = 2;

/// Returns a resource whose lease A holds for 60 seconds.
fn leased() -> Resource {
    let mut resource = Resource::new();
    resource.must(acquire(Some(id(A)), fixed(60)));
    resource
}

/// Returns a resource whose lease has run out.
fn expired() -> Resource {
    let mut resource = leased();
    resource.pass_seconds(60);
    resource
}

fn write(resource: &Resource, by: u8) -> Result<Standing, UseDenied> {
    judge_use(&resource.snapshot, Some(&resource.rules), Usage::Write, Some(id(by)), None)
}

/// DESIGN section 1: never after the lease was granted to another client.
#[test]
fn a_holder_that_slept_through_the_end_of_its_lease_is_refused_when_another_was_granted() {
    let mut resource = leased();
    let first_fence = resource.snapshot.fence();
    assert_eq!(write(&resource, A), Ok(Standing::Holder));
    resource.pass_seconds(70);
    resource.must(acquire(Some(id(B)), fixed(60)));
    assert_eq!(write(&resource, A), Err(UseDenied::IdMismatch));
    assert_eq!(resource.lease(Action::Renew { id: id(A), duration: None }), Err(Denied::IdMismatch));
    assert_eq!(write(&resource, B), Ok(Standing::Holder));
    assert!(resource.snapshot.fence() > first_fence, "a backend that checks fences refuses it too");
}

#[test]
fn a_renewal_may_name_another_duration() {
    let mut resource = leased();
    let renew = |duration| Action::Renew { id: id(A), duration };
    assert_eq!(resource.must(renew(Some(fixed(20)))), Done::Renewed { duration: fixed(20) });
    resource.pass(Duration::from_millis(19_999));
    assert_eq!(resource.snapshot.lease_state(), LeaseState::Leased);
    assert_eq!(resource.must(renew(None)), Done::Renewed { duration: fixed(20) }, "it stays");
    resource.pass_seconds(20);
    assert_eq!(resource.snapshot.lease_state(), LeaseState::Expired);
    let beyond = resource.rules.max_hold_time + Duration::from_secs(1);
    assert_eq!(resource.lease(renew(Some(LeaseDuration::Fixed(beyond)))), Err(Denied::BeyondHoldMax));
}

/// A write on another resource changes this one. Its writer is not the holder, and takes nothing from the holder.
#[test]
fn a_touch_leaves_a_lease_that_is_held_and_ends_one_that_has_run_out() {
    assert!(!touch(&leased().snapshot, None).leases.is_empty());
    assert!(touch(&expired().snapshot, None).leases.is_empty());
}

#[test]
fn a_lease_is_held_to_the_last_millisecond_of_its_time() {
    let mut resource = leased();
    resource.pass(Duration::from_millis(59_999));
    assert_eq!(resource.snapshot.lease_state(), LeaseState::Leased);
    assert!(matches!(resource.lease(acquire(Some(id(B)), fixed(15))), Err(Denied::Held { .. })));
    resource.pass(Duration::from_millis(1));
    assert_eq!(resource.snapshot.lease_state(), LeaseState::Expired);
}

#[test]
fn who_is_refused_learns_how_long_to_wait_and_for_whom() {
    let mut resource = Resource::new();
    let holder = HolderLabel::parse(b"worker 7").ok();
    let Action::Acquire(mine) = acquire(Some(id(A)), fixed(60)) else { unreachable!() };
    resource.must(Action::Acquire(Acquire { holder: holder.clone(), ..mine }));
    resource.pass_seconds(20);
    let held = |remaining, is_breaking| Err(Denied::Held { remaining, holder: holder.clone(), is_breaking });
    assert_eq!(resource.lease(acquire(None, fixed(15))), held(Some(Duration::from_secs(40)), false));
    resource.must(Action::Break { period: Some(Duration::from_secs(10)) });
    assert_eq!(resource.lease(acquire(None, fixed(15))), held(Some(Duration::from_secs(10)), true));
}

#[test]
fn a_break_that_names_a_lease_ends_that_one_alone() {
    let mut resource = leased();
    assert!(matches!(resource.lease(Action::BreakNamed { id: id(B) }), Err(Denied::NotPresent)));
    assert_eq!(resource.snapshot.lease_state(), LeaseState::Leased);
    assert_eq!(resource.must(Action::BreakNamed { id: id(A) }), Done::Broken { remaining: Duration::ZERO });
    assert_eq!(resource.snapshot.lease_state(), LeaseState::Broken);
    resource.must(acquire(Some(id(B)), fixed(60)));
}

#[test]
fn nobody_is_granted_a_lease_while_a_write_of_the_earlier_holder_is_in_flight_or_in_doubt() {
    let mut resource = leased();
    let begun = resource.begin(Standing::Holder);
    resource.pass_seconds(60);
    for by in [A, B] {
        let denied = resource.lease(acquire(Some(id(by)), fixed(60)));
        assert!(matches!(denied, Err(Denied::Busy(Availability::Busy { .. }))), "{denied:?}");
    }
    resource.end(begun, Outcome::Doubt, false);
    let denied = resource.lease(acquire(Some(id(B)), fixed(60)));
    assert!(matches!(denied, Err(Denied::Busy(Availability::InDoubt { .. }))), "{denied:?}");
    resource.pass_seconds(1);
    resource.must(acquire(Some(id(B)), fixed(60)));
}

#[test]
fn the_holder_renews_changes_reacquires_and_releases_beside_its_write() {
    let steps = [
        Action::Renew { id: id(A), duration: None },
        Action::Change { id: id(A), proposed: id(B) },
        acquire(Some(id(A)), fixed(30)),
        Action::Release { id: id(A) },
        Action::Break { period: None },
    ];
    for action in steps {
        let mut resource = leased();
        let begun = resource.begin(Standing::Holder);
        let before = resource.snapshot.clone();
        resource.must(action.clone());
        let (after, record) = (resource.snapshot.clone(), &before.record);
        assert_eq!(
            (&after.record.claim, after.touched(), after.version()),
            (&record.claim, before.touched(), before.version())
        );
        let leases = after.record.leases.clone();
        resource.end(begun, Outcome::Applied, false);
        assert_eq!(resource.snapshot.record.leases, leases, "the end of the write loses {action:?}");
    }
}

#[test]
fn a_lease_that_ran_out_during_its_holders_write_can_be_renewed() {
    let mut resource = leased();
    let begun = resource.begin(Standing::Holder);
    resource.pass_seconds(60);
    resource.must(Action::Renew { id: id(A), duration: None });
    resource.pass_seconds(60);
    resource.end(begun, Outcome::Applied, false);
    resource.must(Action::Renew { id: id(A), duration: None });
}

#[test]
fn a_renewal_waits_for_the_write_of_another_that_began_after_the_end() {
    let mut resource = expired();
    let begun = resource.begin(Standing::Free);
    let denied = resource.lease(Action::Renew { id: id(A), duration: None });
    assert!(matches!(denied, Err(Denied::Busy(_))), "{denied:?}");
    resource.end(begun, Outcome::NotApplied, false);
    resource.must(Action::Renew { id: id(A), duration: None });
}

#[test]
fn a_write_of_another_that_was_or_may_have_been_applied_ends_the_memory_of_a_lease() {
    for (outcome, kept) in [
        (Outcome::Applied, false),
        (Outcome::Unclear, false),
        (Outcome::Doubt, false),
        (Outcome::NotApplied, true),
        (Outcome::NotAppliedAsKnown, true),
    ] {
        let mut resource = expired();
        let begun = resource.begin(Standing::Free);
        resource.end(begun, outcome, false);
        assert_eq!(resource.lease(Action::Renew { id: id(A), duration: None }).is_ok(), kept, "{outcome:?}");
    }
}

#[test]
fn a_write_whose_process_died_ends_the_memory_of_a_lease_unless_it_was_its_holders() {
    for (standing, kept) in [(Standing::Free, false), (Standing::Holder, true), (Standing::Unguarded, true)] {
        let mut resource = expired();
        resource.rules.remember_time = Duration::MAX;
        resource.must(Action::Renew { id: id(A), duration: None });
        resource.must(acquire(Some(id(A)), fixed(60)));
        resource.pass_seconds(60);
        let (mark, _) = resource.begin(standing);
        resource.snapshot.now = mark.deadline;
        let record = take_over(&resource.snapshot).expect("its owner is dead");
        assert_eq!(!record.leases.is_empty(), kept, "{standing:?}");
    }
}

#[test]
fn a_lease_ends_with_its_resource_only_if_that_was_removed() {
    for (outcome, kept) in [(Outcome::Applied, false), (Outcome::NotApplied, true), (Outcome::Unclear, true)] {
        let mut resource = leased();
        let begun = resource.begin(Standing::Holder);
        resource.end(begun, outcome, true);
        assert_eq!(resource.snapshot.lease_state() == LeaseState::Leased, kept, "{outcome:?}");
    }
}

#[test]
fn a_fence_names_a_holding() {
    let mut resource = leased();
    let first = resource.snapshot.fence();
    assert_eq!(first, resource.snapshot.revision);
    resource.must(acquire(Some(id(A)), fixed(60)));
    resource.must(Action::Change { id: id(A), proposed: id(B) });
    resource.pass_seconds(60);
    resource.must(Action::Renew { id: id(B), duration: None });
    assert_eq!(resource.snapshot.fence(), first, "no other client was granted it");
    resource.pass_seconds(60);
    resource.must(acquire(Some(id(B)), fixed(60)));
    assert!(resource.snapshot.fence() > first, "it had ended");
}

#[test]
fn a_holding_ends_at_last() {
    let mut resource = leased();
    let renew = || Action::Renew { id: id(A), duration: None };
    for _ in 0..59 {
        resource.pass_seconds(59);
        resource.must(renew());
    }
    let granted = resource.snapshot.lease().unwrap().granted;
    resource.snapshot.now = granted.plus(Duration::from_secs(3_540));
    resource.must(renew());
    resource.pass(Duration::from_millis(1));
    assert_eq!(resource.lease(renew()), Err(Denied::BeyondHoldMax));
    assert_eq!(resource.lease(acquire(Some(id(A)), fixed(60))), Err(Denied::BeyondHoldMax));
    assert_eq!(resource.snapshot.lease_state(), LeaseState::Leased, "the last term runs to its end");
    resource.pass_seconds(60);
    assert_eq!(resource.lease(renew()), Err(Denied::BeyondHoldMax));
    resource.must(acquire(Some(id(A)), fixed(60)));
}

#[test]
fn a_bound_lease_is_of_use_to_its_principal_alone() {
    let mut resource = Resource::new();
    let by = |name: u8, action| Command { action, principal: Some([name; 16]), target: TARGET, has_signed: false };
    let (record, _) = step(&resource.snapshot, by(A, acquire(Some(id(A)), fixed(60))), &resource.rules).unwrap();
    resource.swap(record);
    for (action, denied) in [
        (Action::Renew { id: id(A), duration: None }, Denied::IdMismatch),
        (Action::Change { id: id(A), proposed: id(B) }, Denied::IdMismatch),
        (Action::Change { id: id(B), proposed: id(A) }, Denied::IdMismatch),
        (Action::Release { id: id(A) }, Denied::IdMismatch),
    ] {
        assert_eq!(step(&resource.snapshot, by(B, action.clone()), &resource.rules).err(), Some(denied), "{action:?}");
        let repeats_itself = matches!(action, Action::Change { proposed, .. } if proposed == id(A));
        assert!(repeats_itself || step(&resource.snapshot, by(A, action), &resource.rules).is_ok());
    }
    let stolen = step(&resource.snapshot, by(B, acquire(Some(id(A)), fixed(60))), &resource.rules);
    assert!(matches!(stolen, Err(Denied::Held { .. })), "{stolen:?}");
    let usage =
        |name: u8| judge_use(&resource.snapshot, Some(&resource.rules), Usage::Write, Some(id(A)), Some([name; 16]));
    assert_eq!((usage(A), usage(B)), (Ok(Standing::Holder), Err(UseDenied::IdMismatch)));
}

#[test]
fn a_repeated_release_is_known_for_as_long_as_it_is_remembered() {
    let mut resource = leased();
    let release = |number| Action::Release { id: id(number) };
    assert_eq!(resource.must(release(A)), Done::Released);
    resource.pass_seconds(599);
    assert_eq!(resource.must(release(A)), Done::AlreadyReleased);
    assert_eq!(resource.lease(release(B)), Err(Denied::NotPresent));
    resource.pass_seconds(1);
    assert_eq!(resource.lease(release(A)), Err(Denied::NotPresent));
}

#[test]
fn a_record_is_pinned_by_its_lease_until_that_is_forgotten() {
    let idle_after = |resource: &Resource| {
        let from = resource.snapshot.record.idle_from();
        from.map(|from| resource.snapshot.now.until(from).as_secs())
    };
    let mut resource = leased();
    assert_eq!(idle_after(&resource), Some(660));
    resource.must(Action::Release { id: id(A) });
    assert_eq!(idle_after(&resource), Some(600));
    resource.must(acquire(None, LeaseDuration::Infinite));
    assert_eq!(idle_after(&resource), None);
    assert!(resource.snapshot.has_no_pending_writes(), "a lease does not make the known state uncertain");
    let absent = Record::absent(resource.snapshot.revision);
    assert!(absent.fence.resolve(resource.snapshot.revision) >= resource.snapshot.fence(), "fences only grow");
}

#[test]
fn a_duration_is_allowed_within_its_bounds() {
    let rules = testing::rules();
    let allowed = [14, 15, 60, 61].map(|seconds| fixed(seconds).is_allowed(&rules));
    assert_eq!(allowed, [false, true, true, false]);
    assert!(LeaseDuration::Infinite.is_allowed(&rules));
    assert!(!LeaseDuration::Infinite.is_allowed(&LeaseRules { infinite: false, ..rules }));
}

/// Rule 10: a lease guards its resource on every route that reaches it.
#[test]
fn a_lease_is_judged_by_what_it_was_granted_for_on_a_route_that_grants_none() {
    for (guards, reads, writes, deletes) in [
        (LeaseGuards::Write, true, false, false),
        (LeaseGuards::Read, false, true, true),
        (LeaseGuards::ReadAndWrite, false, false, false),
        (LeaseGuards::Delete, true, true, false),
    ] {
        let mut resource = Resource::new();
        resource.rules.guards = guards;
        resource.must(acquire(Some(id(A)), fixed(30)));
        let judge = |usage, presented| judge_use(&resource.snapshot, None, usage, presented, None);
        for (usage, passes) in [(Usage::Read, reads), (Usage::Write, writes), (Usage::Delete, deletes)] {
            let expected = if passes { Ok(Standing::Unguarded) } else { Err(UseDenied::IdMissing) };
            assert_eq!(judge(usage, None), expected, "{guards:?} {usage:?}");
            assert_eq!(judge(usage, Some(id(A))), Ok(Standing::Holder), "{guards:?} {usage:?}");
            assert_eq!(judge(usage, Some(id(B))), Err(UseDenied::IdMismatch), "{guards:?} {usage:?}");
        }
    }
}

/// A write on a resource without a lease would end one that had run out, so its standing is free.
#[test]
fn a_write_without_a_lease_on_a_route_without_leases_is_free() {
    let resource = Resource::new();
    let judge = |usage, presented| judge_use(&resource.snapshot, None, usage, presented, None);
    assert_eq!(judge(Usage::Write, None), Ok(Standing::Free));
    assert_eq!(judge(Usage::Read, None), Ok(Standing::Unguarded));
    assert_eq!(judge(Usage::Write, Some(id(A))), Err(UseDenied::NotPresent));
}

/// Rule 10: a part that shares the key is not the leased resource.
#[test]
fn only_the_removal_of_the_leased_target_ends_the_lease() {
    let mut resource = Resource::new();
    resource.must(acquire(Some(id(A)), fixed(30)));
    for (removed, ends) in [(TargetName([8; 16]), false), (TARGET, true)] {
        let (mark, marked_at) = resource.begin(Standing::Holder);
        let outcome = Outcome::Applied;
        let leaves = Some(Presence::removed(removed));
        let removal = Settlement { mark, marked_at, outcome, leaves, learned: None, shown: None, end: None };
        let record = settle(&resource.snapshot, removal).expect("the mark is there");
        assert_eq!(record.leases.is_empty(), ends, "{removed:?}");
        resource.swap(record);
    }
}
