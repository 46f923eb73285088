//! Leases that streams hold, over a guard with a store and a clock under the test's control.

use std::{sync::Arc, time::Duration};

use http::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    core::{
        lease::{LeaseSet, testing::rules},
        policy::{GuardRules, LeaseAuth, LeaseRules, ProbeRules, Require, TagSource},
        records::record::Record,
        resource::ResourceKey,
    },
    guard::testing::{EventClient, Fault, Fixture, When, code},
    testing::guard,
};

pub(super) const DOC: &str = "doc";
const ID: &str = "Lease-Id: 11111111-1111-4111-8111-111111111111\r\n";
const LINGER_SECONDS: u64 = 5;
const TERM_SECONDS: u64 = 30;

/// A route whose clients lose their leases at once where they can.
pub(super) fn lossy_rules() -> GuardRules {
    let lease = Some(LeaseRules { max_per_principal: 1_000, max_per_address: 1_000, ..rules() });
    GuardRules { etag: TagSource::Version, other_writers: false, require: Require::Never, lease, ..guard() }
}

async fn start() -> Arc<Fixture> {
    start_with(rules()).await
}

async fn start_with(lease: LeaseRules) -> Arc<Fixture> {
    let (etag, require) = (TagSource::Version, Require::Never);
    Arc::new(Fixture::with(GuardRules { etag, other_writers: false, require, lease: Some(lease), ..guard() }).await)
}

/// Opens a stream and returns it with the grant.
async fn hold(fixture: &Arc<Fixture>, fields: &str) -> (EventClient, Value) {
    let mut stream = fixture.hold(DOC, fields).await;
    let (name, granted) = stream.event().await;
    assert_eq!((&*name, &granted["seconds"]), ("granted", &json!(TERM_SECONDS)));
    (stream, granted)
}

async fn lease(fixture: &Fixture, method: Method, fields: &str) -> (u16, String) {
    let response = fixture.lease(DOC, method, fields).await;
    let (status, code) = code(&response);
    (status, code.to_owned())
}

async fn is_leased(fixture: &Fixture) -> bool {
    fixture.store.look(&ResourceKey::from_text(DOC)).await.lease_state().is_held()
}

fn id_of(granted: &Value) -> String {
    format!("Lease-Id: {}\r\n", granted["id"].as_str().expect("an id"))
}

async fn lost(stream: &mut EventClient) -> Value {
    let (name, data) = stream.event().await;
    assert_eq!(name, "lost");
    data["reason"].clone()
}

#[tokio::test(start_paused = true)]
async fn a_lease_lasts_for_as_long_as_its_stream() {
    let fixture = start().await;
    let (stream, granted) = hold(&fixture, "").await;
    for _ in 0..10 {
        fixture.pass_seconds(10).await;
        assert_eq!(lease(&fixture, Method::POST, "").await, (409, "lease-held".to_owned()));
    }
    assert_eq!(fixture.send(Method::PUT, &id_of(&granted), "two").await.status, 204);
    assert_eq!(fixture.last_fence().await, Some(granted["fence"].to_string()));
    drop(stream);
    fixture.pass_seconds(LINGER_SECONDS - 1).await;
    assert!(is_leased(&fixture).await, "its client may come back");
    fixture.pass_seconds(2).await;
    assert_eq!(lease(&fixture, Method::POST, "").await.0, 201);
}

/// A linger releases no lease that its client has taken up again, in any way.
#[tokio::test(start_paused = true)]
async fn a_client_that_comes_back_holds_its_lease_on() {
    let fixture = start().await;
    let (stream, granted) = hold(&fixture, "").await;
    drop(stream);
    fixture.pass_seconds(LINGER_SECONDS - 1).await;
    let (second, again) = hold(&fixture, &id_of(&granted)).await;
    assert_eq!(again, granted, "the same id and fence");
    fixture.pass_seconds(TERM_SECONDS * 2).await;
    assert!(is_leased(&fixture).await);

    drop(second);
    fixture.pass_seconds(1).await;
    assert_eq!(lease(&fixture, Method::PUT, &id_of(&granted)).await.0, 200);
    fixture.pass_seconds(LINGER_SECONDS * 2).await;
    assert!(is_leased(&fixture).await, "the client has renewed its lease without a stream");
    fixture.pass_seconds(TERM_SECONDS).await;
    assert!(!is_leased(&fixture).await, "and does so no more");
}

