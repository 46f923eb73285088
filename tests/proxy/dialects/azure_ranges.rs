//! Parts of blobs that are too large to take a part from here.

use crate::support::{
    azure::{BLOBS, assert_error, put_blob},
    backend::{Answer, Backend, Request},
    proxy::Proxy,
    raw::send,
};

const BLOB: &str = "/photos/cat";

/// Serves 2000 bytes, and `nt` where any part is asked for.
fn with_ranges(request: &Request) -> Answer {
    if request.header("range").is_some() {
        Answer::status(206).header("Content-Range", "bytes 2-3/2000").body("nt")
    } else {
        Answer::status(200).header("Accept-Ranges", "bytes").body("x".repeat(2000))
    }
}

/// Beside a write in flight a part may be newer than its tag, so the backend is not asked for one; soon it will be.
#[tokio::test]
async fn a_part_is_served_when_the_write_in_flight_is_over() {
    let backend = Backend::start().await;
    backend.always("GET", BLOB, with_ranges);
    let proxy = Proxy::to(backend.addr()).route(&format!("{BLOBS}\nmax_hash_size = \"1KiB\"")).start().await;
    let (addr, held) = (proxy.addr(), backend.hold("PUT", BLOB));
    let writer = tokio::spawn(async move { put_blob(addr, BLOB, &[], "new").await });
    let write = held.arrived().await;

    let read = async || send(addr, "GET", BLOB, &[("x-ms-range", "bytes=2-3")], "").await;
    let busy = read().await;
    assert_error(&busy, 503, "ServerBusy");
    assert!(busy.header("retry-after").is_some(), "{busy:?}");

    write.answer(Answer::status(204)).await;
    assert_eq!(writer.await.unwrap().status, 201);
    let part = read().await;
    assert_eq!((part.status, part.text(), part.header("content-range")), (206, "nt", Some("bytes 2-3/2000")));
}
