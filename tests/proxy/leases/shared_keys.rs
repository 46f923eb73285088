//! Routes that share a key share the lease of its resource, with any policies (DESIGN, section 3, rule 10).

use std::net::SocketAddr;

use crate::support::{
    backend::{Answer, Backend},
    engines::Engine,
    leases::{IDS, acquire, fence, lease, put_with, reaches, release, view},
    proxy::Proxy,
    raw::{get, put, send},
    response::Response,
};

/// The resource by the route that leases it, and by the one that does not.
const LEASED: &str = "/leased/1";
const PLAIN: &str = "/plain/1";

/// A proxy with two routes for one set of keys: a pessimistic one with these lines, and an optimistic one.
async fn start(lines: &str) -> (Backend, Proxy) {
    start_on("", lines).await
}

/// The same on this store.
async fn start_on(store: &str, lines: &str) -> (Backend, Proxy) {
    let backend = Backend::start().await;
    backend.put(LEASED, "one");
    backend.put(PLAIN, "one");
    let setup = Proxy::to(backend.addr()).store(store).route("require = \"never\"\nkey = \"{id}\"");
    let configuration = setup.configuration();
    let (tables, route) = configuration.split_once("[[routes]]").expect("a route");
    let route = |name: &str, lines: &str| {
        let path = format!("\"/{name}/{{id}}\"");
        let renamed = route.replace("\"all\"", &format!("{name:?}")).replace("\"/{*rest}\"", &path);
        format!("[[routes]]{renamed}\n{lines}\n")
    };
    let leased = route("leased", &format!("lease.min = \"1s\"\n{lines}")).replace("optimistic", "pessimistic");
    let proxy = Proxy::start(&format!("{tables}{leased}{}", route("plain", ""))).await;
    (backend, proxy)
}

async fn with_id(addr: SocketAddr, method: &str, id: &str) -> Response {
    send(addr, method, PLAIN, &[("Lease-Id", id)], "two").await
}

fn writes(backend: &Backend) -> usize {
    backend.requests().iter().filter(|request| !matches!(&*request.method, "GET" | "HEAD")).count()
}

/// Rule 10: a route without leases refuses writes beside the lease of another route.
#[tokio::test]
async fn a_lease_is_honoured_by_every_guarded_route_that_reaches_its_resource() {
    let (backend, proxy) = start("").await;
    let addr = proxy.addr();
    let grant = acquire(addr, LEASED, "30").await;
    for method in ["PUT", "PATCH", "DELETE", "POST"] {
        send(addr, method, PLAIN, &[], "two").await.refused(412, "lease-id-missing");
        with_id(addr, method, IDS[0]).await.refused(412, "lease-id-mismatch");
        with_id(addr, method, "no id").await.refused(400, "malformed-lease-header");
    }
    assert_eq!(writes(&backend), 0, "refused means untouched");
    assert_eq!(get(addr, PLAIN).await.status, 200, "the lease guards no reads");
    for method in ["PUT", "POST"] {
        assert_eq!(with_id(addr, method, &grant.id).await.status, 204);
        let seen = backend.seen(method, PLAIN).pop().unwrap();
        assert_eq!(seen.header("fencing-token"), Some(&*grant.fence.to_string()));
        assert_eq!(seen.header("lease-id"), None);
    }
    assert_eq!(view(addr, LEASED).await["state"], "leased");
    put(addr, PLAIN, &[], "two").await.refused(412, "lease-id-missing");
    release(addr, LEASED, &grant.id).await;
    with_id(addr, "PUT", &grant.id).await.refused(412, "lease-not-present");
    assert_eq!(put(addr, PLAIN, &[], "three").await.status, 204, "nobody holds it");
}

/// The grant of a lease decides what it guards; the other route has no settings for leases.
#[tokio::test]
async fn a_lease_guards_by_every_route_what_it_was_granted_for() {
    let (backend, proxy) = start("lease.guards = [\"read\", \"write\"]").await;
    let addr = proxy.addr();
    let grant = acquire(addr, LEASED, "30").await;
    for method in ["GET", "PUT"] {
        send(addr, method, PLAIN, &[], "").await.refused(412, "lease-id-missing");
        with_id(addr, method, IDS[0]).await.refused(412, "lease-id-mismatch");
    }
    assert_eq!(send(addr, "HEAD", PLAIN, &[], "").await.status, 412);
    assert_eq!(backend.count("*", PLAIN), 0);
    let read = send(addr, "GET", PLAIN, &[("Lease-Id", &grant.id)], "").await;
    assert_eq!((read.status, read.text()), (200, "one"));
    assert_eq!(backend.seen("GET", PLAIN)[0].header("fencing-token"), Some(&*grant.fence.to_string()));

    let (_backend, proxy) = start("lease.guards = [\"delete\"]").await;
    let addr = proxy.addr();
    let grant = acquire(addr, LEASED, "30").await;
    assert_eq!(put(addr, PLAIN, &[], "two").await.status, 204);
    send(addr, "DELETE", PLAIN, &[], "").await.refused(412, "lease-id-missing");
    assert_eq!(send(addr, "DELETE", PLAIN, &[("Lease-Id", &grant.id)], "").await.status, 204);
}