/// A connection that its client has left may look open for long.
#[tokio::test(start_paused = true)]
async fn an_earlier_stream_ends_when_a_later_one_takes_the_lease_up() {
    let fixture = start().await;
    let (mut earlier, granted) = hold(&fixture, "").await;
    let (_later, _) = hold(&fixture, &id_of(&granted)).await;
    assert_eq!(lost(&mut earlier).await, "taken-up");
    drop(earlier);
    fixture.pass_seconds(LINGER_SECONDS * 2).await;
    assert!(is_leased(&fixture).await);
}

/// The question about the right of a client holds up no event of its lease.
#[tokio::test(start_paused = true)]
async fn a_loss_and_a_grant_are_told_while_the_backend_keeps_silent() {
    let lease = Some(LeaseRules { auth: LeaseAuth::Probe, ..rules() });
    let (seconds, probe) = (Duration::from_secs, ProbeRules { timeout: Duration::from_secs(1_000) });
    let fixture = Fixture::with(GuardRules { lease, identity_ttl: seconds(20), probe, ..lossy_rules() }).await;
    let fixture = Arc::new(fixture);
    let (mut first, _) = hold(&fixture, "").await;
    let mut second = fixture.hold(DOC, "Prefer: wait=30\r\n").await;
    assert_eq!(second.event().await.0, "waiting");
    let silent = fixture.hold_writes().await;
    fixture.pass_seconds(21).await;
    // As another proxy does it.
    let key = ResourceKey::from_text(DOC);
    let held = fixture.store.look(&key).await;
    fixture.store.put(&key, Record { leases: LeaseSet::from_iter([]), ..held.draft() }).await;
    fixture.pass_seconds(2).await;
    assert_eq!(lost(&mut first).await, "ended");
    assert_eq!(second.event().await.0, "granted");
    drop(silent);
}

/// Rule 15: no lease stands without a client that has its id.
#[tokio::test(start_paused = true)]
async fn a_grant_that_nobody_received_does_not_stay() {
    let fixture = start().await;
    fixture.lease_unheard(DOC, Method::POST, "Accept: text/event-stream\r\n").await;
    fixture.pass_seconds(1).await;
    assert!(!is_leased(&fixture).await, "it is taken back, without a linger");

    fixture.lease_unheard(DOC, Method::POST, &format!("Accept: text/event-stream\r\n{ID}")).await;
    assert!(is_leased(&fixture).await, "its client knows the id, and may come back");
    fixture.pass_seconds(LINGER_SECONDS + 1).await;
    assert!(!is_leased(&fixture).await);
}

/// The client may have renewed its lease by another connection before.
#[tokio::test(start_paused = true)]
async fn a_stream_that_nobody_heard_of_releases_nothing() {
    let fixture = start().await;
    assert_eq!(lease(&fixture, Method::POST, ID).await.0, 201);
    fixture.lease_unheard(DOC, Method::POST, &format!("Accept: text/event-stream\r\n{ID}")).await;
    fixture.pass_seconds(LINGER_SECONDS * 2).await;
    assert!(is_leased(&fixture).await);
    fixture.pass_seconds(TERM_SECONDS).await;
    assert!(!is_leased(&fixture).await, "nobody renews it");
}

