//! A DELETE that waits until no other client holds the lease (`lease.delete_pending`).

use std::net::SocketAddr;

use crate::support::{
    backend::{Answer, Backend},
    leases::{Grant, IDS, is_in_line, lease, leasing, put_with, reaches, release, view},
    proxy::{Proxy, Setup},
    raw::{get, put, send},
    response::Response,
    wait::within,
};

pub const DOC: &str = "/doc";
const OPTIONS: &str = "lease.shared = true\nlease.delete_pending = true\nlease.infinite = true\nlease.auth = \"none\"\n\
     lease.absent = \"allow\"";

pub fn setup(backend: &Backend) -> Setup {
    with_window(backend, "200ms")
}

/// The same, if a write can be applied for as long after its connection was closed.
pub fn with_window(backend: &Backend, late_write_window: &str) -> Setup {
    backend.put(DOC, "one");
    leasing(backend).route(OPTIONS).upstream(&format!("late_write_window = {late_write_window:?}"))
}

async fn start(configure: impl FnOnce(Setup) -> Setup) -> (Backend, Proxy) {
    let backend = Backend::start().await;
    let proxy = configure(setup(&backend)).start().await;
    (backend, proxy)
}

/// A shared lease of the document.
pub async fn share(addr: SocketAddr, duration: &str) -> Grant {
    let response = lease(addr, "POST", DOC, &[("Lease-Mode", "shared"), ("Lease-Duration", duration)]).await;
    assert_eq!(response.status, 201, "{response:?}");
    Grant::of(&response)
}

pub async fn delete(addr: SocketAddr, grant: &Grant, fields: &[(&str, &str)]) -> Response {
    send(addr, "DELETE", DOC, &[&[("Lease-Id", &*grant.id)], fields].concat(), "").await
}

/// Two clients share the lease, and the first of them has deleted the document.
pub async fn pending(addr: SocketAddr, duration: &str) -> [Grant; 2] {
    let [ann, bob] = [share(addr, "infinite").await, share(addr, duration).await];
    let accepted = delete(addr, &ann, &[]).await;
    assert_eq!((accepted.status, accepted.body.len()), (202, 0), "{accepted:?}");
    [ann, bob]
}

/// No client without a live lease can reach the document, by any method.
pub async fn is_hidden(addr: SocketAddr, former: &Grant) {
    for (method, fields) in [
        ("GET", vec![]),
        ("GET", vec![("If-None-Match", "*")]),
        ("GET", vec![("Lease-Id", &*former.id)]),
        ("PUT", vec![]),
        ("PUT", vec![("If-None-Match", "*")]),
        ("PUT", vec![("Lease-Id", &former.id)]),
        ("PATCH", vec![]),
        ("POST", vec![]),
        ("DELETE", vec![]),
        ("DELETE", vec![("Lease-Id", IDS[0])]),
    ] {
        send(addr, method, DOC, &fields, "stolen").await.refused(409, "delete-pending");
    }
    assert_eq!(send(addr, "HEAD", DOC, &[], "").await.status, 409);
    for mode in ["exclusive", "shared"] {
        lease(addr, "POST", DOC, &[("Lease-Mode", mode)]).await.refused(409, "delete-pending");
    }
}

#[tokio::test]
async fn a_deleted_document_is_there_for_its_holders_alone_and_goes_with_the_last() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("leases");
    for store in ["kind = \"memory\"".to_owned(), format!("kind = \"disk\"\npath = {file:?}")] {
        let (backend, proxy) = start(|setup| setup.store(&store)).await;
        let addr = proxy.addr();
        let [ann, bob] = pending(addr, "30").await;
        assert_eq!(backend.count("DELETE", DOC), 0, "nothing is sent");
        is_hidden(addr, &ann).await;
        assert_eq!(view(addr, DOC).await["shared_by"], 1, "whoever deletes gives the lease up");
        assert_eq!(put_with(addr, DOC, &bob.id, "two").await.status, 204);
        assert_eq!(send(addr, "GET", DOC, &[("Lease-Id", &bob.id)], "").await.text(), "two");
        assert_eq!(lease(addr, "PUT", DOC, &[("Lease-Id", &bob.id)]).await.status, 200);
        assert_eq!(backend.content(DOC).as_deref(), Some("two"));
        release(addr, DOC, &bob.id).await;
        assert_eq!(backend.content(DOC), None);
        let sent = backend.seen("DELETE", DOC).pop().expect("it is sent");
        assert_eq!(sent.header("fencing-token"), Some(&*bob.fence.to_string()));
        let host = backend.seen("PUT", DOC)[0].header("host").map(str::to_owned);
        assert_eq!((sent.header("host"), sent.header("lease-id")), (host.as_deref(), None));
        assert_eq!(backend.count("DELETE", DOC), 1);
        assert_eq!(get(addr, DOC).await.status, 404);
        assert_eq!(put(addr, DOC, &[("If-None-Match", "*")], "three").await.status, 201);
        assert_eq!(get(addr, DOC).await.text(), "three");
        assert_eq!(backend.count("DELETE", DOC), 1, "what is created later stays");
    }
}

