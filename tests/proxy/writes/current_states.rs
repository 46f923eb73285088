//! A 412 with the current state, for clients that prefer it to a document (RFC 7240 section 4.2).

use crate::support::{
    backend::Answer,
    raw::{Connection, get, put, put_if_match, send},
    source,
};

const STALE: (&str, &str) = ("If-Match", "\"stale\"");
const PREFERENCE: (&str, &str) = ("Prefer", "return=representation");

#[tokio::test]
async fn a_refused_write_brings_the_state_that_it_must_begin_from() {
    for source in source::ALL {
        let (backend, setup) = source.start("/doc", "one").await;
        let proxy = setup.start().await;
        let addr = proxy.addr();
        for method in ["PUT", "PATCH", "DELETE"] {
            let current = get(addr, "/doc").await.etag();
            let refused = send(addr, method, "/doc", &[STALE, PREFERENCE], "two").await;
            refused.refused_by_head(412, "precondition-failed");
            assert_eq!((refused.text(), refused.etag()), ("one", current), "{source} {method}");
            assert_eq!(refused.header("content-location"), Some("/doc"));
            assert_eq!(refused.header("preference-applied"), Some("return=representation"));
            assert_eq!(refused.header("cache-control"), Some("no-store"));
            assert_eq!(backend.count(method, "*"), 0, "rule 4");
            send(addr, method, "/doc", &[STALE], "two").await.refused(412, "precondition-failed");
        }
        let refused = put(addr, "/doc", &[STALE, PREFERENCE], "two").await;
        assert_eq!(put_if_match(addr, "/doc", &refused.etag(), "two").await.status, 204, "{source}");
        proxy.logged(&["\"PUT\"", "412", "precondition-failed"]).await;
    }
}

#[tokio::test]
async fn an_upload_that_would_be_in_vain_is_not_requested() {
    let (_backend, setup) = source::UPSTREAM.start("/doc", "one").await;
    let proxy = setup.start().await;
    get(proxy.addr(), "/doc").await;
    let mut connection = Connection::open(proxy.addr()).await;
    let head = "PUT /doc HTTP/1.1\r\nHost: test\r\nIf-Match: \"stale\"\r\nPrefer: return=representation\r\n\
                Expect: 100-continue\r\nContent-Length: 5000000\r\n\r\n";
    connection.send_bytes(head).await;
    let refused = connection.read_response().await;
    assert_eq!((refused.status, refused.text()), (412, "one"));
}

/// A refusal shows only a state that a GET would show.
#[tokio::test]
async fn without_a_state_that_the_client_may_read_there_is_the_document() {
    for answer in [401, 404, 500] {
        let (backend, setup) = source::UPSTREAM.start("/doc", "one").await;
        let proxy = setup.start().await;
        // A probe by HEAD is let in, and the read is not.
        backend.always("HEAD", "/doc", |_| Answer::status(200).header("ETag", "\"current\""));
        backend.once("GET", "/doc", Answer::status(200).header("ETag", "\"current\"").body("one"));
        backend.always("GET", "/doc", move |_| Answer::status(answer));
        let refused = put(proxy.addr(), "/doc", &[STALE, PREFERENCE], "two").await;
        refused.refused(412, "precondition-failed");
    }
    let (_backend, setup) = source::CONTENT.start("/doc", "one").await;
    let proxy = setup.start().await;
    put(proxy.addr(), "/gone", &[STALE, PREFERENCE], "two").await.refused(412, "precondition-failed");
    let created = [("If-None-Match", "*"), PREFERENCE];
    let refused = put(proxy.addr(), "/doc", &created, "two").await;
    assert_eq!((refused.status, refused.text()), (412, "one"), "what is there already is shown, too");
}
