//! The DELETE that waited (`lease.delete_pending`), when something goes wrong.

use std::{net::SocketAddr, time::Duration};

use serde_json::json;
use tokio::time::{Instant, sleep};

use super::delete_pending::{DOC, delete, is_hidden, pending, setup, share, with_window};
use crate::{
    stores::shared_store::{addrs, pair},
    support::{
        admin::{ask, start as start_with_admin, told},
        backend::{Answer, Backend},
        engines::Engine,
        leases::{lease, put_with, release},
        proxy::{Proxy, Setup},
        raw::{get, put, send},
        response::Response,
        wait::DEADLINE,
    },
};

const RECORD: &str = "/records?key=backend:/doc";

async fn start(configure: impl FnOnce(Setup) -> Setup) -> (Backend, Proxy, SocketAddr) {
    let backend = Backend::start().await;
    let (proxy, admin) = start_with_admin(&configure(setup(&backend))).await;
    (backend, proxy, admin)
}

/// Waits until no lease of the document is held. A request to the document itself would send the late DELETE.
async fn until_run_out(admin: SocketAddr) {
    let end = Instant::now() + DEADLINE;
    while ask(admin, RECORD).await["leases"].as_array().expect("a list").iter().any(|lease| lease["state"] == "leased")
    {
        assert!(Instant::now() < end, "the last lease does not run out");
        sleep(Duration::from_millis(20)).await;
    }
}

/// Repeats a request until ifmatch does not refuse it.
async fn until_served(addr: SocketAddr, method: &str, body: &str) -> Response {
    let end = Instant::now() + DEADLINE;
    loop {
        let response = send(addr, method, DOC, &[], body).await;
        if response.header("proxy-status").is_none() {
            return response;
        }
        assert!(Instant::now() < end, "it is refused for ever: {response:?}");
        sleep(Duration::from_millis(20)).await;
    }
}

/// Checks that a write or a grant is refused, be it because of the pending delete or of a write in doubt.
#[track_caller]
fn assert_refused_for_now(response: &Response) {
    let refusals = [(409, "delete-pending"), (409, "write-in-flight")];
    assert!(refusals.contains(&(response.status, &*response.problem().code)), "{response:?}");
}

#[tokio::test]
async fn the_next_request_deletes_what_the_last_lease_left_when_it_ran_out() {
    for (method, status) in [("GET", 404), ("HEAD", 404), ("PUT", 201), ("DELETE", 404)] {
        let (backend, proxy, admin) = start(|setup| setup).await;
        let addr = proxy.addr();
        pending(addr, "1").await;
        assert_eq!(ask(admin, RECORD).await["pending_delete"], json!({ "target": DOC }));
        until_run_out(admin).await;
        assert_eq!(backend.count("DELETE", DOC), 0);
        let response = send(addr, method, DOC, &[], if method == "PUT" { "new" } else { "" }).await;
        assert_eq!(response.status, status, "{method}: {response:?}");
        assert!(response.header("proxy-status").is_none(), "{method}: the backend answers: {response:?}");
        assert_eq!(backend.count("DELETE", DOC), if method == "DELETE" { 2 } else { 1 }, "{method}");
        assert_eq!(backend.content(DOC), (method == "PUT").then(|| "new".to_owned()), "{method}");
        assert_eq!(ask(admin, RECORD).await["pending_delete"], json!(null));
    }
}

/// The lease of what is gone is that of nothing, and a break ends leases as their end does.
#[tokio::test]
async fn the_next_holder_of_the_lease_finds_the_resource_gone() {
    let (backend, proxy, admin) = start(|setup| setup).await;
    let addr = proxy.addr();
    let [_ann, bob] = pending(addr, "infinite").await;
    told(admin, "/leases/break", &json!({ "key": "backend:/doc" })).await;
    let created = lease(addr, "POST", DOC, &[("If-None-Match", "*")]).await;
    assert_eq!(created.status, 201, "{created:?}");
    assert_eq!((backend.count("DELETE", DOC), backend.content(DOC)), (1, None));
    lease(addr, "PUT", DOC, &[("Lease-Id", &bob.id)]).await.refused(409, "lease-id-mismatch");
}

#[tokio::test]
async fn a_refused_late_delete_goes_on_waiting_and_each_request_tries_once_more() {
    let (backend, proxy, admin) = start(|setup| setup).await;
    let addr = proxy.addr();
    for status in [403, 500, 202] {
        backend.put(DOC, "one");
        let [ann, bob] = pending(addr, "30").await;
        let before = backend.count("DELETE", DOC);
        let refuse = || backend.once("DELETE", DOC, Answer::status(status));
        refuse();
        release(addr, DOC, &bob.id).await;
        assert_eq!(backend.count("DELETE", DOC), before + 1);
        for (method, count) in [("GET", 2), ("PUT", 3), ("DELETE", 4)] {
            refuse();
            send(addr, method, DOC, &[("Lease-Id", &ann.id)], "").await.refused(409, "delete-pending");
            assert_eq!(backend.count("DELETE", DOC), before + count, "{status} {method}");
        }
        assert_eq!(ask(admin, RECORD).await["pending_delete"], json!({ "target": DOC }));
        assert_eq!(get(addr, DOC).await.status, 404);
        assert_eq!((backend.count("DELETE", DOC), backend.content(DOC)), (before + 5, None), "{status}");
    }
    assert_eq!(backend.count("GET", DOC), 3, "nobody has read it in between");
}

