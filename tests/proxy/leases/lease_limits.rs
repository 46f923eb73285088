//! Limits of leases: how long a client may hold one, how many it may hold, and how many there are.

use std::net::SocketAddr;

use tokio::time::Instant;

use crate::support::{
    backend::Backend,
    leases::{Grant, acquire, lease, leasing_versions, put_with, reaches, release},
    proxy::{Proxy, Setup},
    raw::send,
    response::Response,
    wait::DEADLINE,
};

/// Leases of what does not exist, so that each target is a resource.
async fn start(configure: impl FnOnce(Setup) -> Setup) -> (Backend, Proxy) {
    let backend = Backend::start().await;
    let setup = leasing_versions(&backend).route("lease.absent = \"allow\"\nlease.infinite = true");
    let proxy = configure(setup).start().await;
    (backend, proxy)
}

async fn try_acquire(addr: SocketAddr, client: &str, target: &str, duration: &str) -> Response {
    lease(addr, "POST", target, &[("Authorization", client), ("Lease-Duration", duration)]).await
}

#[tokio::test]
async fn renewals_do_not_go_on_for_ever() {
    let limits = "lease.max_hold_time = \"2s\"\nlease.max = \"2s\"\nlease.default = \"2s\"";
    let (_backend, proxy) = start(|setup| setup.route(limits)).await;
    let grant = acquire(proxy.addr(), "/a", "1").await;
    let end = Instant::now() + DEADLINE;
    loop {
        let renewed = lease(proxy.addr(), "PUT", "/a", &[("Lease-Id", &grant.id)]).await;
        if renewed.status != 200 {
            renewed.refused(409, "lease-hold-max");
            break;
        }
        assert!(Instant::now() < end, "it is renewed for ever");
    }
    reaches(proxy.addr(), "/a", "expired").await;
    assert!(acquire(proxy.addr(), "/a", "1").await.fence > grant.fence, "others get their turn");
}

#[tokio::test]
async fn a_principal_holds_so_many_leases_and_no_more() {
    let (_backend, proxy) = start(|setup| setup.route("lease.max_per_principal = 1")).await;
    let addr = proxy.addr();
    let first = Grant::of(&try_acquire(addr, "ann", "/a", "30").await);
    try_acquire(addr, "ann", "/b", "30").await.refused(429, "too-many-leases");
    assert_eq!(try_acquire(addr, "bob", "/b", "30").await.status, 201, "each has its own");
    let released = [("Authorization", "ann"), ("Lease-Id", &*first.id)];
    assert_eq!(lease(addr, "DELETE", "/a", &released).await.status, 204);
    assert_eq!(try_acquire(addr, "ann", "/c", "30").await.status, 201);
}

/// A lease counts as long as it is held, also where its end was put off.
#[tokio::test]
async fn a_renewed_lease_still_counts() {
    let (_backend, proxy) = start(|setup| setup.route("lease.max_per_principal = 1")).await;
    let addr = proxy.addr();
    let first = acquire(addr, "/a", "2").await;
    let end = Instant::now() + std::time::Duration::from_millis(2_300);
    while Instant::now() < end {
        assert_eq!(lease(addr, "PUT", "/a", &[("Lease-Id", &first.id)]).await.status, 200);
    }
    lease(addr, "POST", "/b", &[]).await.refused(429, "too-many-leases");
}

/// One that has ended otherwise than by its release does not.
#[tokio::test]
async fn a_lease_that_has_ended_counts_no_more() {
    let limits = "lease.max_per_principal = 1\nlease.client_break = true";
    let (_backend, proxy) = start(|setup| setup.route(limits)).await;
    let addr = proxy.addr();
    acquire(addr, "/expired", "1").await;
    reaches(addr, "/expired", "expired").await;
    acquire(addr, "/broken", "infinite").await;
    let broken = [("Authorization", "somebody else"), ("Lease-Break-Period", "0")];
    assert_eq!(lease(addr, "DELETE", "/broken", &broken).await.status, 202);
    let deleted = acquire(addr, "/deleted", "infinite").await;
    assert_eq!(put_with(addr, "/deleted", &deleted.id, "x").await.status, 201);
    assert_eq!(send(addr, "DELETE", "/deleted", &[("Lease-Id", &deleted.id)], "").await.status, 204);
    acquire(addr, "/the-last", "infinite").await;
    lease(addr, "POST", "/one-more", &[]).await.refused(429, "too-many-leases");
}

