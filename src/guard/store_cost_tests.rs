//! Tests of the number of store operations of a guarded request, and of the use of a record that was read early.

use std::time::Duration;

use http::Method;

use super::testing::{Asked, Fault, Fixture, When};
use crate::{
    core::{
        lease::testing::rules,
        policy::{GuardRules, Idempotency, LeaseRules, Require, TagSource},
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

/// A mark's deadline is counted from the mark itself: the owner has the time that it needs, however long the body took.
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
