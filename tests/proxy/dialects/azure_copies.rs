//! Copy Blob: a settled read of the source, and a write of the target that is judged like any other.

use std::net::SocketAddr;

use super::azure_sdk::{passes, python, start};
use crate::support::{
    azure::{BLOBS, acquire, assert_done, assert_error, blobs, put_blob},
    backend::{Answer, Backend, Validators},
    leases::IDS,
    proxy::Proxy,
    raw::{get, send},
    response::Response,
};

const SOURCE: &str = "/c/source";
const TARGET: &str = "/c/target";
const PAST: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const LARGE_BYTES: usize = 16 * 1024 * 1024;

/// A backend, a proxy in front of it, and the tags of a source "one" and a target "old".
struct Scene {
    backend: Backend,
    proxy: Proxy,
    source: String,
    target: String,
}

impl Scene {
    async fn start(lines: &str) -> Self {
        let backend = Backend::with(Validators::Dates).await;
        let proxy = blobs(&backend).route(lines).start().await;
        let typed = [("x-ms-blob-content-type", "text/x")];
        let source = assert_done(&put_blob(proxy.addr(), SOURCE, &typed, "one").await, 201);
        let target = assert_done(&put_blob(proxy.addr(), TARGET, &[], "old").await, 201);
        Self { backend, proxy, source, target }
    }

    fn addr(&self) -> SocketAddr {
        self.proxy.addr()
    }

    async fn copy(&self, fields: &[(&str, &str)]) -> Response {
        copy(self.addr(), SOURCE, TARGET, fields).await
    }
}

/// Copies a blob at a proxy.
async fn copy(addr: SocketAddr, source: &str, target: &str, fields: &[(&str, &str)]) -> Response {
    let url = format!("http://test{source}");
    send(addr, "PUT", target, &[&[("x-ms-copy-source", url.as_str())], fields].concat(), "").await
}

/// Checks that a copy was made, and returns the tag of the target.
#[track_caller]
fn assert_copied(response: &Response) -> String {
    let tag = assert_done(response, 202);
    assert_eq!(response.headers.all("x-ms-copy-status"), ["success"], "{response:?}");
    assert_eq!(response.header("x-ms-copy-id").map(str::len), Some(36), "{response:?}");
    tag
}

#[tokio::test]
async fn a_copy_reads_its_source_and_writes_its_target() {
    let scene = Scene::start("").await;
    let fields = [("Authorization", "SharedKey a:b"), ("If-Match", &scene.target), ("x-ms-requires-sync", "true")];
    let tag = assert_copied(&scene.copy(&fields).await);
    let read = send(scene.addr(), "GET", TARGET, &fields[..1], "").await;
    assert_eq!((read.etag(), read.text()), (tag, "one"));
    let put = scene.backend.seen("PUT", TARGET).pop().expect("a write");
    let asked = scene.backend.seen("GET", SOURCE).pop().expect("a read");
    assert_eq!((put.headers.all("content-type"), put.headers.all("content-length")), (vec!["text/plain"], vec!["3"]));
    for request in [&put, &asked] {
        assert_eq!(request.headers.all("authorization"), ["SharedKey a:b"], "the client's own credentials");
        assert!(!request.headers.0.iter().any(|(name, _)| name.to_lowercase().starts_with("x-ms-")), "{request:?}");
    }
    let again = scene.copy(&fields).await;
    assert_error(&again, 412, "ConditionNotMet");
    let source = "/c/source?sv=1&sig=a%2Bb%3D";
    scene.backend.put(source, "one");
    let signed = copy(scene.addr(), source, "/c/other", &[]).await;
    assert_copied(&signed);
    assert_eq!(scene.backend.count("GET", source), 1, "a source has credentials of its own");
}