/// As an SMB client that has the file open takes the sign of deletion back.
#[tokio::test]
async fn a_holder_withdraws_the_delete_of_another_one() {
    let (backend, proxy) = start(|setup| setup).await;
    let addr = proxy.addr();
    let [ann, bob] = pending(addr, "30").await;
    let withdraw = async |id: &str| lease(addr, "PATCH", DOC, &[("Lease-Id", id), ("Delete-Pending", "?0")]).await;
    let refused = withdraw(&ann.id).await.refused(409, "lease-id-mismatch");
    assert!(refused.detail.contains("another id"), "{}", refused.detail);
    withdraw(IDS[0]).await.refused(409, "lease-id-mismatch");
    let hidden = get(addr, DOC).await;
    assert_eq!(hidden.header("retry-after"), Some("1"), "it may come back");
    hidden.refused(409, "delete-pending");
    assert_eq!(withdraw(&bob.id).await.status, 204);
    assert_eq!(get(addr, DOC).await.text(), "one");
    assert_eq!(withdraw(&bob.id).await.status, 204);
    release(addr, DOC, &bob.id).await;
    assert_eq!(get(addr, DOC).await.text(), "one");
    assert_eq!(backend.count("DELETE", DOC), 0);
    withdraw(&bob.id).await.refused(409, "lease-not-present");
}

#[tokio::test]
async fn a_client_that_is_alone_deletes_at_once() {
    let (backend, proxy) = start(|setup| setup).await;
    let addr = proxy.addr();
    let ann = share(addr, "30").await;
    assert_eq!(delete(addr, &ann, &[("Authorization", "Bearer ann")]).await.status, 204);
    assert_eq!(backend.content(DOC), None);
    assert_eq!(get(addr, DOC).await.status, 404);
}

/// Each DELETE ends the lease of its client, and the last one is sent.
#[tokio::test]
async fn the_last_of_several_deletes_is_an_ordinary_one() {
    let (backend, proxy) = start(|setup| setup).await;
    let addr = proxy.addr();
    let [first, second, last] = [share(addr, "30").await, share(addr, "30").await, share(addr, "30").await];
    for grant in [&first, &second] {
        assert_eq!(delete(addr, grant, &[]).await.status, 202);
        delete(addr, grant, &[]).await.refused(409, "delete-pending");
    }
    assert_eq!(backend.count("DELETE", DOC), 0);
    assert_eq!(delete(addr, &last, &[("Authorization", "Bearer ann")]).await.status, 204);
    assert_eq!((backend.count("DELETE", DOC), backend.content(DOC)), (1, None));
    assert_eq!(put(addr, DOC, &[], "new").await.status, 201);
    assert_eq!(backend.count("DELETE", DOC), 1);
}

/// The DELETE that is sent later must be the one that was received. The proxy keeps no client, and sends nothing in its
/// name.
#[tokio::test]
async fn a_delete_that_cannot_be_sent_later_as_it_was_does_not_wait() {
    let (backend, proxy) = start(|setup| setup.route("identity_headers = [\"X-User\"]")).await;
    let addr = proxy.addr();
    let [ann, _bob] = [share(addr, "30").await, share(addr, "30").await];
    let credentials =
        ["Authorization", "Cookie", "Proxy-Authorization", "X-Api-Key", "X-User"].map(|name| (name, "secret"));
    for field in credentials {
        let problem = delete(addr, &ann, &[field]).await.refused(409, "lease-held");
        assert!(
            problem.json["detail"].as_str().is_some_and(|detail| detail.contains("credentials")),
            "{}",
            problem.json
        );
    }
    let with_id = [("Lease-Id", &*ann.id)];
    for (target, body) in [("/doc?sig=secret", ""), (DOC, "content"), (&*format!("/doc?a={}", "a".repeat(2_048)), "")] {
        if target != DOC {
            let mode = [("Lease-Mode", "shared")];
            let parts = [lease(addr, "POST", target, &mode).await, lease(addr, "POST", target, &mode).await];
            assert_eq!(parts.map(|response| response.status), [201, 201]);
        }
        send(addr, "DELETE", target, &with_id, body).await.refused(409, "lease-held");
    }
    assert_eq!(backend.count("DELETE", DOC), 0);
    assert_eq!(get(addr, DOC).await.text(), "one", "nothing has changed");
    assert_eq!(put_with(addr, DOC, &ann.id, "two").await.status, 204, "the lease is still held");
}

