//! Uploads in blocks: the backend gets one PUT, judged like any other.

use std::net::SocketAddr;

use super::azure_sdk::{passes, python, start};
use crate::support::{
    azure::{BLOBS, acquire, assert_common, assert_error, blobs, put_blob},
    backend::{Answer, Backend},
    leases::IDS,
    proxy::Proxy,
    raw::{get, send},
    response::Response,
};

/// Uploads a block. The name has two letters, so that the ids have one length.
pub async fn block(addr: SocketAddr, target: &str, name: &str, fields: &[(&str, &str)], body: &str) -> Response {
    let id = base64_of_two(name);
    send(addr, "PUT", &format!("{target}?comp=block&blockid={id}%3D"), fields, body).await
}

pub async fn staged(addr: SocketAddr, target: &str, name: &str, fields: &[(&str, &str)], body: &str) {
    let response = block(addr, target, name, fields, body).await;
    assert_eq!(response.status, 201, "{response:?}");
    assert_common(&response);
}

/// Joins blocks.
pub async fn commit(addr: SocketAddr, target: &str, names: &[&str], fields: &[(&str, &str)]) -> Response {
    let listed: Vec<_> = names.iter().map(|name| format!("<Latest>{}=</Latest>", base64_of_two(name))).collect();
    let list = format!("<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>{}</BlockList>", listed.concat());
    send(addr, "PUT", &format!("{target}?comp=blocklist"), fields, &list).await
}

/// Checks a success. The backend of these tests sends no dates.
#[track_caller]
fn tag_of(response: &Response, status: u16) -> String {
    assert_eq!(response.status, status, "{response:?}");
    assert_common(response);
    response.etag()
}

/// The Base64 of two octets, without the padding.
fn base64_of_two(text: &str) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let [first, second] = text.as_bytes() else { panic!("{text} has two octets") };
    let bits = (usize::from(*first) << 10) | (usize::from(*second) << 2);
    [12, 6, 0].iter().map(|shift| char::from(DIGITS[(bits >> shift) & 63])).collect()
}

#[tokio::test]
async fn the_backend_gets_one_upload_of_all_blocks() {
    let backend = Backend::start().await;
    let proxy = blobs(&backend).start().await;
    let addr = proxy.addr();
    staged(addr, "/c/blob", "b1", &[], "second").await;
    staged(addr, "/c/blob", "a1", &[], "first ").await;
    staged(addr, "/c/blob", "c1", &[], "not listed").await;
    assert_eq!(backend.count("PUT", "*"), 0, "{:?}", backend.events());
    let fields = [
        ("Content-Type", "application/xml"),
        ("x-ms-blob-content-type", "text/plain"),
        ("x-ms-blob-cache-control", "no-cache"),
        ("If-None-Match", "*"),
    ];
    let committed = commit(addr, "/c/blob", &["a1", "b1"], &fields).await;
    let tag = tag_of(&committed, 201);
    let seen = backend.seen("PUT", "*");
    assert_eq!((seen.len(), seen[0].target.as_str(), seen[0].body.as_slice()), (1, "/c/blob", &b"first second"[..]));
    assert_eq!(seen[0].headers.all("content-type"), ["text/plain"]);
    assert_eq!(seen[0].headers.all("content-length"), ["12"]);
    assert_eq!(seen[0].headers.all("cache-control"), ["no-cache"]);
    let read = get(addr, "/c/blob").await;
    assert_eq!((tag_of(&read, 200), read.text()), (tag, "first second"));
    assert_error(&commit(addr, "/c/blob", &["c1"], &[]).await, 400, "InvalidBlockList");
}

/// A list is a write like any other, and the blocks of a list that is refused can be listed again.
#[tokio::test]
async fn a_list_is_judged_like_an_upload_and_a_refused_one_keeps_its_blocks() {
    let backend = Backend::start().await;
    let proxy = blobs(&backend).start().await;
    let (addr, blob, [id, other, _]) = (proxy.addr(), "/c/blob", IDS);
    let first = tag_of(&put_blob(addr, blob, &[], "one").await, 201);
    let second = tag_of(&put_blob(addr, blob, &[], "two").await, 201);
    staged(addr, blob, "a1", &[], "three").await;
    acquire(addr, blob, id, "60").await;
    for (fields, status, code) in [
        (&[("If-Match", first.as_str()), ("x-ms-lease-id", id)][..], 412, "ConditionNotMet"),
        (&[("If-None-Match", "*"), ("x-ms-lease-id", id)], 409, "BlobAlreadyExists"),
        (&[], 412, "LeaseIdMissing"),
        (&[("x-ms-lease-id", other)], 412, "LeaseIdMismatchWithBlobOperation"),
    ] {
        assert_error(&commit(addr, blob, &["a1"], fields).await, status, code);
    }
    // A block is kept only for a client that may write.
    assert_error(&block(addr, blob, "b1", &[], "x").await, 412, "LeaseIdMissing");
    let wrong = block(addr, blob, "b1", &[("x-ms-lease-id", other)], "x").await;
    assert_error(&wrong, 412, "LeaseIdMismatchWithBlobOperation");
    backend.once("PUT", blob, Answer::status(403));
    assert_error(&commit(addr, blob, &["a1"], &[("x-ms-lease-id", id)]).await, 403, "AuthorizationFailure");
    assert_eq!(backend.content(blob).as_deref(), Some("two"));
    let current = [("If-Match", second.as_str()), ("x-ms-lease-id", id)];
    tag_of(&commit(addr, blob, &["a1"], &current).await, 201);
    assert_eq!(backend.content(blob).as_deref(), Some("three"));
    assert_error(&commit(addr, blob, &["a1"], &[("x-ms-lease-id", id)]).await, 400, "InvalidBlockList");
}

