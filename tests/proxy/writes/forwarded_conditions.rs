//! The preconditions that the backend sees: none if the proxy makes the tags, and an exact fence if they are its own.

use crate::support::{
    backend::{Answer, Backend},
    proxy::Proxy,
    raw::{get, put, send},
    source::{CONTENT, CONTENT_EXCLUSIVE, Source, UPSTREAM, UPSTREAM_EXCLUSIVE, VERSION},
};

const CONDITIONS: [&str; 5] = ["If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "If-Range"];
const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

/// A backend that keeps `/doc`, behind a route that demands nothing; and the tag of `/doc`.
async fn start(source: Source) -> (Backend, Proxy, String) {
    let (backend, setup) = source.start("/doc", "one").await;
    let proxy = setup.route("require = \"never\"").start().await;
    let tag = get(proxy.addr(), "/doc").await.etag();
    (backend, proxy, tag)
}

/// A backend that knows nothing of our tags would refuse what we have judged to be true.
#[tokio::test]
async fn conditions_on_our_tags_never_reach_the_backend() {
    for source in [CONTENT, CONTENT_EXCLUSIVE, VERSION] {
        let (backend, proxy, tag) = start(source).await;
        let addr = proxy.addr();
        let all = [
            ("If-Match", tag.as_str()),
            ("If-None-Match", "\"other\""),
            ("If-Modified-Since", DATE),
            ("If-Unmodified-Since", DATE),
            ("If-Range", tag.as_str()),
        ];
        assert_eq!(send(addr, "GET", "/doc", &all, "").await.status, 200, "{source}");
        assert_eq!(send(addr, "HEAD", "/doc", &all, "").await.status, 200, "{source}");
        assert_eq!(send(addr, "PUT", "/doc", &all, "two").await.status, 204, "{source}");
        // Fields that are ignored because they cannot be read, on a write that is judged by nothing.
        let unreadable = [("If-Modified-Since", "yesterday"), ("If-Unmodified-Since", "today")];
        assert_eq!(send(addr, "POST", "/doc", &unreadable, "+").await.status, 204, "{source}");
        assert!(backend.count("*", "*") >= 5, "{source}");
        for request in backend.requests() {
            for name in CONDITIONS {
                assert_eq!(request.header(name), None, "{source}: {name} of {}", request.method);
            }
        }
    }
}

/// DESIGN, section 6: on the backend's own tags its own check is the last fence, so it gets one exact tag.
#[tokio::test]
async fn the_backend_can_check_its_own_tag() {
    for source in [UPSTREAM, UPSTREAM_EXCLUSIVE] {
        for value in ["TAG", "*", "\"other\", TAG"] {
            let (backend, proxy, tag) = start(source).await;
            let sent = value.replace("TAG", &tag);
            let fields = [("If-Match", sent.as_str()), ("If-Unmodified-Since", DATE)];
            assert_eq!(put(proxy.addr(), "/doc", &fields, "two").await.status, 204, "{source}: {value}");
            let seen = &backend.seen("PUT", "/doc")[0];
            assert_eq!(seen.headers.all("if-match"), [tag], "{source}: {value}");
            assert_eq!(seen.headers.all("if-unmodified-since"), [DATE], "{source}: {value}");
        }
    }
}

/// The same if no If-Match was sent, and another condition was judged.
#[tokio::test]
async fn a_judged_tag_is_added_where_none_was_sent() {
    for source in [UPSTREAM, UPSTREAM_EXCLUSIVE] {
        let (backend, proxy, tag) = start(source).await;
        assert_eq!(put(proxy.addr(), "/doc", &[("If-None-Match", "\"other\"")], "two").await.status, 204, "{source}");
        let seen = &backend.seen("PUT", "/doc")[0];
        assert_eq!(seen.headers.all("if-match"), [tag], "{source}");
        assert_eq!(seen.headers.all("if-none-match"), ["\"other\""], "{source}");
    }
}

/// Creating is fenced by what the client sent.
#[tokio::test]
async fn a_creation_is_forwarded_as_it_came() {
    for source in [UPSTREAM, UPSTREAM_EXCLUSIVE] {
        let (backend, proxy, _) = start(source).await;
        assert_eq!(put(proxy.addr(), "/new", &[("If-None-Match", "*")], "two").await.status, 201, "{source}");
        let seen = &backend.seen("PUT", "/new")[0];
        assert_eq!(seen.headers.all("if-none-match"), ["*"], "{source}");
        assert_eq!(seen.header("if-match"), None, "{source}");
    }
}

/// RFC 9110 section 13.1.1: a weak tag in If-Match would be refused by the backend, so none is added.
#[tokio::test]
async fn a_weak_tag_is_no_fence() {
    for source in [UPSTREAM, UPSTREAM_EXCLUSIVE] {
        let (backend, proxy, _) = start(source).await;
        backend.always("*", "/weak", |request| match request.method.as_str() {
            "GET" | "HEAD" => Answer::status(200).header("ETag", "W/\"weak\""),
            _ => Answer::status(204),
        });
        assert_eq!(get(proxy.addr(), "/weak").await.etag(), "W/\"weak\"");
        assert_eq!(put(proxy.addr(), "/weak", &[("If-Match", "*")], "two").await.status, 204, "{source}");
        assert_eq!(backend.seen("PUT", "/weak")[0].headers.all("if-match"), ["*"], "{source}");
    }
}

/// A write that is judged by nothing is fenced by nothing.
#[tokio::test]
async fn nothing_is_added_to_a_write_without_conditions() {
    for source in [UPSTREAM, UPSTREAM_EXCLUSIVE] {
        let (backend, proxy, _) = start(source).await;
        assert_eq!(put(proxy.addr(), "/doc", &[], "two").await.status, 204, "{source}");
        assert_eq!(backend.seen("PUT", "/doc")[0].header("if-match"), None, "{source}");
    }
}

/// The backend judges reads on its own tags, ranges included.
#[tokio::test]
async fn reads_on_the_backends_tags_are_forwarded_as_they_came() {
    let (backend, proxy, tag) = start(UPSTREAM).await;
    let fields =
        [("If-None-Match", "\"other\""), ("If-Modified-Since", DATE), ("Range", "bytes=0-"), ("If-Range", &tag)];
    assert_eq!(send(proxy.addr(), "GET", "/doc", &fields, "").await.status, 200);
    let seen = &backend.seen("GET", "/doc")[1];
    for (name, value) in fields {
        assert_eq!(seen.headers.all(name), [value], "{name}");
    }
}

/// A 412 of the backend, which the write of another client has caused, is forwarded.
#[tokio::test]
async fn the_backends_refusal_is_passed_on() {
    for source in [UPSTREAM, UPSTREAM_EXCLUSIVE] {
        let (backend, proxy, tag) = start(source).await;
        backend.once("PUT", "/doc", Answer::status(412).body("its own words"));
        let refused = put(proxy.addr(), "/doc", &[("If-Match", &tag)], "two").await;
        assert_eq!((refused.status, refused.text()), (412, "its own words"), "{source}");
    }
}
