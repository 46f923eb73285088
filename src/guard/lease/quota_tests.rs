//! Leases are counted for who holds them, and for where that client comes from.

use std::net::IpAddr;

use http::{HeaderMap, HeaderValue, header};

use super::*;

const HERE: &str = "192.0.2.1";
const THERE: &str = "192.0.2.2";

/// A client with these credentials, or with none; all come from one address where nothing else is said.
fn client(name: &'static str, address: &str) -> Holder {
    let mut headers = HeaderMap::new();
    if !name.is_empty() {
        headers.insert(header::AUTHORIZATION, HeaderValue::from_static(name));
    }
    let address = address.parse::<IpAddr>().expect("an address");
    Holder {
        principal: Principal::of(&headers, &[header::AUTHORIZATION], None),
        address: ClientAddress::from(Some(address)),
    }
}

fn key(name: &str) -> ResourceKey {
    ResourceKey::from_text(name)
}

fn at(milliseconds: u64) -> StoreTime {
    StoreTime::from_milliseconds(milliseconds)
}

/// One lease for a principal, and two for an address.
const MOST: Most = Most { per_principal: 1, per_address: 2 };

fn has_room(holdings: &Holdings, name: &'static str, resource: &str, now: u64) -> bool {
    holdings.reserve(client(name, HERE), &key(resource), at(now), MOST).is_ok()
}

#[test]
fn a_principal_has_so_many_leases_and_no_more() {
    let holdings = Holdings::default();
    holdings.hold(client("ann", HERE), &key("a"), at(0), Some(at(10)));
    let refused = holdings.reserve(client("ann", HERE), &key("b"), at(0), MOST).map(drop);
    assert_eq!(refused, Err(NoPlace::Principal));
    assert!(holdings.reserve(client("ann", THERE), &key("b"), at(0), MOST).is_err(), "wherever it comes from");
    assert!(has_room(&holdings, "ann", "a", 0), "the same lease again");
    assert!(has_room(&holdings, "bob", "b", 0), "somebody else");
}

/// A client that makes a principal of each request had 1,000 of 1,000 leases.
#[test]
fn other_credentials_give_no_more_than_an_address_may_have() {
    let holdings = Holdings::default();
    holdings.hold(client("ann", HERE), &key("a"), at(0), Some(at(10)));
    holdings.hold(client("bob", HERE), &key("b"), at(0), Some(at(20)));
    let refused = holdings.reserve(client("cid", HERE), &key("c"), at(0), MOST).map(drop);
    assert_eq!(refused, Err(NoPlace::Address));
    assert!(has_room(&holdings, "bob", "b", 0), "the same lease again");
    assert!(holdings.reserve(client("cid", THERE), &key("c"), at(0), MOST).is_ok(), "from elsewhere");
    assert!(has_room(&holdings, "cid", "c", 10), "one of them has ended");
}

#[test]
fn clients_without_credentials_are_told_apart_by_where_they_come_from() {
    let holdings = Holdings::default();
    holdings.hold(client("", HERE), &key("a"), at(0), None);
    assert!(!has_room(&holdings, "", "b", 0));
    assert!(holdings.reserve(client("", THERE), &key("b"), at(0), MOST).is_ok());
}

#[test]
fn what_is_about_to_be_granted_counts_until_it_is_not() {
    let holdings = Holdings::default();
    let place = holdings.reserve(client("ann", HERE), &key("a"), at(0), MOST);
    assert!(place.is_ok() && !has_room(&holdings, "ann", "b", 0));
    let other = holdings.reserve(client("bob", HERE), &key("b"), at(0), MOST);
    assert!(other.is_ok() && !has_room(&holdings, "cid", "c", 0), "for the address too");
    drop(place);
    assert!(has_room(&holdings, "ann", "b", 0));
    drop(other);
    assert_eq!(holdings.lock().accounts.len(), 0);
}

#[test]
fn what_has_ended_does_not_count() {
    let holdings = Holdings::default();
    let ann = client("ann", HERE);
    holdings.hold(ann, &key("a"), at(0), Some(at(10)));
    holdings.change_end(&key("a"), Some(at(20)));
    assert!(!has_room(&holdings, "ann", "b", 10), "it was renewed");
    assert!(has_room(&holdings, "ann", "b", 20));
    holdings.hold(ann, &key("b"), at(20), None);
    assert!(!has_room(&holdings, "ann", "c", 1_000), "it has no end");
    holdings.free(&key("b"));
    assert!(has_room(&holdings, "ann", "c", 1_000));
    assert_eq!(holdings.lock().accounts.len(), 0);
}

#[test]
fn a_lease_that_was_granted_to_another_counts_for_that_one() {
    let holdings = Holdings::default();
    holdings.hold(client("ann", HERE), &key("a"), at(0), Some(at(10)));
    holdings.hold(client("bob", HERE), &key("a"), at(10), Some(at(20)));
    assert!(has_room(&holdings, "ann", "b", 10));
    assert!(!has_room(&holdings, "bob", "b", 10));
}

#[test]
fn leases_that_ran_out_are_not_kept_for_ever() {
    let holdings = Holdings::default();
    for number in 0..10_000 {
        holdings.hold(client("ann", HERE), &key(&number.to_string()), at(number), Some(at(number + 1)));
    }
    assert!(holdings.lock().leases.len() <= SWEEP_MIN, "{}", holdings.lock().leases.len());
}
