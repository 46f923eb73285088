//! Tests that leases count for their holder and for the address of its client.

use std::net::IpAddr;

use http::{HeaderMap, HeaderValue, header};

use super::*;
use crate::{
    core::lease::{
        Action,
        testing::{Resource, acquire, fixed, id, share},
    },
    guard::knowledge::principal::Presented,
};

const HERE: &str = "192.0.2.1";
const THERE: &str = "192.0.2.2";

/// A client with these credentials, or without any if `name` is empty, at this address.
fn client(name: &'static str, address: &str) -> Holder {
    let mut headers = HeaderMap::new();
    if !name.is_empty() {
        headers.insert(header::AUTHORIZATION, HeaderValue::from_static(name));
    }
    let address = address.parse::<IpAddr>().expect("an address");
    Holder {
        principal: Principal::of(
            Presented { headers: &headers, query: None, certificate: None },
            &crate::testing::guard(),
        ),
        address: ClientAddress::from(Some(address)),
    }
}

fn key(name: &str) -> ResourceKey {
    ResourceKey::from_text(name)
}

fn at(milliseconds: u64) -> StoreTime {
    StoreTime::from_milliseconds(milliseconds)
}

/// The fence of each lease.
const FENCE: Revision = Revision(1);

/// A lease that was granted to this client.
fn granted(holder: Holder, fence: Revision, end: Option<StoreTime>) -> GrantedLease {
    GrantedLease { fence, holder, end, as_of: fence }
}

/// The leases of a resource after these steps, by the store's time at their end.
fn after(steps: impl FnOnce(&mut Resource)) -> Snapshot {
    let mut resource = Resource::new();
    steps(&mut resource);
    resource.snapshot
}

/// One lease for a principal, two for an address.
const MOST: Most = Most { per_principal: 1, per_address: 2 };

fn has_room(lease_quota: &LeaseQuota, name: &'static str, resource: &str, now: u64) -> bool {
    lease_quota.reserve(client(name, HERE), (&key(resource), Some(FENCE)), at(now), MOST).is_ok()
}

#[test]
fn a_principal_has_so_many_leases_and_no_more() {
    let lease_quota = LeaseQuota::default();
    lease_quota.hold(&key("a"), granted(client("ann", HERE), FENCE, Some(at(10))), at(0));
    let refused = lease_quota.reserve(client("ann", HERE), (&key("b"), None), at(0), MOST).map(drop);
    assert_eq!(refused, Err(QuotaExceeded::Principal));
    assert!(lease_quota.reserve(client("ann", THERE), (&key("b"), None), at(0), MOST).is_err(), "from any address");
    assert!(has_room(&lease_quota, "ann", "a", 0), "the same lease again");
    assert!(has_room(&lease_quota, "bob", "b", 0), "another principal");
}

/// Regression: a client that made a principal of each request got 1,000 of 1,000 leases.
#[test]
fn other_credentials_give_no_more_than_an_address_may_have() {
    let lease_quota = LeaseQuota::default();
    lease_quota.hold(&key("a"), granted(client("ann", HERE), FENCE, Some(at(10))), at(0));
    lease_quota.hold(&key("b"), granted(client("bob", HERE), FENCE, Some(at(20))), at(0));
    let refused = lease_quota.reserve(client("cid", HERE), (&key("c"), None), at(0), MOST).map(drop);
    assert_eq!(refused, Err(QuotaExceeded::Address));
    assert!(has_room(&lease_quota, "bob", "b", 0), "the same lease again");
    assert!(lease_quota.reserve(client("cid", THERE), (&key("c"), None), at(0), MOST).is_ok(), "from another address");
    assert!(has_room(&lease_quota, "cid", "c", 10), "one of them has ended");
}

#[test]
fn clients_without_credentials_are_told_apart_by_where_they_come_from() {
    let lease_quota = LeaseQuota::default();
    lease_quota.hold(&key("a"), granted(client("", HERE), FENCE, None), at(0));
    assert!(!has_room(&lease_quota, "", "b", 0));
    assert!(lease_quota.reserve(client("", THERE), (&key("b"), None), at(0), MOST).is_ok());
}

#[test]
fn what_is_about_to_be_granted_counts_until_it_is_not() {
    let lease_quota = LeaseQuota::default();
    let place = lease_quota.reserve(client("ann", HERE), (&key("a"), None), at(0), MOST);
    assert!(place.is_ok() && !has_room(&lease_quota, "ann", "b", 0));
    let other = lease_quota.reserve(client("bob", HERE), (&key("b"), None), at(0), MOST);
    assert!(other.is_ok() && !has_room(&lease_quota, "cid", "c", 0), "for the address too");
    drop(place);
    assert!(has_room(&lease_quota, "ann", "b", 0));
    drop(other);
    assert_eq!(lease_quota.0.lock().accounts.len(), 0);
}

