//! `other_writers = false`: the answers from memory, their clients, and the requests that always go to the backend.

use std::net::SocketAddr;

use crate::support::{
    backend::{Answer, Backend},
    proxy::Proxy,
    raw::{get, put_if_match, send},
    response::Response,
    source::{self, CONTENT, CONTENT_EXCLUSIVE, VERSION},
};

/// The fields of a request or a response.
type Fields = &'static [(&'static str, &'static str)];

/// A backend that answers each GET with these fields and "one".
async fn start_with_fields(source: source::Source, fields: Fields) -> (Backend, Proxy) {
    let (backend, setup) = source.start("/doc", "one").await;
    let add = |answer: Answer, (name, value): &(&str, &str)| answer.header(name, value);
    backend.always("GET", "*", move |_| fields.iter().fold(Answer::status(200).body("one"), add));
    (backend, setup.start().await)
}

/// GET of `/doc` with this tag in If-None-Match and further fields.
async fn confirm(addr: SocketAddr, target: &str, tag: &str, fields: &[(&str, &str)]) -> Response {
    send(addr, "GET", target, &[&[("If-None-Match", tag)], fields].concat(), "").await
}

/// RFC 9110 section 13.1: a copy that is current, and a condition that is false, cost the backend nothing.
#[tokio::test]
async fn a_known_client_is_answered_from_memory() {
    for source in source::EXCLUSIVE {
        let (backend, setup) = source.start("/doc", "one").await;
        let proxy = setup.start().await;
        let tag = get(proxy.addr(), "/doc").await.etag();
        for method in ["GET", "HEAD"] {
            let confirmed = send(proxy.addr(), method, "/doc", &[("If-None-Match", &tag)], "").await;
            assert_eq!((confirmed.status, confirmed.etag()), (304, tag.clone()), "{source}");
        }
        let changed = send(proxy.addr(), "GET", "/doc", &[("If-Match", "\"other\"")], "").await;
        changed.refused(412, "precondition-failed");
        assert_eq!(backend.count("*", "*"), 1, "{source}: one GET was enough");
    }
}

/// A write that is late is refused without a question; a write that is not leaves nothing to be remembered.
#[tokio::test]
async fn a_write_changes_what_is_remembered() {
    for source in source::EXCLUSIVE {
        let (backend, setup) = source.start("/doc", "one").await;
        let proxy = setup.route("on_write = \"omit\"").start().await;
        let addr = proxy.addr();
        let first = get(addr, "/doc").await.etag();
        assert_eq!(put_if_match(addr, "/doc", &first, "two").await.status, 204, "{source}");
        assert_eq!(backend.count("*", "*"), 2, "{source}: a GET and a PUT, judged from memory");
        let changed = confirm(addr, "/doc", &first, &[]).await;
        assert_eq!((changed.status, changed.text(), backend.count("GET", "/doc")), (200, "two", 2), "{source}");
        put_if_match(addr, "/doc", &first, "late").await.refused(412, "precondition-failed");
        assert_eq!(confirm(addr, "/doc", &changed.etag(), &[]).await.status, 304, "{source}");
        assert_eq!(backend.count("*", "*"), 3, "{source}: the refusal and the 304 came from memory");
    }
}

/// DESIGN, section 8: what one principal was let read says nothing to another.
#[tokio::test]
async fn p26_another_principal_is_answered_by_the_backend() {
    for source in source::EXCLUSIVE {
        for field in ["Authorization", "Cookie", "X-Api-Key", "Api-Key"] {
            let (backend, setup) = source.start("/doc", "one").await;
            let proxy = setup.start().await;
            let addr = proxy.addr();
            let tag = send(addr, "GET", "/doc", &[(field, "alice")], "").await.etag();
            assert_eq!(confirm(addr, "/doc", &tag, &[(field, "alice")]).await.status, 304, "{source}");
            assert_eq!(backend.count("*", "*"), 1, "{source}: {field}");
            for (asked, others) in [&[(field, "bob")][..], &[]].into_iter().enumerate() {
                confirm(addr, "/doc", &tag, others).await;
                assert_eq!(backend.count("*", "*"), asked + 2, "{source}: {field}");
            }
        }
    }
}

