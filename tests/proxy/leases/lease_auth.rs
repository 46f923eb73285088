//! The right to lease (DESIGN, section 8): the upstream's answer about the client, and the principal that a lease is
//! bound to.

use std::net::SocketAddr;

use crate::support::{
    backend::{Answer, Backend},
    leases::{Grant, IDS, lease, leasing, leasing_versions, view},
    proxy::{Proxy, Setup},
    raw::{get, put, put_if_match, send},
    response::Response,
};

const DOC: &str = "/doc";

async fn start(configure: impl FnOnce(Setup) -> Setup) -> (Backend, Proxy) {
    let backend = Backend::start().await;
    backend.put(DOC, "one");
    let proxy = configure(leasing(&backend)).start().await;
    (backend, proxy)
}

#[tokio::test]
async fn the_upstreams_refusal_is_relayed_and_nothing_is_granted() {
    let backend = Backend::start().await;
    backend.put(DOC, "one");
    for setup in [leasing(&backend), leasing_versions(&backend)] {
        let proxy = setup.start().await;
        for (status, operation) in [(401, "POST"), (403, "POST"), (401, "GET"), (403, "PUT")] {
            let challenge = Answer::status(status).header("WWW-Authenticate", "Basic realm=\"docs\"");
            backend.always("*", DOC, move |_| challenge.clone());
            let refused = lease(proxy.addr(), operation, DOC, &[("Lease-Id", IDS[0])]).await;
            assert_eq!(refused.status, status, "{operation}: {refused:?}");
            assert_eq!(refused.header("www-authenticate"), Some("Basic realm=\"docs\""));
            assert!(!refused.headers.contains("lease-id"), "{refused:?}");
        }
        backend.always("*", DOC, |_| Answer::stored());
        assert_eq!(view(proxy.addr(), DOC).await["state"], "available");
    }
}

/// The upstream is asked with the client's own credentials.
#[tokio::test]
async fn the_question_carries_the_clients_credentials() {
    let (backend, proxy) = start(|setup| setup).await;
    let granted = lease(proxy.addr(), "POST", DOC, &[("Authorization", "Basic YQ==")]).await;
    assert_eq!(granted.status, 201);
    let asked = backend.seen("*", DOC);
    assert_eq!(asked.iter().map(|probe| probe.header("authorization")).collect::<Vec<_>>(), [Some("Basic YQ==")]);
}

#[tokio::test]
async fn the_upstream_is_not_asked_where_the_route_says_so() {
    let (backend, proxy) = start(|setup| setup.route("lease.auth = \"none\"\nlease.absent = \"allow\"")).await;
    let granted = lease(proxy.addr(), "POST", DOC, &[]).await;
    assert_eq!(granted.status, 201);
    assert_eq!(backend.requests().len(), 0);
}

#[tokio::test]
async fn what_does_not_exist_is_leased_by_choice() {
    let backend = Backend::start().await;
    for etag in [leasing(&backend), leasing_versions(&backend)] {
        for auth in ["probe", "none"] {
            let setup = etag.clone().route(&format!("lease.auth = \"{auth}\""));
            let refusing = setup.clone().start().await;
            let refused = lease(refusing.addr(), "POST", DOC, &[]).await;
            let problem = refused.refused(404, "lease-target-missing");
            assert!(problem.json["detail"].as_str().unwrap().contains("lease.absent = \"allow\""), "{problem:?}");
            assert_eq!(refused.header("lease-id"), None);
            let shown = lease(refusing.addr(), "GET", DOC, &[]).await;
            match auth {
                "probe" => drop(shown.refused(404, "lease-target-missing")),
                _ => assert_eq!(shown.status, 200, "each client may know: {shown:?}"),
            }
            let allowing = setup.route("lease.absent = \"allow\"").start().await;
            let granted = lease(allowing.addr(), "POST", DOC, &[]).await;
            assert_eq!((granted.status, granted.header("etag")), (201, None), "{granted:?}");
        }
    }
}

async fn as_client(addr: SocketAddr, name: &str, method: &str, target: &str, id: &str) -> Response {
    send(addr, method, target, &[("Authorization", name), ("Lease-Id", id)], "x").await
}

#[tokio::test]
async fn a_bound_lease_is_of_no_use_to_another_principal() {
    let (backend, proxy) = start(|setup| setup.route("lease.bind = true")).await;
    let addr = proxy.addr();
    let granted = lease(addr, "POST", DOC, &[("Authorization", "ann")]).await;
    let id = Grant::of(&granted).id;
    for method in ["PUT", "DELETE"] {
        as_client(addr, "bob", method, "/.leases/doc", &id).await.refused(409, "lease-id-mismatch");
        as_client(addr, "bob", method, DOC, &id).await.refused(412, "lease-id-mismatch");
    }
    as_client(addr, "bob", "POST", "/.leases/doc", &id).await.refused(409, "lease-held");
    put(addr, DOC, &[("Lease-Id", &id)], "anonymous").await.refused(412, "lease-id-mismatch");
    assert_eq!(backend.content(DOC).as_deref(), Some("one"));
    assert_eq!(as_client(addr, "ann", "PUT", DOC, &id).await.status, 204);
    assert_eq!(as_client(addr, "ann", "PUT", "/.leases/doc", &id).await.status, 200);
    let other_cookie = [("Authorization", "ann"), ("Cookie", "analytics=2"), ("Lease-Id", id.as_str())];
    assert_eq!(put(addr, DOC, &other_cookie, "three").await.status, 204);
}

#[tokio::test]
async fn the_id_alone_proves_a_lease() {
    let (_backend, proxy) = start(|setup| setup).await;
    let granted = lease(proxy.addr(), "POST", DOC, &[("Authorization", "ann")]).await;
    let id = Grant::of(&granted).id;
    assert_eq!(as_client(proxy.addr(), "bob", "PUT", DOC, &id).await.status, 204);
    assert_eq!(as_client(proxy.addr(), "bob", "DELETE", "/.leases/doc", &id).await.status, 204);
}

/// "Only if it has not changed since I read it."
#[tokio::test]
async fn a_stale_precondition_is_granted_nothing() {
    let backend = Backend::start().await;
    for setup in [leasing(&backend), leasing_versions(&backend)] {
        backend.put(DOC, "one");
        let proxy = setup.start().await;
        let addr = proxy.addr();
        let stale = get(addr, DOC).await.etag();
        assert_eq!(put_if_match(addr, DOC, &stale, "two").await.status, 204);
        let current = get(addr, DOC).await.etag();
        lease(addr, "POST", DOC, &[("If-Match", &stale)]).await.refused(412, "precondition-failed");
        assert_eq!(view(addr, DOC).await["state"], "available");
        let granted = lease(addr, "POST", DOC, &[("If-Match", &current)]).await;
        assert_eq!(granted.status, 201, "{granted:?}");
    }
}
