//! Tests of leases that several clients share.

use std::time::Duration;

use super::{
    super::{
        HolderLabel, LostGrant, Standing, TargetName, Usage, UseDenied, judge_use, take_back,
        testing::{Resource, TARGET, acquire, fixed, id, share},
    },
    *,
};
use crate::core::{
    policy::LeaseGuards,
    records::steps::{Outcome, touch},
};

pub(super) const A: u8 = 0xa;
pub(super) const B: u8 = 0xb;
pub(super) const C: u8 = 0xc;

/// Returns a resource whose lease these clients share for 60 seconds each.
fn shared_by(holders: impl IntoIterator<Item = u8>) -> Resource {
    let mut resource = Resource::new();
    for holder in holders {
        resource.must(share(id(holder), fixed(60)));
    }
    resource
}

pub(super) fn used(resource: &Resource, usage: Usage, by: Option<u8>) -> Result<Standing, UseDenied> {
    judge_use(&resource.snapshot, Some(&resource.rules), usage, by.map(id), None)
}

pub(super) fn held(remaining: Option<u64>) -> Result<Done, Denied> {
    Err(Denied::Held { remaining: remaining.map(Duration::from_secs), holder: None, is_breaking: false })
}

/// Returns the fence of the lease with this id.
pub(super) fn fence(resource: &Resource, number: u8) -> Revision {
    let snapshot = &resource.snapshot;
    let lease = snapshot.leases().find(|lease| lease.id == id(number)).expect("it is remembered");
    lease.fence.resolve(snapshot.revision)
}

fn state(resource: &Resource, number: u8) -> LeaseState {
    let lease = resource.snapshot.leases().find(|lease| lease.id == id(number));
    lease.map_or(LeaseState::Available, |lease| lease.state(resource.snapshot.now))
}

#[test]
fn a_shared_lease_joins_others_and_an_exclusive_one_waits_for_all() {
    let mut resource = shared_by([A]);
    resource.pass_seconds(20);
    resource.must(share(id(B), fixed(30)));
    assert_eq!(resource.lease(acquire(Some(id(C)), fixed(30))), held(Some(40)));
    resource.must(Action::Release { id: id(A) });
    assert_eq!(resource.lease(acquire(Some(id(C)), fixed(30))), held(Some(30)));
    resource.must(Action::Release { id: id(B) });
    resource.must(acquire(Some(id(C)), fixed(30)));
    assert_eq!(resource.lease(share(id(A), fixed(30))), held(Some(30)), "an exclusive lease is shared with nobody");
}

/// DESIGN section 8: one id of them suffices to write.
#[test]
fn each_id_suffices_and_no_other_does() {
    for (guards, usage) in [
        (LeaseGuards::Write, Usage::Write),
        (LeaseGuards::Write, Usage::Delete),
        (LeaseGuards::ReadAndWrite, Usage::Read),
        (LeaseGuards::Delete, Usage::Delete),
    ] {
        let mut resource = Resource::new();
        resource.rules.guards = guards;
        for holder in [A, B] {
            resource.must(share(id(holder), fixed(60)));
        }
        for holder in [A, B] {
            assert_eq!(used(&resource, usage, Some(holder)), Ok(Standing::Holder), "{guards:?}");
        }
        assert_eq!(used(&resource, usage, Some(C)), Err(UseDenied::IdMismatch), "{guards:?}");
        assert_eq!(used(&resource, usage, None), Err(UseDenied::IdMissing), "{guards:?}");
    }
}

#[test]
fn each_holder_has_a_duration_a_fence_and_an_end_of_its_own() {
    let mut resource = shared_by([A]);
    resource.must(share(id(B), fixed(30)));
    assert!(fence(&resource, B) > fence(&resource, A));
    assert_eq!(resource.snapshot.fence(), fence(&resource, B), "the proxy sends the last");
    resource.pass_seconds(30);
    assert_eq!((state(&resource, A), state(&resource, B)), (LeaseState::Leased, LeaseState::Expired));
    assert_eq!(used(&resource, Usage::Write, Some(B)), Err(UseDenied::Lost));
    assert_eq!(used(&resource, Usage::Write, None), Err(UseDenied::IdMissing), "A holds it still");
    let earlier = fence(&resource, B);
    resource.must(Action::Renew { id: id(B), duration: None });
    assert_eq!(fence(&resource, B), earlier);
    resource.must(Action::Change { id: id(B), proposed: id(C) });
    assert_eq!(fence(&resource, C), earlier);
    resource.pass_seconds(30);
    assert_eq!(resource.snapshot.lease_state(), LeaseState::Expired, "it is free when the last has left");
}

