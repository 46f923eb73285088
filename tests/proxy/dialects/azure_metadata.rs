//! Metadata of blobs: a document beside each, written under the claim of the blob, and the fate of a half of a write.

use std::net::SocketAddr;

use tokio::time::{Duration, Instant, sleep};

use super::azure_sdk::{passes, python, start};
use crate::support::{
    azure::{BLOBS, acquire, assert_common, assert_done, assert_error, blobs, put_blob},
    backend::{Answer, Backend, Validators},
    leases::IDS,
    proxy::Proxy,
    raw::{get, send},
    response::Response,
    wait::DEADLINE,
};

const METADATA: &str = "metadata_suffix = \".meta\"";
const BLOB: &str = "/c/blob";
const DOCUMENT: &str = "/c/blob.meta";
const ALICE: (&str, &str) = ("x-ms-meta-owner", "alice");
const BOB: (&str, &str) = ("x-ms-meta-owner", "bob");

/// A backend with dates, and a proxy that keeps metadata there.
async fn started(upstream: &str) -> (Backend, Proxy) {
    let backend = Backend::with(Validators::Dates).await;
    let proxy = blobs(&backend).route(METADATA).upstream(upstream).start().await;
    (backend, proxy)
}

async fn set(addr: SocketAddr, fields: &[(&str, &str)]) -> Response {
    send(addr, "PUT", &format!("{BLOB}?comp=metadata"), fields, "").await
}

/// The writes that the backend got, in order.
fn writes(backend: &Backend) -> Vec<String> {
    let is_write = |request: &&crate::support::backend::Request| !matches!(request.method.as_str(), "GET" | "HEAD");
    let seen = backend.requests();
    seen.iter().filter(is_write).map(|request| format!("{} {}", request.method, request.target)).collect()
}

