//! Containers: the document that keeps their metadata and their date, and the list of an account.

use std::net::SocketAddr;

use super::azure_sdk::{node, passes, python, start};
use crate::support::{
    azure::{assert_common, assert_done, assert_error, put_blob},
    backend::{Answer, Backend, Validators},
    proxy::Proxy,
    raw::send,
    response::Response,
};

const ALICE: (&str, &str) = ("x-ms-meta-owner", "alice");
const BOB: (&str, &str) = ("x-ms-meta-owner", "bob");
const FOLDER: &str = "/photos/";
const DOCUMENT: &str = "/photos/.meta";

/// Routes of an account, of its containers and of their blobs, all of which keep metadata.
async fn started(validators: Validators) -> (Backend, Proxy) {
    let backend = Backend::with(validators).await;
    let route =
        |name: &str, path: &str, lines: &str| format!("[[routes]]\nname = \"{name}\"\npath = \"{path}\"\n{lines}\n");
    let routes = [
        route("account", "/", "members = \"/{container}\""),
        route("containers", "/{container}", "lease = { guards = [\"delete\"] }"),
        route("blobs", "/{container}/{*blob}", "lease = { guards = [\"write\"] }"),
    ];
    let proxy = Proxy::start(&format!(
        "[server]\n{{listen}}\n[upstreams.blobs]\nservers = [\"{}\"]\n[defaults]\nupstream = \"blobs\"\n\
         policy = \"pessimistic\"\ndialect = \"azure\"\netag = \"version\"\nother_writers = false\n\
         metadata_suffix = \".meta\"\n{}",
        backend.addr(),
        routes.concat()
    ))
    .await;
    (backend, proxy)
}

async fn container(addr: SocketAddr, method: &str, query: &str, fields: &[(&str, &str)]) -> Response {
    send(addr, method, &format!("/photos?restype=container{query}"), fields, "").await
}

#[tokio::test]
async fn the_sdk_for_python_keeps_metadata_and_dates_of_containers() {
    let (_nginx, proxy) = start("azure-container.toml").await;
    passes(python(), "containers.py", proxy.addr()).await;
}

#[tokio::test]
async fn the_sdk_for_javascript_keeps_metadata_of_containers() {
    let (_nginx, proxy) = start("azure-container.toml").await;
    passes(node(), "containers.cjs", proxy.addr()).await;
}

/// The document comes after the folder and goes with it, so that no container has the metadata of its predecessor.
#[tokio::test]
async fn a_container_has_a_document_from_its_beginning() {
    let (backend, proxy) = started(Validators::Dates).await;
    let addr = proxy.addr();
    for fields in [&[][..], &[ALICE]] {
        assert_done(&container(addr, "PUT", "", fields).await, 201);
        let seen = backend.requests();
        let writes: Vec<String> = seen
            .iter()
            .filter(|request| !matches!(request.method.as_str(), "GET" | "HEAD"))
            .map(|request| format!("{} {}", request.method, request.target))
            .collect();
        assert_eq!(writes[writes.len() - 2..], [format!("MKCOL {FOLDER}"), format!("PUT {DOCUMENT}")]);
        assert_eq!(container(addr, "DELETE", "", &[]).await.status, 202);
        assert_eq!(backend.requests().last().expect("a request").target, FOLDER, "the document goes with its folder");
    }
}