/// A resource that is gone already needs no deletion: another DELETE was answered, and its answer was lost.
#[tokio::test]
async fn a_resource_that_is_gone_already_is_deleted() {
    for status in [404, 410] {
        let (backend, proxy, _admin) = start(|setup| setup).await;
        let addr = proxy.addr();
        let [_ann, bob] = pending(addr, "30").await;
        backend.once("DELETE", DOC, Answer::status(status));
        release(addr, DOC, &bob.id).await;
        assert_eq!(put(addr, DOC, &[], "new").await.status, 204, "{status}");
        assert_eq!((backend.count("DELETE", DOC), backend.content(DOC).as_deref()), (1, Some("new")), "{status}");
    }
}

/// Rule 3, and the one danger of a DELETE that comes late: it must not meet what was created after it.
#[tokio::test]
async fn a_late_delete_in_doubt_never_removes_what_is_created_later() {
    for is_applied in [true, false] {
        let backend = Backend::start().await;
        let (proxy, admin) = start_with_admin(&with_window(&backend, "2s")).await;
        let addr = proxy.addr();
        let [_ann, bob] = pending(addr, "30").await;
        let held = backend.hold("DELETE", DOC);
        let closer = tokio::spawn(async move { lease(addr, "DELETE", DOC, &[("Lease-Id", &bob.id)]).await });
        let mut sent = held.arrived().await;
        put(addr, DOC, &[], "new").await.refused(409, "delete-pending");
        get(addr, DOC).await.refused(409, "delete-pending");
        let write = sent.write().await;
        sent.close();
        assert_eq!(closer.await.expect("an answer").status, 204);
        assert_ne!(ask(admin, RECORD).await["doubt"], json!(null));
        assert_refused_for_now(&put(addr, DOC, &[], "new").await);
        get(addr, DOC).await.refused(409, "delete-pending");
        if is_applied {
            write.apply();
        }
        assert_eq!(until_served(addr, "PUT", "new").await.status, 201);
        assert_eq!(backend.content(DOC).as_deref(), Some("new"));
        assert_eq!(get(addr, DOC).await.text(), "new");
        assert_eq!(backend.count("DELETE", DOC), 2, "it is repeated once the doubt is over, before the new write");
        let order: Vec<_> = backend.applied().into_iter().map(|(request, _)| request.method).collect();
        assert_eq!(order.last().map(String::as_str), Some("PUT"), "{order:?}");
    }
}

/// A DELETE that is on disk when the client gets its answer is done after a crash.
#[tokio::test]
async fn a_crash_between_the_delete_and_the_last_release_loses_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    for ends_by_release in [true, false] {
        let file = directory.path().join(format!("leases-{ends_by_release}"));
        let store = format!("kind = \"disk\"\npath = {file:?}");
        let (backend, mut proxy, _admin) = start(|setup| setup.store(&store)).await;
        let addr = proxy.addr();
        let [ann, bob] = pending(addr, if ends_by_release { "infinite" } else { "1" }).await;
        proxy.signal("KILL");
        proxy.restart().await;
        if ends_by_release {
            get(addr, DOC).await.refused(409, "delete-pending");
            assert_eq!(send(addr, "GET", DOC, &[("Lease-Id", &bob.id)], "").await.text(), "one");
            assert_refused_for_now(&lease(addr, "POST", DOC, &[("Lease-Mode", "shared")]).await);
            release(addr, DOC, &bob.id).await;
        }
        assert_eq!(until_served(addr, "GET", "").await.status, 404);
        assert_eq!((backend.count("DELETE", DOC), backend.content(DOC)), (1, None));
        assert_eq!(backend.count("GET", DOC), if ends_by_release { 2 } else { 1 });
        send(addr, "PUT", DOC, &[("Lease-Id", &ann.id)], "two").await.refused(412, "lease-not-present");
        assert_eq!(put(addr, DOC, &[], "new").await.status, 201);
    }
}

