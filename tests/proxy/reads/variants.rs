//! Representations of one resource that differ by more than its path: a tag of one says nothing of another.

use crate::support::{
    backend::Answer,
    h2c,
    raw::{get, put_if_match, send},
    source::{self, CONTENT, CONTENT_EXCLUSIVE},
};

/// Two representations of a resource may have the same bytes at different times: then the bytes of the one, now, are
/// those that the other had long ago, and must not stand for its present state.
#[tokio::test]
async fn p19_a_write_is_judged_by_the_representation_that_it_names() {
    for source in [CONTENT, CONTENT_EXCLUSIVE] {
        let (backend, setup) = source.start("/doc?part=b", "[]").await;
        backend.put("/doc?part=a", "[5]");
        let proxy = setup.start().await;
        let addr = proxy.addr();
        let stale = get(addr, "/doc?part=b").await.etag();
        assert_eq!(put_if_match(addr, "/doc?part=b", &stale, "[1]").await.status, 204, "{source}");
        let other = get(addr, "/doc?part=a").await.etag();
        let same_bytes = put_if_match(addr, "/doc?part=a", &other, "[]").await.etag();
        assert_eq!(same_bytes[..33], stale[..33], "{source}: the same bytes");
        assert_eq!(get(addr, "/doc?part=a").await.etag(), same_bytes, "{source}");
        put_if_match(addr, "/doc?part=b", &stale, "[2]").await.refused(412, "precondition-failed");
        assert_eq!(backend.content("/doc?part=b").as_deref(), Some("[1]"), "{source}");
    }
}

/// RFC 9113 section 8.3.1: over HTTP/2 the host stands in `:authority`, and selects a representation as Host does.
#[tokio::test]
async fn an_authority_selects_as_host_does() {
    for source in source::EXCLUSIVE {
        let (backend, setup) = source.start("/doc", "").await;
        backend.always("GET", "/doc", |request| {
            // The tag is of use to one of the sources.
            Answer::status(200).header("ETag", "\"tag\"").body(request.header("host").unwrap_or_default())
        });
        let proxy = setup.start().await;
        let mut client = h2c::Connection::open(proxy.addr()).await;
        let one = client.exchange("GET", "http://one.test/doc", &[], "").await;
        assert_eq!(one.text(), "one.test", "{source}");
        client.exchange("GET", "http://two.test/doc", &[("If-None-Match", &one.etag())], "").await;
        assert_eq!(backend.count("GET", "/doc"), 2, "{source}: nothing is known of the other host's representation");
    }
}

/// RFC 9110 section 9.3.1: what the content of a GET means is the backend's own matter.
#[tokio::test]
async fn a_get_with_content_is_answered_by_the_backend() {
    for source in source::EXCLUSIVE {
        let (backend, setup) = source.start("/search", "").await;
        backend.always("GET", "/search", |request| {
            let length = request.header("content-length").unwrap_or("0");
            Answer::status(200).header("ETag", &format!("\"{length}\"")).body(length)
        });
        let proxy = setup.start().await;
        let addr = proxy.addr();
        let plain = get(addr, "/search").await.etag();
        let first = send(addr, "GET", "/search", &[("If-None-Match", &plain)], "first").await;
        assert_eq!((first.status, first.text()), (200, "5"), "{source}");
        let tag = first.header("etag").unwrap_or("\"none\"").to_owned();
        let second = send(addr, "GET", "/search", &[("If-None-Match", &tag)], "second").await;
        assert_eq!((second.status, second.text()), (200, "6"), "{source}");
    }
}
