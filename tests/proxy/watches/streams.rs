//! Streams of events.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use super::{DOC, start};
use crate::support::{
    backend::{Answer, Backend},
    events::Events,
    h2c,
    leases::{IDS, acquire, lease, put_with, release},
    proxy::Proxy,
    raw::{get, put, send},
};

/// Rule 11: an observer learns of each step, and never of the id.
#[tokio::test]
async fn an_observer_is_told_of_each_change_and_each_step_of_the_lease() {
    let (_backend, proxy) = start(|setup| setup).await;
    let addr = proxy.addr();
    let tag = get(addr, DOC).await.header("etag").expect("a tag").to_owned();
    let mut events = Events::open(addr, "/.watch/doc", &[]).await;
    let state = events.expect("state").await;
    assert_eq!((&state.data["path"], &state.data["etag"]), (&DOC.into(), &tag.clone().into()));
    assert_eq!(state.data["lease"]["state"], "available");
    assert!(state.id.is_some(), "{state:?}");
    assert_eq!(events.retry, Some(1_000));

    let holder = [("Lease-Duration", "30"), ("Lease-Holder", "Ann"), ("Lease-Id", IDS[0])];
    assert_eq!(lease(addr, "POST", DOC, &holder).await.status, 201);
    let acquired = events.expect("lease").await;
    assert_eq!((&acquired.data["change"], &acquired.data["state"]), (&"acquired".into(), &"leased".into()));
    assert_eq!((&acquired.data["holder"], &acquired.data["remaining"]), (&"Ann".into(), &30.into()));
    assert!(!acquired.data.to_string().contains("11111111"), "{acquired:?}");

    assert_eq!(put_with(addr, DOC, IDS[0], "two").await.status, 204);
    let changed = events.expect("changed").await;
    let current = get(addr, DOC).await.header("etag").expect("a tag").to_owned();
    assert_eq!(changed.data["etag"], current);
    assert_ne!(tag, current);

    release(addr, DOC, IDS[0]).await;
    assert_eq!(events.expect("lease").await.data["change"], "released");

    acquire(addr, DOC, "1").await;
    assert_eq!(events.expect("lease").await.data["change"], "acquired");
    assert_eq!(events.expect("lease").await.data["change"], "expired");
}

/// A refused write changes nothing, so no observer learns of it.
#[tokio::test]
async fn a_write_that_is_not_applied_makes_no_event() {
    let (_backend, proxy) = start(|setup| setup).await;
    let mut events = Events::open(proxy.addr(), "/.watch/doc", &[]).await;
    events.expect("state").await;
    assert_eq!(put(proxy.addr(), DOC, &[("If-Match", "\"stale\"")], "x").await.status, 412);
    acquire(proxy.addr(), DOC, "30").await;
    assert_eq!(events.expect("lease").await.data["change"], "acquired");
}

#[tokio::test]
async fn a_client_that_comes_back_is_told_of_the_state_unless_it_knows_it() {
    let (_backend, proxy) = start(|setup| setup).await;
    let addr = proxy.addr();
    let id = Events::open(addr, "/.watch/doc", &[]).await.expect("state").await.id.expect("an id");
    let mut again = Events::open(addr, "/.watch/doc", &[("Last-Event-ID", &id)]).await;
    let grant = acquire(addr, DOC, "30").await;
    let acquired = again.expect("lease").await;
    drop(again);
    release(addr, DOC, &grant.id).await;
    let last = acquired.id.expect("an id");
    let state = Events::open(addr, "/.watch/doc", &[("Last-Event-ID", &last)]).await.expect("state").await;
    assert_eq!(state.data["lease"]["state"], "available");
}

#[tokio::test]
async fn one_stream_tells_of_several_resources() {
    let (backend, proxy) = start(|setup| setup).await;
    backend.put("/a%20b", "one");
    let target = "/.watch?path=%2Fdoc&path=/a%2520b&path=/none";
    let mut events = Events::open(proxy.addr(), target, &[]).await;
    let denied = events.expect("denied").await;
    assert_eq!((&denied.data["path"], &denied.data["status"]), (&"/none".into(), &404.into()));
    let states = [events.expect("state").await, events.expect("state").await];
    assert_eq!(states.clone().map(|state| state.data["path"].clone()), [DOC, "/a%20b"]);
    assert_eq!(states.map(|state| state.id.is_some()), [false, true], "the last event names the state of all");
    for path in ["/a%20b", DOC] {
        acquire(proxy.addr(), path, "30").await;
        assert_eq!(events.expect("lease").await.data["path"], path);
    }
    for (target, status) in [
        ("/.watch?path=doc", 400),
        ("/.watch?path=/.watch/doc", 404),
        ("/.watch", 404),
        (&*format!("/.watch?path=/doc{}", "&path=/doc".repeat(100)), 414),
    ] {
        assert_eq!(get(proxy.addr(), target).await.status, status, "{target}");
    }
    for method in ["PUT", "POST", "DELETE", "HEAD"] {
        assert_eq!(send(proxy.addr(), method, "/.watch/doc", &[], "").await.status, 405, "{method}");
    }
    assert_eq!(backend.seen("PUT", "/.watch/doc").len(), 0);
}

#[tokio::test]
async fn the_number_of_watched_resources_is_bounded() {
    let (_backend, proxy) = start(|setup| setup.server("max_watches_per_client = 2")).await;
    let first = Events::open(proxy.addr(), "/.watch/doc", &[]).await;
    let mut second = Events::open(proxy.addr(), "/.watch/doc", &[]).await;
    second.expect("state").await;
    let refused = get(proxy.addr(), "/.watch/doc").await;
    refused.refused(503, "overloaded");
    assert!(refused.header("retry-after").is_some());
    assert_eq!(get(proxy.addr(), DOC).await.status, 200, "a read needs no such place");
    drop(first);
    let end = Instant::now() + Duration::from_secs(20);
    while get(proxy.addr(), "/.watch/doc").await.status != 200 {
        assert!(Instant::now() < end, "the place of a client that has gone is given back");
    }
}

