//! Tests of the number of store operations of a guarded request, and of the use of a record that was read early.

use std::time::Duration;

use http::Method;

use super::testing::{Asked, Fault, Fixture, When};
use crate::{
    core::{
        lease::testing::rules,
        policy::{AbsentLease, GuardRules, Idempotency, LeaseAuth, LeaseRules, Require, TagSource},
    },
    testing::guard,
};

/// A pessimistic route that grants leases of one second.
async fn with_leases() -> Fixture {
    let rules = LeaseRules { min: Duration::from_secs(1), ..rules() };
    let (etag, require) = (TagSource::Version, Require::Never);
    Fixture::with(GuardRules { etag, other_writers: false, require, lease: Some(rules), ..guard() }).await
}

/// Restarts the counts of store operations.
fn begin(fixture: &Fixture) {
    fixture.store.fail(Fault::Unavailable, When::Never);
}

/// The record is read once, marked and settled. The time is requested directly before the first byte.
#[tokio::test]
async fn a_write_that_nobody_disturbs_reads_once_and_swaps_twice() {
    for (etag, other_writers) in [(TagSource::Version, false), (TagSource::Content, false), (TagSource::Content, true)]
    {
        let fixture = Fixture::with(GuardRules { etag: etag.clone(), other_writers, ..guard() }).await;
        let tag = fixture.tag().await;
        begin(&fixture);
        assert_eq!(fixture.put(&tag, "two").await.status, 204, "{etag:?}");
        assert_eq!(fixture.store.asked(), Asked { reads: 1, swaps: 2, times: 1 }, "{etag:?} {other_writers:?}");
    }
}

/// In a store that proxies share, a keyed write has a record of its own: it is read, marked and ended too, and its term
/// counts from the store's time. That of the resource was seen just before. A retry reads that record, and its time after the body has arrived.
#[tokio::test]
async fn a_key_costs_a_record_of_its_own_only_in_a_shared_store() {
    let rules = GuardRules {
        etag: TagSource::Version,
        other_writers: false,
        idempotency: Idempotency::Accept,
        idempotency_ttl: Duration::from_secs(60),
        ..guard()
    };
    let key = "Idempotency-Key: \"8e03978e\"\r\n";
    for (is_shared, key, first, retry) in [
        (true, key, Asked { reads: 1, swaps: 4, times: 2 }, Asked { reads: 1, swaps: 0, times: 1 }),
        (false, key, Asked { reads: 1, swaps: 2, times: 1 }, Asked::default()),
        (true, "", Asked { reads: 0, swaps: 2, times: 1 }, Asked { reads: 1, swaps: 0, times: 0 }),
    ] {
        let rules = rules.clone();
        let fixture = if is_shared { Fixture::sharing(rules).await } else { Fixture::with(rules).await };
        let fields = format!("If-Match: {}\r\n{key}", fixture.tag().await);
        begin(&fixture);
        assert_eq!(fixture.send(Method::PUT, &fields, "two").await.status, 204);
        assert_eq!(fixture.store.asked(), first, "{is_shared} {key}");
        begin(&fixture);
        let expected = if key.is_empty() { 412 } else { 204 };
        assert_eq!(fixture.send(Method::PUT, &fields, "two").await.status, expected);
        assert_eq!(fixture.store.asked(), retry, "{is_shared} {key}");
    }
}

/// A lease is judged by the time after the body has arrived, and its outcome by the time of the settlement.
#[tokio::test]
async fn a_write_under_a_lease_asks_for_the_time_and_reads_no_more() {
    let fixture = with_leases().await;
    let grant = fixture.lease("doc", Method::POST, "Lease-Duration: 60\r\n").await;
    let id = format!("Lease-Id: {}\r\n", grant.field("lease-id").expect("an id"));
    begin(&fixture);
    assert_eq!(fixture.send(Method::PUT, &id, "two").await.status, 204);
    assert_eq!(fixture.store.asked(), Asked { reads: 1, swaps: 2, times: 3 });
}

