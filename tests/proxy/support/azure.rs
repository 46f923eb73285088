//! Requests in the azure dialect, and the rules for each answer.

use std::net::SocketAddr;

use super::{
    backend::Backend,
    proxy::{Proxy, Setup},
    raw::send,
    response::Response,
};

/// The lines of a route that speaks the dialect, for blobs.
pub const BLOBS: &str = "policy = \"pessimistic\"\netag = \"version\"\nother_writers = false\ndialect = \"azure\"";

/// The same for containers.
pub const CONTAINERS: &str = "lease.guards = [\"delete\"]";

/// The field without which nothing is put.
pub const BLOCK: (&str, &str) = ("x-ms-blob-type", "BlockBlob");

/// A proxy with a route of blobs for every path to this backend.
pub fn blobs(backend: &Backend) -> Setup {
    Proxy::to(backend.addr()).route(BLOBS)
}

/// Puts a blob.
pub async fn put_blob(addr: SocketAddr, target: &str, fields: &[(&str, &str)], body: &str) -> Response {
    send(addr, "PUT", target, &[&[BLOCK], fields].concat(), body).await
}

/// Does a lease operation on a blob.
pub async fn lease(addr: SocketAddr, target: &str, action: &str, fields: &[(&str, &str)]) -> Response {
    let target = format!("{target}?comp=lease");
    send(addr, "PUT", &target, &[&[("x-ms-lease-action", action)], fields].concat(), "").await
}

/// Acquires a lease for this duration with this id.
pub async fn acquire(addr: SocketAddr, target: &str, id: &str, duration: &str) -> Response {
    let acquired =
        lease(addr, target, "acquire", &[("x-ms-proposed-lease-id", id), ("x-ms-lease-duration", duration)]).await;
    assert_eq!((acquired.status, acquired.header("x-ms-lease-id")), (201, Some(id)), "{acquired:?}");
    acquired
}

/// Checks an error: its status and name, in the field and, if there is a body, in the document.
#[track_caller]
pub fn assert_error(response: &Response, status: u16, code: &str) {
    let told = (response.status, response.header("x-ms-error-code"));
    assert_eq!(told, (status, Some(code)), "{response:?}");
    assert_common(response);
    assert_eq!(response.headers.all("etag"), [""; 0], "an error has no representation to label: {response:?}");
    if response.body.is_empty() {
        return;
    }
    assert_eq!(response.headers.all("content-type"), ["application/xml"], "{response:?}");
    let start = format!("<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>{code}</Code><Message>");
    assert!(response.text().starts_with(&start) && response.text().ends_with("</Message></Error>"), "{response:?}");
}

/// Checks a success, and that it carries the validators that clients build on.
#[track_caller]
pub fn assert_done(response: &Response, status: u16) -> String {
    assert_eq!(response.status, status, "{response:?}");
    assert_common(response);
    assert_eq!(response.headers.all("last-modified").len(), 1, "{response:?}");
    let tag = response.etag();
    assert!(tag.starts_with('"') && tag.ends_with('"'), "{tag} is strong");
    tag
}

/// Checks the fields of every answer.
#[track_caller]
pub fn assert_common(response: &Response) {
    for name in ["x-ms-request-id", "x-ms-version", "date"] {
        assert_eq!(response.headers.all(name).len(), 1, "{name} in {response:?}");
    }
}

/// The lease as a read tells it: state, status, duration.
pub fn lease_of(response: &Response) -> (&str, &str, Option<&str>) {
    let field = |name: &str| response.header(name);
    let state = field("x-ms-lease-state").expect("the state of the lease");
    (state, field("x-ms-lease-status").expect("its status"), field("x-ms-lease-duration"))
}
