//! Shares, totals, and the places that are given back.

use super::*;

fn places(max: usize, max_per_client: usize, first_reserved: RawFd) -> Arc<ConnectionPlaces> {
    Arc::new(ConnectionPlaces {
        max,
        max_per_client,
        first_reserved,
        open: AtomicUsize::new(0),
        requests: AtomicUsize::new(0),
        by_client: Mutex::default(),
        told: Mutex::default(),
    })
}

fn nobody() -> TrustedProxies {
    TrustedProxies::default()
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn a_client_takes_its_share_and_leaves_the_rest_to_others() {
    let places = places(10, 2, 100);
    let mine: Vec<_> =
        (0..2).map(|_| places.try_take(5, Some(address("192.0.2.1")), &nobody()).expect("a share")).collect();
    assert_eq!(places.try_take(5, Some(address("192.0.2.1")), &nobody()).unwrap_err(), ConnectionRefused::ClientFull);
    assert_eq!(
        places.try_take(5, Some(address("::ffff:192.0.2.1")), &nobody()).unwrap_err(),
        ConnectionRefused::ClientFull,
        "the same address"
    );
    let _other = places.try_take(5, Some(address("192.0.2.2")), &nobody()).expect("somebody else");
    let _uncounted: Vec<_> = (0..3).map(|_| places.try_take(5, None, &nobody()).expect("a proxy's own")).collect();
    drop(mine);
    let _again = places.try_take(5, Some(address("192.0.2.1")), &nobody()).expect("the share is free again");
    assert_eq!(places.by_client.lock().len(), 2);
}

#[test]
fn a_trusted_proxy_brings_as_many_as_there_are() {
    let places = places(3, 1, 100);
    let trusted = TrustedProxies { networks: vec!["10.0.0.0/8".parse().unwrap()], over_unix: false };
    let all: Vec<_> = (0..4).map(|_| places.take(5, Some(address("10.1.2.3")), &trusted)).collect();
    assert_eq!(all.iter().map(Option::is_some).collect::<Vec<_>>(), [true, true, true, false]);
}

/// A balancer's client is known only when the connection has its place.
#[test]
fn a_client_that_is_known_late_has_its_share() {
    let places = places(10, 1, 100);
    let unknown = || places.take(5, None, &nobody()).expect("a place");
    let (mut first, mut second, mut other) = (unknown(), unknown(), unknown());
    assert_eq!(first.count(address("192.0.2.1"), &nobody()), Some(()));
    assert_eq!(second.count(address("192.0.2.1"), &nobody()), None);
    assert_eq!(other.count(address("192.0.2.2"), &nobody()), Some(()));
    drop(first);
    assert_eq!(second.count(address("192.0.2.1"), &nobody()), Some(()));
    drop((second, other));
    assert_eq!((places.by_client.lock().len(), places.open.load(Ordering::Relaxed)), (0, 0));
}

#[test]
fn a_host_has_a_network_of_ipv6_addresses() {
    let places = places(10, 1, 100);
    let _one = places.try_take(5, Some(address("2001:db8::1")), &nobody()).expect("the first");
    assert_eq!(
        places.try_take(5, Some(address("2001:db8::ffff:2")), &nobody()).unwrap_err(),
        ConnectionRefused::ClientFull
    );
    places.try_take(5, Some(address("2001:db8:0:1::1")), &nobody()).expect("another network");
}

#[test]
fn a_connection_that_is_refused_takes_no_place() {
    let places = places(2, 1, 100);
    let _one = places.try_take(5, Some(address("192.0.2.1")), &nobody()).expect("the first");
    for _ in 0..5 {
        assert_eq!(
            places.try_take(5, Some(address("192.0.2.1")), &nobody()).unwrap_err(),
            ConnectionRefused::ClientFull
        );
        assert_eq!(
            places.try_take(100, Some(address("192.0.2.2")), &nobody()).unwrap_err(),
            ConnectionRefused::Descriptors
        );
    }
    let _two = places.try_take(99, Some(address("192.0.2.2")), &nobody()).expect("the second");
    assert_eq!(places.try_take(5, Some(address("192.0.2.3")), &nobody()).unwrap_err(), ConnectionRefused::Full);
}

#[test]
fn clients_that_have_gone_are_forgotten() {
    let places = places(10, 10, 100);
    drop(places.try_take(5, Some(address("192.0.2.1")), &nobody()));
    assert!(places.by_client.lock().is_empty());
    assert_eq!(places.open.load(Ordering::Relaxed), 0);
}

#[test]
fn a_client_has_as_many_requests_as_connections() {
    let places = places(3, 2, 100);
    let connection = places.try_take(5, Some(address("192.0.2.1")), &nobody()).expect("a connection");
    let mine: Vec<_> = (0..3).filter_map(|_| connection.request()).collect();
    assert_eq!(mine.len(), 2, "its share");
    let unix = places.try_take(5, None, &nobody()).expect("another connection");
    let others: Vec<_> = (0..3).filter_map(|_| unix.request()).collect();
    assert_eq!(others.len(), 1, "the total");
    drop(mine);
    assert!(unix.request().is_some() && connection.request().is_some());
}

/// A write that its client gave up goes on, and counts until it is done.
#[test]
fn who_connects_again_gets_no_new_share_of_requests() {
    let places = places(10, 1, 100);
    let connect = || places.try_take(5, Some(address("192.0.2.1")), &nobody()).expect("a connection");
    let connection = connect();
    let given_up = connection.request().expect("a request");
    drop(connection);
    assert!(connect().request().is_none());
    drop(given_up);
    assert!(places.by_client.lock().is_empty());
    assert!(connect().request().is_some());
}

/// The limit of one client is often reached first, and says nothing about descriptors.
#[test]
fn each_reason_has_a_log_line_of_its_own() {
    let places = places(10, 1, 100);
    let _one = places.take(5, Some(address("192.0.2.1")), &nobody()).expect("the first");
    for (descriptor, told) in [(5, &["client"][..]), (100, &["client", "descriptors"])] {
        assert!(places.take(descriptor, Some(address("192.0.2.1")), &nobody()).is_none());
        let mut reasons: Vec<_> = places.told.lock().keys().copied().collect();
        reasons.sort_unstable();
        assert_eq!(reasons, told);
    }
}