/// RFC 9110 section 13.2.1: the backend's refusal of a client comes before any verdict.
#[tokio::test]
async fn p26_a_client_that_may_not_read_learns_nothing() {
    for source in source::EXCLUSIVE {
        let (backend, setup) = source.start("/doc", "one").await;
        let proxy = setup.start().await;
        let addr = proxy.addr();
        let is_mallory =
            |request: &crate::support::backend::Request| request.header("authorization") == Some("mallory");
        backend.always_where(is_mallory, |_| Answer::status(403).body("not you"));
        let old = get(addr, "/doc").await.etag();
        assert_eq!(put_if_match(addr, "/doc", &old, "two").await.status, 204, "{source}");
        let tag = get(addr, "/doc").await.etag();
        let mallory = ("Authorization", "mallory");
        assert_eq!(confirm(addr, "/doc", &tag, &[mallory]).await.status, 403, "{source}");
        for tag in [old, tag] {
            let write = send(addr, "PUT", "/doc", &[("If-Match", &tag), mallory], "x").await;
            assert_eq!(write.status, 403, "{source}: {write:?}");
        }
        assert_eq!(backend.content("/doc").as_deref(), Some("two"), "{source}");
    }
}

/// DESIGN, section 8: credentials in the query identify a client as those in fields do, in any spelling of their names.
#[tokio::test]
async fn a_client_with_bad_credentials_in_the_query_learns_nothing() {
    for source in source::EXCLUSIVE {
        // No probe can carry a signature of AWS. A write that needs one is refused without an answer of the backend. Under
        // versions that is a write with an outdated tag: the other one reaches the backend.
        let signed = if source == VERSION { [502, 403] } else { [502; 2] };
        for (name, status) in [
            ("token", [403; 2]),
            ("access_token", [403; 2]),
            ("sig", [403; 2]),
            ("key", [403; 2]),
            ("t%6Fken", [403; 2]),
            ("TOKEN", [403; 2]),
            ("X-Amz-Signature", signed),
        ] {
            let (backend, setup) = source.start("/doc", "one").await;
            let proxy = setup.start().await;
            let addr = proxy.addr();
            let (good, bad) = (format!("/doc?{name}=good"), format!("/doc?{name}=bad"));
            backend.always("*", &bad, |_| Answer::status(403).body("not you"));
            backend.put(&good, "one");
            let old = get(addr, &good).await.etag();
            assert_eq!(put_if_match(addr, &good, &old, "two").await.status, 204, "{source} {name}");
            let tag = get(addr, &good).await.etag();
            for (tag, status) in [&old, &tag].into_iter().zip(status) {
                assert_eq!(confirm(addr, &bad, tag, &[]).await.status, 403, "{source} {name}");
                let write = put_if_match(addr, &bad, tag, "x").await;
                assert_eq!(write.status, status, "{source} {name}: {}", write.text());
            }
        }
    }
}

/// Names of the route's own: one that counts, and none.
#[tokio::test]
async fn the_route_names_the_credentials_in_its_query() {
    for (lines, name, status) in [
        ("identity_query = [\"ticket\"]", "ticket", 403),
        ("identity_query = [\"ticket\"]", "token", 412),
        ("identity_query = []", "token", 412),
        ("", "ticket", 412),
    ] {
        let (backend, setup) = VERSION.start("/doc", "one").await;
        let proxy = setup.route(lines).start().await;
        let addr = proxy.addr();
        let (good, bad) = (format!("/doc?{name}=good"), format!("/doc?{name}=bad"));
        backend.always("*", &bad, |_| Answer::status(403));
        backend.put(&good, "one");
        let old = get(addr, &good).await.etag();
        assert_eq!(put_if_match(addr, &good, &old, "two").await.status, 204);
        get(addr, &good).await;
        assert_eq!(put_if_match(addr, &bad, &old, "x").await.status, status, "{lines} {name}");
    }
}

