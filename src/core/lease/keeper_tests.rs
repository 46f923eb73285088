//! The keeper of a lease, over a model of a store with one record.

use super::{
    super::{
        Acquire, Action, LeaseId, Standing,
        testing::{Resource, acquire, fixed, id, share},
    },
    KeptLeaseState::{Breaking, Held, Lost},
    *,
};
use crate::core::records::steps::Outcome;

const TERM_SECONDS: u64 = 30;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn by_stream(action: Action, keeper: KeeperName) -> Action {
    match action {
        Action::Acquire(wanted) => Action::Acquire(Acquire { keeper: Some(keeper), ..wanted }),
        other => other,
    }
}

/// Acquires the lease, or takes it up again, by a stream with this name.
fn take_up(resource: &mut Resource, lease: LeaseId, keeper: u64) -> KeptLease {
    let keeper = KeeperName::of(keeper);
    resource.must(by_stream(acquire(Some(lease), fixed(TERM_SECONDS)), keeper));
    KeptLease { fence: resource.snapshot.fence(), keeper, max_hold_time: resource.rules.max_hold_time }
}

fn start() -> (Resource, KeptLease) {
    let mut resource = Resource::new();
    let kept = take_up(&mut resource, id(1), 1);
    (resource, kept)
}

fn renew(resource: &mut Resource, kept: &KeptLease) -> bool {
    let renewed = kept.renewed(&resource.snapshot);
    renewed.map(|record| resource.swap(record)).is_some()
}

#[test]
fn a_keeper_renews_for_as_long_as_its_client_may_hold_the_lease() {
    let (mut resource, kept) = start();
    let begun = resource.snapshot.now;
    while begun.until(resource.snapshot.now) + seconds(TERM_SECONDS) < kept.max_hold_time {
        resource.pass_seconds(10);
        assert!(!kept.is_in_last_term(&resource.snapshot));
        assert!(renew(&mut resource, &kept));
        assert_eq!(kept.look(&resource.snapshot), Held(seconds(TERM_SECONDS)));
    }
    assert!(kept.is_in_last_term(&resource.snapshot));
    resource.pass_seconds(10);
    assert!(!renew(&mut resource, &kept), "its end is the last one already");
    assert_eq!(kept.look(&resource.snapshot), Held(seconds(TERM_SECONDS - 10)));
    resource.pass_seconds(TERM_SECONDS - 10);
    assert_eq!(kept.look(&resource.snapshot), Lost(LeaseLoss::Expired));
}

/// A renewal never brings back what others may have taken.
#[test]
fn a_keeper_renews_nothing_that_was_broken_or_has_run_out() {
    let (mut resource, kept) = start();
    resource.must(Action::Break { period: Some(seconds(5)) });
    assert_eq!(kept.look(&resource.snapshot), Breaking(seconds(5)));
    assert!(!renew(&mut resource, &kept));
    resource.pass_seconds(5);
    assert_eq!(kept.look(&resource.snapshot), Lost(LeaseLoss::Broken));
    assert!(!renew(&mut resource, &kept));

    let (mut resource, kept) = start();
    resource.pass_seconds(TERM_SECONDS);
    assert_eq!(kept.look(&resource.snapshot), Lost(LeaseLoss::Expired));
    assert!(!renew(&mut resource, &kept) && kept.released(&resource.snapshot).is_none());
    resource.pass(resource.rules.remember_time);
    assert_eq!(kept.look(&resource.snapshot), Lost(LeaseLoss::Expired), "a late look tells the same");
}

#[test]
fn a_lease_that_was_being_broken_and_is_gone_was_broken() {
    let (mut resource, kept) = start();
    resource.must(Action::Break { period: Some(seconds(5)) });
    let told = kept.look(&resource.snapshot);
    resource.pass_seconds(5);
    resource.must(acquire(Some(id(2)), fixed(TERM_SECONDS)));
    let seen = kept.look(&resource.snapshot);
    assert_eq!((seen, seen.after(told)), (Lost(LeaseLoss::Ended), Lost(LeaseLoss::Broken)));
    assert_eq!(seen.after(Held(seconds(1))), Lost(LeaseLoss::Ended));
    assert_eq!(Lost(LeaseLoss::Released).after(told), Lost(LeaseLoss::Released));
}

