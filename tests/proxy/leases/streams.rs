//! Leases that streams hold: the grant, the loss, and the client that goes and comes back.

use std::time::{Duration, Instant};

use crate::support::{
    backend::{Answer, Backend},
    chromium::Pages,
    events::{Event, Events},
    h2c,
    leases::{IDS, lease, leasing_versions, put_with, reaches, view},
    proxy::{Proxy, Setup},
    raw::{get, send},
};

const DOC: &str = "/doc";
const LEASE: &str = "/.leases/doc";

fn setup(backend: &Backend) -> Setup {
    backend.put(DOC, "one");
    leasing_versions(backend)
}

async fn start(configure: impl FnOnce(Setup) -> Setup) -> (Backend, Proxy) {
    let backend = Backend::start().await;
    let proxy = configure(setup(&backend)).start().await;
    (backend, proxy)
}

/// A stream by which a client holds the lease, and its grant.
async fn hold(proxy: &Proxy, fields: &[(&str, &str)]) -> (Events, Event) {
    let mut events = Events::post(proxy.addr(), LEASE, fields).await;
    let granted = events.expect("granted").await;
    (events, granted)
}

fn id_of(granted: &Event) -> String {
    granted.data["id"].as_str().expect("an id").to_owned()
}

#[tokio::test]
async fn a_lease_outlasts_its_term_while_its_stream_is_open() {
    let (backend, proxy) = start(|setup| setup.route("lease.linger = \"0s\"")).await;
    let addr = proxy.addr();
    let begun = Instant::now();
    let (events, granted) = hold(&proxy, &[("Lease-Duration", "1"), ("Lease-Holder", "Ann")]).await;
    assert_eq!((events.retry, &granted.data["seconds"]), (Some(1_000), &1.into()));
    assert_eq!(granted.data["etag"], get(addr, DOC).await.etag());
    while begun.elapsed() < Duration::from_millis(3_500) {
        let shown = view(addr, DOC).await;
        assert_eq!((&shown["state"], &shown["holder"]), (&"leased".into(), &"Ann".into()));
        assert_eq!(lease(addr, "POST", DOC, &[]).await.status, 409);
    }
    assert_eq!(put_with(addr, DOC, &id_of(&granted), "two").await.status, 204);
    let write = backend.seen("PUT", DOC).pop().expect("a write");
    assert_eq!(write.header("fencing-token"), Some(&*granted.data["fence"].to_string()));
    drop(events);
    reaches(addr, DOC, "available").await;
}

/// A tab that loses its connection has the lease again before any other client gets it.
#[tokio::test]
async fn a_client_that_comes_back_in_time_goes_on_under_the_same_fence() {
    let (_backend, proxy) = start(|setup| setup.route("lease.linger = \"60s\"")).await;
    let (events, granted) = hold(&proxy, &[]).await;
    drop(events);
    assert_eq!(lease(proxy.addr(), "POST", DOC, &[]).await.status, 409);
    let (mut events, again) = hold(&proxy, &[("Lease-Id", &id_of(&granted))]).await;
    assert_eq!(again, granted);
    assert_eq!(lease(proxy.addr(), "DELETE", DOC, &[("Lease-Id", &id_of(&granted))]).await.status, 204);
    assert_eq!(events.expect("lost").await.data["reason"], "released");
    assert_eq!(events.next().await, None);
}

#[tokio::test]
async fn a_break_is_told_and_the_next_client_in_line_is_granted_the_lease() {
    let (_backend, proxy) = start(|setup| setup.route("lease.client_break = true")).await;
    let (mut first, granted) = hold(&proxy, &[("Lease-Holder", "Ann")]).await;
    let mut second = Events::post(proxy.addr(), LEASE, &[("Prefer", "wait=20")]).await;
    let waiting = second.expect("waiting").await;
    assert_eq!((&waiting.data["holder"], &waiting.data["place"]), (&"Ann".into(), &1.into()));
    assert!(!waiting.data.to_string().contains(&id_of(&granted)), "{waiting:?}");
    assert_eq!(lease(proxy.addr(), "DELETE", DOC, &[("Lease-Break-Period", "1")]).await.status, 202);
    first.expect("breaking").await;
    assert_eq!(first.expect("lost").await.data["reason"], "broken");
    let next = second.expect("granted").await;
    assert!(next.data["fence"].as_u64() > granted.data["fence"].as_u64());
    put_with(proxy.addr(), DOC, &id_of(&granted), "late").await.refused(412, "lease-id-mismatch");
}

