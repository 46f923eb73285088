//! A field that `Connection` names ends at the proxy, and some backends read another spelling of a field as the same
//! one. So neither may be a field that is judged or written here (DESIGN, section 3, rule 14), on any route.

use crate::support::{
    backend::{Backend, Validators},
    frames::{self, Outcome},
    h2c,
    proxy::Proxy,
    raw::{get, put, send},
};

const DOC: &str = "/doc";
const PROTOCOL_ERROR: u32 = 1;

/// The keys of each kind of route.
const ROUTES: [&str; 4] = [
    "policy = \"last-writer-wins\"",
    "policy = \"optimistic\"",
    "policy = \"optimistic\"\nobserve = true",
    "policy = \"pessimistic\"",
];

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

/// Rule 14: `Connection` can name no field that is judged or written here.
#[tokio::test]
async fn no_field_that_is_judged_or_written_here_can_be_named() {
    for route in ROUTES {
        let backend = Backend::start().await;
        backend.put(DOC, "one");
        let proxy = Proxy::to(backend.addr()).upstream("forwarded = \"both\"").route(route).start().await;
        for name in [
            "If-None-Match",
            "If-Range",
            "Lease-Id",
            "Lease-Duration",
            "Proposed-Lease-Id",
            "Idempotency-Key",
            "Fencing-Token",
            "Forwarded",
            "close, X-Forwarded-For",
            "X-Forwarded-Proto",
            "X-Real-IP",
            "Via",
            "Host",
            "Content-Length",
            "Transfer-Encoding",
            "Authorization",
            "Cookie",
            "X-HTTP-Method-Override",
            "\"X-Forwarded-For\"",
            "a,b,c,d,e,f,g,h,i,j",
        ] {
            for (method, target) in [("PUT", DOC), ("GET", DOC), ("OPTIONS", DOC)] {
                let response = send(proxy.addr(), method, target, &[("Connection", name)], "").await;
                response.refused(400, "malformed-request");
            }
        }
        assert_eq!(backend.requests().len(), 0, "{route}");
        for name in ["close", "keep-alive", "X-Own", "Keep-Alive,, X-Own"] {
            let fields = [("Connection", name), ("X-Own", "gone")];
            assert_eq!(send(proxy.addr(), "GET", DOC, &fields, "").await.status, 200, "{route}: {name}");
        }
        let seen = backend.seen("GET", DOC);
        assert!(seen.iter().skip(2).all(|seen| seen.header("x-own").is_none()), "{route}");
        assert!(seen.iter().all(|seen| seen.header("x-forwarded-for") == Some("127.0.0.1")), "{route}");
    }
}

/// The fields that only one route judges can be named on the others.
#[tokio::test]
async fn what_a_route_judges_by_can_be_neither_named_nor_spelled_otherwise_there() {
    let backend = Backend::start().await;
    backend.put(DOC, "one");
    let lines = "policy = \"pessimistic\"\nidentity_headers = [\"X-Tenant\"]\nkey = \"{header.x-shard}{path}\"";
    let guarded = Proxy::to(backend.addr()).route(lines).start().await;
    let open = Proxy::to(backend.addr()).route(ROUTES[0]).start().await;
    for field in [("Connection", "X-Tenant"), ("Connection", "X-Shard"), ("X_Tenant", "a"), ("x_shard", "a")] {
        for (method, target) in [("PUT", DOC), ("POST", "/.leases/doc")] {
            let response = send(guarded.addr(), method, target, &[("X-Shard", "a"), field], "").await;
            response.refused(400, "malformed-request");
        }
        assert_eq!(send(open.addr(), "GET", DOC, &[field], "").await.status, 200, "{field:?}");
    }
    assert_eq!(backend.count("*", "/.leases/doc") + backend.count("PUT", DOC), 0);
}

/// RFC 3875 section 4.1.18: CGI, WSGI and PHP read `If_Match` as `If-Match`.
#[tokio::test]
async fn no_field_that_is_judged_or_written_here_has_a_second_spelling() {
    for route in ROUTES {
        let backend = Backend::start().await;
        backend.put(DOC, "one");
        let proxy = Proxy::to(backend.addr()).route(route).start().await;
        for name in [
            "Fencing_Token",
            "X_HTTP_Method_Override",
            "X_Forwarded_For",
            "x-forwarded_proto",
            "X.Forwarded.For",
            "if_match",
            "If-None_Match",
            "LEASE_ID",
            "Content_Length",
            "Transfer_Encoding",
            "Idempotency_Key",
        ] {
            let fields = [(name, "999999")];
            for (method, body) in [("GET", ""), ("POST", "x")] {
                send(proxy.addr(), method, DOC, &fields, body).await.refused(400, "malformed-request");
            }
            let mut http2 = h2c::Connection::open(proxy.addr()).await;
            let lower = [(&*name.to_ascii_lowercase(), "999999")];
            http2.exchange("GET", DOC, &lower, "").await.refused(400, "malformed-request");
        }
        assert_eq!(backend.requests().len(), 0, "{route}");
    }
}

/// RFC 9113 section 8.2.2: HTTP/2 has no `Connection`; such a request is malformed, and its stream is reset.
#[tokio::test]
async fn connection_ends_a_stream_of_http_2() {
    for route in ROUTES {
        let backend = Backend::start().await;
        let proxy = Proxy::to(backend.addr()).route(route).start().await;
        let head = [(":method", "GET"), (":scheme", "http"), (":authority", "test"), (":path", DOC)];
        let fields = [&head[..], &[("connection", "if-match")]].concat();
        assert_eq!(frames::outcome(proxy.addr(), &fields).await, Outcome::Reset(PROTOCOL_ERROR), "{route}");
        assert_eq!(backend.requests().len(), 0, "{route}");
    }
}

#[tokio::test]
async fn other_names_with_an_underscore_pass_or_are_dropped() {
    for (underscores, seen) in [("", Some("1")), ("underscores = \"drop\"", None)] {
        for route in &ROUTES[..3] {
            let backend = Backend::start().await;
            backend.put(DOC, "one");
            let proxy = Proxy::to(backend.addr()).server(underscores).route(route).start().await;
            let fields = [("X_Own", "1"), ("X-Own", "2"), ("x-amz-meta-a_b", "1")];
            assert_eq!(send(proxy.addr(), "GET", DOC, &fields, "").await.status, 200, "{route}");
            let request = &backend.seen("GET", DOC)[0];
            let found = [request.header("x_own"), request.header("x-amz-meta-a_b"), request.header("x-own")];
            assert_eq!(found, [seen, seen, Some("2")], "{underscores} {route}");
            send(proxy.addr(), "GET", DOC, &[("If_Match", "1")], "").await.refused(400, "malformed-request");
        }
    }
}
