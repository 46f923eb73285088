//! Tests of what holders of shared leases let each other do.

use std::time::Duration;

use super::{
    super::{
        Standing, Usage, Usages, UseDenied, judge_use,
        testing::{Resource, TARGET, fixed, id, open, share},
    },
    shared_tests::{A, B, C, fence, held, used},
    *,
};
use crate::core::records::steps::Outcome;

const R: Usage = Usage::Read;
const W: Usage = Usage::Write;
const D: Usage = Usage::Delete;

/// DESIGN section 8: what SMB calls a sharing violation.
#[test]
fn a_lease_is_granted_beside_others_if_neither_forbids_what_the_other_does() {
    let mut resource = Resource::new();
    resource.must(open(id(A), &[R], &[R]));
    resource.must(open(id(B), &[R], &[R, W]));
    assert_eq!(resource.lease(open(id(C), &[W], &[R])), held(Some(60)), "A lets nobody write");
    assert_eq!(resource.lease(open(id(C), &[R], &[W])), held(Some(60)), "C would let nobody read");
    assert_eq!(resource.lease(share(id(C), fixed(60))), held(Some(60)), "C would write");
    resource.must(Action::Release { id: id(A) });
    resource.must(open(id(C), &[W], &[R]));
    assert_eq!(resource.snapshot.held_leases().count(), 2);
}

#[test]
fn each_use_is_judged_by_its_own_lease() {
    let mut resource = Resource::new();
    resource.must(open(id(A), &[R], &[R, W, D]));
    resource.must(open(id(B), &[W, D], &[R]));
    for (by, usage, expected) in [
        (A, R, Ok(Standing::Holder)),
        (A, W, Err(UseDenied::BeyondAccess)),
        (A, D, Err(UseDenied::BeyondAccess)),
        (B, R, Err(UseDenied::BeyondAccess)),
        (B, W, Ok(Standing::Holder)),
        (B, D, Ok(Standing::Holder)),
    ] {
        assert_eq!(used(&resource, usage, Some(by)), expected, "{by} {usage:?}");
    }
    let both = Usages::from_iter([W, D]);
    assert_eq!(judge_use(&resource.snapshot, None, both, Some(id(B)), None), Ok(Standing::Holder));
    resource.must(open(id(B), &[W], &[R]));
    let one = judge_use(&resource.snapshot, None, both, Some(id(B)), None);
    assert_eq!(one, Err(UseDenied::BeyondAccess), "one of two readings is not permitted (rule 18)");
    assert_eq!(used(&resource, W, None), Err(UseDenied::IdMissing));
}

/// A renewal promises that only those have written whom the lease lets write.
#[test]
fn a_lease_that_ran_out_is_not_renewed_after_a_grant_that_it_forbids() {
    for (opened, renewed) in [(open(id(C), &[W], &[R, W]), false), (open(id(C), &[R], &[R]), true)] {
        let mut resource = Resource::new();
        resource.must(open(id(A), &[R], &[R]));
        resource.pass_seconds(30);
        resource.must(open(id(B), &[R], &[R, W]));
        resource.pass_seconds(30);
        resource.must(opened);
        resource.must(Action::Release { id: id(C) });
        assert_eq!(resource.lease(Action::Renew { id: id(A), duration: None }).is_ok(), renewed);
    }
}

#[test]
fn a_holder_that_wants_more_is_granted_another_lease() {
    let mut resource = Resource::new();
    resource.must(open(id(A), &[R, W], &[R]));
    let first = fence(&resource, A);
    resource.must(open(id(A), &[R], &[R, W]));
    assert_eq!(fence(&resource, A), first, "it does less, and forbids less");
    resource.must(open(id(B), &[R, W], &[R]));
    assert_eq!(resource.lease(open(id(A), &[R, W], &[R, W])), held(Some(60)), "B lets nobody write");
    let begun = resource.begin(Standing::Holder);
    resource.must(open(id(B), &[R, W], &[R, W]));
    let denied = resource.lease(open(id(A), &[W], &[R, W]));
    assert!(matches!(denied, Err(Denied::Busy(_))), "{denied:?}");
    resource.end(begun, Outcome::Applied, false);
    resource.must(open(id(A), &[W], &[R, W]));
    assert!(fence(&resource, A) > fence(&resource, B));
}

/// Rule 16: clients that join beside a lease keep away no client that waits for its end.
#[test]
fn a_client_that_waits_for_a_shared_lease_signs_for_itself() {
    let mut resource = Resource::new();
    resource.must(open(id(A), &[R], &[R]));
    let record = await_exclusive(&resource.snapshot, resource.snapshot.now.plus(Duration::from_secs(5)));
    resource.swap(record);
    assert!(matches!(resource.lease(open(id(B), &[R], &[R])), Err(Denied::NoPlace { .. })));
    resource.must(Action::Release { id: id(A) });
    let command = |has_signed| Command { action: open(id(C), &[W], &[R]), principal: None, target: TARGET, has_signed };
    assert!(matches!(step(&resource.snapshot, command(false), &resource.rules), Err(Denied::NoPlace { .. })));
    let (record, _) = step(&resource.snapshot, command(true), &resource.rules).expect("it is the one that waits");
    assert_eq!(record.exclusive_awaited_until, None);
}
