//! The store of a proxy fails: writes are refused, reads pass, and nothing needs a restart (DESIGN, section 3, rule 12).

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use crate::support::{
    backend::{Answer, Backend},
    engines::Engine,
    leases::{acquire, leasing_versions},
    proxy::Proxy,
    raw::{get, put, put_if_match, send},
    response::Response,
    source::{self, UPSTREAM},
    wait::within,
};

const DOC: &str = "/doc";
const STORE_TIMEOUT: Duration = Duration::from_secs(2);

/// Requests that would take half a minute, if each of them waited for the store.
const QUICK_READS: usize = 20;

async fn start(engine: &Engine) -> (Backend, Proxy) {
    let backend = Backend::start().await;
    backend.put(DOC, "one");
    let setup = leasing_versions(&backend).upstream("late_write_window = \"200ms\"").store(&engine.store());
    (backend, setup.start().await)
}

/// Writes until the store takes part again.
async fn write_again(addr: SocketAddr, field: Option<(&str, &str)>, body: &str) -> Response {
    let again = async {
        loop {
            let response = send(addr, "PUT", DOC, field.as_slice(), body).await;
            if !matches!(response.status, 409 | 503) {
                return response;
            }
        }
    };
    within("guarded writes to pass again", again).await
}

/// A write is refused in time and untouched, a read passes without a tag.
async fn assert_fails_closed(backend: &Backend, addr: SocketAddr) {
    let (writes, began) = (backend.count("PUT", DOC), Instant::now());
    let refused = put(addr, DOC, &[], "two").await;
    refused.refused(503, "store-unavailable");
    assert!(refused.header("retry-after").is_some(), "{refused:?}");
    // The machine may be busy for several times as long.
    assert!(began.elapsed() < STORE_TIMEOUT * 5, "{:?}", began.elapsed());
    assert_eq!(backend.count("PUT", DOC), writes, "refused means untouched");
    let read = get(addr, DOC).await;
    assert_eq!((read.status, read.header("etag")), (200, None), "{read:?}");
}

/// After the first request has waited for the store, no other one does, and nothing is said that needs the store.
#[tokio::test]
async fn reads_do_not_wait_for_a_store_that_does_not_answer() {
    for engine in Engine::all().await {
        for source in source::ALL {
            let (backend, setup) = source.start(DOC, "one").await;
            let proxy = setup.store(&engine.store()).start().await;
            let addr = proxy.addr();
            let tag = get(addr, DOC).await.etag();
            engine.signal("STOP");
            // It stops when it comes to it.
            let untagged = async { while get(addr, DOC).await.header("etag").is_some() {} };
            within("reads to go on without the store", untagged).await;
            let began = Instant::now();
            for _ in 0..QUICK_READS {
                let read = send(addr, "GET", DOC, &[("If-None-Match", &tag)], "").await;
                // A backend that knows its tags judges them itself.
                assert!(matches!(read.status, 200 | 304) && read.header("etag").is_none(), "{source}: {read:?}");
            }
            let writes = backend.count("PUT", DOC);
            for _ in 0..QUICK_READS {
                let refused = put_if_match(addr, DOC, &tag, "two").await;
                refused.refused(503, "store-unavailable");
                assert!(refused.header("retry-after").is_some(), "{refused:?}");
            }
            // Six of them would take longer, if they waited; the machine may be busy.
            assert!(began.elapsed() < STORE_TIMEOUT * 5, "{source}: {:?}", began.elapsed());
            assert_eq!(backend.count("PUT", DOC), writes, "{source}");
            engine.signal("CONT");
            let tagged = async { while get(addr, DOC).await.header("etag").is_none() {} };
            within("reads to carry a tag again", tagged).await;
            assert_eq!(write_again(addr, Some(("If-Match", &tag)), "two").await.status, 204, "{source}");
        }
    }
}

