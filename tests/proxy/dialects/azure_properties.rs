//! Properties of blobs and their checksum, which the document beside each blob keeps.

use super::azure_sdk::{passes, python, start};
use crate::support::{
    azure::{assert_done, assert_error, blobs, put_blob},
    backend::{Answer, Backend, Validators},
    proxy::Proxy,
    raw::{get, send},
};

const BLOB: &str = "/c/blob";
const DOCUMENT: &str = "/c/blob.meta";
const ALICE: (&str, &str) = ("x-ms-meta-owner", "alice");
const BOB: (&str, &str) = ("x-ms-meta-owner", "bob");
const MD5_OF_ONE: &str = "+XxdKZQb+xsv2rCHSQargg==";
const CRC64_OF_ONE: &str = "szvLqgqeSbE=";
const OF_ONE: (&str, &str) = ("Content-MD5", MD5_OF_ONE);

async fn started() -> (Backend, Proxy) {
    let backend = Backend::with(Validators::Dates).await;
    let proxy = blobs(&backend).route("metadata_suffix = \".meta\"").start().await;
    (backend, proxy)
}

/// The writes that the backend got, in order.
fn writes(backend: &Backend) -> Vec<String> {
    let seen = backend.requests();
    let writes = seen.iter().filter(|request| !matches!(request.method.as_str(), "GET" | "HEAD"));
    writes.map(|request| format!("{} {}", request.method, request.target)).collect()
}

/// A crash can come between any two requests. The states that it leaves are those after a failure.
#[tokio::test]
async fn a_checksum_is_gone_before_other_content_comes() {
    let (backend, proxy) = started().await;
    let addr = proxy.addr();
    let first = assert_done(&put_blob(addr, BLOB, &[ALICE, OF_ONE], "one").await, 201);
    let kept = format!("{{\"content-md5\":\"{MD5_OF_ONE}\",\"owner\":\"alice\"}}");
    assert_eq!(backend.content(DOCUMENT), Some(kept));
    assert_eq!(get(addr, BLOB).await.header("content-md5"), Some(MD5_OF_ONE));

    // The backend does not take the first part: nothing has changed.
    backend.once("PUT", DOCUMENT, Answer::status(403));
    let refused = put_blob(addr, BLOB, &[BOB, ("If-Match", &first)], "two").await;
    assert_error(&refused, 403, "AuthorizationFailure");
    assert_eq!(get(addr, BLOB).await.header("content-md5"), Some(MD5_OF_ONE));

    // It does not take the second one: the content has lost its checksum, which is another state.
    let before = writes(&backend).len();
    backend.once("PUT", BLOB, Answer::status(403));
    let refused = put_blob(addr, BLOB, &[BOB, ("If-Match", &first)], "two").await;
    assert_error(&refused, 403, "AuthorizationFailure");
    assert_eq!(writes(&backend)[before..], [format!("PUT {DOCUMENT}"), format!("PUT {BLOB}")]);
    let read = get(addr, BLOB).await;
    assert_ne!(assert_done(&read, 200), first);
    assert_eq!((read.text(), read.header("content-md5"), read.header("x-ms-meta-owner")), ("one", None, Some("alice")));

    // It does not take the third one: the new content has the old metadata, but no checksum.
    assert_done(&put_blob(addr, BLOB, &[ALICE, OF_ONE], "one").await, 201);
    let held = backend.hold("PUT", BLOB);
    let write = tokio::spawn(async move { put_blob(addr, BLOB, &[BOB], "two").await });
    let held = held.arrived().await;
    backend.once("PUT", DOCUMENT, Answer::status(403));
    held.answer(Answer::stored()).await;
    assert_error(&write.await.expect("no panic"), 500, "InternalError");
    let read = get(addr, BLOB).await;
    assert_eq!((read.text(), read.header("content-md5"), read.header("x-ms-meta-owner")), ("two", None, Some("alice")));
}

#[tokio::test]
async fn a_blob_without_description_costs_no_write_but_its_own() {
    let (backend, proxy) = started().await;
    let addr = proxy.addr();
    assert_done(&put_blob(addr, BLOB, &[("Content-Type", "text/x")], "one").await, 201);
    assert_done(&put_blob(addr, BLOB, &[], "two").await, 201);
    assert_eq!(writes(&backend), [format!("PUT {BLOB}"), format!("PUT {BLOB}")]);
    // A document that cannot be read is replaced.
    backend.once("GET", DOCUMENT, Answer::status(200).body("[]"));
    assert_done(&put_blob(addr, BLOB, &[], "three").await, 201);
    assert_eq!(writes(&backend)[2..], [format!("PUT {BLOB}"), format!("DELETE {DOCUMENT}")]);
}

