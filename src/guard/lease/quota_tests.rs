//! Tests that leases count for their holder and for the address of its client.

use std::net::IpAddr;

use http::{HeaderMap, HeaderValue, header};

use super::*;

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
        principal: Principal::of(&headers, &crate::proxy::testing::guard(), None),
        address: ClientAddress::from(Some(address)),
    }
}

fn key(name: &str) -> ResourceKey {
    ResourceKey::from_text(name)
}

fn at(milliseconds: u64) -> StoreTime {
    StoreTime::from_milliseconds(milliseconds)
}

/// One lease for a principal, two for an address.
const MOST: Most = Most { per_principal: 1, per_address: 2 };

fn has_room(lease_quota: &LeaseQuota, name: &'static str, resource: &str, now: u64) -> bool {
    lease_quota.reserve(client(name, HERE), &key(resource), at(now), MOST).is_ok()
}

#[test]
fn a_principal_has_so_many_leases_and_no_more() {
    let lease_quota = LeaseQuota::default();
    lease_quota.hold(client("ann", HERE), &key("a"), at(0), Some(at(10)));
    let refused = lease_quota.reserve(client("ann", HERE), &key("b"), at(0), MOST).map(drop);
    assert_eq!(refused, Err(QuotaExceeded::Principal));
    assert!(lease_quota.reserve(client("ann", THERE), &key("b"), at(0), MOST).is_err(), "from any address");
    assert!(has_room(&lease_quota, "ann", "a", 0), "the same lease again");
    assert!(has_room(&lease_quota, "bob", "b", 0), "another principal");
}

/// Regression: a client that made a principal of each request got 1,000 of 1,000 leases.
#[test]
fn other_credentials_give_no_more_than_an_address_may_have() {
    let lease_quota = LeaseQuota::default();
    lease_quota.hold(client("ann", HERE), &key("a"), at(0), Some(at(10)));
    lease_quota.hold(client("bob", HERE), &key("b"), at(0), Some(at(20)));
    let refused = lease_quota.reserve(client("cid", HERE), &key("c"), at(0), MOST).map(drop);
    assert_eq!(refused, Err(QuotaExceeded::Address));
    assert!(has_room(&lease_quota, "bob", "b", 0), "the same lease again");
    assert!(lease_quota.reserve(client("cid", THERE), &key("c"), at(0), MOST).is_ok(), "from another address");
    assert!(has_room(&lease_quota, "cid", "c", 10), "one of them has ended");
}

#[test]
fn clients_without_credentials_are_told_apart_by_where_they_come_from() {
    let lease_quota = LeaseQuota::default();
    lease_quota.hold(client("", HERE), &key("a"), at(0), None);
    assert!(!has_room(&lease_quota, "", "b", 0));
    assert!(lease_quota.reserve(client("", THERE), &key("b"), at(0), MOST).is_ok());
}

#[test]
fn what_is_about_to_be_granted_counts_until_it_is_not() {
    let lease_quota = LeaseQuota::default();
    let place = lease_quota.reserve(client("ann", HERE), &key("a"), at(0), MOST);
    assert!(place.is_ok() && !has_room(&lease_quota, "ann", "b", 0));
    let other = lease_quota.reserve(client("bob", HERE), &key("b"), at(0), MOST);
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
    lease_quota.hold(ann, &key("a"), at(0), Some(at(10)));
    lease_quota.change_end(&key("a"), Some(at(20)));
    assert!(!has_room(&lease_quota, "ann", "b", 10), "it was renewed");
    assert!(has_room(&lease_quota, "ann", "b", 20));
    lease_quota.hold(ann, &key("b"), at(20), None);
    assert!(!has_room(&lease_quota, "ann", "c", 1_000), "it has no end");
    lease_quota.free(&key("b"));
    assert!(has_room(&lease_quota, "ann", "c", 1_000));
    assert_eq!(lease_quota.0.lock().accounts.len(), 0);
}

#[test]
fn a_lease_that_was_granted_to_another_counts_for_that_one() {
    let lease_quota = LeaseQuota::default();
    lease_quota.hold(client("ann", HERE), &key("a"), at(0), Some(at(10)));
    lease_quota.hold(client("bob", HERE), &key("a"), at(10), Some(at(20)));
    assert!(has_room(&lease_quota, "ann", "b", 10));
    assert!(!has_room(&lease_quota, "bob", "b", 10));
}

#[test]
fn leases_that_ran_out_are_not_kept_for_ever() {
    let lease_quota = LeaseQuota::default();
    for number in 0..10_000 {
        lease_quota.hold(client("ann", HERE), &key(&number.to_string()), at(number), Some(at(number + 1)));
    }
    assert!(lease_quota.0.lock().leases.len() <= SWEEP_MIN, "{}", lease_quota.0.lock().leases.len());
}
