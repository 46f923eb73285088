//! Watches over a guard with a store and a clock under the test's control.

use std::{sync::Arc, time::Duration};

use http::Method;
use serde_json::Value;
use tokio::time::Instant;

use super::{Watched, stream::EventStream};
use crate::{
    core::{
        lease::testing::rules,
        policy::{GuardRules, LeaseGuards, LeaseRules, ProbeRules, Require, TagSource},
        records::record::{Doubt, Record, Stamp},
        resource::ResourceKey,
        tags::issued_tag::version_tag,
    },
    guard::testing::{Asked, EventClient, Fault, Fixture, Response, When},
    store::Store as _,
    testing::{guard, size_of_future},
};

fn watched(lease: LeaseRules) -> GuardRules {
    GuardRules { watch: true, etag: TagSource::Version, other_writers: false, lease: Some(lease), ..guard() }
}

async fn watch(fixture: &Fixture, fields: &str) -> Response {
    fixture.exchange("doc", "/.watch/doc", Method::GET, fields, "").await
}

fn state(response: &Response) -> Value {
    assert_eq!(response.status, 200, "{}", response.body);
    serde_json::from_str(&response.body).expect("JSON")
}

/// Rule 2: an event has the tag that a read would answer, and no other.
#[tokio::test]
async fn no_tag_is_told_while_a_lease_keeps_readers_away() {
    for (guards, is_told) in [(LeaseGuards::Write, true), (LeaseGuards::ReadAndWrite, false)] {
        let fixture = Fixture::with(watched(LeaseRules { guards, ..rules() })).await;
        let tag = Value::from(fixture.tag().await);
        assert_eq!(state(&watch(&fixture, "").await)["etag"], tag);
        assert_eq!(fixture.lease("doc", Method::POST, "Lease-Duration: 30\r\n").await.status, 201);
        let told = state(&watch(&fixture, "").await);
        assert_eq!((told["etag"] == tag, told["etag"].is_null()), (is_told, !is_told), "{guards:?}: {told}");
        assert_eq!(told["lease"]["state"], "leased");
    }
}

/// Returns the last event of the stream about a write.
async fn told_of(stream: &mut EventClient, fixture: &Fixture, target: &str, method: Method) -> Value {
    assert_eq!(fixture.send_for(target, method, "", "two").await.status, 204);
    fixture.pass_seconds(2).await;
    let (name, told) = stream.event().await;
    assert_eq!(name, "changed");
    told
}

/// Rule 2: a version is the tag of content, unless a deletion has made it. Of other targets with the same key, it tells
/// nothing.
#[tokio::test(start_paused = true)]
async fn a_version_is_told_as_a_tag_if_the_write_has_left_content() {
    let fixture = Arc::new(Fixture::with(GuardRules { require: Require::Never, ..watched(rules()) }).await);
    let mut stream = fixture.watch("doc").await;
    assert_eq!(stream.event().await.0, "state");
    let written = told_of(&mut stream, &fixture, "/doc", Method::PUT).await;
    assert_eq!(written["etag"], Value::from(fixture.tag().await));
    for (target, method, is_deleted) in [
        ("/doc", Method::DELETE, Value::from(true)),
        ("/doc?part", Method::PUT, Value::Null),
        ("/doc?part", Method::DELETE, Value::Null),
        ("/doc", Method::POST, Value::Null),
    ] {
        let told = told_of(&mut stream, &fixture, target, method.clone()).await;
        assert_eq!((&told["deleted"], &told["etag"]), (&is_deleted, &Value::Null), "{method} {target}");
    }
}