/// The content of a document that cannot be read is unknown, and a checksum could be in it.
#[tokio::test]
async fn a_document_that_is_not_shown_stops_the_write() {
    let (backend, proxy) = started().await;
    let addr = proxy.addr();
    let first = assert_done(&put_blob(addr, BLOB, &[ALICE], "one").await, 201);
    let before = writes(&backend).len();
    let properties = format!("{BLOB}?comp=properties");
    for target in [BLOB, &properties] {
        backend.once("GET", DOCUMENT, Answer::status(403));
        let fields = [("x-ms-blob-type", "BlockBlob"), ("If-Match", &first)];
        let fields = if target == BLOB { &fields[..] } else { &fields[1..] };
        assert_error(&send(addr, "PUT", target, fields, "").await, 500, "InternalError");
    }
    assert_eq!(writes(&backend).len(), before);
    assert_done(&put_blob(addr, BLOB, &[("If-Match", &first)], "two").await, 201);
}

#[tokio::test]
async fn properties_are_the_fields_of_a_read() {
    let (backend, proxy) = started().await;
    let addr = proxy.addr();
    assert_done(&put_blob(addr, BLOB, &[ALICE, ("x-ms-blob-content-type", "text/x"), OF_ONE], "one").await, 201);
    let part = send(addr, "GET", BLOB, &[("Range", "bytes=0-1")], "").await;
    assert_eq!((part.status, part.text(), part.header("content-type")), (206, "on", Some("text/x")), "{part:?}");
    assert_eq!((part.header("content-md5"), part.header("x-ms-blob-content-md5")), (None, Some(MD5_OF_ONE)));
    let set =
        send(addr, "PUT", &format!("{BLOB}?comp=properties"), &[("x-ms-blob-cache-control", "no-cache")], "").await;
    let tag = assert_done(&set, 200);
    assert_eq!(backend.content(DOCUMENT).as_deref(), Some(r#"{"cache-control":"no-cache","owner":"alice"}"#));
    for method in ["GET", "HEAD"] {
        let read = send(addr, method, BLOB, &[], "").await;
        assert_eq!((assert_done(&read, 200), read.header("cache-control")), (tag.clone(), Some("no-cache")));
        assert_ne!(read.header("content-type"), Some("text/x"));
        assert_eq!((read.header("content-md5"), read.header("x-ms-blob-content-md5")), (None, None), "{read:?}");
    }
}

#[tokio::test]
async fn the_sdk_for_python_sets_reads_and_lists_properties() {
    let (_nginx, proxy) = start("azure-container.toml").await;
    passes(python(), "properties.py", proxy.addr()).await;
}

/// The backend serves the range, or the whole from which ifmatch cuts it.
#[tokio::test]
async fn a_range_has_the_checksum_that_its_reader_wants() {
    let (backend, proxy) = started().await;
    let addr = proxy.addr();
    assert_done(&put_blob(addr, BLOB, &[], "a one").await, 201);
    let read = async |range: &'static str, kind: &'static str| {
        send(addr, "GET", BLOB, &[("x-ms-range", range), (kind, "true")], "").await
    };
    let md5 = "x-ms-range-get-content-md5";
    let part = read("bytes=2-4", md5).await;
    assert_eq!((part.status, part.text(), part.header("content-md5")), (206, "one", Some(MD5_OF_ONE)), "{part:?}");
    let part = read("bytes=2-4", "x-ms-range-get-content-crc64").await;
    let told = (part.status, part.header("content-md5"), part.header("x-ms-content-crc64"));
    assert_eq!(told, (206, None, Some(CRC64_OF_ONE)), "{part:?}");
    let half = Answer::status(206).header("Content-Range", "bytes 2-4/5000000").body("one");
    backend.once("GET", BLOB, half);
    assert_eq!(read("bytes=2-4", md5).await.header("content-md5"), Some(MD5_OF_ONE));
    let large = "x".repeat(4 * 1024 * 1024 + 1);
    let large = Answer::status(206).header("Content-Range", "bytes 0-4194304/5000000").body(large);
    backend.once("GET", BLOB, large);
    assert_error(&read("bytes=0-4194304", md5).await, 400, "InvalidHeaderValue");
}