#[tokio::test]
async fn both_sides_have_their_conditions() {
    let scene = Scene::start("").await;
    let (source, target) = (scene.source.as_str(), scene.target.as_str());
    let puts = scene.backend.count("PUT", TARGET);
    for (fields, status, code) in [
        (&[("x-ms-source-if-match", "\"stale\"")][..], 412, "SourceConditionNotMet"),
        (&[("x-ms-source-if-none-match", source)], 412, "SourceConditionNotMet"),
        (&[("x-ms-source-if-unmodified-since", PAST)], 412, "SourceConditionNotMet"),
        (&[("x-ms-source-if-modified-since", "Sun, 06 Nov 2044 08:49:37 GMT")], 412, "SourceConditionNotMet"),
        (&[("x-ms-source-if-match", source), ("If-Match", "\"stale\"")], 412, "ConditionNotMet"),
        (&[("If-None-Match", "*")], 409, "BlobAlreadyExists"),
        (&[("If-None-Match", target)], 412, "ConditionNotMet"),
        (&[("If-Match", target), ("If-None-Match", "*")], 400, "MultipleConditionHeadersNotSupported"),
    ] {
        assert_error(&scene.copy(fields).await, status, code);
    }
    assert_error(&copy(scene.addr(), "/c/none", TARGET, &[]).await, 404, "CannotVerifyCopySource");
    assert_eq!(scene.backend.count("PUT", TARGET), puts, "nothing was sent");
    assert_copied(&scene.copy(&[("x-ms-source-if-match", source), ("If-Match", target)]).await);
}

/// The MD5 of what was read from the source. That of anything else is none of a copy, and nothing is written then.
#[tokio::test]
async fn a_copy_has_the_md5_that_it_names() {
    let scene = Scene::start("").await;
    let field = |md5| ("x-ms-source-content-md5", md5);
    let (of_one, of_nothing) = ("+XxdKZQb+xsv2rCHSQargg==", "1B2M2Y8AsgTpgAmY7PhCfg==");
    let puts = scene.backend.count("PUT", TARGET);
    assert_error(&scene.copy(&[field(of_nothing)]).await, 400, "Md5Mismatch");
    assert_error(&scene.copy(&[field("abc")]).await, 400, "InvalidMd5");
    assert_eq!(scene.backend.count("PUT", TARGET), puts, "nothing was sent");
    let copied = scene.copy(&[field(of_one)]).await;
    assert_copied(&copied);
    assert_eq!(copied.headers.all("content-md5"), [of_one], "{copied:?}");
    assert_eq!(scene.copy(&[]).await.headers.all("content-md5"), [""; 0], "only a client that names one gets it");
}

/// Rule 10: a lease of either side counts, and each has a field of its own.
#[tokio::test]
async fn both_sides_have_their_leases() {
    let scene = Scene::start("").await;
    let addr = scene.addr();
    acquire(addr, SOURCE, IDS[0], "60").await;
    acquire(addr, TARGET, IDS[1], "60").await;
    let (of_source, of_target) = (("x-ms-source-lease-id", IDS[0]), ("x-ms-lease-id", IDS[1]));
    let mismatch = "LeaseIdMismatchWithBlobOperation";
    assert_error(&scene.copy(&[]).await, 412, "LeaseIdMissing");
    assert_error(&scene.copy(&[("x-ms-lease-id", IDS[0])]).await, 412, mismatch);
    assert_error(&scene.copy(&[("x-ms-source-lease-id", IDS[1]), of_target]).await, 412, mismatch);
    assert_eq!(scene.backend.content(TARGET).as_deref(), Some("old"));
    assert_copied(&scene.copy(&[of_target]).await);
    assert_copied(&scene.copy(&[of_source, of_target]).await);
}

/// A lease that guards reads guards the read of a copy.
#[tokio::test]
async fn a_lease_that_guards_reads_keeps_a_source_from_being_copied() {
    let scene = Scene::start("lease = { guards = [\"read\", \"write\"] }").await;
    acquire(scene.addr(), SOURCE, IDS[0], "60").await;
    assert_error(&scene.copy(&[]).await, 412, "LeaseIdMissing");
    assert_eq!(scene.backend.content(TARGET).as_deref(), Some("old"));
    assert_copied(&scene.copy(&[("x-ms-source-lease-id", IDS[0])]).await);
}

/// The claim of the target is taken after the source was read (rule 5), and what was written in between is not lost.
#[tokio::test]
async fn a_target_that_changes_while_the_source_is_read_is_kept() {
    let scene = Scene::start("").await;
    let addr = scene.addr();
    let read = scene.backend.hold("GET", SOURCE);
    let target = scene.target.clone();
    let copying = tokio::spawn(async move { copy(addr, SOURCE, TARGET, &[("If-Match", &target)]).await });
    let held = read.arrived().await;
    assert_done(&put_blob(addr, TARGET, &[], "of another").await, 201);
    held.answer(Answer::stored()).await;
    assert_error(&copying.await.expect("no panic"), 412, "ConditionNotMet");
    assert_eq!(scene.backend.content(TARGET).as_deref(), Some("of another"));
}