#[tokio::test(start_paused = true)]
async fn each_loss_is_told_at_once_with_its_reason() {
    let fixture = start().await;
    let (mut stream, _) = hold(&fixture, "").await;
    let begun = Instant::now();
    assert_eq!(lease(&fixture, Method::DELETE, "Lease-Break-Period: 0\r\n").await.0, 202);
    assert_eq!(lost(&mut stream).await, "broken");
    let (mut stream, granted) = hold(&fixture, "").await;
    assert_eq!(lease(&fixture, Method::DELETE, &id_of(&granted)).await.0, 204);
    assert_eq!(lost(&mut stream).await, "released");
    let (mut stream, granted) = hold(&fixture, "").await;
    assert_eq!(fixture.send(Method::DELETE, &id_of(&granted), "").await.status, 204);
    assert_eq!(lost(&mut stream).await, "ended");
    assert!(begun.elapsed() < Duration::from_millis(100), "{:?}", begun.elapsed());
    assert!(stream.rest().await.ends_with("0\r\n\r\n"), "the stream ends");
    let (mut stream, _) = hold(&fixture, "").await;
    fixture.store.pass(TERM_SECONDS * 1_000);
    assert_eq!(lost(&mut stream).await, "expired");
}

/// A renewal never revives a lease that was broken.
#[tokio::test(start_paused = true)]
async fn a_broken_lease_is_not_renewed_in_the_time_that_its_holder_has_to_finish() {
    let fixture = start().await;
    let (mut stream, granted) = hold(&fixture, "").await;
    assert_eq!(lease(&fixture, Method::DELETE, "Lease-Break-Period: 15\r\n").await.0, 202);
    assert_eq!(stream.event().await, ("breaking".to_owned(), json!({"seconds": 15})));
    fixture.pass_seconds(14).await;
    assert_eq!(fixture.send(Method::PUT, &id_of(&granted), "last").await.status, 204);
    fixture.pass_seconds(2).await;
    assert!(!is_leased(&fixture).await);
    assert_eq!(lost(&mut stream).await, "broken");
}