/// One that was never granted neither.
#[tokio::test]
async fn a_lease_that_was_not_granted_does_not_count() {
    let (_backend, proxy) = start(|setup| setup.route("lease.max_per_principal = 1")).await;
    let addr = proxy.addr();
    for round in 0..10 {
        let target = format!("/{round}");
        // All of one client, so that those that lose the race could each be counted.
        let racers = (0..8).map(|_| {
            let target = target.clone();
            tokio::spawn(async move { lease(addr, "POST", &target, &[("Lease-Duration", "infinite")]).await })
        });
        let mut ids = Vec::new();
        for racer in racers.collect::<Vec<_>>() {
            let response = racer.await.unwrap();
            if response.status == 201 {
                ids.push(Grant::of(&response).id);
            }
        }
        assert_eq!(ids.len(), 1, "one of them is granted the lease of {target}");
        release(addr, &target, &ids[0]).await;
    }
}

/// Rule 8: a lease is never forgotten for want of room.
#[tokio::test]
async fn a_full_store_grants_nothing_and_forgets_nothing() {
    let (_backend, proxy) = start(|setup| setup.store("capacity = 1").route("lease.max_per_principal = 1")).await;
    let addr = proxy.addr();
    let first = Grant::of(&try_acquire(addr, "ann", "/a", "30").await);
    try_acquire(addr, "bob", "/b", "infinite").await.refused(503, "store-full");
    try_acquire(addr, "bob", "/c", "infinite").await.refused(503, "store-full");
    let fields = [("Authorization", "ann"), ("Lease-Id", &*first.id)];
    assert_eq!(send(addr, "PUT", "/a", &fields, "x").await.status, 201);
}

/// A client that makes up credentials for each request had 1,000 of 1,000 leases.
#[tokio::test]
async fn other_credentials_give_no_more_leases_than_an_address_may_have() {
    let trusted = "trusted_proxies = [\"127.0.0.0/8\"]";
    let limits = "lease.max_per_principal = 2\nlease.max_per_address = 3";
    let (_backend, proxy) = start(|setup| setup.server(trusted).route(limits)).await;
    let addr = proxy.addr();
    let acquire = async |client: &str, from: &str, target: &str| {
        let fields = [("Authorization", client), ("X-Forwarded-For", from), ("Lease-Duration", "30")];
        lease(addr, "POST", target, &fields[usize::from(client.is_empty())..]).await
    };
    let first = Grant::of(&acquire("one", "192.0.2.1", "/1").await);
    for (client, target) in [("two", "/2"), ("three", "/3")] {
        assert_eq!(acquire(client, "192.0.2.1", target).await.status, 201);
    }
    for client in ["four", "one", ""] {
        acquire(client, "192.0.2.1", "/4").await.refused(429, "too-many-leases");
        acquire(client, "198.51.100.1, 192.0.2.1", "/4").await.refused(429, "too-many-leases");
    }
    assert_eq!(acquire("four", "192.0.2.2", "/4").await.status, 201, "it comes from elsewhere");
    let released = [("Authorization", "one"), ("X-Forwarded-For", "192.0.2.1"), ("Lease-Id", &*first.id)];
    assert_eq!(lease(addr, "DELETE", "/1", &released).await.status, 204);
    assert_eq!(acquire("", "192.0.2.1", "/5").await.status, 201);
    // Clients without credentials are distinguished by their addresses.
    for (from, target, status) in [("2001:db8::1", "/6", 201), ("2001:db8::2", "/7", 201), ("2001:db8::3", "/8", 429)] {
        assert_eq!(acquire("", from, target).await.status, status, "{from}");
    }
}
