//! The files that people begin with, run as they are (but for the ports) in front of the real nginx.

use std::{fs, net::SocketAddr, path::Path};

use crate::support::{
    leases::{Grant, acquire, lease, put_with, release},
    nginx::Nginx,
    proxy::Proxy,
    raw::{get, put, put_if_match, send},
    response::Response,
};

/// The proxy that a file describes, in front of this backend.
pub async fn start_in_front_of(backend: SocketAddr, file: &str) -> Proxy {
    start_changed(backend, file, |text| text).await
}

/// The same with a change that the file suggests.
pub async fn start_changed(backend: SocketAddr, file: &str, change: impl FnOnce(String) -> String) -> Proxy {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("config").join(file)).expect("the file");
    let replaced = |text: String, from: &str, to: &str| {
        assert_eq!(text.matches(from).count(), 1, "{from} in {file}");
        text.replace(from, to)
    };
    let text = replaced(text, "listen = [\"127.0.0.1:8080\"]", "{listen}");
    Proxy::start(&change(replaced(text, "127.0.0.1:9000", &backend.to_string()))).await
}

/// An nginx, and the proxy that this file describes in front of it.
async fn start(file: &str) -> (Nginx, Proxy) {
    let nginx = Nginx::start().await;
    let proxy = start_in_front_of(nginx.addr(), file).await;
    (nginx, proxy)
}

/// Creates, reads, changes with the tag, fails to change with the old tag and without any, deletes.
async fn write_cycle(addr: SocketAddr, target: &str) {
    let create = async || put(addr, target, &[("If-None-Match", "*")], "one").await;
    assert_eq!(create().await.status, 201);
    create().await.refused(412, "precondition-failed");
    let first = get(addr, target).await;
    assert_eq!(first.text(), "one");
    assert_eq!(put_if_match(addr, target, &first.etag(), "two").await.status, 204);
    put_if_match(addr, target, &first.etag(), "three").await.refused(412, "precondition-failed");
    put(addr, target, &[], "four").await.refused(428, "precondition-required");
    let second = get(addr, target).await;
    assert_eq!(second.text(), "two");
    let delete = async |tag: &str| send(addr, "DELETE", target, &[("If-Match", tag)], "").await;
    delete(&first.etag()).await.refused(412, "precondition-failed");
    assert_eq!(delete(&second.etag()).await.status, 204);
    assert_eq!(get(addr, target).await.status, 404);
}

fn is_from_the_backend(response: &Response) -> bool {
    response.headers.contains("via")
}

#[tokio::test]
async fn quickstart_guards_everything() {
    let (nginx, proxy) = start("quickstart.toml").await;
    write_cycle(proxy.addr(), "/any/where/file.txt").await;
    // Before the first DELETE the server is asked whether it speaks WebDAV, and so could remove a collection.
    let writes = [
        "PUT /any/where/file.txt 201",
        "PUT /any/where/file.txt 204",
        "OPTIONS /any/where/file.txt 405",
        "DELETE /any/where/file.txt 204",
    ];
    let lines = nginx.access_lines().await;
    assert_eq!(lines.iter().filter(|line| !line.starts_with("GET")).collect::<Vec<_>>(), writes.each_ref());
}

#[tokio::test]
async fn optimistic_guards_each_kind_in_its_way() {
    let (_nginx, proxy) = start("optimistic.toml").await;
    let addr = proxy.addr();
    // A write that appends needs no precondition. The result of a POST is the business of nginx.
    let post = send(addr, "POST", "/documents", &[], "new").await;
    assert!(post.status == 404 && is_from_the_backend(&post), "{post:?}");

    write_cycle(addr, "/documents/1").await;

    // A drawing may be created without a precondition, and changes with all its parts.
    assert_eq!(put(addr, "/drawings/1/a", &[], "one").await.status, 201);
    put(addr, "/drawings/1/a", &[], "two").await.refused(428, "precondition-required");
    let tag = get(addr, "/drawings/1/a").await.etag();
    assert_eq!(put_if_match(addr, "/drawings/1/a", &tag, "two").await.status, 204);
    put_if_match(addr, "/drawings/1/a", &tag, "three").await.refused(412, "precondition-failed");
    assert_eq!(get(addr, "/drawings/1/a").await.text(), "two");

    // Nothing is guarded there.
    for status in [201, 204] {
        let written = put(addr, "/static/style.css", &[], "a {}").await;
        assert!(written.status == status && is_from_the_backend(&written), "{written:?}");
    }
    get(addr, "/elsewhere").await.refused(404, "no-route");
}

/// The partition of the documents.
const PARTITION: (&str, &str) = ("x-ms-documentdb-partitionkey", "[\"books\"]");
const JSON: (&str, &str) = ("Content-Type", "application/json");

async fn get_document(addr: SocketAddr, target: &str) -> Response {
    send(addr, "GET", target, &[PARTITION], "").await
}

async fn put_document(addr: SocketAddr, target: &str, fields: &[(&str, &str)], body: impl AsRef<[u8]>) -> Response {
    put(addr, target, &[&[PARTITION], fields].concat(), body).await
}