/// The client learns of the end of its lease before it is certain, no matter what the store does.
#[tokio::test(start_paused = true)]
async fn a_store_that_does_not_answer_is_a_loss_at_the_end_of_the_term() {
    for fault in [Fault::Unavailable, Fault::Hangs, Fault::AnswerLost] {
        let fixture = start().await;
        let begun = Instant::now();
        let (mut stream, _) = hold(&fixture, "").await;
        fixture.store.fail(fault, When::From(0));
        assert_eq!(lost(&mut stream).await, "unknown", "{fault:?}");
        let lasted = begun.elapsed();
        assert!(lasted <= Duration::from_secs(TERM_SECONDS), "{fault:?}: {lasted:?}");
        assert!(lasted > Duration::from_secs(TERM_SECONDS - 1), "{fault:?}: {lasted:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_for_a_while_costs_no_lease() {
    let fixture = start().await;
    let (_stream, _) = hold(&fixture, "").await;
    fixture.store.fail(Fault::Unavailable, When::From(0));
    fixture.pass_seconds(TERM_SECONDS - 2).await;
    fixture.store.fail(Fault::Unavailable, When::Never);
    fixture.pass_seconds(TERM_SECONDS).await;
    assert!(is_leased(&fixture).await);
}

/// The clock of an engine is a wall clock, which an operator may put back.
#[tokio::test(start_paused = true)]
async fn a_lease_outlasts_a_step_of_the_clock() {
    let fixture = start().await;
    let (_stream, granted) = hold(&fixture, "").await;
    fixture.store.go_back(TERM_SECONDS * 1_000);
    for _ in 0..10 {
        fixture.pass_seconds(TERM_SECONDS / 2).await;
        assert!(is_leased(&fixture).await);
    }
    assert_eq!(fixture.send(Method::PUT, &id_of(&granted), "two").await.status, 204);
}

#[tokio::test(start_paused = true)]
async fn a_stream_holds_no_lease_for_longer_than_the_route_allows() {
    let fixture = start_with(LeaseRules { max_hold_time: Duration::from_secs(100), ..rules() }).await;
    let begun = Instant::now();
    let (mut stream, _) = hold(&fixture, "").await;
    fixture.pass_seconds(99).await;
    assert!(is_leased(&fixture).await);
    fixture.pass_seconds(2).await;
    assert_eq!(lost(&mut stream).await, "expired");
    assert!(begun.elapsed() < Duration::from_secs(102));
}

/// The client of a stream that this process ends comes back, perhaps to another process.
#[tokio::test(start_paused = true)]
async fn a_stop_or_reload_leaves_the_lease_to_its_client() {
    let fixture = start().await;
    let (stream, _) = hold(&fixture, "").await;
    fixture.end_streams();
    let rest = stream.rest().await;
    let retry: u64 = rest.split("retry: ").nth(1).and_then(|rest| rest.split('\n').next()).unwrap().parse().unwrap();
    assert!((1_000..=5_000).contains(&retry), "{rest}");
    fixture.pass_seconds(LINGER_SECONDS * 2).await;
    assert!(is_leased(&fixture).await);
    fixture.pass_seconds(TERM_SECONDS).await;
    assert!(!is_leased(&fixture).await, "it has not come back, and the lease runs out");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_waits_is_told_for_whom_and_gets_its_turn() {
    let fixture = start().await;
    let (first, _) = hold(&fixture, "Lease-Holder: Ann\r\n").await;
    let waiting = async |stream: &mut EventClient| {
        let (name, waiting) = stream.event().await;
        assert_eq!(name, "waiting");
        (waiting["holder"].clone(), waiting["place"].clone())
    };
    let mut second = fixture.hold(DOC, "Prefer: wait=30\r\nLease-Holder: Bob\r\n").await;
    assert_eq!(waiting(&mut second).await, (json!("Ann"), json!(1)));
    let mut third = fixture.hold(DOC, "Prefer: wait=20\r\n").await;
    assert_eq!(waiting(&mut third).await, (json!("Ann"), json!(2)));
    let _fourth = fixture.hold(DOC, "Prefer: wait=20\r\n").await;
    drop(first);
    fixture.pass_seconds(LINGER_SECONDS + 1).await;
    assert_eq!(second.event().await.0, "granted");
    assert_eq!(waiting(&mut third).await, (json!("Bob"), json!(1)));
    let (name, refused) = third.event().await;
    assert_eq!((&*name, &refused["code"]), ("refused", &json!("lease-held")));
    assert!(third.rest().await.ends_with("0\r\n\r\n"));
}

/// A client that goes while it waits leaves the line.
#[tokio::test(start_paused = true)]
async fn a_client_that_has_gone_gets_no_turn() {
    let fixture = start().await;
    let (first, _) = hold(&fixture, "").await;
    let mut second = fixture.hold(DOC, "Prefer: wait=30\r\n").await;
    assert_eq!(second.event().await.0, "waiting");
    let mut third = fixture.hold(DOC, "Prefer: wait=30\r\n").await;
    assert_eq!(third.event().await.0, "waiting");
    drop((first, second));
    fixture.pass_seconds(LINGER_SECONDS + 1).await;
    let (name, waiting) = third.event().await;
    assert_eq!((&*name, &waiting["place"]), ("waiting", &json!(1)));
    assert_eq!(third.event().await.0, "granted");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_held_is_refused_before_the_stream() {
    let fixture = start().await;
    let accept = "Accept: text/html, text/event-stream;q=0.5\r\n";
    let ask = async |fields: &str| lease(&fixture, Method::POST, &format!("{accept}{fields}")).await;
    assert_eq!(ask("Lease-Duration: infinite\r\n").await, (400, "malformed-lease-header".to_owned()));
    assert_eq!(ask("Lease-Duration: 3\r\n").await, (400, "malformed-lease-header".to_owned()));
    fixture.store.fail(Fault::Unavailable, When::From(0));
    assert_eq!(ask("").await, (503, "store-unavailable".to_owned()));
    fixture.store.fail(Fault::Unavailable, When::Never);
    let body = fixture.exchange(DOC, "/.leases/doc", Method::POST, accept, "x").await;
    assert_eq!(code(&body), (400, "malformed-request"));
    let (_stream, _) = hold(&fixture, "").await;
    assert_eq!(ask("").await, (409, "lease-held".to_owned()));
}