#[test]
fn a_keeper_learns_of_each_end() {
    let (mut resource, kept) = start();
    resource.must(Action::Release { id: id(1) });
    assert_eq!(kept.look(&resource.snapshot), Lost(LeaseLoss::Released));
    resource.must(acquire(Some(id(2)), fixed(TERM_SECONDS)));
    assert_eq!(kept.look(&resource.snapshot), Lost(LeaseLoss::Ended), "another lease is not its own");
    assert!(!renew(&mut resource, &kept) && kept.released(&resource.snapshot).is_none());

    let (mut resource, kept) = start();
    let write = resource.begin(Standing::Holder);
    resource.end(write, Outcome::Applied, true);
    assert_eq!(kept.look(&resource.snapshot), Lost(LeaseLoss::Ended), "the holder has deleted the resource");
}

#[test]
fn a_keeper_releases_what_its_client_has_left() {
    let (mut resource, kept) = start();
    let released = kept.released(&resource.snapshot).expect("nobody has taken it up");
    resource.swap(released);
    assert_eq!(kept.look(&resource.snapshot), Lost(LeaseLoss::Released));
    resource.must(acquire(Some(id(2)), fixed(TERM_SECONDS)));
}

/// The lease of a client that has come back in any way is no concern of the stream that broke off.
#[test]
fn a_keeper_releases_nothing_that_its_client_has_taken_up_elsewhere() {
    for way in [
        by_stream(acquire(Some(id(1)), fixed(TERM_SECONDS)), KeeperName::of(2)),
        acquire(Some(id(1)), fixed(TERM_SECONDS)),
        Action::Renew { id: id(1), duration: None },
        Action::Change { id: id(1), proposed: id(2) },
    ] {
        let (mut resource, kept) = start();
        resource.must(way.clone());
        assert_eq!(resource.snapshot.fence(), kept.fence, "{way:?}: it is the same holding");
        assert_eq!(kept.released(&resource.snapshot), None, "{way:?}");
        assert!(resource.snapshot.lease_state().is_held());
    }
}

/// Of two streams of one client, the later one holds the lease.
#[test]
fn an_earlier_stream_renews_nothing_for_a_later_one() {
    let (mut resource, earlier) = start();
    let later = take_up(&mut resource, id(1), 2);
    assert_eq!(earlier.fence, later.fence);
    assert_eq!(earlier.look(&resource.snapshot), Lost(LeaseLoss::TakenUp));
    resource.pass_seconds(10);
    assert!(!renew(&mut resource, &earlier) && renew(&mut resource, &later));
}

/// A client that renews its lease itself still has an open stream.
#[test]
fn a_keeper_goes_on_for_a_client_that_renews_too() {
    let (mut resource, kept) = start();
    resource.must(Action::Renew { id: id(1), duration: Some(fixed(15)) });
    resource.pass_seconds(10);
    assert!(renew(&mut resource, &kept));
    assert_eq!(kept.look(&resource.snapshot), Held(seconds(15)), "with the duration that the client asked for last");
}

#[test]
fn each_of_several_holders_has_its_own_keeper() {
    let mut resource = Resource::new();
    let mut all = Vec::new();
    for number in 1..=2 {
        let keeper = KeeperName::of(number.into());
        resource.must(by_stream(share(id(number), fixed(TERM_SECONDS)), keeper));
        let (fence, max_hold_time) = (resource.snapshot.fence(), resource.rules.max_hold_time);
        all.push(KeptLease { fence, keeper, max_hold_time });
    }
    let released = all[0].released(&resource.snapshot).expect("its client has gone");
    resource.swap(released);
    assert_eq!(all[0].look(&resource.snapshot), Lost(LeaseLoss::Released));
    assert_eq!(all[1].look(&resource.snapshot), Held(seconds(TERM_SECONDS)));
}
