//! What `Connection` names ends at the proxy, so it may name nothing that was judged (DESIGN, section 3, rule 14).

use crate::support::{
    backend::{Backend, Validators},
    proxy::Proxy,
    raw::{get, put, send},
};

const DOC: &str = "/doc";

/// The condition is judged by the backend, or is the last fence there: without it the stale write would be applied.
#[tokio::test]
async fn a_condition_that_connection_names_never_lets_a_stale_write_through() {
    for source in ["delegate", "upstream"] {
        let backend = Backend::with(Validators::Tags).await;
        backend.put(DOC, "one");
        let proxy = Proxy::to(backend.addr()).route(&format!("etag = \"{source}\"")).start().await;
        let stale = get(proxy.addr(), DOC).await.etag();
        backend.put(DOC, "two");
        let before = backend.requests().len();
        for nominated in ["If-Match", "close, if-match", "keep-alive,IF-MATCH ,x"] {
            let fields = [("Connection", nominated), ("If-Match", &*stale)];
            put(proxy.addr(), DOC, &fields, "lost").await.refused(400, "malformed-request");
        }
        assert_eq!(backend.requests().len(), before, "{source}: not one byte of it");
        assert_eq!(backend.content(DOC).as_deref(), Some("two"), "{source}");
    }
}

#[tokio::test]
async fn no_field_that_is_judged_or_written_here_can_be_named() {
    let backend = Backend::start().await;
    backend.put(DOC, "one");
    let lines = "policy = \"pessimistic\"\nidentity_headers = [\"X-Tenant\"]\nkey = \"{header.x-shard}{path}\"";
    let proxy = Proxy::to(backend.addr()).route(lines).start().await;
    for name in [
        "If-None-Match",
        "If-Range",
        "Lease-Id",
        "Lease-Duration",
        "Proposed-Lease-Id",
        "Idempotency-Key",
        "Fencing-Token",
        "Forwarded",
        "X-Forwarded-For",
        "Via",
        "Host",
        "Authorization",
        "X-Tenant",
        "X-Shard",
        "X-HTTP-Method-Override",
    ] {
        for (method, target) in [("PUT", DOC), ("GET", DOC), ("POST", "/.leases/doc"), ("OPTIONS", DOC)] {
            let response = send(proxy.addr(), method, target, &[("Connection", name)], "").await;
            response.refused(400, "malformed-request");
        }
    }
    assert_eq!(backend.requests().len(), 0);
    for name in ["close", "keep-alive", "X-Own", "Keep-Alive, X-Own"] {
        let fields = [("Connection", name), ("X-Own", "gone")];
        assert_eq!(put(proxy.addr(), DOC, &fields, "two").await.status, 204, "{name}");
    }
    assert!(backend.seen("PUT", DOC).iter().skip(2).all(|seen| seen.header("x-own").is_none()));
}

/// A route that is not guarded judges nothing.
#[tokio::test]
async fn an_unguarded_route_takes_out_what_connection_names() {
    let backend = Backend::start().await;
    backend.put(DOC, "one");
    let proxy = Proxy::to(backend.addr()).route("policy = \"last-writer-wins\"").start().await;
    let fields = [("Connection", "If-Match"), ("If-Match", "\"stale\"")];
    assert_eq!(put(proxy.addr(), DOC, &fields, "two").await.status, 204);
    assert_eq!(backend.seen("PUT", DOC)[0].header("if-match"), None);
}