/// P27: what the backend says of the client or its target goes before any precondition, whether it is true or not.
#[tokio::test]
async fn p27_a_refusal_of_the_backend_goes_before_preconditions() {
    for source in source::ALL {
        let (backend, setup) = source.start("/doc", "one").await;
        let proxy = setup.start().await;
        let addr = proxy.addr();
        let tag = get(addr, "/doc").await.etag();
        for status in [401, 403, 404] {
            backend.always("*", "/doc", move |_| Answer::status(status).body("no"));
            for (field, value) in [("If-Match", "\"old\""), ("If-Match", &tag), ("If-None-Match", "\"old\"")] {
                let fields = [(field, value), ("Authorization", "bob")];
                let read = send(addr, "GET", "/doc", &fields, "").await;
                assert_eq!((read.status, read.text()), (status, "no"), "{source}: GET with {field}: {value}");
                if field == "If-Match" {
                    let deleted = send(addr, "DELETE", "/doc", &fields, "").await;
                    assert_eq!(deleted.status, status, "{source}: DELETE with {field}: {value}");
                }
            }
        }
    }
}

/// Another principal may know the state after the backend has let it read.
#[tokio::test]
async fn a_refusal_from_memory_follows_a_read() {
    let (backend, setup) = VERSION.start("/doc", "one").await;
    let proxy = setup.start().await;
    let addr = proxy.addr();
    let old = get(addr, "/doc").await.etag();
    assert_eq!(put_if_match(addr, "/doc", &old, "two").await.status, 204);
    let stale = [("If-Match", old.as_str()), ("Authorization", "bob")];
    for asked in [1, 1] {
        send(addr, "PUT", "/doc", &stale, "x").await.refused(412, "precondition-failed");
        assert_eq!(backend.count("HEAD", "/doc"), asked, "the first refusal has asked the backend");
    }
}

/// A variant is what the target, Origin and the fields that Vary names select.
#[tokio::test]
async fn another_variant_is_answered_by_the_backend() {
    let (backend, proxy) = start_with_fields(CONTENT_EXCLUSIVE, &[("Vary", "Accept, X-Shape")]).await;
    let addr = proxy.addr();
    let read: Fields = &[("Accept", "text/plain"), ("Accept-Language", "de")];
    let tag = send(addr, "GET", "/doc", read, "").await.etag();
    let cases: [(&str, Fields, usize, u16); 6] = [
        ("/doc", &[("Accept", "text/plain"), ("Accept-Language", "fr")], 0, 304),
        ("/doc", &[("Accept", "text/html")], 1, 200),
        ("/doc", &[], 1, 200),
        ("/doc", &[("Accept", "text/plain"), ("X-Shape", "round")], 1, 200),
        ("/doc?page=2", read, 1, 200),
        // The same representation; what differs is who may see it.
        ("/doc", &[("Accept", "text/plain"), ("Origin", "https://other.example")], 1, 304),
    ];
    for (target, fields, expected, status) in cases {
        // Each answer of the backend is remembered for its own variant, in the place of another.
        send(addr, "GET", "/doc", read, "").await;
        let before = backend.count("GET", "*");
        assert_eq!(confirm(addr, target, &tag, fields).await.status, status, "{target} {fields:?}");
        assert_eq!(backend.count("GET", "*") - before, expected, "{target} {fields:?}");
    }
}

/// DESIGN, section 8: what is meant for one client alone makes no knowledge.
#[tokio::test]
async fn private_responses_are_not_remembered() {
    let cases: [(Fields, usize); 6] = [
        (&[("Cache-Control", "max-age=0, public")], 1),
        (&[("Cache-Control", "private")], 2),
        (&[("Cache-Control", "max-age=0"), ("Cache-Control", "Private=\"x\"")], 2),
        (&[("Cache-Control", "no-store")], 2),
        (&[("Set-Cookie", "a=b")], 2),
        (&[("Vary", "*")], 2),
    ];
    for (fields, expected) in cases {
        let (backend, proxy) = start_with_fields(CONTENT_EXCLUSIVE, fields).await;
        let tag = get(proxy.addr(), "/doc").await.etag();
        assert_eq!(confirm(proxy.addr(), "/doc", &tag, &[]).await.status, 304, "{fields:?}");
        assert_eq!(backend.count("GET", "/doc"), expected, "{fields:?}");
    }
}

