//! Lists of blobs: made of the indexes of folders, with the rights of the client.

use super::azure_sdk::{passes, python, start};
use crate::support::{
    azure::{BLOBS, CONTAINERS, assert_common, assert_error},
    backend::{Answer, Backend, Request},
    leases::IDS,
    proxy::Proxy,
    raw::send,
};

const LIST: &str = "/photos?restype=container&comp=list";

fn index(entries: &str) -> Answer {
    Answer::status(200).header("Content-Type", "application/json").body(format!("[{entries}]"))
}

#[tokio::test]
async fn folders_are_asked_for_with_the_rights_of_the_client() {
    let backend = Backend::start().await;
    let proxy = Proxy::to(backend.addr()).route(&format!("{BLOBS}\n{CONTAINERS}")).start().await;
    let addr = proxy.addr();
    backend.put("/photos/?sig=a%2Bb", "");
    backend.once("GET", "/photos/?sig=a%2Bb", index(r#"{"name":"a b","type":"directory"}"#));
    backend.once("GET", "/photos/a%20b/?sig=a%2Bb", index(r#"{"name":"cat","type":"file","size":3}"#));
    let fields = [("Authorization", "Bearer alice"), ("Range", "bytes=0-1")];
    let listed = send(addr, "GET", &format!("{LIST}&sig=a%2Bb"), &fields, "").await;
    assert_eq!(listed.status, 200, "{listed:?}");
    assert_common(&listed);
    assert_eq!((listed.headers.all("etag").len(), listed.headers.all("last-modified").len()), (0, 0), "{listed:?}");
    assert_eq!(listed.headers.all("content-type"), ["application/xml"]);
    assert!(listed.text().contains("<Blob><Name>a b/cat</Name>"), "{listed:?}");
    let seen = backend.requests();
    assert!(seen.iter().all(|request| request.header("authorization") == Some("Bearer alice")), "{seen:?}");
    assert!(seen.iter().all(|request| request.header("range").is_none()), "{seen:?}");
    let asked: Vec<String> = seen.iter().map(|request| format!("{} {}", request.method, request.target)).collect();
    assert_eq!(asked, ["HEAD /photos/?sig=a%2Bb", "GET /photos/?sig=a%2Bb", "GET /photos/a%20b/?sig=a%2Bb"]);
}

#[tokio::test]
async fn what_the_backend_does_not_show_is_not_listed() {
    let backend = Backend::start().await;
    let proxy = Proxy::to(backend.addr()).route(&format!("{BLOBS}\n{CONTAINERS}")).start().await;
    let addr = proxy.addr();
    backend.once("HEAD", "/photos/", Answer::status(403));
    assert_error(&send(addr, "GET", LIST, &[], "").await, 403, "AuthorizationFailure");
    assert_eq!(backend.count("GET", "*"), 0, "a client that may not see the container sees no list");
    backend.put("/photos/", "<html>");
    assert_error(&send(addr, "GET", LIST, &[], "").await, 501, "NotImplemented");
    backend.once("GET", "/photos/", Answer::status(500));
    assert_error(&send(addr, "GET", LIST, &[], "").await, 500, "InternalError");
    // A folder that is gone has no files.
    backend.once("GET", "/photos/", index(r#"{"name":"gone","type":"directory"}"#));
    backend.once("GET", "/photos/gone/", Answer::status(404));
    let listed = send(addr, "GET", LIST, &[], "").await;
    assert!(listed.text().contains("<Blobs></Blobs><NextMarker></NextMarker>"), "{listed:?}");
}

/// A proxy with a route of blobs and one of containers, both with metadata.
async fn with_metadata(backend: &Backend) -> Proxy {
    let blobs = Proxy::to(backend.addr()).route(&format!("{BLOBS}\nmetadata_suffix = \".meta\"")).configuration();
    let (_, route) = blobs.split_once("[[routes]]").expect("a route");
    let containers = route.replace("\"all\"", "\"containers\"").replace("\"/{*rest}\"", "\"/{container}\"");
    Proxy::start(&format!("{blobs}\n[[routes]]{containers}\n{CONTAINERS}")).await
}

#[tokio::test]
async fn a_list_with_metadata_shows_what_a_read_of_each_blob_shows() {
    let backend = Backend::start().await;
    let proxy = with_metadata(&backend).await;
    let addr = proxy.addr();
    let entry = |name| format!(r#"{{"name":"{name}","type":"file","size":9}}"#);
    let entries = ["gone", "mine", "mine.meta", "secret"].map(entry).join(",");
    backend.always("GET", "/photos/?sig=a%2Bb", move |_| index(&entries));
    for (name, body) in [("", "x"), ("mine", "four"), ("mine.meta", r#"{"owner":"alice"}"#)] {
        backend.put(&format!("/photos/{name}?sig=a%2Bb"), body);
    }
    backend.always("*", "/photos/secret?sig=a%2Bb", |_| Answer::status(403));
    let (target, alice) = (format!("{LIST}&include=metadata&sig=a%2Bb"), ("Authorization", "Bearer alice"));
    // The lease of the container, which is not that of its blobs.
    let lease = [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "60"), ("x-ms-proposed-lease-id", IDS[0])];
    let leased = "/photos?restype=container&comp=lease&sig=a%2Bb";
    assert_eq!(send(addr, "PUT", leased, &[&[alice], &lease[..]].concat(), "").await.status, 201);
    let listed = send(addr, "GET", &target, &[alice, ("x-ms-lease-id", IDS[0])], "").await;
    assert_eq!(listed.status, 200, "{listed:?}");
    let seen = backend.requests();
    let is_of_alice = |request: &Request| {
        request.header("authorization") == Some("Bearer alice") && request.header("x-ms-lease-id").is_none()
    };
    assert!(seen.iter().all(is_of_alice), "{seen:?}");
    let tag = send(addr, "GET", "/photos/mine?sig=a%2Bb", &[alice], "").await.etag();
    let mine = format!("<Etag>{}</Etag><Content-Length>4</Content-Length>", tag.trim_matches('"'));
    let (lease, metadata) = ("<LeaseState>available</LeaseState>", "<Metadata><owner>alice</owner></Metadata>");
    for shown in [&*mine, lease, metadata, "<Name>secret</Name><Properties><Content-Length>9</Content-Length>"] {
        assert_eq!(listed.text().matches(shown).count(), 1, "{shown} in {listed:?}");
    }
    assert!(!listed.text().contains("gone") && !listed.text().contains(".meta"), "{listed:?}");

    backend.once("HEAD", "/photos/mine?sig=a%2Bb", Answer::status(404));
    let listed = send(addr, "GET", &target, &[alice], "").await;
    assert!(
        listed.text().contains("<Metadata><owner>alice</owner></Metadata>"),
        "HEAD alone hides nothing: {listed:?}"
    );
    for method in ["HEAD", "GET"] {
        backend.once(method, "/photos/mine?sig=a%2Bb", Answer::status(500));
    }
    assert_error(&send(addr, "GET", &target, &[alice], "").await, 500, "InternalError");
}

#[tokio::test]
async fn the_sdk_for_python_lists_blobs() {
    let (_nginx, proxy) = start("azure-container.toml").await;
    passes(python(), "lists.py", proxy.addr()).await;
}
