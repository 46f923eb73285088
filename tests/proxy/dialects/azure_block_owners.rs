//! Whose blocks an upload has: they are kept for clients that the backend lets in, and reach it with no credentials but
//! those that they came with (docs/azure.md, "Uploads in blocks").

use super::azure_blocks::{block, commit, staged};
use crate::support::{
    azure::{assert_error, blobs, put_blob},
    backend::{Answer, Backend, Request},
    proxy::Proxy,
    raw::send,
};

const BLOB: &str = "/c/blob";
const BEARER: (&str, &str) = ("Authorization", "Bearer alice");
/// The signature of each request of one signer is another one.
const SIGNED: [(&str, &str); 3] = [
    ("Authorization", "SharedKey alice:MQ=="),
    ("Authorization", "SharedKey alice:Mg=="),
    ("Authorization", "SharedKey alice:Mw=="),
];

/// A proxy before a backend that refuses forged signatures.
async fn scene() -> (Backend, Proxy) {
    let backend = Backend::start().await;
    let is_forged = |request: &Request| request.header("authorization").is_some_and(|sent| sent.ends_with("forged"));
    backend.always_where(is_forged, |_| Answer::status(403));
    let proxy = blobs(&backend).start().await;
    (backend, proxy)
}

/// The name of a signer is no secret, so each of its blocks is shown to the backend.
#[tokio::test]
async fn a_client_that_names_the_signer_replaces_no_block() {
    let (backend, proxy) = scene().await;
    let addr = proxy.addr();
    staged(addr, BLOB, "a1", &SIGNED[..1], "of alice").await;
    staged(addr, BLOB, "a1", &[("Authorization", "SharedKey bob:MQ==")], "of bob").await;
    staged(addr, BLOB, "a1", &[], "of anybody").await;
    let forged = [("Authorization", "SharedKey alice:forged")];
    assert_error(&block(addr, BLOB, "a1", &forged, "of a thief").await, 403, "AuthorizationFailure");
    assert_error(&commit(addr, BLOB, &["a1"], &forged).await, 403, "AuthorizationFailure");
    let shown = send(addr, "GET", "/c/blob?comp=blocklist&blocklisttype=uncommitted", &forged, "").await;
    assert_error(&shown, 403, "AuthorizationFailure");
    assert_eq!(commit(addr, BLOB, &["a1"], &SIGNED[1..2]).await.status, 201);
    assert_eq!(backend.content(BLOB).as_deref(), Some("of alice"));
}

#[tokio::test]
async fn a_client_that_the_backend_refuses_has_no_blocks() {
    for (status, expected, code) in
        [(401, 401, "NoAuthenticationInformation"), (403, 403, "AuthorizationFailure"), (500, 500, "InternalError")]
    {
        let (backend, proxy) = scene().await;
        let addr = proxy.addr();
        let is_eve = |request: &Request| request.header("authorization") == Some("Bearer eve");
        backend.always_where(is_eve, move |_| Answer::status(status));
        let eve = [("Authorization", "Bearer eve")];
        assert_error(&block(addr, BLOB, "a1", &eve, "of eve").await, expected, code);
        backend.always_where(is_eve, |_| Answer::stored());
        assert_error(&commit(addr, BLOB, &["a1"], &eve).await, 400, "InvalidBlockList");
        assert_eq!(backend.count("PUT", "*"), 0, "{:?}", backend.events());
    }
}

/// Only the first block costs a request, unless others can name the owner too.
#[tokio::test]
async fn an_upload_is_authorised_once_and_each_block_of_a_signer() {
    let (backend, proxy) = scene().await;
    let addr = proxy.addr();
    assert_eq!(put_blob(addr, BLOB, &[BEARER], "one").await.status, 201);
    let asked = || backend.count("HEAD", BLOB) + backend.count("GET", BLOB);
    let before = asked();
    for name in ["a1", "b1", "c1"] {
        staged(addr, BLOB, name, &[BEARER], "x").await;
    }
    assert_eq!(asked() - before, 1, "{:?}", backend.events());
    staged(addr, "/c/other", "a1", &[BEARER], "x").await;
    assert_eq!(backend.count("HEAD", "/c/other"), 1, "another blob is another upload");
    let before = asked();
    for (name, credentials) in ["a1", "b1", "c1"].into_iter().zip(SIGNED) {
        staged(addr, BLOB, name, &[credentials], "x").await;
    }
    assert_eq!(asked() - before, 3, "{:?}", backend.events());
}

/// A client without other credentials than a cookie is known by it.
#[tokio::test]
async fn a_client_without_the_cookie_replaces_no_block() {
    let (backend, proxy) = scene().await;
    let (addr, alice) = (proxy.addr(), [("Cookie", "session=alice")]);
    staged(addr, BLOB, "a1", &alice, "of alice").await;
    staged(addr, BLOB, "a1", &[], "of a thief").await;
    staged(addr, BLOB, "a1", &[("Cookie", "session=eve")], "of eve").await;
    assert_eq!(commit(addr, BLOB, &["a1"], &alice).await.status, 201);
    assert_eq!(backend.content(BLOB).as_deref(), Some("of alice"));
}