/// Two proxies with one store are as one, also when one has answered readers from memory before.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_delete_through_one_proxy_hides_the_resource_at_the_other() {
    for engine in Engine::all().await {
        let backend = Backend::start().await;
        let setup = setup(&backend).route("etag = \"version\"\nother_writers = false");
        let proxies = pair(&engine, setup.clone()).await;
        let [one, other] = addrs(&proxies);
        let tag = get(other, DOC).await.etag();
        let again = async |addr| send(addr, "GET", DOC, &[("If-None-Match", &*tag)], "").await;
        assert_eq!(again(other).await.status, 304);
        let [ann, bob] = [share(one, "30").await, share(other, "30").await];
        assert_eq!(again(other).await.status, 304);
        let reads = backend.count("GET", DOC);
        assert_eq!(delete(one, &ann, &[]).await.status, 202);
        for addr in [one, other] {
            again(addr).await.refused(409, "delete-pending");
            is_hidden(addr, &ann).await;
        }
        assert_eq!(backend.count("GET", DOC), reads, "{}", engine.name());
        assert_eq!(put_with(one, DOC, &bob.id, "two").await.status, 204);
        release(one, DOC, &bob.id).await;
        assert_eq!((backend.count("DELETE", DOC), backend.content(DOC)), (1, None), "{}", engine.name());
        for addr in [one, other] {
            assert_eq!(again(addr).await.status, 404);
        }
        assert_eq!(put(other, DOC, &[], "new").await.status, 201);
        assert_eq!(again(one).await.text(), "new");
        // Rule 12: without the store it is unknown whether the resource waits to be deleted.
        let third = setup.store(&engine.store()).start().await;
        assert_eq!(get(third.addr(), DOC).await.status, 200);
        engine.signal("STOP");
        let blind = get(third.addr(), DOC).await;
        engine.signal("CONT");
        blind.refused(503, "store-unavailable");
    }
}

/// The option decides which DELETE waits. What waits already is done without it, one request later.
#[tokio::test]
async fn what_waits_is_done_also_after_the_route_has_lost_the_option() {
    let backend = Backend::start().await;
    let setup = setup(&backend).server("control_socket = \"{control}\"");
    let proxy = setup.clone().start().await;
    let addr = proxy.addr();
    let [ann, bob] = pending(addr, "30").await;
    proxy.rewrite(&setup.configuration().replace("lease.delete_pending = true", ""));
    let reload = proxy.reload(&[]).await;
    assert_eq!(reload.code, Some(0), "{}", reload.said);
    is_hidden(addr, &ann).await;
    assert_eq!(backend.count("DELETE", DOC), 0);
    release(addr, DOC, &bob.id).await;
    get(addr, DOC).await.refused(409, "delete-pending");
    assert_eq!((backend.count("DELETE", DOC), backend.content(DOC)), (1, None));
    assert_eq!(put(addr, DOC, &[], "new").await.status, 201);
}

#[tokio::test]
async fn an_operator_gives_a_delete_up_that_can_never_be_done() {
    let (backend, proxy, admin) = start(|setup| setup).await;
    let addr = proxy.addr();
    let [_ann, bob] = pending(addr, "30").await;
    backend.always("DELETE", DOC, |_| Answer::status(403));
    release(addr, DOC, &bob.id).await;
    get(addr, DOC).await.refused(409, "delete-pending");
    told(admin, "/forget", &json!({ "key": "backend:/doc" })).await;
    assert_eq!(get(addr, DOC).await.text(), "one");
    assert_eq!(put(addr, DOC, &[], "two").await.status, 204);
}

/// A DELETE that names a state removes that state, and no later one.
#[tokio::test]
async fn a_delete_that_names_a_state_is_withdrawn_when_another_holder_replaces_it() {
    for etag in ["version", "content"] {
        let exclusive = if etag == "version" { "other_writers = false" } else { "" };
        let (backend, proxy, admin) = start(|setup| setup.route(&format!("etag = {etag:?}\n{exclusive}"))).await;
        let addr = proxy.addr();
        let [ann, bob] = [share(addr, "infinite").await, share(addr, "infinite").await];
        let tag = get(addr, DOC).await.etag();
        assert_eq!(delete(addr, &ann, &[("If-Match", &tag)]).await.status, 202, "{etag}");
        get(addr, DOC).await.refused(409, "delete-pending");
        let replaced = send(addr, "PUT", DOC, &[("Lease-Id", &*bob.id), ("If-Match", &tag)], "two").await;
        assert_eq!(replaced.status, 204, "{etag}: {replaced:?}");
        assert_eq!(ask(admin, RECORD).await["pending_delete"], json!(null), "{etag}: it is withdrawn at once");
        assert_eq!(get(addr, DOC).await.text(), "two", "{etag}");
        release(addr, DOC, &bob.id).await;
        assert_eq!((backend.count("DELETE", DOC), backend.content(DOC).as_deref()), (0, Some("two")), "{etag}");
    }
}

/// A change by a writer beside ifmatch is in no record: the conditions are judged again.
#[tokio::test]
async fn a_delete_that_names_a_state_is_judged_again_before_it_is_sent() {
    for (changes, count, content) in [(false, 1, None), (true, 0, Some("other"))] {
        let (backend, proxy, admin) = start(|setup| setup.route("etag = \"content\"")).await;
        let addr = proxy.addr();
        let [ann, bob] = [share(addr, "infinite").await, share(addr, "infinite").await];
        let tag = get(addr, DOC).await.etag();
        assert_eq!(delete(addr, &ann, &[("If-Match", &tag)]).await.status, 202);
        if changes {
            backend.put(DOC, "other");
        }
        release(addr, DOC, &bob.id).await;
        assert_eq!((backend.count("DELETE", DOC), backend.content(DOC).as_deref()), (count, content));
        assert_eq!(ask(admin, RECORD).await["pending_delete"], json!(null));
        assert_eq!(get(addr, DOC).await.status, if changes { 200 } else { 404 });
    }
}
