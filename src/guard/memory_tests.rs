//! Tests of what memory may decide: only what it knows of the very state that a write meets (DESIGN, section 3, rules 2
//! and 3, and section 6).

use std::time::Duration;

use http::Method;

use super::testing::Fixture;
use crate::{
    core::{
        lease::testing::rules,
        policy::{GuardRules, LeaseAuth, LeaseRules, ProbeAuth, Require, TagSource},
        records::{record::Mark, steps::claim},
        resource::ResourceKey,
        route::{PathPattern, TouchTemplate},
    },
    testing::guard,
};

fn exclusive(etag: TagSource) -> GuardRules {
    GuardRules { etag, other_writers: false, require: Require::Never, ..guard() }
}

/// Serves two variants.
fn flavoured(head: &str) -> String {
    let body = if head.contains("x-flavour: sour") { "lemon" } else { "honey" };
    format!("HTTP/1.1 200 OK\r\nVary: X-Flavour\r\nContent-Length: 5\r\n\r\n{body}")
}

async fn tag_of(fixture: &Fixture, flavour: &str) -> String {
    let read = fixture.send(Method::GET, &format!("X-Flavour: {flavour}\r\n"), "").await;
    read.tag().expect("a tag").to_owned()
}

/// Rule 2: another process sends the holder's own deletion meanwhile, and its mark leaves the version as it is.
#[tokio::test]
async fn a_lease_operation_is_not_judged_from_memory_while_a_write_is_in_flight() {
    let lease = Some(LeaseRules { auth: LeaseAuth::None, ..rules() });
    let fixture = Fixture::with(GuardRules { lease, ..exclusive(TagSource::Version) }).await;
    let (key, tag) = (ResourceKey::from_text("doc"), fixture.tag().await);
    let granted = fixture.lease("doc", Method::POST, "").await;
    let renewal = format!("Lease-Id: {}\r\nIf-Match: {tag}\r\n", granted.field("lease-id").expect("an id"));
    assert_eq!(fixture.lease("doc", Method::PUT, &renewal).await.status, 200);

    let before = fixture.store.look(&key).await;
    let deadline = before.now.plus(Duration::from_secs(60));
    let mark = Mark { owner: 99, nonce: 1, deadline, late_write_window: Duration::ZERO, leaves_lease: true };
    fixture.store.put(&key, claim(&before, mark).expect("nothing is in the way")).await;
    fixture.answer_reads(|_| "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned()).await;
    assert_eq!(fixture.lease("doc", Method::PUT, &renewal).await.status, 412);
}

/// The tag in the answer to a POST may be that of what the POST has created.
#[tokio::test]
async fn the_tag_in_the_answer_to_a_post_says_nothing_of_its_target() {
    let fixture = Fixture::with(GuardRules { unique_tags: true, ..exclusive(TagSource::Upstream) }).await;
    fixture.answer_reads(|_| "HTTP/1.1 200 OK\r\nETag: \"one\"\r\nContent-Length: 0\r\n\r\n".to_owned()).await;
    assert_eq!(fixture.send(Method::POST, "If-Match: \"one\"\r\n", "more").await.status, 204);
    let refused = fixture.put("\"of-the-backend\"", "two").await;
    assert_eq!((refused.status, fixture.writes()), (412, 1));
}

/// A POST elsewhere may create the resource again.
#[tokio::test]
async fn a_write_that_left_nothing_does_not_let_another_create_unseen() {
    let fixture = Fixture::with(exclusive(TagSource::Content)).await;
    fixture.answer_reads(|_| "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned()).await;
    assert_eq!(fixture.send(Method::PUT, "", "two").await.status, 204);
    fixture.answer_reads(|_| "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nmade".to_owned()).await;
    let refused = fixture.send(Method::PUT, "If-None-Match: *\r\n", "three").await;
    assert_eq!((refused.status, fixture.writes()), (412, 1));
}

/// Even if its body is the content that was written.
#[tokio::test]
async fn an_error_after_a_write_is_not_its_new_state() {
    let fixture = Fixture::with(exclusive(TagSource::Content)).await;
    fixture.answer_reads(|_| "HTTP/1.1 500 Oops\r\nContent-Length: 3\r\n\r\ntwo".to_owned()).await;
    let written = fixture.send(Method::PUT, "", "two").await;
    assert_eq!((written.status, written.tag()), (204, None));
}

#[tokio::test]
async fn a_write_of_one_variant_does_not_stand_for_another() {
    let fixture = Fixture::with(exclusive(TagSource::Content)).await;
    fixture.answer_reads(flavoured).await;
    let sour = tag_of(&fixture, "sour").await;
    assert_eq!(fixture.send(Method::PUT, "X-Flavour: sweet\r\n", "honey").await.status, 204);
    let written = fixture.send(Method::PUT, &format!("X-Flavour: sour\r\nIf-Match: {sour}\r\n"), "lime").await;
    assert_eq!(written.status, 204, "{}", written.body);
}

/// A client that has read one variant may write under the name of another.
#[tokio::test]
async fn a_tag_of_another_variant_is_not_refused_from_memory() {
    let fixture = Fixture::with(exclusive(TagSource::Content)).await;
    fixture.answer_reads(flavoured).await;
    let (sweet, sour) = (tag_of(&fixture, "sweet").await, tag_of(&fixture, "sour").await);
    assert_ne!(sweet, sour);
    let written = fixture.send(Method::PUT, &format!("X-Flavour: sour\r\nIf-Match: {sweet}\r\n"), "lime").await;
    assert_eq!(written.status, 204, "{}", written.body);
}

/// The proxy may read here, and the client perhaps not: each of its refusals comes from a probe.
#[tokio::test]
async fn a_probe_without_the_clients_rights_does_not_make_the_client_known() {
    let rules = GuardRules { probe_auth: ProbeAuth::None, ..exclusive(TagSource::Version) };
    let fixture = Fixture::with(rules).await;
    for probes in 1..=2 {
        assert_eq!(fixture.put("\"stale\"", "two").await.status, 412);
        assert_eq!(fixture.reads().await.len(), probes);
    }
}

/// Rule 2: the backend has the tag of the state before once more. Which of the two named tags that was, the proxy
/// cannot tell, so the tag goes out with a suffix.
#[tokio::test]
async fn of_several_tags_that_the_upstream_judges_none_counts_as_that_of_the_state_before() {
    let fixture = Fixture::with(exclusive(TagSource::Delegate)).await;
    fixture
        .answer_reads(|_| "HTTP/1.1 200 OK\r\nETag: \"of-the-backend\"\r\nContent-Length: 0\r\n\r\n".to_owned())
        .await;
    let before = fixture.tag().await;
    let written = fixture.put(&format!("\"other\", {before}"), "two").await;
    assert_eq!(written.status, 204, "{}", written.body);
    assert_ne!(fixture.tag().await, before, "a client with the earlier tag would pass");
}

/// The route lists the resource itself among those that a write changes.
#[tokio::test]
async fn a_write_that_lists_its_own_resource_does_not_disturb_itself() {
    let path = PathPattern::parse("/doc").unwrap();
    let also_changes = vec![TouchTemplate::parse("/doc", &path).unwrap()];
    let fixture = Fixture::with(GuardRules { also_changes, ..exclusive(TagSource::Version) }).await;
    let written = fixture.send_to("backend:/doc", Method::PUT, "", "two").await;
    assert_eq!((written.status, written.tag().is_some()), (204, true));
}