#[tokio::test]
async fn a_delete_with_a_false_precondition_does_not_wait() {
    let (_backend, proxy) = start(|setup| setup).await;
    let addr = proxy.addr();
    let [ann, bob] = [share(addr, "30").await, share(addr, "30").await];
    let tag = get(addr, DOC).await.etag();
    delete(addr, &ann, &[("If-Match", "\"other\"")]).await.refused(412, "precondition-failed");
    assert_eq!(get(addr, DOC).await.status, 200);
    assert_eq!(delete(addr, &ann, &[("If-Match", &tag)]).await.status, 202);
    // The other holder replaces the state that the DELETE names.
    assert_eq!(put_with(addr, DOC, &bob.id, "two").await.status, 204);
    release(addr, DOC, &bob.id).await;
    assert_eq!(get(addr, DOC).await.text(), "two");
}

/// The target, with its query and in its spelling, is that of the DELETE and not that of the release. So is the host.
#[tokio::test]
async fn the_late_delete_has_the_target_of_the_first_one() {
    let backend = Backend::start().await;
    backend.put("/v1/doc?a=%41", "one");
    let lines = "strip_prefix = \"/api\"\nadd_prefix = \"/v1\"";
    let configuration = setup(&backend).route(lines).configuration().replace("\"/{*rest}\"", "\"/api/{*rest}\"");
    let proxy = Proxy::start(&configuration).await;
    let addr = proxy.addr();
    let open = async || {
        let shared = [("Lease-Mode", "shared"), ("Host", "docs.test")];
        Grant::of(&lease(addr, "POST", "/api/doc?a=%41", &shared).await)
    };
    let [ann, bob] = [open().await, open().await];
    let fields = [("Lease-Id", &*ann.id), ("Host", "docs.test"), ("Accept-Language", "de")];
    assert_eq!(send(addr, "DELETE", "/api/doc?a=%41", &fields, "").await.status, 202);
    assert_eq!(lease(addr, "DELETE", "/api/doc", &[("Lease-Id", &bob.id)]).await.status, 204);
    let sent = backend.seen("DELETE", "/v1/doc?a=%41").pop().expect("it is sent");
    assert_eq!((sent.header("host"), sent.header("accept-language")), (Some("docs.test"), None));
    assert_eq!(backend.requests().iter().filter(|request| request.method == "DELETE").count(), 1);
}

/// The demands on a client's request are not made to what was already accepted.
#[tokio::test]
async fn the_late_delete_needs_no_precondition_and_no_key() {
    let lines = "require = \"always\"\nidempotency = \"required\"\nlease.required = true\nlease.guards = [\"delete\"]";
    let (backend, proxy) = start(|setup| setup.route(lines)).await;
    let addr = proxy.addr();
    let [ann, bob] = [share(addr, "30").await, share(addr, "30").await];
    let tag = get(addr, DOC).await.etag();
    assert_eq!(delete(addr, &ann, &[("If-Match", &tag), ("Idempotency-Key", "\"1\"")]).await.status, 202);
    release(addr, DOC, &bob.id).await;
    assert_eq!(backend.content(DOC), None);
    assert_eq!(get(addr, DOC).await.status, 404);
}

/// A client that waits for the exclusive lease waits in vain.
#[tokio::test]
async fn a_client_in_line_for_the_lease_is_told_of_the_delete() {
    let (_backend, proxy) = start(Setup::on_one_thread).await;
    let addr = proxy.addr();
    let [ann, _bob] = [share(addr, "30").await, share(addr, "30").await];
    let waiting = tokio::spawn(async move { lease(addr, "POST", DOC, &[("Prefer", "wait=20")]).await });
    is_in_line(addr, DOC).await;
    assert_eq!(delete(addr, &ann, &[]).await.status, 202);
    within("the waiting client", waiting).await.expect("an answer").refused(409, "delete-pending");
}

/// Rule 1: the late DELETE waits for the write that its last holder has sent.
#[tokio::test]
async fn the_late_delete_waits_for_the_last_write() {
    let (backend, proxy) = start(|setup| setup).await;
    let addr = proxy.addr();
    let [_ann, bob] = pending(addr, "30").await;
    let held = backend.hold("PUT", DOC);
    let id = bob.id.clone();
    let writer = tokio::spawn(async move { put_with(addr, DOC, &id, "two").await });
    let write = held.arrived().await;
    let closer = tokio::spawn(async move { lease(addr, "DELETE", DOC, &[("Lease-Id", &bob.id)]).await });
    reaches(addr, DOC, "available").await;
    assert_eq!(backend.count("DELETE", DOC), 0);
    write.answer(Answer::stored()).await;
    assert_eq!(writer.await.expect("an answer").status, 204);
    assert_eq!(closer.await.expect("an answer").status, 204);
    assert_eq!((backend.count("DELETE", DOC), backend.content(DOC)), (1, None));
}