#[tokio::test]
async fn a_stop_ends_streams_and_tells_when_to_come_back() {
    let (_backend, mut proxy) = start(|setup| setup).await;
    let mut events = Events::open(proxy.addr(), "/.watch/doc", &[]).await;
    events.expect("state").await;
    events.retry = None;
    proxy.signal("TERM");
    assert_eq!(events.next().await, None);
    assert!(events.retry.is_some_and(|retry| (1_000..5_000).contains(&retry)), "{:?}", events.retry);
    assert_eq!(proxy.exit_status().await.code(), Some(0));
}

#[tokio::test]
async fn a_reload_ends_the_streams_of_the_old_configuration() {
    let (backend, proxy) = start(|setup| setup.server("control_socket = \"{control}\"")).await;
    let mut events = Events::open(proxy.addr(), "/.watch/doc", &[]).await;
    events.expect("state").await;
    let configuration = super::setup(&backend).server("control_socket = \"{control}\"").route("identity_ttl = \"1h\"");
    proxy.rewrite(&configuration.configuration());
    assert_eq!(proxy.reload(&[]).await.code, Some(0));
    assert_eq!(events.next().await, None);
    Events::open(proxy.addr(), "/.watch/doc", &[]).await.expect("state").await;
}

#[tokio::test]
async fn events_come_over_http_2_too() {
    let (_backend, proxy) = start(|setup| setup).await;
    let mut client = h2c::Connection::open(proxy.addr()).await;
    let stream = client.begin_without_body("GET", "/.watch/doc", &[("accept", "text/event-stream")]).await;
    acquire(proxy.addr(), DOC, "30").await;
    proxy.signal("TERM");
    let response = stream.response().await;
    let (status, text) = (response.status, String::from_utf8(response.body).expect("UTF-8"));
    assert!(status == 200 && text.contains("event: state\n"), "{text}");
}

/// One probe for all watching clients finds the writes that do not pass this proxy.
#[tokio::test]
async fn what_others_write_is_told_after_the_next_probe() {
    let backend = Backend::start().await;
    backend.put(DOC, "one");
    let options = "policy = \"pessimistic\"\nwatch = true\nwatch_probe = \"1s\"";
    let proxy = Proxy::to(backend.addr()).route(options).start().await;
    let (mut first, mut second) =
        (Events::open(proxy.addr(), "/.watch/doc", &[]).await, Events::open(proxy.addr(), "/.watch/doc", &[]).await);
    let mut stranger = Events::open(proxy.addr(), "/.watch/doc", &[("Authorization", "Basic other")]).await;
    for events in [&mut first, &mut second, &mut stranger] {
        events.expect("state").await;
    }
    backend.put(DOC, "two");
    let tag = get(proxy.addr(), DOC).await.header("etag").expect("a tag").to_owned();
    let mut told = Vec::new();
    for events in [&mut first, &mut second, &mut stranger] {
        told.push(events.expect("changed").await.data["etag"].clone());
    }
    assert!(told.iter().filter(|etag| **etag == tag).count() >= 1, "{told:?}");
    assert_eq!(told[0], told[1], "they read the same");
    assert_eq!(put(proxy.addr(), DOC, &[("If-Match", &tag)], "three").await.status, 204);
    let tag = get(proxy.addr(), DOC).await.header("etag").expect("a tag").to_owned();
    let changed = first.expect("changed").await;
    assert!(changed.data["etag"] == tag || changed.data["etag"].is_null(), "{changed:?}");
    for method in ["GET", "HEAD"] {
        backend.always(method, DOC, |_| Answer::status(404));
    }
    second.expect("changed").await;
    let deleted = second.expect("changed").await;
    assert!(deleted.data["etag"].is_null(), "{deleted:?}");
}

/// Clients that watch would wait for such a backend in turn, and get no other event meanwhile.
#[tokio::test]
async fn a_backend_that_keeps_silent_is_asked_once_for_all_who_watch() {
    let backend = Backend::start().await;
    backend.put(DOC, "one");
    let options =
        "require = \"never\"\non_write = \"omit\"\nwatch = true\nwatch_probe = \"1h\"\nprobe.timeout = \"1s\"";
    let proxy = Proxy::to(backend.addr()).route(options).start().await;
    let mut watching = Vec::new();
    for _ in 0..5 {
        let mut events = Events::open(proxy.addr(), "/.watch/doc", &[]).await;
        events.expect("state").await;
        watching.push(events);
    }
    let is_silent = Arc::new(AtomicBool::new(false));
    let falls_silent = Arc::clone(&is_silent);
    backend.always("PUT", DOC, move |_| {
        falls_silent.store(true, Ordering::Relaxed);
        Answer::stored()
    });
    for method in ["GET", "HEAD"] {
        let is_silent = Arc::clone(&is_silent);
        let answer = move || if is_silent.load(Ordering::Relaxed) { Answer::never() } else { Answer::stored() };
        backend.always(method, DOC, move |_| answer());
    }
    assert_eq!(put(proxy.addr(), DOC, &[], "two").await.status, 204);
    for events in &mut watching {
        events.expect("changed").await;
    }
    let requests = backend.requests();
    let since = requests.iter().rev().take_while(|request| request.method != "PUT").count();
    assert_eq!(since, 1, "{requests:?}");
}