#[tokio::test]
async fn a_write_that_is_refused_early_costs_one_read() {
    let fixture = Fixture::new(TagSource::Version).await;
    let tag = fixture.tag().await;
    assert_eq!(fixture.put(&tag, "two").await.status, 204);
    begin(&fixture);
    assert_eq!(fixture.put(&tag, "three").await.status, 412);
    assert_eq!(fixture.store.asked(), Asked { reads: 1, swaps: 0, times: 0 });
}

/// The failed swap returns the current record, which the write is judged by.
#[tokio::test]
async fn a_write_whose_record_changed_while_its_body_came_is_judged_by_what_it_is_then() {
    let fixture = Fixture::new(TagSource::Version).await;
    let tag = fixture.tag().await;
    let late = async {
        fixture.put(&tag, "two").await;
        begin(&fixture);
    };
    let response = fixture.put_slowly(&format!("If-Match: {tag}\r\n"), "three", late).await;
    assert_eq!((response.status, fixture.writes()), (412, 1), "{}", response.head);
    assert_eq!(fixture.store.asked(), Asked { reads: 0, swaps: 1, times: 0 });
    assert_eq!(fixture.content().await, "two");
}

/// A refusal by an early record counts only if the record is still current. The client may not learn anything from
/// memory, so the upstream is probed after the body has arrived. By the early record, the client's tag belongs to a
/// future state.
#[tokio::test]
async fn a_refusal_by_an_early_record_is_judged_again_where_that_has_changed() {
    let tag_of_two = {
        let fixture = Fixture::new(TagSource::Version).await;
        assert_eq!(fixture.put(&fixture.tag().await, "two").await.status, 204);
        fixture.tag().await
    };
    let by = |who: &str, tag: &str| format!("Authorization: {who}\r\nIf-Match: {tag}\r\n");
    let fixture = Fixture::new(TagSource::Version).await;
    let tag = fixture.tag().await;
    let late = async { assert_eq!(fixture.put(&tag, "two").await.status, 204) };
    let response = fixture.put_slowly(&by("one", &tag_of_two), "three", late).await;
    assert_eq!((response.status, fixture.writes()), (204, 2), "{}", response.head);
    begin(&fixture);
    assert_eq!(fixture.send(Method::PUT, &by("other", "\"x\""), "four").await.status, 412);
    assert_eq!(fixture.store.asked(), Asked { reads: 2, swaps: 0, times: 0 }, "it was read before and after");
}

/// The lease is held when the request begins, and has ended when its body has arrived.
#[tokio::test]
async fn a_lease_that_ends_while_the_body_comes_is_no_right_to_write() {
    let fixture = with_leases().await;
    let grant = fixture.lease("doc", Method::POST, "Lease-Duration: 60\r\n").await;
    let id = format!("Lease-Id: {}\r\n", grant.field("lease-id").expect("an id"));
    let response = fixture.put_slowly(&id, "two", async { fixture.store.pass(60_000) }).await;
    assert_eq!((response.status, fixture.writes()), (412, 0), "{}", response.head);
}

/// A mark's deadline is counted from the mark itself: the owner has the time that it needs after a body of any
/// duration.
#[tokio::test]
async fn a_body_that_took_long_leaves_the_write_its_time() {
    let fixture = Fixture::new(TagSource::Version).await;
    let tag = fixture.tag().await;
    let late = async {
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        fixture.store.pass(10 * 60 * 1000);
        begin(&fixture);
    };
    let response = fixture.put_slowly(&format!("If-Match: {tag}\r\n"), "two", late).await;
    assert_eq!((response.status, fixture.writes()), (204, 1), "{}", response.head);
    assert_eq!(fixture.store.asked(), Asked { reads: 0, swaps: 2, times: 2 });
}

/// A write that had to wait behind another reads the record again, which costs the store less than a swap in vain.
#[tokio::test]
async fn a_write_that_came_after_another_reads_the_record_anew() {
    let fixture = Fixture::new(TagSource::Version).await;
    let tag = fixture.tag().await;
    begin(&fixture);
    let (one, other) = tokio::join!(fixture.put(&tag, "two"), fixture.put(&tag, "three"));
    let mut statuses = [one.status, other.status];
    statuses.sort_unstable();
    assert_eq!((statuses, fixture.writes()), ([204, 412], 1));
    assert_eq!(fixture.store.asked(), Asked { reads: 3, swaps: 2, times: 1 });
}

