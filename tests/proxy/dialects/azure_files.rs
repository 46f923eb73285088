//! The azure dialect in front of the real nginx, which knows nothing of tags, leases or Azure; with the files that
//! people begin with.

use std::net::SocketAddr;

use crate::{
    operations::example_files::start_in_front_of,
    support::{
        azure::{BLOCK, acquire, assert_common, assert_done, assert_error, lease, lease_of, put_blob},
        leases::{IDS, assert_absent_from_log},
        nginx::Nginx,
        proxy::Proxy,
        raw::{get, send},
        response::Response,
    },
};

/// An nginx as the documentation asks for it, and the proxy that this file describes in front of it.
async fn start(file: &str) -> (Nginx, Proxy) {
    let nginx = Nginx::with("etag off; if_modified_since off; autoindex on; autoindex_format json;").await;
    let proxy = start_in_front_of(nginx.addr(), file).await;
    (nginx, proxy)
}

#[tokio::test]
async fn blobs_are_changed_by_those_who_have_seen_them() {
    let (_nginx, proxy) = start("azure-blob-optimistic.toml").await;
    let (addr, blob) = (proxy.addr(), "/photos/cat.txt");
    assert_error(&get(addr, blob).await, 404, "BlobNotFound");
    let created = put_blob(addr, blob, &[("If-None-Match", "*")], "one").await;
    let first = assert_done(&created, 201);
    assert_error(&put_blob(addr, blob, &[("If-None-Match", "*")], "two").await, 409, "BlobAlreadyExists");
    let read = get(addr, blob).await;
    assert_eq!((assert_done(&read, 200), read.text()), (first.clone(), "one"));
    assert_eq!(read.header("x-ms-blob-type"), Some("BlockBlob"));
    assert_eq!(assert_done(&send(addr, "HEAD", blob, &[], "").await, 200), first);

    let second = assert_done(&put_blob(addr, blob, &[("If-Match", &first)], "two").await, 201);
    assert_ne!(first, second);
    assert_error(&put_blob(addr, blob, &[("If-Match", &first)], "three").await, 412, "ConditionNotMet");
    // The same bytes are another state, and who asks for nothing overwrites.
    let third = assert_done(&put_blob(addr, blob, &[], "two").await, 201);
    assert_ne!(second, third);

    let not_modified = send(addr, "GET", blob, &[("If-None-Match", &third)], "").await;
    assert_eq!((not_modified.status, not_modified.header("x-ms-error-code")), (304, Some("ConditionNotMet")));
    assert_error(&send(addr, "DELETE", blob, &[("If-Match", &first)], "").await, 412, "ConditionNotMet");
    let deleted = send(addr, "DELETE", blob, &[("If-Match", third.trim_matches('"'))], "").await;
    assert_eq!(deleted.status, 202, "{deleted:?}");
    assert_common(&deleted);
    assert_error(&get(addr, blob).await, 404, "BlobNotFound");
}

#[tokio::test]
async fn a_part_of_a_blob_is_read_and_an_empty_blob_has_none() {
    let (_nginx, proxy) = start("azure-blob-optimistic.toml").await;
    let (addr, range) = (proxy.addr(), ("x-ms-range", "bytes=0-33554431"));
    assert_done(&put_blob(addr, "/photos/full", &[], "content").await, 201);
    let whole = send(addr, "GET", "/photos/full", &[range], "").await;
    assert_done(&whole, 206);
    assert_eq!((whole.text(), whole.header("content-range")), ("content", Some("bytes 0-6/7")));
    let part = send(addr, "GET", "/photos/full", &[("x-ms-range", "bytes=1-2"), ("Range", "bytes=0-0")], "").await;
    assert_eq!((part.status, part.text(), part.header("content-range")), (206, "on", Some("bytes 1-2/7")));
    assert_done(&put_blob(addr, "/photos/empty", &[], "").await, 201);
    assert_error(&send(addr, "GET", "/photos/empty", &[range], "").await, 416, "InvalidRange");
    assert_eq!(assert_done(&get(addr, "/photos/empty").await, 200).len(), whole.etag().len());
}

