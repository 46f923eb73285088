//! Parts of blobs. A client of Azure takes nothing but 206 for one: the SDK for Python fails on 200, and the one for
//! JavaScript takes all of the blob for the part.

use crate::support::{
    azure::{assert_error, blobs, put_blob},
    backend::{Answer, Backend, Request},
    proxy::Proxy,
    raw::send,
    response::Response,
};

const BLOB: &str = "/photos/cat";
/// How the SDKs begin to read a blob whose length they do not know.
const ALL: &str = "bytes=0-33554431";

/// Serves `content`, and `nt` where any part is asked for.
fn with_ranges(request: &Request) -> Answer {
    if request.header("range").is_some() {
        Answer::status(206).header("Content-Range", "bytes 2-3/7").body("nt")
    } else {
        Answer::status(200).header("Accept-Ranges", "bytes").body("content")
    }
}

async fn read(proxy: &Proxy, range: &str) -> Response {
    send(proxy.addr(), "GET", BLOB, &[("x-ms-range", range)], "").await
}

async fn assert_read_whole(proxy: &Proxy) {
    let whole = read(proxy, ALL).await;
    let range = whole.headers.all("content-range");
    assert_eq!((whole.status, range, whole.text()), (206, vec!["bytes 0-6/7"], "content"), "{whole:?}");
}

/// While a write is in flight a part may be newer than its tag, and parts with one tag are put together.
#[tokio::test]
async fn a_part_has_one_tag_or_is_not_served() {
    let backend = Backend::start().await;
    backend.always("GET", BLOB, with_ranges);
    let proxy = blobs(&backend).start().await;
    let (addr, held) = (proxy.addr(), backend.hold("PUT", BLOB));
    let writer = tokio::spawn(async move { put_blob(addr, BLOB, &[], "new").await });
    let write = held.arrived().await;

    assert_read_whole(&proxy).await;
    let part = read(&proxy, "bytes=2-3").await;
    assert_error(&part, 503, "ServerBusy");
    assert_eq!(part.header("retry-after"), Some("1"));

    write.answer(Answer::status(204)).await;
    assert_eq!(writer.await.unwrap().status, 201);
    let part = read(&proxy, "bytes=2-3").await;
    assert_eq!((part.status, part.text(), part.header("content-range")), (206, "nt", Some("bytes 2-3/7")));
}

#[tokio::test]
async fn a_backend_without_ranges_serves_whole_blobs_alone() {
    let backend = Backend::start().await;
    backend.put(BLOB, "content");
    let proxy = blobs(&backend).start().await;
    assert_read_whole(&proxy).await;
    assert_error(&read(&proxy, "bytes=2-3").await, 501, "NotImplemented");
    assert_error(&read(&proxy, "bytes=7-").await, 416, "InvalidRange");
}

/// Only what was received as a whole is cut, and larger blobs have no tag of their bytes.
#[tokio::test]
async fn a_part_of_what_is_too_large_for_its_tag_is_not_served() {
    let backend = Backend::start().await;
    backend.put(BLOB, "x".repeat(2000));
    let route = "policy = \"pessimistic\"\nlease.dialect = \"azure\"\nhash_max = \"1KiB\"";
    let proxy = Proxy::to(backend.addr()).route(route).start().await;
    let whole = read(&proxy, ALL).await;
    let range = whole.header("content-range");
    assert_eq!((whole.status, range, whole.body.len()), (206, Some("bytes 0-1999/2000"), 2000), "{whole:?}");
    assert_error(&read(&proxy, "bytes=2-3").await, 501, "NotImplemented");
}
