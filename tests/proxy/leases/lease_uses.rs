//! The effect of a lease on reads and writes of its resource (DESIGN, sections 5 and 8).

use std::net::SocketAddr;

use crate::support::{
    backend::Backend,
    leases::{IDS, acquire, lease, leasing, leasing_versions, put_with, reaches, release, view},
    proxy::{Proxy, Setup},
    raw::{get, put, send},
    response::Response,
};

const DOC: &str = "/doc";

async fn start(configure: impl FnOnce(Setup) -> Setup) -> (Backend, Proxy) {
    let backend = Backend::start().await;
    backend.put(DOC, "one");
    let proxy = configure(leasing(&backend)).start().await;
    (backend, proxy)
}

async fn with_id(addr: SocketAddr, method: &str, id: &str) -> Response {
    send(addr, method, DOC, &[("Lease-Id", id)], "").await
}

/// How many requests that are no probes have come.
fn writes(backend: &Backend) -> usize {
    backend.requests().iter().filter(|request| !matches!(&*request.method, "GET" | "HEAD")).count()
}

#[tokio::test]
async fn only_the_holder_writes_a_leased_resource() {
    let (backend, proxy) = start(|setup| setup).await;
    let addr = proxy.addr();
    let grant = acquire(addr, DOC, "30").await;
    put(addr, DOC, &[], "two").await.refused(412, "lease-id-missing");
    put_with(addr, DOC, IDS[0], "two").await.refused(412, "lease-id-mismatch");
    for method in ["PATCH", "DELETE", "POST"] {
        send(addr, method, DOC, &[], "").await.refused(412, "lease-id-missing");
        with_id(addr, method, IDS[0]).await.refused(412, "lease-id-mismatch");
    }
    assert_eq!(writes(&backend), 0, "refused means untouched");
    assert_eq!(get(addr, DOC).await.status, 200, "everybody reads");
    assert_eq!(put_with(addr, DOC, &grant.id, "two").await.status, 204);
    assert_eq!(with_id(addr, "POST", &grant.id).await.status, 204);
    for method in ["PUT", "POST"] {
        let fence = backend.seen(method, DOC)[0].header("fencing-token").map(str::to_owned);
        assert_eq!(fence, Some(grant.fence.to_string()), "{method} is the holder's");
    }
    assert_eq!(backend.content(DOC).as_deref(), Some("two"));
}

#[tokio::test]
async fn any_client_writes_a_resource_without_a_lease() {
    let (backend, proxy) = start(|setup| setup).await;
    let addr = proxy.addr();
    assert_eq!(put(addr, DOC, &[], "two").await.status, 204);
    let grant = acquire(addr, DOC, "30").await;
    release(addr, DOC, &grant.id).await;
    assert_eq!(put(addr, DOC, &[], "three").await.status, 204);
    for seen in backend.seen("PUT", DOC) {
        assert_eq!(seen.header("fencing-token"), None, "there is no holder");
    }
}

#[tokio::test]
async fn an_id_of_no_lease_is_refused() {
    let (backend, proxy) = start(|setup| setup).await;
    let addr = proxy.addr();
    put_with(addr, DOC, IDS[0], "two").await.refused(412, "lease-not-present");
    with_id(addr, "GET", IDS[0]).await.refused(412, "lease-not-present");
    let grant = acquire(addr, DOC, "30").await;
    release(addr, DOC, &grant.id).await;
    let ended = put_with(addr, DOC, &grant.id, "two").await.refused(412, "lease-not-present");
    let advice = ended.json["detail"].as_str().unwrap();
    assert!(advice.contains("acquire a new lease, and read the resource again") && !advice.contains("no Lease-Id"));
    assert_eq!(writes(&backend), 0);
}

#[tokio::test]
async fn a_lease_that_ran_out_writes_nothing() {
    let (backend, proxy) = start(|setup| setup).await;
    let addr = proxy.addr();
    let grant = acquire(addr, DOC, "1").await;
    reaches(addr, DOC, "expired").await;
    put_with(addr, DOC, &grant.id, "late").await.refused(412, "lease-lost");
    with_id(addr, "GET", &grant.id).await.refused(412, "lease-lost");
    assert_eq!(writes(&backend), 0);
    assert_eq!(put(addr, DOC, &[], "two").await.status, 204, "nobody holds it");
}