#[tokio::test]
async fn a_client_whom_the_backend_lets_in_no_more_loses_its_lease() {
    let (backend, proxy) = start(|setup| setup.route("identity_ttl = \"1s\"")).await;
    let (mut events, _) = hold(&proxy, &[]).await;
    for method in ["GET", "HEAD"] {
        backend.always(method, DOC, |_| Answer::status(403));
    }
    let lost = events.expect("lost").await;
    assert_eq!((&lost.data["reason"], &lost.data["status"]), (&"denied".into(), &403.into()));
    assert_eq!(events.next().await, None);
    let refused = send(proxy.addr(), "POST", LEASE, &[("Accept", "text/event-stream")], "").await;
    assert_eq!(refused.status, 403, "{refused:?}");
}

#[tokio::test]
async fn places_of_watches_are_shared_with_these_streams() {
    let (_backend, proxy) = start(|setup| setup.server("max_watches_per_client = 1")).await;
    let _held = hold(&proxy, &[]).await;
    let refused = send(proxy.addr(), "POST", "/.leases/other", &[("Accept", "text/event-stream")], "").await;
    refused.refused(503, "overloaded");
    assert_eq!(get(proxy.addr(), DOC).await.status, 200);
}

/// The lease of a stream that the process ends is not released: its client comes back.
#[tokio::test]
async fn a_reload_ends_the_stream_and_not_the_lease() {
    let (backend, proxy) = start(|setup| setup.server("control_socket = \"{control}\"")).await;
    let (mut events, granted) = hold(&proxy, &[("Lease-Duration", "30")]).await;
    events.retry = None;
    let changed = setup(&backend).server("control_socket = \"{control}\"").route("lease.linger = \"0s\"");
    proxy.rewrite(&changed.configuration());
    assert_eq!(proxy.reload(&[]).await.code, Some(0));
    assert_eq!(events.next().await, None);
    assert!(events.retry.is_some_and(|retry| (1_000..5_000).contains(&retry)), "{:?}", events.retry);
    let (_events, again) = hold(&proxy, &[("Lease-Id", &id_of(&granted))]).await;
    assert_eq!(again.data["fence"], granted.data["fence"]);
}

#[tokio::test]
async fn a_stop_ends_the_stream_in_good_order() {
    let (_backend, mut proxy) = start(|setup| setup).await;
    let (mut events, _) = hold(&proxy, &[("Lease-Duration", "30")]).await;
    proxy.signal("TERM");
    assert_eq!(events.next().await, None);
    assert_eq!(proxy.exit_status().await.code(), Some(0));
}

#[tokio::test]
async fn a_stream_over_http_2_holds_a_lease_until_it_is_reset() {
    let (_backend, proxy) = start(|setup| setup.route("lease.linger = \"0s\"")).await;
    let mut client = h2c::Connection::open(proxy.addr()).await;
    let fields = [("accept", "text/event-stream"), ("lease-id", IDS[0])];
    let stream = client.begin_without_body("POST", LEASE, &fields).await;
    reaches(proxy.addr(), DOC, "leased").await;
    drop((stream, client));
    reaches(proxy.addr(), DOC, "available").await;
}

/// A page that is closed frees its document.
#[tokio::test]
async fn a_page_of_another_origin_holds_a_lease_until_it_is_closed() {
    let (backend, pages) = (Backend::start().await, Pages::start().await);
    let setup = setup(&backend).route("lease.linger = \"0s\"");
    let origin = pages.origin();
    backend.serve(move |_| {
        let answer = Answer::status(200).header("Access-Control-Allow-Origin", &origin);
        answer.header("Access-Control-Allow-Methods", "POST").header("Access-Control-Allow-Headers", "Lease-Holder")
    });
    let proxy = setup.start().await;
    let script = format!(
        "const answer = await fetch('http://{addr}{LEASE}', {{
             method: 'POST', headers: {{ Accept: 'text/event-stream', 'Lease-Holder': 'Ann' }} }});
         const {{ value }} = await answer.body.getReader().read();
         say('told', new TextDecoder().decode(value).split('\\n').filter(line => line.startsWith('event'))[0]);
         const shown = await (await fetch('http://{addr}{LEASE}')).json();
         say('held by', shown.holder);",
        addr = proxy.addr()
    );
    assert_eq!(pages.run(&script).await, ["told event: granted", "held by Ann"]);
    reaches(proxy.addr(), DOC, "available").await;
}