#[tokio::test]
async fn metadata_alone_are_a_new_state_of_the_container() {
    let (backend, proxy) = started(Validators::Dates).await;
    let addr = proxy.addr();
    assert_error(&container(addr, "PUT", "&comp=metadata", &[ALICE]).await, 404, "ContainerNotFound");
    assert_error(&container(addr, "GET", "&comp=metadata", &[]).await, 404, "ContainerNotFound");
    let first = assert_done(&container(addr, "PUT", "", &[ALICE]).await, 201);
    let read = container(addr, "GET", "", &[]).await;
    assert_eq!((assert_done(&read, 200), read.header("x-ms-meta-owner")), (first.clone(), Some("alice")));
    let date = read.header("last-modified").expect("a date").to_owned();
    put_blob(addr, "/photos/cat", &[], "one").await;
    let later = container(addr, "GET", "", &[]).await;
    assert_eq!(
        (later.etag(), later.header("last-modified")),
        (first.clone(), Some(&*date)),
        "a blob is not the container"
    );
    let second = container(addr, "PUT", "&comp=metadata", &[BOB]).await;
    assert_ne!(assert_done(&second, 200), first);
    assert_eq!(backend.content(DOCUMENT).as_deref(), Some(r#"{"owner":"bob"}"#));
    assert_eq!(backend.count("MKCOL", FOLDER), 1);
    for method in ["GET", "HEAD"] {
        let shown = container(addr, method, "&comp=metadata", &[]).await;
        assert_eq!((assert_done(&shown, 200), shown.header("x-ms-meta-owner")), (second.etag(), Some("bob")));
    }
    let stale = container(addr, "DELETE", "", &[("If-Unmodified-Since", &date)]).await;
    assert_error(&stale, 412, "ConditionNotMet");
    let unserved = container(addr, "PUT", "&comp=metadata", &[("If-Match", &first)]).await;
    assert_error(&unserved, 400, "UnsupportedHeader");
    for (method, query) in [("GET", "&comp=acl"), ("PUT", "&comp=acl")] {
        assert_error(&container(addr, method, query, &[]).await, 501, "NotImplemented");
    }
}

/// Rule 3: a container without its document is neither made nor refused.
#[tokio::test]
async fn a_container_without_its_document_is_not_acknowledged() {
    let (backend, proxy) = started(Validators::Dates).await;
    let addr = proxy.addr();
    backend.once("PUT", DOCUMENT, Answer::status(403));
    assert_error(&container(addr, "PUT", "", &[ALICE]).await, 500, "InternalError");
    assert_error(&container(addr, "PUT", "", &[ALICE]).await, 409, "ContainerAlreadyExists");
    assert_done(&container(addr, "PUT", "&comp=metadata", &[ALICE]).await, 200);
    assert_eq!(container(addr, "GET", "", &[]).await.header("x-ms-meta-owner"), Some("alice"));
}

#[tokio::test]
async fn an_account_lists_its_folders_with_the_rights_of_the_client() {
    let (backend, proxy) = started(Validators::Dates).await;
    let addr = proxy.addr();
    let entry = |name: &str, kind: &str| format!(r#"{{"name":"{name}","type":"{kind}"}}"#);
    let entries = [entry("photos", "directory"), entry("secret", "directory"), entry("x.txt", "file")].join(",");
    backend.always("GET", "/?sig=a%2Bb", move |_| {
        Answer::status(200).header("Content-Type", "application/json").body(format!("[{entries}]"))
    });
    backend.put("/?sig=a%2Bb", "x");
    backend.put("/photos/?sig=a%2Bb", "x");
    backend.put("/photos/.meta?sig=a%2Bb", r#"{"owner":"alice"}"#);
    backend.always("*", "/secret/?sig=a%2Bb", |_| Answer::status(403));
    let alice = ("Authorization", "Bearer alice");
    let listed = send(addr, "GET", "/?comp=list&include=metadata&sig=a%2Bb", &[alice], "").await;
    assert_eq!(listed.status, 200, "{listed:?}");
    assert_common(&listed);
    assert_eq!((listed.headers.all("etag").len(), listed.headers.all("last-modified").len()), (0, 0), "{listed:?}");
    let photos = container(addr, "GET", "&sig=a%2Bb", &[alice]).await;
    let shown = [
        format!("<Last-Modified>{}</Last-Modified>", photos.header("last-modified").expect("a date")),
        "<LeaseState>available</LeaseState></Properties><Metadata><owner>alice</owner></Metadata>".to_owned(),
        "<Container><Name>secret</Name><Properties></Properties>".to_owned(),
    ];
    for part in &shown {
        assert_eq!(listed.text().matches(part).count(), 1, "{part} in {listed:?}");
    }
    assert!(!listed.text().contains("x.txt"), "{listed:?}");
    assert!(backend.requests().iter().all(|request| request.header("authorization") == Some("Bearer alice")));
    // In this dialect no read takes a member of the account.
    let fields = [alice, ("Lease-Duration", "60")];
    let taking = send(addr, "GET", "/?comp=list&sig=a%2Bb", &fields, "").await;
    assert_eq!((taking.status, taking.header("lease-id"), taking.header("content-location")), (200, None, None));
    backend.once("HEAD", "/", Answer::status(403));
    assert_error(&send(addr, "GET", "/?comp=list", &[], "").await, 403, "AuthorizationFailure");
    assert_error(&send(addr, "PUT", "/", &[("x-ms-blob-type", "BlockBlob")], "x").await, 501, "NotImplemented");
}