/// A route of leases whose operations ask the backend nothing.
fn leases_alone() -> GuardRules {
    let rules =
        LeaseRules { min: Duration::from_secs(1), auth: LeaseAuth::None, absent: AbsentLease::Allow, ..rules() };
    let (etag, require) = (TagSource::Version, Require::Never);
    GuardRules { etag, other_writers: false, require, lease: Some(rules), ..guard() }
}

/// Returns a fixture with that route, in a store that other processes use too.
async fn with_shared_store() -> Fixture {
    Fixture::sharing(leases_alone()).await
}

async fn acquire(fixture: &Fixture) -> String {
    let grant = fixture.lease("doc", Method::POST, "Lease-Duration: 60\r\n").await;
    assert_eq!(grant.status, 201, "{}", grant.body);
    format!("Lease-Id: {}\r\n", grant.field("lease-id").expect("an id"))
}

#[tokio::test]
async fn a_lease_that_is_acquired_and_released_reads_once_and_swaps_twice() {
    let fixture = with_shared_store().await;
    begin(&fixture);
    let id = acquire(&fixture).await;
    assert_eq!(fixture.lease("doc", Method::DELETE, &id).await.status, 204);
    assert_eq!(fixture.store.asked(), Asked { reads: 1, swaps: 2, times: 0 });
}

#[tokio::test]
async fn a_lease_of_a_record_that_was_just_seen_costs_one_swap() {
    let fixture = with_shared_store().await;
    fixture.tag().await;
    begin(&fixture);
    acquire(&fixture).await;
    assert_eq!(fixture.store.asked(), Asked { reads: 0, swaps: 1, times: 0 });
}

/// The time of a record that is only remembered is the time of then.
#[tokio::test]
async fn a_lease_of_a_record_that_was_just_seen_does_not_end_early() {
    let fixture = with_shared_store().await;
    fixture.tag().await;
    let age = Duration::from_millis(50);
    tokio::time::sleep(age).await;
    fixture.store.pass(50);
    acquire(&fixture).await;
    fixture.store.pass(59_999);
    assert_eq!(fixture.lease("doc", Method::POST, "Lease-Duration: 60\r\n").await.status, 409);
}

/// Rule 7: the swap shows that another process has acted. No refusal rests on a remembered record.
#[tokio::test]
async fn a_step_by_an_outdated_record_is_judged_again() {
    let one = with_shared_store().await;
    let other = one.beside().await;
    let id = acquire(&one).await;
    assert_eq!(other.lease("doc", Method::DELETE, &id).await.status, 204);
    let theirs = acquire(&other).await;
    begin(&one);
    assert_eq!(one.lease("doc", Method::DELETE, &id).await.status, 409, "it is the lease of another client");
    assert_eq!(one.store.asked(), Asked { reads: 1, swaps: 1, times: 0 });
    assert_eq!(other.lease("doc", Method::DELETE, &theirs).await.status, 204);
}

/// Only a release needs no time: by an earlier one, the lease of another client would be granted too late or too early.
#[tokio::test]
async fn a_step_that_time_decides_reads_the_record() {
    let fixture = with_shared_store().await;
    let id = acquire(&fixture).await;
    for (method, fields, status) in [(Method::PUT, id.as_str(), 200), (Method::POST, "Lease-Duration: 60\r\n", 409)] {
        begin(&fixture);
        assert_eq!(fixture.lease("doc", method.clone(), fields).await.status, status);
        assert_eq!(fixture.store.asked().reads, 1, "{method}");
    }
}

/// A process that keeps the store's time itself can judge a lease by what it remembers, but refuses nothing by that.
#[tokio::test]
async fn a_lease_that_another_process_has_released_is_granted() {
    let one = Fixture::sharing_without_clock(leases_alone()).await;
    let other = one.beside().await;
    let id = acquire(&one).await;
    assert_eq!(other.lease("doc", Method::DELETE, &id).await.status, 204);
    acquire(&one).await;
}