#[tokio::test]
async fn each_body_has_the_checksums_that_it_names() {
    let backend = Backend::start().await;
    let proxy = blobs(&backend).start().await;
    let (addr, blob) = (proxy.addr(), "/blob");
    // The checksums of "abc".
    let (md5, crc64) = ("kAFQmDzST7DWlj99KOF/cg==", "6/rBP7vK5QU=");
    for (name, value, mismatch) in [("Content-MD5", md5, "Md5Mismatch"), ("x-ms-content-crc64", crc64, "Crc64Mismatch")]
    {
        assert_error(&block(addr, blob, "a1", &[(name, value)], "abd").await, 400, mismatch);
        staged(addr, blob, "a1", &[(name, value)], "abc").await;
        assert_error(&commit(addr, blob, &["a1"], &[(name, value)]).await, 400, mismatch);
    }
    let kept = block(addr, blob, "a1", &[], "abc").await;
    assert_eq!((kept.status, kept.header("x-ms-content-crc64")), (201, Some(crc64)), "the client compares it");
    let blob_md5 = [("x-ms-blob-content-md5", md5)];
    assert_error(&commit(addr, blob, &["a1", "a1"], &blob_md5).await, 400, "Md5Mismatch");
    assert_eq!(backend.count("PUT", "*"), 0, "{:?}", backend.events());
    tag_of(&commit(addr, blob, &["a1"], &blob_md5).await, 201);
    assert_eq!(backend.content(blob).as_deref(), Some("abc"));
}

#[tokio::test]
async fn clients_do_not_see_each_others_blocks() {
    let backend = Backend::start().await;
    let proxy = blobs(&backend).start().await;
    let (addr, blob) = (proxy.addr(), "/blob");
    let (alice, barbara) = ([("Authorization", "Bearer alice")], [("Authorization", "Bearer barbara")]);
    staged(addr, blob, "a1", &alice, "of alice").await;
    staged(addr, blob, "a1", &barbara, "of barbara").await;
    assert_error(&commit(addr, blob, &["a1"], &[]).await, 400, "InvalidBlockList");
    tag_of(&commit(addr, blob, &["a1"], &alice).await, 201);
    assert_eq!(backend.content(blob).as_deref(), Some("of alice"));
    let list = async |fields: &[(&str, &str)]| {
        let shown = send(addr, "GET", "/blob?comp=blocklist&blocklisttype=uncommitted", fields, "").await;
        assert_eq!(shown.headers.all("content-type"), ["application/xml"], "{shown:?}");
        (shown.status, shown.text().contains("<Size>10</Size>"))
    };
    assert_eq!((list(&alice).await, list(&barbara).await), ((200, false), (200, true)));
    // The client that writes the blob has no blocks of an earlier state.
    tag_of(&send(addr, "PUT", blob, &[barbara[0], ("x-ms-blob-type", "BlockBlob")], "other").await, 201);
    assert_eq!(list(&barbara).await, (200, false));
}

#[tokio::test]
async fn blocks_have_limits() {
    let backend = Backend::start().await;
    let server = "max_staged_blocks = 2\nmax_body_size = \"1KiB\"\nmax_spool_size = \"16KiB\"";
    let proxy = Proxy::to(backend.addr()).server(server).route(BLOBS).start().await;
    let (addr, blob) = (proxy.addr(), "/blob");
    let half = "x".repeat(600);
    staged(addr, blob, "a1", &[], &half).await;
    assert_error(&block(addr, blob, "b1", &[], &half).await, 413, "RequestBodyTooLarge");
    staged(addr, blob, "b1", &[], "y").await;
    assert_error(&block(addr, blob, "c1", &[], "z").await, 409, "BlockCountExceedsLimit");
    assert_error(&commit(addr, blob, &["a1", "a1"], &[]).await, 413, "RequestBodyTooLarge");
    assert_error(&commit(addr, blob, &["a1", "b1", "b1"], &[]).await, 400, "BlockListTooLong");
    for other in ["/1", "/2"] {
        staged(addr, other, "a1", &[], &half).await;
    }
    // An eighth of the spool, as the client has not been seen to write.
    let full = block(addr, "/3", "a1", &[], &half).await;
    assert_error(&full, 503, "ServerBusy");
    assert_eq!(full.headers.all("retry-after").len(), 1);
    assert_eq!(backend.count("PUT", "*"), 0, "{:?}", backend.events());
    tag_of(&commit(addr, blob, &["b1", "a1"], &[]).await, 201);
    staged(addr, "/3", "a1", &[], &half).await;
    let missing = send(addr, "GET", "/none?comp=blocklist", &[], "").await;
    assert_error(&missing, 404, "BlobNotFound");
}

/// The SDK above its limit for one request, in front of nginx.
#[tokio::test]
async fn the_sdk_for_python_uploads_in_blocks() {
    let (nginx, proxy) = start("azure-container.toml").await;
    passes(python(), "blocks.py", proxy.addr()).await;
    let puts: Vec<String> =
        nginx.access_lines().await.into_iter().filter(|line| line.starts_with("PUT /documents/large.bin ")).collect();
    assert_eq!(puts.len(), 6, "each upload is one request: {puts:?}");
}