#[tokio::test]
async fn where_a_lease_is_required_no_write_passes_without_one() {
    let (backend, proxy) = start(|setup| setup.route("lease.required = true")).await;
    let addr = proxy.addr();
    for method in ["PUT", "PATCH", "DELETE", "POST"] {
        send(addr, method, DOC, &[], "").await.refused(412, "lease-id-missing");
    }
    assert_eq!(writes(&backend), 0);
    assert_eq!(get(addr, DOC).await.status, 200);
    let grant = acquire(addr, DOC, "30").await;
    assert_eq!(put_with(addr, DOC, &grant.id, "two").await.status, 204);
}

#[tokio::test]
async fn a_lease_of_both_keeps_reads_away_too() {
    let (backend, proxy) = start(|setup| setup.route("lease.guards = [\"read\", \"write\"]")).await;
    let addr = proxy.addr();
    assert_eq!(get(addr, DOC).await.status, 200, "nobody holds it");
    let grant = acquire(addr, DOC, "30").await;
    let reads = backend.count("GET", DOC);
    for method in ["GET", "PUT"] {
        send(addr, method, DOC, &[], "").await.refused(412, "lease-id-missing");
        with_id(addr, method, IDS[0]).await.refused(412, "lease-id-mismatch");
    }
    assert_eq!(send(addr, "HEAD", DOC, &[], "").await.status, 412);
    assert_eq!(backend.count("GET", DOC), reads);
    assert_eq!(with_id(addr, "GET", &grant.id).await.text(), "one");
    assert_eq!(put_with(addr, DOC, &grant.id, "two").await.status, 204);
}

/// Shared write, exclusive read: no other client reads while the lease lasts, even after its deletion of the resource.
#[tokio::test]
async fn a_lease_of_reading_keeps_no_write_away() {
    let (_backend, proxy) = start(|setup| setup.route("lease.guards = [\"read\"]")).await;
    let addr = proxy.addr();
    let grant = acquire(addr, DOC, "30").await;
    for round in ["two", "three"] {
        assert_eq!(put(addr, DOC, &[], round).await.status / 100, 2, "{round}");
        send(addr, "GET", DOC, &[], "").await.refused(412, "lease-id-missing");
        with_id(addr, "GET", IDS[0]).await.refused(412, "lease-id-mismatch");
        with_id(addr, "PUT", IDS[0]).await.refused(412, "lease-id-mismatch");
        assert_eq!(send(addr, "DELETE", DOC, &[], "").await.status, 204);
        let renewed = lease(addr, "PUT", DOC, &[("Lease-Id", &grant.id)]).await;
        assert_eq!(renewed.status, 200, "a deletion that needs no lease ends none: {renewed:?}");
    }
    assert_eq!(put(addr, DOC, &[], "four").await.status, 201);
    assert_eq!(with_id(addr, "GET", &grant.id).await.text(), "four");
    release(addr, DOC, &grant.id).await;
    assert_eq!(get(addr, DOC).await.text(), "four");
}

#[tokio::test]
async fn a_lease_of_deletion_keeps_nothing_else_away() {
    let (backend, proxy) = start(|setup| setup.route("lease.guards = [\"delete\"]")).await;
    let addr = proxy.addr();
    let grant = acquire(addr, DOC, "30").await;
    assert_eq!(put(addr, DOC, &[], "two").await.status, 204);
    assert_eq!(get(addr, DOC).await.status, 200);
    send(addr, "DELETE", DOC, &[], "").await.refused(412, "lease-id-missing");
    with_id(addr, "DELETE", IDS[0]).await.refused(412, "lease-id-mismatch");
    assert_eq!(backend.content(DOC).as_deref(), Some("two"));
    assert_eq!(with_id(addr, "DELETE", &grant.id).await.status, 204);
}

