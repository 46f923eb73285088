//! Clients that sign each request: Authorization is another one each time (Azure's `SharedKey`, AWS Signature Version
//! 4). Their tags name the signer. An answer from memory depends on the whole credentials.

use crate::support::{
    backend::{Answer, Backend, Request},
    proxy::Proxy,
    raw::{put_if_match, send},
    response::Response,
    source::{self, VERSION},
};

/// Two requests of one signer, one whose signature does not hold, and one of another signer.
struct Signed {
    first: &'static str,
    second: &'static str,
    forged: &'static str,
    other: &'static str,
}

const SHARED_KEY: Signed = Signed {
    first: "SharedKey alice:MQ==",
    second: "SharedKey alice:Mg==",
    forged: "SharedKey alice:forged",
    other: "SharedKey bob:MQ==",
};

const AWS: Signed = Signed {
    first: "AWS4-HMAC-SHA256 Credential=ALICE/20260101/eu/s3/aws4_request, SignedHeaders=host, Signature=1",
    second: "AWS4-HMAC-SHA256 Credential=ALICE/20260102/eu/s3/aws4_request, SignedHeaders=host, Signature=2",
    forged: "AWS4-HMAC-SHA256 Credential=ALICE/20260101/eu/s3/aws4_request, SignedHeaders=host, Signature=forged",
    other: "AWS4-HMAC-SHA256 Credential=BOB/20260101/eu/s3/aws4_request, SignedHeaders=host, Signature=1",
};

async fn scene(source: source::Source) -> (Backend, Proxy) {
    let (backend, setup) = source.start("/doc", "one").await;
    let is_forged =
        |request: &Request| request.header("authorization").is_some_and(|credentials| credentials.ends_with("forged"));
    backend.always_where(is_forged, |_| Answer::status(403).body("not you"));
    (backend, setup.route("require = \"never\"").start().await)
}

async fn ask(proxy: &Proxy, method: &str, credentials: &str, condition: (&str, &str)) -> Response {
    send(proxy.addr(), method, "/doc", &[("Authorization", credentials), condition], "").await
}

/// A copy that is current costs the client no second transfer, although its credentials are new each time.
#[tokio::test]
async fn a_client_with_a_new_signature_gets_a_304_after_the_backend_has_let_it_read() {
    for source in source::ALL {
        for signed in [SHARED_KEY, AWS] {
            let (backend, proxy) = scene(source).await;
            let tag = ask(&proxy, "GET", signed.first, ("Accept", "*/*")).await.etag();
            let again = ask(&proxy, "GET", signed.second, ("If-None-Match", &tag)).await;
            assert_eq!((again.status, again.etag(), backend.count("GET", "/doc")), (304, tag, 2), "{source}");
        }
    }
}

/// DESIGN, section 8: a version tag names whose variant it labels.
#[tokio::test]
async fn a_version_tag_is_that_of_its_signer() {
    for signed in [SHARED_KEY, AWS] {
        let (_backend, proxy) = scene(VERSION).await;
        let tag = ask(&proxy, "GET", signed.first, ("Accept", "*/*")).await.etag();
        let stranger = ask(&proxy, "GET", signed.other, ("If-None-Match", &tag)).await;
        assert_eq!(stranger.status, 200);
        assert_ne!(stranger.etag(), tag);
    }
}

/// The name of the signer is no proof: a client that cannot sign gets only answers of the backend.
#[tokio::test]
async fn a_forged_signature_learns_nothing() {
    for source in source::EXCLUSIVE {
        let (backend, proxy) = scene(source).await;
        let credentials = ("Authorization", SHARED_KEY.first);
        let old = send(proxy.addr(), "GET", "/doc", &[credentials], "").await.etag();
        assert_eq!(send(proxy.addr(), "PUT", "/doc", &[credentials, ("If-Match", &old)], "two").await.status, 204);
        let current = send(proxy.addr(), "GET", "/doc", &[credentials], "").await.etag();
        for tag in [&old, &current] {
            for condition in ["If-None-Match", "If-Match"] {
                for method in ["GET", "HEAD", "PUT", "DELETE"] {
                    let told = ask(&proxy, method, SHARED_KEY.forged, (condition, tag)).await;
                    assert_eq!(told.status, 403, "{source}: {method} with {condition}: {told:?}");
                }
            }
        }
        assert_eq!(backend.content("/doc").as_deref(), Some("two"), "{source}");
        put_if_match(proxy.addr(), "/doc", &old, "late").await.refused(412, "precondition-failed");
    }
}