#[tokio::test]
async fn a_leased_blob_is_written_by_its_holder() {
    let (nginx, proxy) = start("azure-blob-pessimistic.toml").await;
    let (addr, blob, [id, other, _]) = (proxy.addr(), "/photos/cat.txt", IDS);
    assert_error(&lease(addr, blob, "acquire", &[("x-ms-lease-duration", "15")]).await, 404, "BlobNotFound");
    let tag = assert_done(&put_blob(addr, blob, &[], "one").await, 201);
    let acquired = acquire(addr, blob, id, "15").await;
    assert_eq!(assert_done(&acquired, 201), tag, "a lease changes no tag");
    let again = [("x-ms-proposed-lease-id", other), ("x-ms-lease-duration", "15")];
    assert_error(&lease(addr, blob, "acquire", &again).await, 409, "LeaseAlreadyPresent");

    assert_error(&put_blob(addr, blob, &[], "two").await, 412, "LeaseIdMissing");
    let wrong = put_blob(addr, blob, &[("x-ms-lease-id", other)], "two").await;
    assert_error(&wrong, 412, "LeaseIdMismatchWithBlobOperation");
    let read = get(addr, blob).await;
    assert_eq!((read.text(), lease_of(&read)), ("one", ("leased", "locked", Some("fixed"))));
    assert_done(&put_blob(addr, blob, &[("x-ms-lease-id", id)], "two").await, 201);

    let renewed = lease(addr, blob, "renew", &[("x-ms-lease-id", id)]).await;
    assert_done(&renewed, 200);
    assert_eq!(renewed.header("x-ms-lease-id"), Some(id));
    let changed = lease(addr, blob, "change", &[("x-ms-lease-id", id), ("x-ms-proposed-lease-id", other)]).await;
    assert_done(&changed, 200);
    assert_eq!(changed.header("x-ms-lease-id"), Some(other));
    let broken = lease(addr, blob, "break", &[("x-ms-lease-break-period", "0")]).await;
    assert_done(&broken, 202);
    assert_eq!(broken.header("x-ms-lease-time"), Some("0"));
    acquire(addr, blob, id, "-1").await;
    assert_eq!(lease_of(&get(addr, blob).await), ("leased", "locked", Some("infinite")));
    let released = lease(addr, blob, "release", &[("x-ms-lease-id", id)]).await;
    assert_done(&released, 200);
    assert_error(
        &lease(addr, blob, "release", &[("x-ms-lease-id", id)]).await,
        409,
        "LeaseIdMismatchWithLeaseOperation",
    );
    assert_done(&put_blob(addr, blob, &[], "three").await, 201);
    let last = "/photos/the-last-request";
    assert_error(&get(addr, last).await, 404, "BlobNotFound");
    for id in [id, other] {
        assert_absent_from_log(&proxy, id, last).await;
    }
    let writes = nginx.access_lines().await.into_iter().filter(|line| line.starts_with("PUT")).count();
    assert_eq!(writes, 3, "nothing but blobs was put");
}

async fn container(addr: SocketAddr, method: &str, fields: &[(&str, &str)]) -> Response {
    send(addr, method, "/photos?restype=container", fields, "").await
}

/// Without a tag, no later upload could be based on the download.
#[tokio::test]
async fn each_download_beside_a_writer_has_a_tag() {
    for file in ["azure-container.toml", "azure-blob-optimistic.toml", "azure-blob-pessimistic.toml"] {
        let (_nginx, proxy) = start(file).await;
        let (addr, target) = (proxy.addr(), "/photos/cat.txt");
        if file == "azure-container.toml" {
            assert_eq!(container(addr, "PUT", &[]).await.status, 201);
        }
        assert_done(&put_blob(addr, target, &[], "0").await, 201);
        let writer = tokio::spawn(async move {
            for number in 1..=40 {
                assert_done(&put_blob(addr, target, &[], &number.to_string()).await, 201);
            }
        });
        let mut read = 0;
        while !writer.is_finished() {
            let seen = send(addr, "GET", target, &[], "").await;
            assert_eq!(seen.status, 200, "{seen:?}");
            assert!(seen.header("etag").is_some(), "{file}: {seen:?} after {read} others");
            read += 1;
        }
        writer.await.expect("all are put");
        assert!(read > 1, "it reads beside the writer");
    }
}