/// Rule 12: without the store a write gets 503 untouched, and a read passes without a tag.
#[tokio::test]
async fn a_frozen_store_refuses_writes_in_time_and_comes_back() {
    for engine in Engine::all().await {
        let (backend, proxy) = start(&engine).await;
        let addr = proxy.addr();
        assert_eq!(put_if_match(addr, DOC, &get(addr, DOC).await.etag(), "first").await.status, 204);
        engine.signal("STOP");
        assert_fails_closed(&backend, addr).await;
        engine.signal("CONT");
        // The mark of the refused write may have reached the store late: it is taken back, and does not stand for its
        // whole time.
        assert_eq!(write_again(addr, None, "second").await.status, 204);
        assert_eq!(get(addr, DOC).await.text(), "second");
    }
}

#[tokio::test]
async fn a_store_that_is_killed_comes_back_with_its_leases() {
    for mut engine in Engine::all().await {
        let (backend, proxy) = start(&engine).await;
        let addr = proxy.addr();
        let grant = acquire(addr, DOC, "60").await;
        engine.signal("KILL");
        assert_fails_closed(&backend, addr).await;
        engine.restart().await;
        write_again(addr, None, "stolen").await.refused(412, "lease-id-missing");
        assert_eq!(write_again(addr, Some(("Lease-Id", &grant.id)), "two").await.status, 204);
    }
}

/// A process that starts before its store serves what needs none, and the store takes part as soon as it answers.
#[tokio::test]
async fn a_store_that_is_away_at_the_start_is_used_as_soon_as_it_answers() {
    for mut engine in Engine::all().await {
        engine.signal("KILL");
        let (backend, proxy) = start(&engine).await;
        let addr = proxy.addr();
        assert_fails_closed(&backend, addr).await;
        engine.restart().await;
        assert_eq!(write_again(addr, None, "two").await.status, 204);
        let tag = get(addr, DOC).await.etag();
        assert_eq!(put_if_match(addr, DOC, &tag, "three").await.status, 204);
        put_if_match(addr, DOC, &tag, "four").await.refused(412, "precondition-failed");
        let grant = acquire(addr, DOC, "60").await;
        assert_eq!(write_again(addr, Some(("Lease-Id", &grant.id)), "five").await.status, 204);
    }
}

/// The backend has applied the write when the store is gone: its answer counts, and the mark ends as a doubt.
/// Rule 12: after the exchange the client gets the answer of the upstream, without a tag.
#[tokio::test]
async fn a_store_that_fails_during_a_write_costs_its_tag_alone() {
    for engine in Engine::all().await {
        let (backend, proxy) = start(&engine).await;
        let addr = proxy.addr();
        let tag = get(addr, DOC).await.etag();
        let held = backend.hold("PUT", DOC);
        let writer = tokio::spawn(async move { put_if_match(addr, DOC, &tag, "two").await });
        let write = held.arrived().await;
        engine.signal("STOP");
        write.answer(Answer::stored()).await;
        let answered = within("the answer to come without the store", writer).await.unwrap();
        assert_eq!((answered.status, answered.header("etag")), (204, None), "{answered:?}");
        engine.signal("CONT");
        assert_eq!(write_again(addr, None, "three").await.status, 204);
    }
}

/// The record shows which state a tag names, if the backend may give one tag to two.
#[tokio::test]
async fn without_the_store_a_tag_that_may_repeat_is_withheld() {
    for engine in Engine::all().await {
        let (backend, setup) = UPSTREAM.start(DOC, "one").await;
        let proxy = setup.store(&engine.store()).start().await;
        let tag = get(proxy.addr(), DOC).await.etag();
        engine.signal("KILL");
        let read = send(proxy.addr(), "GET", DOC, &[("If-None-Match", &tag)], "").await;
        assert_eq!((read.status, read.text(), read.header("etag")), (200, "one", None));
        let seen = backend.seen("GET", DOC).pop().unwrap();
        assert_ne!(seen.header("if-none-match"), Some(tag.as_str()), "the copy may be of an earlier state");
    }
}