/// Rule 5: a copy waits for the write of its source, and has what that has written.
#[tokio::test]
async fn a_source_that_is_being_written_is_copied_afterwards() {
    let scene = Scene::start("").await;
    let addr = scene.addr();
    let write = scene.backend.hold("PUT", SOURCE);
    let writing = tokio::spawn(async move { put_blob(addr, SOURCE, &[], "two").await });
    let mut held = write.arrived().await;
    let copying = tokio::spawn(async move { copy(addr, SOURCE, TARGET, &[]).await });
    // Only a client that may read the source waits.
    scene.backend.reached("GET", SOURCE, 1).await;
    held.apply().await;
    held.answer(Answer::status(201)).await;
    assert_done(&writing.await.expect("no panic"), 201);
    assert_copied(&copying.await.expect("no panic"));
    assert_eq!(scene.backend.content(TARGET).as_deref(), Some("two"));
}

/// A server may replace a file while it sends it. Neither half of two states is copied.
#[tokio::test]
async fn a_source_that_changes_before_its_last_byte_is_read_again() {
    let scene = Scene::start("").await;
    let addr = scene.addr();
    let read = scene.backend.hold("GET", SOURCE);
    let copying = tokio::spawn(async move { copy(addr, SOURCE, TARGET, &[]).await });
    let mut held = read.arrived().await;
    let length = LARGE_BYTES + 1;
    let announced = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n");
    held.send_bytes(announced).await;
    // More than the buffers of a connection take: the proxy is receiving the content.
    held.send_bytes(vec![b'1'; LARGE_BYTES]).await;
    assert_done(&put_blob(addr, SOURCE, &[], "two").await, 201);
    held.send_bytes("2").await;
    held.close();
    assert_copied(&copying.await.expect("no panic"));
    let copied = scene.backend.content(TARGET);
    assert!(copied.as_deref() == Some("two"), "{:?} bytes", copied.map(|copied| copied.len()));
}

/// A copy of a blob to itself would bring back the state that it has read. Another client has written in between.
#[tokio::test]
async fn a_copy_of_a_blob_to_itself_loses_no_update() {
    let backend = Backend::with(Validators::Dates).await;
    let lines = "policy = \"pessimistic\"\netag = \"content\"\ndialect = \"azure\"\nrequire = \"never\"";
    let proxy = Proxy::to(backend.addr()).route(lines).start().await;
    let addr = proxy.addr();
    backend.put(SOURCE, "one");
    let read = backend.hold("GET", SOURCE);
    let copying = tokio::spawn(async move { copy(addr, SOURCE, SOURCE, &[]).await });
    let held = read.arrived().await;
    let old = Answer::status(200).header("Last-Modified", PAST).body("one");
    backend.put(SOURCE, "two");
    held.answer(old).await;
    assert_error(&copying.await.expect("no panic"), 412, "ConditionNotMet");
    assert_eq!(backend.content(SOURCE).as_deref(), Some("two"));
    assert_copied(&copy(addr, SOURCE, SOURCE, &[]).await);
}

#[tokio::test]
async fn what_this_proxy_does_not_guard_is_no_source() {
    let (backend, other) = (Backend::with(Validators::Dates).await, Backend::with(Validators::Dates).await);
    let lines = format!(
        "{BLOBS}\n[[routes]]\nname = \"open\"\npath = \"/open/{{*rest}}\"\nupstream = \"backend\"\n\
         policy = \"last-writer-wins\"\n[[routes]]\nname = \"plain\"\npath = \"/plain/{{*rest}}\"\nupstream = \"backend\"\n\
         policy = \"optimistic\"\n[[routes]]\nname = \"other\"\npath = \"/other/{{*rest}}\"\nupstream = \"other\"\n{BLOBS}\n\
         [upstreams.other]\nservers = [\"{}\"]",
        other.addr()
    );
    let proxy = Proxy::to(backend.addr()).route(&lines).start().await;
    let addr = proxy.addr();
    for path in ["/open/a", "/plain/a", "/other/a", "/c/a"] {
        backend.put(path, "one");
        other.put(path, "one");
    }
    for source in [
        "http://test/open/a".to_owned(),
        "http://test/plain/a".to_owned(),
        "https://test/other/a".to_owned(),
        "http://elsewhere.test/c/a".to_owned(),
        "http://user@test/c/a".to_owned(),
        "ftp://elsewhere.test/c/a".to_owned(),
    ] {
        let refused = send(addr, "PUT", "/c/b", &[("x-ms-copy-source", &source)], "").await;
        assert_error(&refused, 400, "CannotVerifyCopySource");
    }
    let relative = send(addr, "PUT", "/c/b", &[("x-ms-copy-source", "/c/a")], "").await;
    assert_error(&relative, 400, "InvalidHeaderValue");
    let refused = copy(addr, "/c/a?snapshot=2020", "/c/b", &[]).await;
    assert_error(&refused, 400, "UnsupportedQueryParameter");
    assert_eq!(backend.connections() + other.connections(), 0);
    assert_copied(&copy(addr, "/c/a", "/c/b", &[]).await);
}