#[tokio::test]
async fn the_document_is_written_after_the_blob_and_removed_before_it() {
    let (backend, proxy) = started("").await;
    let addr = proxy.addr();
    let [id, ..] = IDS;
    let first = assert_done(&put_blob(addr, BLOB, &[ALICE, ("x-ms-meta-x", "a \"b\"")], "one").await, 201);
    assert_eq!(backend.content(DOCUMENT).as_deref(), Some(r#"{"owner":"alice","x":"a \"b\""}"#));
    let read = get(addr, BLOB).await;
    assert_eq!((assert_done(&read, 200), read.text()), (first.clone(), "one"));
    assert_eq!((read.header("x-ms-meta-owner"), read.header("x-ms-meta-x")), (Some("alice"), Some("a \"b\"")));

    acquire(addr, BLOB, id, "60").await;
    let fields = [("x-ms-lease-id", id), ("Authorization", "Bearer alice"), BOB, ("x-ms-blob-content-type", "a/b")];
    let target = format!("{BLOB}?sig=a%2Bb");
    assert_eq!(put_blob(addr, &target, &fields, "two").await.status, 201);
    let parts: Vec<_> = backend.requests().into_iter().filter(|request| request.method == "PUT").skip(2).collect();
    let targets: Vec<&str> = parts.iter().map(|part| part.target.as_str()).collect();
    assert_eq!(targets, ["/c/blob?sig=a%2Bb", "/c/blob.meta?sig=a%2Bb"]);
    for part in &parts {
        assert_eq!(part.header("authorization"), Some("Bearer alice"), "{part:?}");
        assert!(part.header("fencing-token").is_some(), "{part:?}");
        assert!(part.header("x-ms-lease-id").is_none() && part.header("x-ms-meta-owner").is_none(), "{part:?}");
    }
    assert_eq!(
        parts.iter().filter_map(|part| part.header("content-type")).collect::<Vec<_>>(),
        ["a/b", "application/json"]
    );

    // Without a signature the backend has another blob by that name.
    let before = writes(&backend).len();
    assert_eq!(put_blob(addr, BLOB, &[("x-ms-lease-id", id)], "three").await.status, 201);
    assert_eq!(send(addr, "DELETE", BLOB, &[("x-ms-lease-id", id)], "").await.status, 202);
    let after = &writes(&backend)[before..];
    assert_eq!(
        after,
        [format!("PUT {BLOB}"), format!("DELETE {DOCUMENT}"), format!("DELETE {DOCUMENT}"), format!("DELETE {BLOB}")]
    );
}

#[tokio::test]
async fn metadata_alone_are_a_new_state_of_the_blob() {
    let (backend, proxy) = started("").await;
    let addr = proxy.addr();
    assert_error(&set(addr, &[ALICE]).await, 404, "BlobNotFound");
    assert_error(&set(addr, &[ALICE, ("If-None-Match", "*")]).await, 404, "BlobNotFound");
    assert_eq!(writes(&backend), [""; 0]);
    let first = assert_done(&put_blob(addr, BLOB, &[], "one").await, 201);
    let read = get(addr, BLOB).await;
    let second = set(addr, &[ALICE, ("If-Match", &first)]).await;
    let second_tag = assert_done(&second, 200);
    assert_ne!(first, second_tag);
    assert_eq!((second.text(), backend.count("PUT", BLOB)), ("", 1), "the content was not sent again");
    assert_error(&set(addr, &[BOB, ("If-Match", &first)]).await, 412, "ConditionNotMet");
    assert_error(&put_blob(addr, BLOB, &[("If-Match", &first)], "two").await, 412, "ConditionNotMet");
    let by_date = [BOB, ("If-Unmodified-Since", read.header("last-modified").expect("a date"))];
    assert_error(&set(addr, &by_date).await, 412, "ConditionNotMet");
    assert_eq!(backend.content(DOCUMENT).as_deref(), Some(r#"{"owner":"alice"}"#));
    for method in ["GET", "HEAD"] {
        let shown = send(addr, method, &format!("{BLOB}?comp=metadata"), &[], "").await;
        assert_eq!((assert_done(&shown, 200), shown.text()), (second_tag.clone(), ""));
        assert_eq!(shown.header("x-ms-meta-owner"), Some("alice"), "{shown:?}");
        assert_eq!(shown.header("last-modified"), second.header("last-modified"), "{shown:?}");
    }
    assert_error(&get(addr, &format!("{BLOB}2?comp=metadata")).await, 404, "BlobNotFound");
    let known = send(addr, "GET", BLOB, &[("If-None-Match", &second_tag)], "").await;
    assert_eq!(known.status, 304, "{known:?}");
}

/// How the second half of a write fails, and whether the backend may still apply it.
fn failures() -> [(Answer, bool); 4] {
    [
        (Answer::status(403), false),
        (Answer::status(500), false),
        (Answer::close(), true),
        (Answer::reset().applied(), true),
    ]
}

/// Rule 3: such a write is neither applied nor refused.
#[tokio::test]
async fn a_write_without_its_metadata_is_not_acknowledged_and_ends_every_tag() {
    for (failure, in_doubt) in failures() {
        let (backend, proxy) = started("late_write_window = \"1s\"").await;
        let addr = proxy.addr();
        let first = assert_done(&put_blob(addr, BLOB, &[ALICE], "one").await, 201);
        let [id, ..] = IDS;
        acquire(addr, BLOB, id, "60").await;
        backend.once("PUT", DOCUMENT, failure);
        let current = [BOB, ("x-ms-lease-id", id), ("If-Match", &first)];
        let half = put_blob(addr, BLOB, &current, "two").await;
        assert_error(&half, 500, "InternalError");
        assert_eq!(half.headers.all("retry-after").len(), usize::from(in_doubt), "{half:?}");
        assert_eq!(backend.content(BLOB).as_deref(), Some("two"));
        let next = put_when_free(addr, &current, in_doubt).await;
        assert_error(&next, 412, "ConditionNotMet");
        // The lease is still there, and its holder goes on.
        assert_error(&put_blob(addr, BLOB, &[BOB], "three").await, 412, "LeaseIdMissing");
        let tag = assert_done(&get(addr, BLOB).await, 200);
        assert_ne!(tag, first);
        let whole = put_blob(addr, BLOB, &[BOB, ("x-ms-lease-id", id), ("If-Match", &tag)], "three").await;
        assert_done(&whole, 201);
        assert_eq!(get(addr, BLOB).await.header("x-ms-meta-owner"), Some("bob"));
    }
}

/// Rule 21: one half of the write may be there, so that its retry would write it once more.
#[tokio::test]
async fn the_retry_of_a_half_written_blob_is_not_sent() {
    let backend = Backend::with(Validators::Dates).await;
    let route = format!("{METADATA}\nidempotency = \"accept\"");
    let proxy = blobs(&backend).route(&route).start().await;
    let addr = proxy.addr();
    for (blob, document, failure) in [
        ("/c/one", "/c/one.meta", Answer::status(500)),
        ("/c/two", "/c/two.meta", Answer::status(202)),
        ("/c/three", "/c/three.meta", Answer::status(403)),
    ] {
        backend.once("PUT", document, failure);
        let put = || put_blob(addr, blob, &[ALICE, ("x-ms-client-request-id", "8e03978e")], "one");
        assert_error(&put().await, 500, "InternalError");
        assert_error(&put().await, 500, "OperationTimedOut");
        assert_eq!(backend.count("PUT", blob), 1, "{blob}");
    }
}

/// Writes until no doubt is in the way. If there is one, the refusal reports it.
async fn put_when_free(addr: SocketAddr, fields: &[(&str, &str)], in_doubt: bool) -> Response {
    let (end, mut was_held_back) = (Instant::now() + DEADLINE, false);
    loop {
        let response = put_blob(addr, BLOB, fields, "stale").await;
        if response.status != 503 {
            assert_eq!(was_held_back, in_doubt, "{response:?}");
            return response;
        }
        assert_error(&response, 503, "ServerBusy");
        was_held_back = true;
        assert!(Instant::now() < end, "it is held back for ever");
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn metadata_that_fail_alone_leave_the_document_as_it_was() {
    let (backend, proxy) = started("").await;
    let addr = proxy.addr();
    let first = assert_done(&put_blob(addr, BLOB, &[ALICE], "one").await, 201);
    backend.once("PUT", DOCUMENT, Answer::status(403));
    assert_error(&set(addr, &[BOB]).await, 403, "AuthorizationFailure");
    assert_eq!(backend.content(DOCUMENT).as_deref(), Some(r#"{"owner":"alice"}"#));
    assert_done(&set(addr, &[BOB, ("If-Match", &first)]).await, 200);
}

#[tokio::test]
async fn a_blob_whose_metadata_cannot_be_removed_is_not_deleted() {
    let (backend, proxy) = started("").await;
    let addr = proxy.addr();
    let first = assert_done(&put_blob(addr, BLOB, &[ALICE], "one").await, 201);
    backend.once("DELETE", DOCUMENT, Answer::status(403));
    assert_error(&send(addr, "DELETE", BLOB, &[("If-Match", &first)], "").await, 403, "AuthorizationFailure");
    backend.once("DELETE", DOCUMENT, Answer::status(202));
    assert_error(&send(addr, "DELETE", BLOB, &[("If-Match", &first)], "").await, 500, "InternalError");
    assert_eq!(backend.count("DELETE", BLOB), 0);
    // The first answer was clear, the second one was not.
    let read = get(addr, BLOB).await;
    assert_ne!(assert_done(&read, 200), first);
    assert_eq!(read.header("x-ms-meta-owner"), Some("alice"));

    // The blob without its metadata is another state.
    backend.once("DELETE", BLOB, Answer::status(403));
    let tag = read.etag();
    assert_error(&send(addr, "DELETE", BLOB, &[("If-Match", &tag)], "").await, 403, "AuthorizationFailure");
    assert_error(&send(addr, "DELETE", BLOB, &[("If-Match", &tag)], "").await, 412, "ConditionNotMet");
    assert_eq!(get(addr, BLOB).await.header("x-ms-meta-owner"), None);
}

/// Rule 2: a tag labels the content and the metadata of one state.
#[tokio::test]
async fn a_read_beside_a_write_shows_no_two_states_under_one_tag() {
    let (backend, proxy) = started("").await;
    let addr = proxy.addr();
    put_blob(addr, BLOB, &[ALICE], "one").await;
    // A whole write comes between the two answers.
    let asked = backend.hold("GET", BLOB);
    let read = tokio::spawn(async move { get(addr, BLOB).await });
    let held = asked.arrived().await;
    let second = assert_done(&put_blob(addr, BLOB, &[BOB], "two").await, 201);
    held.answer(Answer::stored()).await;
    let read = read.await.expect("no panic");
    assert_eq!((assert_done(&read, 200), read.text(), read.header("x-ms-meta-owner")), (second, "two", Some("bob")));

    // A write is in flight: its content is there already.
    let document = backend.hold("PUT", DOCUMENT);
    let write = tokio::spawn(async move { put_blob(addr, BLOB, &[ALICE], "three").await });
    let held = document.arrived().await;
    let mixed = get(addr, BLOB).await;
    assert_eq!((mixed.status, mixed.text(), mixed.header("x-ms-meta-owner")), (200, "three", Some("bob")));
    assert_common(&mixed);
    assert_eq!((mixed.headers.all("etag").len(), mixed.headers.all("last-modified").len()), (0, 0), "{mixed:?}");
    held.answer(Answer::stored()).await;
    let third = assert_done(&write.await.expect("no panic"), 201);
    let read = get(addr, BLOB).await;
    assert_eq!((assert_done(&read, 200), read.header("x-ms-meta-owner")), (third, Some("alice")));
}

#[tokio::test]
async fn a_document_that_cannot_be_read_fails_the_read_but_hides_no_refusal() {
    let (backend, proxy) = started("").await;
    let addr = proxy.addr();
    put_blob(addr, BLOB, &[ALICE], "one").await;
    for answer in [Answer::status(403), Answer::status(500), Answer::status(200).body("[]")] {
        backend.once("GET", DOCUMENT, answer.clone());
        assert_error(&get(addr, BLOB).await, 500, "InternalError");
        backend.once("GET", DOCUMENT, answer);
        backend.once("GET", BLOB, Answer::status(403));
        assert_error(&get(addr, BLOB).await, 403, "AuthorizationFailure");
    }
    backend.once("GET", DOCUMENT, Answer::status(200).body(format!("{{\"a\":\"{}\"}}", "x".repeat(100_000))));
    assert_error(&get(addr, BLOB).await, 500, "InternalError");
    assert_eq!(get(addr, BLOB).await.status, 200);
}

#[tokio::test]
async fn no_client_reaches_a_document() {
    let (backend, proxy) = started("").await;
    let addr = proxy.addr();
    put_blob(addr, BLOB, &[ALICE], "one").await;
    let seen = backend.requests().len();
    for target in [DOCUMENT, "/c/blob%2emeta", "/c/blob.META", "/c/blob.meta/x", "/c/./blob.meta"] {
        for method in ["GET", "PUT", "DELETE"] {
            let refused = send(addr, method, target, &[("x-ms-blob-type", "BlockBlob")], "").await;
            assert_eq!(refused.status, 400, "{method} {target}: {refused:?}");
        }
    }
    assert_eq!(backend.requests().len(), seen);
}

#[tokio::test]
async fn an_upload_in_blocks_has_metadata_and_metadata_alone_keep_the_blocks() {
    let (backend, proxy) = started("").await;
    let addr = proxy.addr();
    put_blob(addr, BLOB, &[], "one").await;
    let block = send(addr, "PUT", &format!("{BLOB}?comp=block&blockid=YQ%3D%3D"), &[ALICE], "two").await;
    assert_eq!(block.status, 201, "{block:?}");
    assert_done(&set(addr, &[ALICE]).await, 200);
    let list = "<BlockList><Latest>YQ==</Latest></BlockList>";
    assert_done(&send(addr, "PUT", &format!("{BLOB}?comp=blocklist"), &[BOB], list).await, 201);
    assert_eq!(backend.content(BLOB).as_deref(), Some("two"));
    assert_eq!(backend.content(DOCUMENT).as_deref(), Some(r#"{"owner":"bob"}"#));
}

/// A settled read waits for both halves of a write.
#[tokio::test]
async fn a_settled_read_shows_the_metadata_of_its_content() {
    let backend = Backend::with(Validators::Dates).await;
    let proxy = Proxy::to(backend.addr()).route(&format!("{BLOBS}\n{METADATA}\nreads = \"settled\"")).start().await;
    let addr = proxy.addr();
    put_blob(addr, BLOB, &[ALICE], "one").await;
    let document = backend.hold("PUT", DOCUMENT);
    let write = tokio::spawn(async move { put_blob(addr, BLOB, &[BOB], "two").await });
    let held = document.arrived().await;
    let read = tokio::spawn(async move { get(addr, BLOB).await });
    sleep(Duration::from_millis(100)).await;
    held.answer(Answer::stored()).await;
    let (write, read) = (write.await.expect("no panic"), read.await.expect("no panic"));
    assert_eq!((assert_done(&read, 200), read.text()), (assert_done(&write, 201), "two"));
    assert_eq!(read.header("x-ms-meta-owner"), Some("bob"));
}

#[tokio::test]
async fn the_sdk_for_python_sets_reads_and_lists_metadata() {
    let (nginx, proxy) = start("azure-container.toml").await;
    passes(python(), "metadata.py", proxy.addr()).await;
    let documents = std::fs::read_dir(nginx.root().join("documents/many")).expect("the folder").count();
    assert_eq!(documents, 120 + 119, "each blob with metadata has a document");
}

#[tokio::test]
async fn the_requests_of_terraform_lock_its_state() {
    let (_nginx, proxy) = start("azure-container.toml").await;
    passes(python(), "terraform.py", proxy.addr()).await;
}

#[tokio::test]
async fn the_checkpoint_store_of_event_hubs_gives_each_partition_one_owner() {
    let (_nginx, proxy) = start("azure-container.toml").await;
    passes(python(), "checkpoints.py", proxy.addr()).await;
}

#[tokio::test]
async fn the_requests_of_a_lock_library_create_and_remove_its_blob() {
    let (_nginx, proxy) = start("azure-container.toml").await;
    passes(python(), "distributed_lock.py", proxy.addr()).await;
}

#[tokio::test]
async fn rclone_keeps_a_tree_of_files_with_their_times() {
    let (_nginx, proxy) = start("azure-container.toml").await;
    passes(python(), "rclone.py", proxy.addr()).await;
}