#[tokio::test]
async fn documents_carry_the_tag_of_their_last_change() {
    let nginx = Nginx::with("etag on; add_header X-Document-Etag $sent_http_etag;").await;
    let proxy = start_in_front_of(nginx.addr(), "cosmos-document.toml").await;
    let (addr, document) = (proxy.addr(), "/dbs/shop/colls/orders/docs/7");
    assert_eq!(put_document(addr, document, &[("If-None-Match", "*")], "one").await.status, 201);
    let first = get_document(addr, document).await;
    assert_eq!(first.headers.all("x-document-etag"), [first.etag()]);
    assert_eq!(put_document(addr, document, &[("If-Match", &first.etag())], "longer").await.status, 204);
    put_document(addr, document, &[("If-Match", &first.etag())], "stale").await.refused(412, "precondition-failed");
    assert_eq!(put_document(addr, document, &[], "the last writer wins").await.status, 204);
}

/// Cosmos's clients take the tag from the document.
#[tokio::test]
async fn documents_can_hold_their_tag_themselves() {
    let from_document = |text: String| {
        let (suggested, own) = ("etag = \"json:/_etag\"", "etag = \"header:X-Document-Etag\"");
        assert!(text.contains(&format!("#   {suggested}\n")), "the file suggests it");
        text.replace(own, suggested)
    };
    let nginx = Nginx::start().await;
    let proxy = start_changed(nginx.addr(), "cosmos-document.toml", from_document).await;
    let (addr, document) = (proxy.addr(), "/dbs/shop/colls/orders/docs/7");
    let at = |change: u8| format!(r#"{{"id": "7", "_etag": "\"0000-{change}\"", "_ts": 1}}"#);
    assert_eq!(put_document(addr, document, &[("If-None-Match", "*")], at(1)).await.status, 201);
    let read = get_document(addr, document).await;
    assert_eq!((read.etag().as_str(), read.text()), ("\"0000-1\"", at(1).as_str()));
    assert_eq!(put_document(addr, document, &[("If-Match", "\"0000-1\"")], at(2)).await.etag(), "\"0000-2\"");
    put_document(addr, document, &[("If-Match", "\"0000-1\"")], at(3)).await.refused(412, "precondition-failed");
    assert_eq!(get_document(addr, document).await.text(), at(2));
}

/// A work item is a resource and a stage, and each is a lock of its own.
#[tokio::test]
async fn worker_locks_guard_results() {
    let (_nginx, proxy) = start("worker-locks.toml").await;
    let addr = proxy.addr();
    let [resize, scan] = ["/jobs/42/resize", "/jobs/42/scan"];
    put(addr, resize, &[], "one").await.refused(412, "lease-id-missing");
    let lock = acquire(addr, resize, "30").await;
    lease(addr, "POST", resize, &[]).await.refused(409, "lease-held");
    // The same item in another spelling, and with a query.
    lease(addr, "POST", "/jobs//42/%72esize?now", &[]).await.refused(409, "lease-held");
    assert_eq!(put_with(addr, resize, &lock.id, "one").await.status, 201);
    put_with(addr, scan, &lock.id, "one").await.refused(412, "lease-not-present");
    let other = acquire(addr, scan, "30").await;
    assert!(other.fence > lock.fence);
    assert_eq!(lease(addr, "PUT", resize, &[("Lease-Id", &lock.id)]).await.status, 200);
    release(addr, resize, &lock.id).await;
    put_with(addr, resize, &lock.id, "two").await.refused(412, "lease-not-present");
    assert_eq!(get(addr, resize).await.text(), "one");
}

#[tokio::test]
async fn files_are_opened_exclusively() {
    let (_nginx, proxy) = start("azure-file-share.toml").await;
    let (addr, file) = (proxy.addr(), "/share/plan.txt");
    put(addr, file, &[], "one").await.refused(412, "lease-id-missing");
    let handle = acquire(addr, file, "infinite").await;
    lease(addr, "POST", file, &[("Prefer", "wait=20")]).await.refused(409, "lease-held");
    assert_eq!(put_with(addr, file, &handle.id, "one").await.status, 201);
    let violation = get(addr, file).await.refused(409, "sharing-violation");
    assert_eq!(violation.retry_after_seconds, Some(1), "the file may be closed");
    put(addr, file, &[], "one").await.refused(409, "sharing-violation");
    assert_eq!(send(addr, "GET", file, &[("Lease-Id", &handle.id)], "").await.text(), "one");
    release(addr, file, &handle.id).await;
    let next = acquire(addr, file, "infinite").await;
    let closed = lease(addr, "DELETE", file, &[("Lease-Break-Period", "0")]).await;
    assert_eq!(closed.status, 202);
    put_with(addr, file, &next.id, "two").await.refused(412, "lease-lost");
    let shared = [("Lease-Duration", "infinite"), ("Lease-Mode", "shared")];
    let open = async || Grant::of(&lease(addr, "POST", file, &shared).await);
    let [one, other] = [open().await, open().await];
    assert_eq!(put_with(addr, file, &one.id, "two").await.status, 204);
    assert_eq!(send(addr, "GET", file, &[("Lease-Id", &other.id)], "").await.text(), "two");
    release(addr, file, &one.id).await;
    lease(addr, "POST", file, &[("Lease-Duration", "infinite")]).await.refused(409, "lease-held");
    release(addr, file, &other.id).await;
    let last = acquire(addr, file, "infinite").await;
    release(addr, file, &last.id).await;
    let [one, other] = [open().await, open().await];
    assert_eq!(send(addr, "DELETE", file, &[("Lease-Id", &one.id)], "").await.status, 202);
    let pending = get(addr, file).await.refused(409, "delete-pending");
    assert_eq!(pending.retry_after_seconds, Some(1), "the DELETE may be withdrawn");
    lease(addr, "POST", file, &shared).await.refused(409, "delete-pending");
    assert_eq!(send(addr, "GET", file, &[("Lease-Id", &other.id)], "").await.text(), "two");
    release(addr, file, &other.id).await;
    let next = acquire(addr, file, "infinite").await;
    assert_eq!(send(addr, "GET", file, &[("Lease-Id", &next.id)], "").await.status, 404, "it is deleted on close");
}

/// `CreateFile` with each access and share mode that editors use.
#[tokio::test]
async fn files_are_shared_with_readers_and_not_with_writers() {
    let (_nginx, proxy) = start("azure-file-share.toml").await;
    let (addr, file) = (proxy.addr(), "/share/plan.txt");
    let open = async |access: &str, share: &str| {
        let modes = [("Lease-Mode", "shared"), ("Lease-Access", access), ("Lease-Share", share)];
        lease(addr, "POST", file, &[&modes[..], &[("Lease-Duration", "infinite")]].concat()).await
    };
    let editor = Grant::of(&open("read, write", "read").await);
    assert_eq!(put_with(addr, file, &editor.id, "one").await.status, 201);
    open("read", "read").await.refused(409, "lease-held");
    open("write", "read, write, delete").await.refused(409, "lease-held");
    let viewer = Grant::of(&open("read", "read, write").await);
    assert_eq!(send(addr, "GET", file, &[("Lease-Id", &viewer.id)], "").await.text(), "one");
    for (method, handle) in [("PUT", &viewer), ("DELETE", &viewer), ("DELETE", &editor)] {
        send(addr, method, file, &[("Lease-Id", &handle.id)], "two").await.refused(412, "lease-access");
    }
    release(addr, file, &editor.id).await;
    let copier = Grant::of(&open("read", "read").await);
    open("write", "read").await.refused(409, "lease-held");
    release(addr, file, &copier.id).await;
    release(addr, file, &viewer.id).await;
    let remover = Grant::of(&open("delete", "none").await);
    assert!(remover.fence > copier.fence);
}

#[tokio::test]
async fn the_last_writer_wins() {
    let (_nginx, proxy) = start("last-writer-wins.toml").await;
    let addr = proxy.addr();
    for (body, status) in [("one", 201), ("two", 204)] {
        let written = put(addr, "/sensors/1", &[("If-Match", "\"any\"")], body).await;
        assert!(written.status == status && is_from_the_backend(&written), "{written:?}");
    }
    let read = get(addr, "/sensors/1").await;
    assert_eq!((read.text(), read.header("etag")), ("two", None));
}

/// The tag is in a field of the service's own, and to present it is the client's choice.
#[tokio::test]
async fn documents_are_checked_where_their_tag_is_presented() {
    // This tag changes with the second and the length alone, so each write here has a length of its own.
    let nginx = Nginx::with("etag on; add_header X-Document-Etag $sent_http_etag;").await;
    let proxy = start_in_front_of(nginx.addr(), "cosmos-document.toml").await;
    let (addr, document) = (proxy.addr(), "/dbs/shop/colls/orders/docs/7");
    let create = async || put_document(addr, document, &[("If-None-Match", "*")], "1").await;
    assert_eq!(create().await.status, 201);
    create().await.refused(412, "precondition-failed");

    let read = get_document(addr, document).await;
    let first = read.etag();
    assert_eq!(read.header("x-document-etag"), Some(first.as_str()));
    let written = put_document(addr, document, &[("If-Match", &first)], "22").await;
    assert_eq!(written.status, 204);
    put_document(addr, document, &[("If-Match", &first)], "333").await.refused(412, "precondition-failed");

    // The last writer wins if no tag is presented. The tag also shows a write that did not pass the proxy.
    assert_eq!(put_document(addr, document, &[], "4444").await.status, 204);
    let second = get_document(addr, document).await.etag();
    fs::write(nginx.root().join(&document[1..]), "55555").expect("a file");
    put_document(addr, document, &[("If-Match", &second)], "666666").await.refused(412, "precondition-failed");
    assert_eq!(get_document(addr, document).await.text(), "55555");
    let upsert =
        send(addr, "POST", "/dbs/shop/colls/orders/docs", &[PARTITION, JSON, ("If-Match", &second)], r#"{"id": "7"}"#)
            .await;
    upsert.refused(412, "precondition-failed");
}