/// A backend that checks fences must accept the write of each holder, in any order.
#[test]
fn repeating_an_acquisition_gives_no_new_fence() {
    let mut resource = shared_by([A, B]);
    let (leases, last) = (resource.snapshot.record.leases.clone(), resource.snapshot.fence());
    let done = resource.must(share(id(A), fixed(60)));
    assert!(matches!(done, Done::Acquired { is_new: false, .. }));
    assert_eq!((&resource.snapshot.record.leases, resource.snapshot.fence()), (&leases, last));
}

#[test]
fn a_holder_that_was_alone_can_change_the_mode() {
    let mut resource = Resource::new();
    resource.must(acquire(Some(id(A)), fixed(60)));
    let first = resource.snapshot.fence();
    resource.must(share(id(A), fixed(60)));
    assert_eq!(resource.snapshot.fence(), first, "nobody else was granted it");
    resource.must(share(id(B), fixed(60)));
    assert_eq!(resource.lease(acquire(Some(id(A)), fixed(60))), held(Some(60)), "not while B shares it");
    resource.must(Action::Release { id: id(B) });
    let begun = resource.begin(Standing::Holder);
    let denied = resource.lease(acquire(Some(id(A)), fixed(60)));
    assert!(matches!(denied, Err(Denied::Busy(_))), "the write of B may be in flight: {denied:?}");
    resource.end(begun, Outcome::Applied, false);
    resource.must(acquire(Some(id(A)), fixed(60)));
    assert!(resource.snapshot.fence() > first);
    assert_eq!(resource.snapshot.leases().count(), 1, "B has nothing to renew");
}

#[test]
fn a_shared_lease_that_ran_out_can_be_renewed_while_only_its_other_holders_have_written() {
    let written = |by: Option<u8>| {
        let mut resource = shared_by([A]);
        resource.pass_seconds(30);
        resource.must(share(id(B), fixed(60)));
        // A's lease has ended. If a stranger is to write, B's has too.
        resource.pass_seconds(if by.is_some() { 30 } else { 60 });
        let standing = used(&resource, Usage::Write, by).expect("the write is permitted");
        let begun = resource.begin(standing);
        resource.end(begun, Outcome::Applied, false);
        resource.lease(Action::Renew { id: id(A), duration: None })
    };
    assert_eq!(written(Some(B)), Ok(Done::Renewed { duration: fixed(60) }));
    assert_eq!(written(None), Err(Denied::NotPresent));
}

#[test]
fn a_lease_that_begins_while_nobody_holds_one_leaves_nothing_to_renew() {
    for begin in [share(id(C), fixed(60)), acquire(Some(id(C)), fixed(60))] {
        let mut resource = shared_by([A, B]);
        resource.pass_seconds(60);
        resource.must(begin);
        assert_eq!(resource.lease(Action::Renew { id: id(A), duration: None }), Err(Denied::IdMismatch));
    }
}

#[test]
fn a_grant_waits_for_writes_even_of_those_who_share_the_lease() {
    let mut resource = shared_by([A]);
    let begun = resource.begin(Standing::Holder);
    assert!(matches!(resource.lease(share(id(B), fixed(60))), Err(Denied::Busy(_))));
    resource.end(begun, Outcome::Applied, false);
    resource.must(share(id(B), fixed(60)));
}

#[test]
fn an_id_belongs_to_one_lease() {
    let mut resource = shared_by([A, B]);
    assert_eq!(resource.lease(Action::Change { id: id(A), proposed: id(B) }), Err(Denied::IdMismatch));
    let by = |name: u8, action| Command { action, principal: Some([name; 16]), target: TARGET, has_signed: false };
    let mut bound = Resource::new();
    for (name, is_granted) in [(A, true), (B, false)] {
        let step = step(&bound.snapshot, by(name, share(id(A), fixed(60))), &bound.rules);
        assert_eq!(step.is_ok(), is_granted, "{step:?}");
        if let Ok((record, _)) = step {
            bound.swap(record);
        }
    }
}