/// Rule 2: the version of a deletion is the tag of nothing, so it creates nothing. If the backend shows content all the
/// same, its readers can write.
#[tokio::test]
async fn the_version_of_a_deletion_matches_only_what_is_there() {
    let fixture = Fixture::with(GuardRules { require: Require::Never, ..watched(rules()) }).await;
    assert_eq!(fixture.send(Method::DELETE, "", "").await.status, 204);
    let shown = fixture.tag().await;
    assert_eq!(fixture.put(&shown, "again").await.status, 204);

    assert_eq!(fixture.send(Method::DELETE, "", "").await.status, 204);
    fixture.answer_reads(|_| "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned()).await;
    let (writes, record) = (fixture.writes(), fixture.store.look(&ResourceKey::from_text("doc")).await);
    let guessed = version_tag(fixture.store.incarnation().0, record.version(), 7).expect("a tag");
    let guessed = String::from_utf8_lossy(guessed.to_header_value().as_bytes()).into_owned();
    assert_eq!(fixture.put(&guessed, "created").await.status, 412);
    assert_eq!(fixture.writes(), writes, "not one byte of it was sent");
}

/// Rule 3: a doubt that ends while the backend is asked brings another version than that of the tag.
#[tokio::test]
async fn a_tag_that_was_learned_during_a_doubt_is_not_told() {
    let fixture = Fixture::with(watched(rules())).await;
    let (key, tag) = (ResourceKey::from_text("doc"), fixture.tag().await);
    let before = fixture.store.look(&key).await;
    let doubt = Some(Doubt { until: before.now.plus(Duration::from_secs(1)), version: Stamp::Itself });
    fixture.store.swap(&key, before.revision, Record { doubt, ..before.draft() }).await.expect("a store");
    fixture.store.fail(Fault::Unavailable, When::Never);
    let held = fixture.hold_writes().await;
    let ends = async {
        while fixture.store.asked() == Asked::default() {
            tokio::task::yield_now().await;
        }
        fixture.store.pass(1_000);
        drop(held);
    };
    let (told, ()) = tokio::join!(watch(&fixture, ""), ends);
    assert!(state(&told)["etag"].is_null(), "{}", told.body);
    assert_ne!(fixture.tag().await, tag);
}

/// Rule 12: without the store, there is no event.
#[tokio::test]
async fn a_store_that_fails_is_a_503() {
    let fixture = Fixture::with(watched(rules())).await;
    fixture.store.fail(Fault::Unavailable, When::From(0));
    assert_eq!(watch(&fixture, "").await.status, 503);
}

/// How long a question to the backend may take in these tests.
const PATIENCE_SECONDS: u64 = 1_000;

/// A route whose backend is asked for the content each ten seconds, and may keep silent for long.
fn probed() -> GuardRules {
    let (seconds, probe) = (Duration::from_secs, ProbeRules { timeout: Duration::from_secs(PATIENCE_SECONDS) });
    let times = GuardRules { identity_ttl: seconds(10 * PATIENCE_SECONDS), watch_probe: Some(seconds(10)), ..guard() };
    GuardRules { watch: true, lease: Some(rules()), probe, ..times }
}

async fn lease(fixture: &Fixture, method: Method, fields: &str) -> Response {
    fixture.lease("doc", method, fields).await
}

async fn acquire(fixture: &Fixture) -> String {
    let granted = lease(fixture, Method::POST, "Lease-Duration: 30\r\n").await;
    assert_eq!(granted.status, 201, "{}", granted.body);
    format!("Lease-Id: {}\r\n", granted.field("lease-id").expect("an id"))
}

/// Returns the change of the next event, which is about the lease.
async fn step(stream: &mut EventClient) -> Value {
    let (name, told) = stream.event().await;
    assert_eq!(name, "lease", "{told}");
    told["change"].clone()
}

/// The record alone shows the leases. The content follows when the backend answers.
#[tokio::test(start_paused = true)]
async fn no_step_of_a_lease_waits_for_a_backend_that_keeps_silent_about_the_content() {
    let fixture = Arc::new(Fixture::with(probed()).await);
    let mut stream = fixture.watch("doc").await;
    assert_eq!(stream.event().await.0, "state");
    let mut silent = fixture.hold_writes().await;
    fixture.pass_seconds(11).await;
    let id = acquire(&fixture).await;
    assert_eq!(step(&mut stream).await, "acquired");
    assert_eq!(lease(&fixture, Method::DELETE, &id).await.status, 204);
    assert_eq!(step(&mut stream).await, "released");
    *silent = b"two".to_vec();
    drop(silent);
    assert_eq!(stream.event().await.0, "changed");
}

/// The backend is asked so early that its answer comes before the right ends.
#[tokio::test(start_paused = true)]
async fn no_step_of_a_lease_waits_for_a_backend_that_keeps_silent_about_a_right() {
    let probe = ProbeRules { timeout: Duration::from_secs(5) };
    let rules = GuardRules { identity_ttl: Duration::from_secs(60), watch_probe: None, probe, ..probed() };
    let fixture = Arc::new(Fixture::with(rules).await);
    let mut stream = fixture.watch("doc").await;
    assert_eq!(stream.event().await.0, "state");
    let silent = fixture.hold_writes().await;
    fixture.pass_seconds(57).await;
    acquire(&fixture).await;
    assert_eq!(step(&mut stream).await, "acquired");
    fixture.pass_seconds(2).await;
    assert!(!stream.has_ended(), "the backend may still answer");
    fixture.pass_seconds(2).await;
    assert!(stream.has_ended(), "the right of the client has ended");
    drop(silent);
}

/// Section 8: a client has the rights of a read, which last for `identity_ttl`.
#[tokio::test(start_paused = true)]
async fn nothing_is_told_between_the_end_of_a_right_and_the_answer_about_it() {
    let fixture = Arc::new(Fixture::with(GuardRules { identity_ttl: Duration::from_secs(60), ..probed() }).await);
    let mut stream = fixture.watch("doc").await;
    assert_eq!(stream.event().await.0, "state");
    let silent = fixture.hold_writes().await;
    fixture.pass_seconds(61).await;
    acquire(&fixture).await;
    fixture.pass_seconds(1).await;
    assert!(stream.heard().await.is_none(), "it may have no right any more");
    drop(silent);
    assert_eq!(step(&mut stream).await, "acquired");
}

/// A client without a stream gets the state as soon as a lease has another one.
#[tokio::test(start_paused = true)]
async fn a_client_that_waits_for_a_change_does_not_wait_for_a_silent_backend() {
    let fixture = Fixture::with(probed()).await;
    let known = watch(&fixture, "").await.tag().expect("a tag").to_owned();
    let (begun, fields) = (Instant::now(), format!("If-None-Match: {known}\r\nPrefer: wait=50\r\n"));
    let (told, ()) = tokio::join!(watch(&fixture, &fields), async {
        fixture.pass_seconds(1).await;
        let _silent = fixture.hold_writes().await;
        fixture.pass_seconds(11).await;
        acquire(&fixture).await;
        fixture.pass_seconds(1).await;
    });
    assert_eq!(state(&told)["lease"]["state"], "leased");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

/// A client that waits takes this much beside its connection, its path and its fields.
#[test]
fn a_client_that_watches_takes_little_memory() {
    let waiting = size_of_future(|stream: &'static mut EventStream| stream.next_piece());
    let sizes = [waiting, size_of::<EventStream>(), size_of::<Watched>()];
    assert!(sizes.iter().sum::<usize>() <= 1_536, "{sizes:?}");
}