#[test]
fn what_has_ended_does_not_count() {
    let lease_quota = LeaseQuota::default();
    let ann = client("ann", HERE);
    let held = after(|resource| {
        resource.must(acquire(Some(id(1)), fixed(20)));
    });
    let end = held.now.milliseconds() + 20_000;
    lease_quota.hold(&key("a"), granted(ann, held.fence(), Some(at(end - 10_000))), at(0));
    lease_quota.follow(&key("a"), &held);
    assert!(!has_room(&lease_quota, "ann", "b", end - 10_000), "it was renewed");
    assert!(has_room(&lease_quota, "ann", "b", end));
    lease_quota.hold(&key("b"), granted(ann, FENCE, None), at(end));
    assert!(!has_room(&lease_quota, "ann", "c", end + 1_000), "it has no end");
    lease_quota.follow(&key("b"), &after(|_resource| ()));
    assert!(has_room(&lease_quota, "ann", "c", end + 1_000), "the store has none");
    assert_eq!(lease_quota.0.lock().accounts.len(), 0);
}

/// Rule 13: a client that shares a lease with others, or with itself, has no more leases than any other client.
#[test]
fn each_shared_lease_of_a_resource_counts_for_its_holder() {
    let lease_quota = LeaseQuota::default();
    let (mut fences, mut now) = (Vec::new(), StoreTime::default());
    let both = after(|resource| {
        for number in [1, 2] {
            resource.must(share(id(number), fixed(20)));
            fences.push(resource.snapshot.fence());
            now = resource.snapshot.now;
        }
    });
    lease_quota.hold(&key("a"), granted(client("ann", HERE), fences[0], None), now);
    let again = lease_quota.reserve(client("ann", HERE), (&key("a"), Some(fences[0])), now, MOST).map(drop);
    assert_eq!(again, Ok(()), "the same lease again");
    let other = lease_quota.reserve(client("ann", HERE), (&key("a"), None), now, MOST).map(drop);
    assert_eq!(other, Err(QuotaExceeded::Principal), "another lease of the same resource");
    lease_quota.hold(&key("a"), granted(client("bob", THERE), fences[1], None), now);
    lease_quota.follow(&key("a"), &both);
    assert!(!has_room(&lease_quota, "ann", "b", now.milliseconds()), "that of bob takes nothing from ann's");
    let one = after(|resource| {
        for number in [1, 2] {
            resource.must(share(id(number), fixed(20)));
        }
        resource.must(Action::Release { id: id(1) });
    });
    lease_quota.follow(&key("a"), &one);
    assert!(has_room(&lease_quota, "ann", "b", now.milliseconds()));
    assert!(lease_quota.reserve(client("bob", THERE), (&key("b"), None), now, MOST).is_err(), "bob has his");
}

#[test]
fn a_lease_that_was_granted_to_another_counts_for_that_one() {
    let lease_quota = LeaseQuota::default();
    lease_quota.hold(&key("a"), granted(client("ann", HERE), FENCE, Some(at(10))), at(0));
    let next = after(|resource| {
        resource.must(acquire(Some(id(2)), fixed(20)));
    });
    lease_quota.follow(&key("a"), &next);
    lease_quota.hold(&key("a"), granted(client("bob", HERE), next.fence(), Some(at(20))), at(10));
    assert!(has_room(&lease_quota, "ann", "b", 10));
    assert!(!has_room(&lease_quota, "bob", "b", 10));
}

#[test]
fn leases_that_ran_out_are_not_kept_for_ever() {
    let lease_quota = LeaseQuota::default();
    for number in 0..10_000 {
        lease_quota.hold(
            &key(&number.to_string()),
            granted(client("ann", HERE), FENCE, Some(at(number + 1))),
            at(number),
        );
    }
    assert!(lease_quota.0.lock().leases.len() <= SWEEP_MIN, "{}", lease_quota.0.lock().leases.len());
}

/// Another request of this process may have read the record before the lease was in it.
#[test]
fn a_record_from_before_the_grant_tells_nothing_of_it() {
    let lease_quota = LeaseQuota::default();
    let (mut before, mut between) = (None, None);
    let renewed = after(|resource| {
        before = Some(resource.snapshot.clone());
        resource.must(share(id(1), fixed(20)));
        between = Some(resource.snapshot.clone());
        resource.pass_seconds(10);
        resource.must(Action::Renew { id: id(1), duration: None });
    });
    let (before, between) = (before.unwrap(), between.unwrap());
    lease_quota.hold(&key("a"), granted(client("ann", HERE), between.fence(), None), between.now);
    lease_quota.follow(&key("a"), &before);
    assert!(!has_room(&lease_quota, "ann", "b", 0));
    for snapshot in [&renewed, &between] {
        lease_quota.follow(&key("a"), snapshot);
    }
    assert!(!has_room(&lease_quota, "ann", "b", between.now.milliseconds() + 20_000), "it was renewed since");
}
