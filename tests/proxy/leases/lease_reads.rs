//! Reads that take the lease of their resource (`lease.acquire_on_read`): messages of a queue and their receipts.

use std::net::SocketAddr;

use crate::support::{
    backend::{Answer, Backend},
    leases::{Grant, lease, leasing, leasing_versions, reaches, view},
    proxy::{Proxy, Setup},
    raw::{get, send},
    response::Response,
};

const DOC: &str = "/doc";

async fn start(configure: impl FnOnce(Setup) -> Setup) -> (Backend, Proxy) {
    let backend = Backend::start().await;
    backend.put(DOC, "one");
    let setup = leasing_versions(&backend).route("lease.acquire_on_read = true");
    let proxy = configure(setup).start().await;
    (backend, proxy)
}

async fn claim(addr: SocketAddr, duration: &str) -> Response {
    send(addr, "GET", DOC, &[("Lease-Duration", duration)], "").await
}

async fn delete(addr: SocketAddr, receipt: &str) -> Response {
    send(addr, "DELETE", DOC, &[("Lease-Id", receipt)], "").await
}

#[tokio::test]
async fn a_read_takes_the_lease_of_what_it_reads() {
    let backend = Backend::start().await;
    for guards in ["[\"write\"]", "[\"read\", \"write\"]"] {
        for setup in [leasing(&backend), leasing_versions(&backend)] {
            backend.put(DOC, "one");
            let setup = setup.route(&format!("lease.acquire_on_read = true\nlease.guards = {guards}"));
            let proxy = setup.start().await;
            let addr = proxy.addr();
            let cacheable = Answer::status(200).header("Cache-Control", "max-age=60").body("one");
            backend.once("GET", DOC, cacheable);
            let claimed = claim(addr, "30").await;
            assert_eq!((claimed.status, claimed.text()), (200, "one"), "{claimed:?}");
            assert_eq!(claimed.header("lease-duration"), Some("30"));
            assert_eq!(claimed.headers.all("cache-control"), ["no-store"]);
            let grant = Grant::of(&claimed);
            let asked = backend.seen("GET", DOC).pop().unwrap();
            assert_eq!(asked.header("fencing-token"), Some(&*grant.fence.to_string()));
            let again = claim(addr, "30").await;
            assert!(again.refused(409, "lease-held").retry_after_seconds.is_some());
            send(addr, "DELETE", DOC, &[], "").await.refused(412, "lease-id-missing");
            assert_eq!(delete(addr, &grant.id).await.status, 204);
            assert_eq!(claim(addr, "30").await.status, 404, "the message is gone");
        }
    }
}

#[tokio::test]
async fn an_overtaken_receipt_deletes_nothing() {
    let (backend, proxy) = start(|setup| setup.route("lease.guards = [\"read\", \"write\"]")).await;
    let addr = proxy.addr();
    let first = Grant::of(&claim(addr, "1").await);
    reaches(addr, DOC, "expired").await;
    delete(addr, &first.id).await.refused(412, "lease-lost");
    let second = Grant::of(&claim(addr, "30").await);
    assert!(second.fence > first.fence);
    delete(addr, &first.id).await.refused(412, "lease-id-mismatch");
    assert_eq!(backend.content(DOC).as_deref(), Some("one"));
    assert_eq!(delete(addr, &second.id).await.status, 204);
    assert_eq!(backend.content(DOC), None);
}

#[tokio::test]
async fn a_receipt_is_extended_like_any_lease() {
    let (_backend, proxy) = start(|setup| setup).await;
    let grant = Grant::of(&claim(proxy.addr(), "30").await);
    let extended = lease(proxy.addr(), "PUT", DOC, &[("Lease-Id", &grant.id)]).await;
    assert_eq!((extended.status, extended.header("lease-duration")), (200, Some("30")));
}

/// On anything but 200 the lease is given back.
#[tokio::test]
async fn a_read_that_comes_to_nothing_takes_nothing() {
    let (backend, proxy) = start(|setup| setup).await;
    let addr = proxy.addr();
    let answers = [404, 401, 500, 204].map(Answer::status).into_iter().chain([Answer::close()]);
    for (answer, status) in answers.zip([404, 401, 500, 204, 502]) {
        backend.once("GET", DOC, answer);
        let read = claim(addr, "30").await;
        assert_eq!((read.status, read.header("lease-id")), (status, None), "{read:?}");
        assert_eq!(view(addr, DOC).await["state"], "available", "after {status}");
    }
    assert_eq!(backend.count("GET", DOC), 5, "it is never sent twice");
    assert_eq!(claim(addr, "30").await.status, 200);
}

/// A receipt is never given for what the client's cache has.
#[tokio::test]
async fn a_conditional_read_takes_nothing_where_nothing_is_new() {
    let (_backend, proxy) = start(|setup| setup).await;
    let addr = proxy.addr();
    let tag = get(addr, DOC).await.etag();
    let fields = [("Lease-Duration", "30"), ("If-None-Match", &*tag)];
    let read = send(addr, "GET", DOC, &fields, "").await;
    assert_eq!((read.status, read.header("lease-id")), (304, None), "{read:?}");
    assert_eq!(view(addr, DOC).await["state"], "available");
}

#[tokio::test]
async fn a_read_that_asks_for_no_lease_takes_none() {
    let (backend, proxy) = start(|setup| setup).await;
    assert_eq!(get(proxy.addr(), DOC).await.header("lease-id"), None);
    assert_eq!(view(proxy.addr(), DOC).await["state"], "available");
    let plain = leasing_versions(&backend).start().await;
    assert_eq!(claim(plain.addr(), "30").await.header("lease-id"), None);
    assert_eq!(view(plain.addr(), DOC).await["state"], "available");
}

#[tokio::test]
async fn a_duration_that_cannot_be_read_is_refused() {
    let (backend, proxy) = start(|setup| setup).await;
    claim(proxy.addr(), "soon").await.refused(400, "malformed-lease-header");
    claim(proxy.addr(), "3600").await.refused(400, "malformed-lease-header");
    assert_eq!(backend.requests().len(), 0);
}
