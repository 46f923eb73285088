//! `repeated_writes = "succeed"`: a PUT of the bytes that are there (RFC 9110 section 13.1.1).

use crate::support::{
    backend::Answer,
    nginx::Nginx,
    proxy::Proxy,
    raw::{get, put, put_if_match, send},
    source::{CONTENT, CONTENT_EXCLUSIVE, Source},
};

const SUCCEED: &str = "repeated_writes = \"succeed\"";
const SOURCES: [Source; 2] = [CONTENT, CONTENT_EXCLUSIVE];

#[tokio::test]
async fn a_put_of_the_current_bytes_succeeds_without_the_backend() {
    for source in SOURCES {
        let (backend, setup) = source.start("/doc", "one").await;
        let proxy = setup.route(SUCCEED).start().await;
        let addr = proxy.addr();
        let first = get(addr, "/doc").await.etag();
        let written = put_if_match(addr, "/doc", &first, "two").await;
        assert_eq!(written.status, 204);

        let repeated = put_if_match(addr, "/doc", &first, "two").await;
        assert_eq!((repeated.status, repeated.etag()), (204, written.etag()), "{source}");
        assert_eq!(backend.count("PUT", "/doc"), 1, "rule 6");
        assert_eq!(put_if_match(addr, "/doc", &repeated.etag(), "three").await.status, 204, "{source}");
        put_if_match(addr, "/doc", &first, "two").await.refused(412, "precondition-failed");
    }
}

#[tokio::test]
async fn nothing_else_succeeds_by_a_stale_tag() {
    for source in SOURCES {
        let (backend, setup) = source.start("/doc", "one").await;
        backend.always("GET", "/doc", |_| Answer::status(200).header("Content-Type", "text/plain").body("one"));
        let proxy = setup.route(SUCCEED).start().await;
        let addr = proxy.addr();
        let stale = ("If-Match", "\"stale\"");
        assert_eq!(put(addr, "/doc", &[stale, ("Content-Type", "text/plain")], "one").await.status, 204, "{source}");
        for (method, fields, body) in [
            ("PUT", &[stale][..], "other"),
            ("PUT", &[stale, ("Content-Type", "text/html")], "one"),
            ("PUT", &[stale, ("If-None-Match", "*")], "other"),
            ("PUT", &[("If-None-Match", "*")], "one"),
            ("PATCH", &[stale], "one"),
            ("DELETE", &[stale], ""),
        ] {
            send(addr, method, "/doc", fields, body).await.refused(412, "precondition-failed");
        }
        put(addr, "/doc", &[], "one").await.refused(428, "precondition-required");
    }
    let (_backend, setup) = CONTENT.start("/doc", "one").await;
    let proxy = setup.start().await;
    put_if_match(proxy.addr(), "/doc", "\"stale\"", "one").await.refused(412, "precondition-failed");
}

/// While a write is in flight, what the backend shows may not stay.
#[tokio::test]
async fn a_state_beside_a_write_in_doubt_is_not_taken_for_the_current_one() {
    let (backend, setup) = CONTENT.start("/doc", "one").await;
    let proxy = setup.route(SUCCEED).route("claim = { max_wait = \"0s\" }").start().await;
    let addr = proxy.addr();
    let first = get(addr, "/doc").await.etag();
    let held = backend.hold("PUT", "/doc");
    let tag = first.clone();
    let writer = tokio::spawn(async move { put_if_match(addr, "/doc", &tag, "two").await });
    let held = held.arrived().await;
    let repeated = put_if_match(addr, "/doc", "\"stale\"", "one").await;
    assert!(matches!(repeated.status, 409 | 412), "{repeated:?}");
    held.answer(Answer::status(400)).await;
    assert_eq!(writer.await.unwrap().status, 400);
    assert_eq!(put_if_match(addr, "/doc", "\"stale\"", "one").await.status, 204);
}

#[tokio::test]
async fn a_file_server_needs_to_know_nothing_of_it() {
    let nginx = Nginx::start().await;
    std::fs::write(nginx.root().join("doc.txt"), "one").unwrap();
    let proxy = Proxy::to(nginx.addr()).route("hash_wait = \"10s\"").route(SUCCEED).start().await;
    let addr = proxy.addr();
    let first = get(addr, "/doc.txt").await.etag();
    assert_eq!(put_if_match(addr, "/doc.txt", &first, "two").await.status, 204);
    assert_eq!(put_if_match(addr, "/doc.txt", &first, "two").await.status, 204);
    put_if_match(addr, "/doc.txt", &first, "three").await.refused(412, "precondition-failed");
    let puts = nginx.access_lines().await.into_iter().filter(|line| line.starts_with("PUT")).count();
    assert_eq!(puts, 1);
}
