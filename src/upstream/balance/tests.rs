//! The state of servers over several generations of a configuration.

use std::net::IpAddr;

use futures_util::FutureExt as _;

use super::*;
use crate::{
    config::{HealthCheck, HealthProbe},
    testing::{config, guard, route},
    upstream::testing::upstream,
};

fn of(upstreams: &Upstreams, servers: &[&str]) -> (Arc<Upstream>, Arc<UpstreamServers>) {
    let upstream = Arc::new(upstream(servers));
    let servers = upstreams.of(&upstream);
    (upstream, servers)
}

/// A place for a guarded request, if there is one at once.
fn slot(servers: &UpstreamServers, upstream: &Upstream, server: usize) -> Option<Slot> {
    servers.slot(server, Occupant::Guarded(None), upstream).now_or_never()?.ok()
}

#[test]
fn what_is_known_of_a_server_outlives_its_configuration() {
    let upstreams = Upstreams::default();
    let (first, before) = of(&upstreams, &["a:1", "b:1"]);
    before.connected(0, false);
    let _slot = slot(&before, &first, 1).expect("the server is idle");
    let (_second, after) = of(&upstreams, &["b:1", "a:1"]);
    drop((first, before));
    assert_eq!(after.order(Choice::Turn), [0, 1], "a comes last");
    assert_eq!(after.states().map(|state| state.in_use).collect::<Vec<_>>(), [1, 0]);
    assert_eq!(upstreams.states().len(), 2, "those of the old configuration are the same ones");
}

#[test]
fn a_server_with_another_limit_is_counted_anew() {
    let upstreams = Upstreams::default();
    let (first, before) = of(&upstreams, &["a:1"]);
    let _slot = slot(&before, &first, 0).expect("the server is idle");
    let second = Arc::new(Upstream { max_connections: 1, ..upstream(&["a:1"]) });
    assert!(slot(&upstreams.of(&second), &second, 0).is_some());
}

#[test]
fn a_server_that_is_down_is_in_no_order() {
    let upstreams = Upstreams::default();
    let (_upstream, servers) = of(&upstreams, &["a:1", "b:1"]);
    servers.list[0].set_down(true);
    for choice in [Choice::Turn, Choice::Turn, Choice::Hash(b"x")] {
        assert_eq!(servers.order(choice), [1], "{choice:?}");
    }
    assert_eq!(servers.order(Choice::Only(0)), [0; 0]);
    servers.list[1].set_down(true);
    assert_eq!(servers.order(Choice::Turn), [0; 0]);
}

#[test]
fn a_server_that_nobody_checks_any_more_is_up() {
    let upstreams = Upstreams::default();
    let health = HealthCheck { check: HealthProbe::Connect, ..HealthCheck::default() };
    let checked = Arc::new(Upstream { health, ..upstream(&["a:1"]) });
    upstreams.of(&checked).list[0].set_down(true);
    let (_unchecked, servers) = of(&upstreams, &["a:1"]);
    assert_eq!(servers.order(Choice::Turn), [0]);
}

#[tokio::test]
async fn places_are_kept_for_guarded_requests_where_a_route_is_guarded() {
    for is_guarded in [true, false] {
        let server = std::net::SocketAddr::from(([127, 0, 0, 1], 9));
        let config = config(vec![route("/doc", is_guarded.then(guard), &[server])]);
        let (upstreams, upstream) = (Upstreams::default(), &config.routes[0].upstream);
        upstreams.prepare(&config);
        let servers = upstreams.of(upstream);
        let unguarded = || servers.slot(0, Occupant::Unguarded(None), upstream).now_or_never()?.ok();
        let max = upstream.max_connections;
        let kept = if is_guarded { max / 8 } else { 0 };
        assert_eq!(std::iter::from_fn(unguarded).collect::<Vec<_>>().len(), max - kept);
    }
}

/// Many clients come by one trusted proxy, or over one Unix socket.
#[test]
fn only_a_client_that_is_known_has_a_share() {
    let upstreams = Upstreams::default();
    let mut config = config(Vec::new());
    config.server.trusted_proxies.networks = vec!["10.0.0.0/8".parse().expect("a network")];
    upstreams.prepare(&config);
    for (address, has_share) in [("192.0.2.1", true), ("2001:db8::1", true), ("10.1.2.3", false)] {
        let client = ClientAddress::from(Some(address.parse::<IpAddr>().expect("an address")));
        assert_eq!(upstreams.guarded(client), Occupant::Guarded(has_share.then_some(client)), "{address}");
    }
    assert_eq!(upstreams.guarded(ClientAddress::Local), Occupant::Guarded(None));
}