#[test]
fn each_holder_releases_its_own_lease_and_may_repeat_it() {
    let mut resource = shared_by([A, B]);
    let release = |number| Action::Release { id: id(number) };
    assert_eq!(resource.must(release(A)), Done::Released);
    assert_eq!(resource.must(release(A)), Done::AlreadyReleased);
    assert_eq!(resource.lease(release(C)), Err(Denied::IdMismatch));
    assert_eq!(used(&resource, Usage::Write, Some(A)), Err(UseDenied::IdMismatch));
    assert_eq!(used(&resource, Usage::Write, Some(B)), Ok(Standing::Holder));
    assert_eq!(resource.must(release(B)), Done::Released);
    assert_eq!(resource.snapshot.lease_state(), LeaseState::Available);
    assert_eq!(resource.lease(release(C)), Err(Denied::NotPresent));
}

#[test]
fn a_break_ends_all_leases_and_an_operator_may_break_one() {
    let mut resource = shared_by([A, B]);
    let first = fence(&resource, A);
    let record = break_leases(&resource.snapshot, Duration::ZERO, Some(first)).expect("it is there");
    resource.swap(record);
    assert_eq!((state(&resource, A), state(&resource, B)), (LeaseState::Broken, LeaseState::Leased));
    assert_eq!(resource.lease(Action::Renew { id: id(A), duration: None }), Err(Denied::Broken));
    resource.must(share(id(A), fixed(60)));
    assert!(fence(&resource, A) > first, "it joins again as another holding");
    assert_eq!(break_leases(&resource.snapshot, Duration::ZERO, Some(first)), Err(Denied::NotPresent));
    resource.pass_seconds(20);
    let period = Some(Duration::from_secs(50));
    assert_eq!(resource.must(Action::Break { period }), Done::Broken { remaining: Duration::from_secs(40) });
    assert_eq!((state(&resource, A), state(&resource, B)), (LeaseState::Breaking, LeaseState::Breaking));
    assert_eq!(used(&resource, Usage::Write, Some(B)), Ok(Standing::Holder), "until then");
    resource.must(Action::Break { period: Some(Duration::ZERO) });
    assert_eq!(resource.snapshot.lease_state(), LeaseState::Broken);
}

/// Rule 16: a stream of shared leases keeps no exclusive one away.
#[test]
fn nobody_joins_while_a_client_waits_for_the_exclusive_lease() {
    let mut resource = shared_by([A]);
    let until = resource.snapshot.now.plus(Duration::from_secs(5));
    let record = await_exclusive(&resource.snapshot, until);
    resource.swap(record);
    let no_place = |seconds| Err(Denied::NoPlace { remaining: Some(Duration::from_secs(seconds)) });
    assert_eq!(resource.lease(share(id(B), fixed(60))), no_place(5));
    resource.must(share(id(A), fixed(60)));
    resource.must(Action::Release { id: id(A) });
    assert_eq!(resource.lease(share(id(B), fixed(60))), no_place(5), "not even when all others have left");
    resource.must(acquire(Some(id(C)), fixed(60)));
    resource.must(Action::Release { id: id(C) });
    resource.must(share(id(B), fixed(60)));
    let record = await_exclusive(&resource.snapshot, until);
    resource.swap(record);
    resource.pass_seconds(5);
    resource.must(share(id(A), fixed(60)));
}

/// Rule 13: what a client can make grow has a limit.
#[test]
fn so_many_clients_share_a_lease_and_no_more() {
    const LAST: u8 = 64;
    let mut resource = shared_by(1..=LAST);
    let full = resource.lease(share(id(A + LAST), fixed(60)));
    assert_eq!(full, Err(Denied::NoPlace { remaining: Some(Duration::from_secs(60)) }));
    resource.must(share(id(1), fixed(30)));
    resource.must(Action::Release { id: id(2) });
    for _ in 0..3 {
        resource.must(share(id(A + LAST), fixed(60)));
        resource.must(Action::Release { id: id(A + LAST) });
    }
    assert_eq!(resource.snapshot.record.leases.iter().count(), usize::from(LAST), "ended ones count too");
    assert_eq!(used(&resource, Usage::Write, Some(1)), Ok(Standing::Holder), "no holder is forgotten");
}