#[tokio::test]
async fn the_holders_deletion_ends_its_lease() {
    let (_backend, proxy) = start(|setup| setup.route("lease.absent = \"allow\"")).await;
    let addr = proxy.addr();
    let grant = acquire(addr, DOC, "30").await;
    assert_eq!(with_id(addr, "DELETE", &grant.id).await.status, 204);
    assert_eq!(view(addr, DOC).await["state"], "available");
    assert!(acquire(addr, DOC, "30").await.fence > grant.fence);
}

/// A deletion that the backend does not carry out ends nothing.
#[tokio::test]
async fn a_refused_deletion_keeps_the_lease() {
    let (backend, proxy) = start(|setup| setup).await;
    backend.once("DELETE", DOC, crate::support::backend::Answer::status(403));
    let grant = acquire(proxy.addr(), DOC, "30").await;
    assert_eq!(with_id(proxy.addr(), "DELETE", &grant.id).await.status, 403);
    assert_eq!(put_with(proxy.addr(), DOC, &grant.id, "two").await.status, 204);
}

#[tokio::test]
async fn the_backend_sees_fences_that_grow_and_no_ids() {
    let (backend, proxy) = start(|setup| setup.route("lease.guards = [\"read\", \"write\"]")).await;
    let addr = proxy.addr();
    let mut expected = Vec::new();
    for _ in 0..3 {
        let grant = acquire(addr, DOC, "30").await;
        let fields = [
            ("Lease-Id", &*grant.id),
            ("Proposed-Lease-Id", IDS[1]),
            ("Lease-Duration", "30"),
            ("Lease-Holder", "me"),
            ("Fencing-Token", "999999999"),
        ];
        assert_eq!(send(addr, "PUT", DOC, &fields, "two").await.status, 204);
        assert_eq!(send(addr, "GET", DOC, &fields, "").await.status, 200);
        expected.push(grant.fence);
        release(addr, DOC, &grant.id).await;
    }
    assert!(expected.is_sorted_by(|one, next| one < next), "{expected:?}");
    let fences = |method: &str| {
        let seen = backend.seen(method, DOC);
        let fences = seen.iter().filter_map(|request| request.header("fencing-token"));
        fences.map(|token| token.parse::<u64>().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(fences("PUT"), expected);
    assert_eq!(fences("GET"), expected, "reads that the lease guards carry it too, probes do not");
    for request in backend.requests() {
        for name in ["lease-id", "proposed-lease-id", "lease-duration", "lease-holder"] {
            assert_eq!(request.header(name), None, "{request:?}");
        }
    }
}

#[tokio::test]
async fn nobody_can_forge_a_fence() {
    let (backend, proxy) = start(|setup| setup).await;
    for method in ["PUT", "GET", "POST", "OPTIONS"] {
        send(proxy.addr(), method, DOC, &[("Fencing-Token", "7")], "").await;
    }
    let unguarded = Proxy::to(backend.addr()).route("policy = \"last-writer-wins\"").start().await;
    assert_eq!(put(unguarded.addr(), DOC, &[("Fencing-Token", "7")], "x").await.status, 204);
    for method in ["PUT", "GET", "POST", "OPTIONS"] {
        assert!(backend.count(method, DOC) > 0, "{method}");
    }
    for request in backend.requests() {
        assert_eq!(request.header("fencing-token"), None, "{request:?}");
    }
}

/// The lease goes first, then the preconditions.
#[tokio::test]
async fn a_holder_may_demand_more_by_preconditions() {
    let backend = Backend::start().await;
    backend.put(DOC, "one");
    for setup in [leasing(&backend), leasing_versions(&backend)] {
        let proxy = setup.start().await;
        let addr = proxy.addr();
        let grant = acquire(addr, DOC, "30").await;
        let tag = get(addr, DOC).await.etag();
        let id = ("Lease-Id", &*grant.id);
        put(addr, DOC, &[id, ("If-Match", "\"other\"")], "two").await.refused(412, "precondition-failed");
        put(addr, DOC, &[("If-Match", &tag)], "two").await.refused(412, "lease-id-missing");
        assert_eq!(put(addr, DOC, &[id, ("If-Match", &tag)], "two").await.status, 204);
        put(addr, DOC, &[id, ("If-Match", &tag)], "three").await.refused(412, "precondition-failed");
        backend.put(DOC, "one");
    }
}