/// RFC 9111 section 5.2.1.4.
#[tokio::test]
async fn a_client_can_ask_the_backend() {
    let (backend, proxy) = start_with_fields(CONTENT_EXCLUSIVE, &[]).await;
    let tag = get(proxy.addr(), "/doc").await.etag();
    assert_eq!(confirm(proxy.addr(), "/doc", &tag, &[("Cache-Control", "no-cache")]).await.status, 304);
    assert_eq!(backend.count("GET", "/doc"), 2);
}

/// DESIGN, section 9: what a principal may know ends with `identity_ttl`.
#[tokio::test]
async fn without_identity_ttl_the_backend_is_always_asked() {
    for source in source::EXCLUSIVE {
        let (backend, setup) = source.start("/doc", "one").await;
        let proxy = setup.route("identity_ttl = \"0s\"").start().await;
        let tag = get(proxy.addr(), "/doc").await.etag();
        assert_eq!(confirm(proxy.addr(), "/doc", &tag, &[]).await.status, 304, "{source}");
        assert_eq!(backend.count("GET", "/doc"), 2, "{source}");
    }
}

/// RFC 9110 section 15.4.5, and what a browser needs: the fields of a 304, from memory and not.
#[tokio::test]
async fn p15_a_304_carries_the_fields_of_its_200() {
    const KEPT: Fields = &[
        ("Cache-Control", "max-age=1"),
        ("Content-Location", "/doc.txt"),
        ("Expires", "Sun, 06 Nov 1994 08:49:38 GMT"),
        ("Vary", "Accept"),
        ("Access-Control-Allow-Origin", "*"),
        ("Access-Control-Expose-Headers", "ETag"),
        ("Content-Type", "text/plain"),
        ("Last-Modified", "Sun, 06 Nov 1994 08:49:36 GMT"),
    ];
    for (source, from_memory) in [(CONTENT, false), (CONTENT_EXCLUSIVE, true)] {
        let (backend, proxy) = start_with_fields(source, KEPT).await;
        let tag = get(proxy.addr(), "/doc").await.etag();
        let confirmed = confirm(proxy.addr(), "/doc", &tag, &[]).await;
        assert_eq!((confirmed.status, confirmed.etag()), (304, tag), "{source}");
        assert_eq!(backend.count("GET", "/doc"), if from_memory { 1 } else { 2 }, "{source}");
        for (name, value) in &KEPT[..6] {
            assert_eq!(confirmed.headers.all(name), [*value], "{source}");
        }
        for name in ["Content-Type", "Last-Modified", "Content-Length"] {
            assert_eq!(confirmed.header(name), None, "{source}");
        }
        assert_eq!(confirmed.headers.all("date").len(), 1, "{source}");
        assert_eq!(confirmed.header("via"), Some("1.1 ifmatch"), "{source}");
    }
}

/// The backend decides who learns whether a resource exists. A principal without the right does not learn it by a 428.
#[tokio::test]
async fn a_missing_precondition_is_told_to_those_who_may_know() {
    for source in [CONTENT_EXCLUSIVE, source::UPSTREAM_EXCLUSIVE] {
        let (backend, setup) = source.start("/doc", "one").await;
        let lines = "require = \"existing\"\nidentity_ttl = \"0s\"\non_write = \"probe\"";
        let proxy = setup.route(lines).start().await;
        let addr = proxy.addr();
        let tag = get(addr, "/doc").await.etag();
        assert_eq!(put_if_match(addr, "/doc", &tag, "two").await.status, 204, "{source}");
        backend.always("*", "/doc", |_| Answer::status(401));
        assert_eq!(send(addr, "PUT", "/doc", &[], "three").await.status, 401, "{source}");
    }
}
