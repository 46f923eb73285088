//! The questions of the proxy to the backend before a write, and the use of the answers.

use crate::support::{
    backend::Answer,
    raw::{get, put, put_if_match, send},
    source::{self, VERSION},
};

/// RFC 9111 section 5.2.1.4: a cache between the proxy and the backend must not answer for it, for any wishes of the
/// client.
#[tokio::test]
async fn a_probe_asks_past_every_cache() {
    for source in source::SHARED {
        let (backend, setup) = source.start("/doc", "one").await;
        let proxy = setup.start().await;
        let tag = get(proxy.addr(), "/doc").await.etag();
        let reads = backend.requests().len();
        let fields = [("If-Match", tag.as_str()), ("Cache-Control", "max-age=600")];
        assert_eq!(put(proxy.addr(), "/doc", &fields, "two").await.status, 204, "{source}");
        let probes: Vec<_> =
            backend.requests().into_iter().skip(reads).filter(|request| request.method != "PUT").collect();
        assert!(!probes.is_empty(), "{source}");
        for probe in probes {
            assert_eq!(probe.headers.all("cache-control"), ["no-cache"], "{source}: {}", probe.method);
        }
    }
}

/// DESIGN, section 8: what the backend shows to the proxy itself it has not shown to the client.
#[tokio::test]
async fn a_probe_by_the_proxys_own_right_lets_no_client_know() {
    for source in source::EXCLUSIVE {
        let (backend, setup) = source.start("/doc", "one").await;
        let proxy = setup.route("probe_auth = \"none\"\non_write = \"probe\"").start().await;
        let addr = proxy.addr();
        let old = get(addr, "/doc").await.etag();
        assert_eq!(put_if_match(addr, "/doc", &old, "two").await.status, 204, "{source}");
        let stale = [("If-Match", old.as_str()), ("Authorization", "mallory")];
        put(addr, "/doc", &stale, "x").await.refused(412, "precondition-failed");
        backend.always("*", "/doc", |_| Answer::status(403));
        let asked = backend.requests().len();
        let write = put(addr, "/doc", &stale, "x").await;
        assert_eq!(write.status, 403, "{source}: {write:?}");
        let probes = backend.requests().split_off(asked);
        assert_eq!(probes.last().map(|probe| probe.method.as_str()), Some("GET"), "{source}: the backend was asked");
        assert_eq!(backend.content("/doc").as_deref(), Some("two"), "{source}");
    }
}

/// DESIGN, section 4, step 2: while a write is in flight the record shows no state. A client that has seen that the
/// resource is gone does not go on as if it were there.
#[tokio::test]
async fn a_tag_is_judged_by_the_backend_while_its_state_is_being_changed() {
    let (backend, setup) = VERSION.start("/doc", "one").await;
    let proxy = setup.route("policy = \"pessimistic\"").start().await;
    let addr = proxy.addr();
    let tag = get(addr, "/doc").await.etag();
    let acquired = send(addr, "POST", "/.leases/doc", &[("Lease-Duration", "30")], "").await;
    let id = acquired.header("lease-id").expect("an id").to_owned();
    let fields = [("Lease-Id", id.as_str()), ("If-Match", tag.as_str())];
    let renew = async || send(addr, "PUT", "/.leases/doc", &fields, "").await;
    assert_eq!(renew().await.status, 200);
    let held = backend.hold("DELETE", "/doc");
    let delete = async { send(addr, "DELETE", "/doc", &fields, "").await };
    let meanwhile = async {
        let mut held = held.arrived().await;
        held.apply().await;
        assert_eq!(get(addr, "/doc").await.status, 404);
        renew().await.refused(412, "precondition-failed");
        held.answer(Answer::status(204)).await;
    };
    let (deleted, ()) = tokio::join!(delete, meanwhile);
    assert_eq!(deleted.status, 204);
}
