//! A lease id with a missing resource: Azure reports that it does not exist, and nothing about leases.

use crate::support::{
    azure::{CONTAINERS, assert_error, blobs, put_blob},
    backend::{Answer, Backend, Validators},
    leases::IDS,
    raw::send,
};

#[tokio::test]
async fn what_does_not_exist_is_not_found_whatever_lease_is_named() {
    let backend = Backend::with(Validators::Dates).await;
    let proxy = blobs(&backend).start().await;
    let (addr, id) = (proxy.addr(), ("x-ms-lease-id", IDS[0]));
    for method in ["GET", "HEAD", "DELETE"] {
        for fields in [&[id][..], &[id, ("If-Unmodified-Since", "Sun, 06 Nov 1994 08:49:37 GMT")]] {
            assert_error(&send(addr, method, "/nothing", fields, "").await, 404, "BlobNotFound");
        }
        let matching = send(addr, method, "/nothing", &[id, ("If-Match", "\"a\"")], "").await;
        assert_error(&matching, 412, "ConditionNotMet");
    }
    assert_error(&put_blob(addr, "/nothing", &[id], "one").await, 412, "LeaseNotPresentWithBlobOperation");
    assert_eq!(backend.count("DELETE", "*") + backend.count("PUT", "*"), 0);
}

#[tokio::test]
async fn what_exists_without_that_lease_is_told_to_have_none() {
    let backend = Backend::with(Validators::Dates).await;
    let proxy = blobs(&backend).start().await;
    let (addr, id) = (proxy.addr(), ("x-ms-lease-id", IDS[0]));
    assert_eq!(put_blob(addr, "/blob", &[], "one").await.status, 201);
    for method in ["GET", "HEAD", "DELETE"] {
        let refused = send(addr, method, "/blob", &[id], "").await;
        assert_error(&refused, 412, "LeaseNotPresentWithBlobOperation");
    }
    assert_eq!(backend.content("/blob").as_deref(), Some("one"));
}

/// DESIGN, section 8: what the backend says of the client goes first.
#[tokio::test]
async fn a_client_without_the_right_does_not_learn_whether_it_exists() {
    let backend = Backend::with(Validators::Dates).await;
    let proxy = blobs(&backend).start().await;
    backend.always("*", "/secret", |_| Answer::status(403));
    for method in ["GET", "HEAD", "DELETE"] {
        let refused = send(proxy.addr(), method, "/secret", &[("x-ms-lease-id", IDS[0])], "").await;
        assert_error(&refused, 403, "AuthorizationFailure");
    }
    assert_eq!(backend.count("DELETE", "*"), 0);
}

#[tokio::test]
async fn a_container_that_does_not_exist_is_not_found() {
    let backend = Backend::with(Validators::Dates).await;
    let proxy = blobs(&backend).route(CONTAINERS).start().await;
    for method in ["GET", "HEAD", "DELETE"] {
        let fields = [("x-ms-lease-id", IDS[0])];
        let missing = send(proxy.addr(), method, "/nothing?restype=container", &fields, "").await;
        assert_error(&missing, 404, "ContainerNotFound");
    }
    assert_eq!(backend.count("DELETE", "*"), 0);
}