#[test]
fn the_deletion_of_its_target_ends_the_lease_of_every_holder() {
    let mut resource = shared_by([A, B]);
    resource.rules.remember_time = Duration::ZERO;
    let other = TargetName([8; 16]);
    let command = Command { action: share(id(C), fixed(60)), principal: None, target: other, has_signed: false };
    let (record, _) = step(&resource.snapshot, command, &resource.rules).expect("C joins");
    resource.swap(record);
    let begun = resource.begin(Standing::Holder);
    resource.end(begun, Outcome::Applied, true);
    let left: Vec<_> = resource.snapshot.leases().map(|lease| lease.target).collect();
    assert_eq!(left, [other], "C leased another part");
}

#[test]
fn a_touch_ends_what_has_run_out_alone() {
    let mut resource = shared_by([A]);
    resource.pass_seconds(30);
    resource.must(share(id(B), fixed(60)));
    resource.pass_seconds(30);
    let record = touch(&resource.snapshot, None);
    resource.swap(record);
    assert_eq!((state(&resource, A), state(&resource, B)), (LeaseState::Available, LeaseState::Leased));
}

/// Rule 15: no lease stands without a client that has its id, and each lease whose id a client has stands.
#[test]
fn a_lost_grant_is_taken_from_among_the_others() {
    let mut resource = shared_by([A, B]);
    let before = resource.snapshot.clone();
    resource.must(share(id(C), fixed(60)));
    let grant = LostGrant { id: id(C), is_known: true };
    let record = take_back(grant, &before, &resource.snapshot).expect("it is there");
    assert_eq!(record.leases, before.record.leases.clone().resolved(before.revision));
    let again = LostGrant { id: id(A), is_known: true };
    assert_eq!(take_back(again, &before, &resource.snapshot), None, "A had it before");
    resource.must(Action::Renew { id: id(C), duration: None });
    assert_eq!(take_back(grant, &before, &resource.snapshot), None, "C has learned of it");
}

/// Acquires the lease, and ends those of all others.
fn take_over(by: u8) -> Action {
    let Action::Acquire(wanted) = acquire(Some(id(by)), fixed(30)) else { panic!("it is an acquisition") };
    Action::Acquire(Acquire { takes_over: true, ..wanted })
}

#[test]
fn a_client_can_take_the_place_of_all_holders_in_one_step() {
    let mut resource = shared_by([A, B]);
    let last = fence(&resource, B);
    resource.must(take_over(C));
    assert_eq!([A, B, C].map(|holder| state(&resource, holder).is_held()), [false, false, true]);
    assert!(fence(&resource, C) > last);
    assert_eq!(used(&resource, Usage::Write, Some(A)), Err(UseDenied::IdMismatch));
    let own = fence(&resource, C);
    resource.must(take_over(C));
    assert_eq!(fence(&resource, C), own, "nobody else was there");
}

/// Rule 1: what a holder has sent may still be applied.
#[test]
fn who_takes_over_waits_for_the_write_of_the_holder() {
    let mut resource = shared_by([A]);
    let begun = resource.begin(Standing::Holder);
    assert!(matches!(resource.lease(take_over(C)), Err(Denied::Busy(_))));
    assert_eq!(state(&resource, A), LeaseState::Leased, "a refused step changes nothing");
    resource.end(begun, Outcome::Applied, false);
    resource.must(take_over(C));
}

#[test]
fn who_is_refused_learns_of_the_holder_that_keeps_it_for_longest() {
    let mut resource = Resource::new();
    for (number, label, duration) in [(A, "ann", fixed(20)), (B, "bob", fixed(40)), (C, "cid", fixed(30))] {
        let Action::Acquire(wanted) = share(id(number), duration) else { panic!("it is an acquisition") };
        let holder = HolderLabel::parse(label.as_bytes()).ok();
        resource.must(Action::Acquire(Acquire { holder, ..wanted }));
    }
    let Err(Denied::Held { remaining, holder, .. }) = resource.lease(acquire(None, fixed(15))) else {
        panic!("others hold it")
    };
    assert_eq!(remaining, Some(Duration::from_secs(40)));
    assert_eq!(holder.as_ref().map(HolderLabel::as_str), Some("bob"));
    resource.must(share(id(A), LeaseDuration::Infinite));
    assert_eq!(
        resource
            .lease(acquire(None, fixed(15)))
            .err()
            .map(|denied| matches!(denied, Denied::Held { remaining: None, .. })),
        Some(true)
    );
}