/// Rule 12: without the store the holder of a lease is unknown that the other route may have granted.
#[tokio::test]
async fn what_another_route_may_lease_against_readers_is_not_read_without_the_store() {
    for engine in Engine::all().await {
        for (guards, status) in [("[\"read\", \"write\"]", 503), ("[\"write\"]", 200)] {
            let (backend, proxy) = start_on(&engine.store(), &format!("lease.guards = {guards}")).await;
            assert_eq!(get(proxy.addr(), PLAIN).await.status, 200, "{guards}");
            engine.signal("STOP");
            assert_eq!(get(proxy.addr(), PLAIN).await.status, status, "{guards}");
            assert_eq!(backend.count("GET", PLAIN), if status == 200 { 2 } else { 1 }, "{guards}");
            engine.signal("CONT");
        }
    }
}

/// A lease is bound to the principal that took it by every route too.
#[tokio::test]
async fn a_bound_lease_is_of_no_use_to_another_by_any_route() {
    let (backend, proxy) = start("lease.bind = true").await;
    let addr = proxy.addr();
    let ann = ("Authorization", "Bearer ann");
    let granted = lease(addr, "POST", LEASED, &[("Lease-Duration", "30"), ann]).await;
    let id = granted.header("lease-id").expect("a grant").to_owned();
    let bob = ("Authorization", "Bearer bob");
    put(addr, PLAIN, &[("Lease-Id", &id), bob], "two").await.refused(412, "lease-id-mismatch");
    assert_eq!(writes(&backend), 0);
    assert_eq!(put(addr, PLAIN, &[("Lease-Id", &id), ann], "two").await.status, 204);
}

/// Others have written since, and the holder could not know.
#[tokio::test]
async fn a_write_by_another_route_takes_a_lease_that_has_run_out() {
    let (_backend, proxy) = start("").await;
    let addr = proxy.addr();
    let grant = acquire(addr, LEASED, "1").await;
    reaches(addr, LEASED, "expired").await;
    with_id(addr, "PUT", &grant.id).await.refused(412, "lease-lost");
    assert_eq!(put(addr, PLAIN, &[], "two").await.status, 204);
    lease(addr, "PUT", LEASED, &[("Lease-Id", &grant.id)]).await.refused(409, "lease-not-present");
}

/// The parts of a drawing share its key: a DELETE of one of them is a write to the drawing, not its end.
/// Rule 10: a DELETE of a part leaves the lease, and one of the leased target ends it.
#[tokio::test]
async fn only_a_deletion_of_what_was_leased_ends_the_lease() {
    const WHOLE: &str = "/drawings/7";
    let backend = Backend::start().await;
    for target in [WHOLE, "/drawings/7/sheets/1", "/drawings/7?sheet=1", "/drawings/%37"] {
        backend.put(target, "one");
    }
    let lines = "policy = \"pessimistic\"\nkey = \"/drawings/{id}\"\nlease.absent = \"allow\"\nlease.auth = \"none\"";
    let configuration = Proxy::to(backend.addr()).route(lines).configuration();
    let proxy = Proxy::start(&configuration.replace("\"/{*rest}\"", "\"/drawings/{id}/{*part}\"")).await;
    let addr = proxy.addr();
    let grant = acquire(addr, WHOLE, "30").await;
    let delete = async |target| send(addr, "DELETE", target, &[("Lease-Id", &grant.id)], "").await.status;
    for part in ["/drawings/7/sheets/1", "/drawings/7?sheet=1"] {
        assert_eq!(delete(part).await, 204, "{part}");
        assert_eq!(view(addr, WHOLE).await["state"], "leased", "{part}");
        put(addr, WHOLE, &[], "two").await.refused(412, "lease-id-missing");
    }
    assert_eq!(put_with(addr, WHOLE, &grant.id, "two").await.status, 204);
    assert_eq!(delete("/drawings/%37").await, 204, "another spelling of the same target");
    assert_eq!(view(addr, WHOLE).await["state"], "available");
    assert!(acquire(addr, WHOLE, "30").await.fence > grant.fence);
}

/// The lease of a part is a lease of the whole, and ends with that part alone.
#[tokio::test]
async fn a_lease_that_was_taken_by_a_part_ends_with_that_part() {
    let backend = Backend::start().await;
    backend.always("DELETE", "*", |_| Answer::status(204));
    let lines = "policy = \"pessimistic\"\nkey = \"/drawings/{id}\"\nlease.absent = \"allow\"\nlease.auth = \"none\"";
    let configuration = Proxy::to(backend.addr()).route(lines).configuration();
    let proxy = Proxy::start(&configuration.replace("\"/{*rest}\"", "\"/drawings/{id}/{*part}\"")).await;
    let addr = proxy.addr();
    let (whole, part) = ("/drawings/7", "/drawings/7/sheets/1");
    let taken = lease(addr, "POST", part, &[("Lease-Duration", "30")]).await;
    assert!(fence(&taken) > 0);
    let id = taken.header("lease-id").expect("a grant");
    for (target, state) in [(whole, "leased"), (part, "available")] {
        assert_eq!(send(addr, "DELETE", target, &[("Lease-Id", id)], "").await.status, 204);
        assert_eq!(view(addr, whole).await["state"], state, "{target}");
    }
}