#[tokio::test]
async fn a_copy_has_the_description_of_its_source_or_its_own() {
    let scene = Scene::start("metadata_suffix = \".meta\"").await;
    let addr = scene.addr();
    let described = [("x-ms-meta-Owner", "alice"), ("x-ms-blob-content-language", "de")];
    assert_done(&put_blob(addr, SOURCE, &described, "one").await, 201);
    let metadata = |read: &Response| {
        (read.header("x-ms-meta-owner").map(str::to_owned), read.headers.all("content-language").join(""))
    };
    let tag = assert_copied(&scene.copy(&[]).await);
    let read = get(addr, TARGET).await;
    assert_eq!((read.etag(), read.text()), (tag, "one"));
    assert_eq!(metadata(&read), (Some("alice".to_owned()), "de".to_owned()));
    assert_copied(&scene.copy(&[("x-ms-meta-owner", "bob")]).await);
    assert_eq!(metadata(&get(addr, TARGET).await), (Some("bob".to_owned()), "de".to_owned()));
    assert_copied(&copy(addr, SOURCE, SOURCE, &[("x-ms-meta-owner", "carol")]).await);
    let read = get(addr, SOURCE).await;
    assert_eq!((metadata(&read), read.text()), ((Some("carol".to_owned()), "de".to_owned()), "one"));
}

/// Rule 21: the id of a request that copied one blob is not that of a copy of another.
#[tokio::test]
async fn a_retry_of_a_copy_names_the_same_source() {
    let scene = Scene::start("idempotency = \"accept\"").await;
    let id = ("x-ms-client-request-id", "8e03978e-40d5-43e8-bc93-6894a57f9324");
    let fields = [id, ("Authorization", "Bearer a"), ("If-Match", &scene.target)];
    let first = assert_copied(&scene.copy(&fields).await);
    let writes = scene.backend.count("PUT", TARGET);
    let retry = scene.copy(&fields).await;
    assert_eq!((retry.status, retry.etag()), (202, first), "{retry:?}");
    assert_error(&copy(scene.addr(), "/c/other", TARGET, &fields).await, 400, "InvalidHeaderValue");
    assert_eq!(scene.backend.count("PUT", TARGET), writes);
}

#[tokio::test]
async fn a_source_has_at_most_the_size_of_a_body_and_no_copy_can_be_ended() {
    let backend = Backend::with(Validators::Dates).await;
    let proxy = blobs(&backend).server("max_body_memory = \"1KiB\"\nmax_body_size = \"4KiB\"").start().await;
    let addr = proxy.addr();
    for (bytes, status) in [(4096, 202), (4097, 413)] {
        backend.put(SOURCE, vec![b'a'; bytes]);
        assert_eq!(copy(addr, SOURCE, TARGET, &[]).await.status, status, "{bytes}");
    }
    assert_eq!(backend.content(TARGET).map(|content| content.len()), Some(4096));
    let abort = send(addr, "PUT", &format!("{TARGET}?comp=copy&copyid=1"), &[("x-ms-copy-action", "abort")], "").await;
    assert_error(&abort, 409, "NoPendingCopyOperation");
}

#[tokio::test]
async fn the_sdk_for_python_copies() {
    let (_nginx, proxy) = start("azure-container.toml").await;
    passes(python(), "copies.py", proxy.addr()).await;
}

#[tokio::test]
async fn adlfs_copies_moves_and_removes_files() {
    let (_nginx, proxy) = start("azure-container.toml").await;
    passes(python(), "files.py", proxy.addr()).await;
}