#[tokio::test]
async fn a_leased_container_is_deleted_by_its_holder_alone() {
    let (nginx, proxy) = start("azure-container.toml").await;
    let (addr, [id, ..]) = (proxy.addr(), IDS);
    assert_error(&container(addr, "GET", &[]).await, 404, "ContainerNotFound");
    let created = container(addr, "PUT", &[]).await;
    assert_eq!(created.status, 201, "{created:?}");
    let tag = created.etag();
    assert!(nginx.root().join("photos").is_dir());
    assert_error(&container(addr, "PUT", &[]).await, 409, "ContainerAlreadyExists");
    let target = "/photos?restype=container&comp=lease";
    let acquire = [("x-ms-lease-action", "acquire"), ("x-ms-proposed-lease-id", id), ("x-ms-lease-duration", "-1")];
    let acquired = send(addr, "PUT", target, &acquire, "").await;
    assert_eq!((acquired.status, acquired.etag()), (201, tag.clone()), "{acquired:?}");

    // The blobs in it have nothing to do with that.
    assert_done(&send(addr, "PUT", "/photos/cat.txt", &[BLOCK], "one").await, 201);
    assert_eq!(send(addr, "DELETE", "/photos/cat.txt", &[], "").await.status, 202);
    assert_done(&put_blob(addr, "/photos/dog.txt", &[], "one").await, 201);

    assert_error(&container(addr, "DELETE", &[]).await, 412, "LeaseIdMissing");
    let other = container(addr, "DELETE", &[("x-ms-lease-id", IDS[1])]).await;
    assert_error(&other, 412, "LeaseIdMismatchWithContainerOperation");
    for method in ["GET", "HEAD"] {
        let seen = container(addr, method, &[]).await;
        assert_eq!((seen.status, seen.etag(), seen.text()), (200, tag.clone(), ""), "{seen:?}");
        assert_eq!(lease_of(&seen), ("leased", "locked", Some("infinite")));
    }
    assert!(nginx.root().join("photos/dog.txt").is_file());
    let deleted = container(addr, "DELETE", &[("x-ms-lease-id", id)]).await;
    assert_eq!(deleted.status, 202, "{deleted:?}");
    assert!(!nginx.root().join("photos").exists());
    assert_error(&container(addr, "DELETE", &[]).await, 404, "ContainerNotFound");
}

/// The blobs of a container are gone with it, also for clients that remember them.
#[tokio::test]
async fn blobs_are_gone_with_their_container() {
    let (_nginx, proxy) = start("azure-container.toml").await;
    let (addr, blob) = (proxy.addr(), "/photos/cat.txt");
    for _ in 0..2 {
        assert_eq!(container(addr, "PUT", &[]).await.status, 201);
        let tag = assert_done(&put_blob(addr, blob, &[("If-None-Match", "*")], "one").await, 201);
        assert_done(&get(addr, blob).await, 200);
        assert_eq!(container(addr, "DELETE", &[]).await.status, 202);
        assert_error(&put_blob(addr, blob, &[("If-Match", &tag)], "two").await, 412, "ConditionNotMet");
        assert_error(&send(addr, "GET", blob, &[("If-None-Match", &tag)], "").await, 404, "BlobNotFound");
        assert_error(&lease(addr, blob, "acquire", &[("x-ms-lease-duration", "15")]).await, 404, "BlobNotFound");
    }
}
