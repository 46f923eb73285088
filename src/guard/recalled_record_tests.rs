//! Tests of writes that begin by the record as their process last saw it, in a store that other processes change too.

use std::time::Duration;

use http::Method;

use super::testing::{Asked, Fault, Fixture, When};
use crate::{
    core::{
        lease::testing::rules,
        policy::{GuardRules, LeaseAuth, LeaseRules, Require, TagSource},
        records::{record::Mark, steps::claim, waiting::sign},
        resource::ResourceKey,
    },
    testing::{guard, wait_at_most},
};

/// A write without a read of the record, where the time costs nothing.
const NO_READ: Asked = Asked { reads: 0, swaps: 2, times: 0 };

/// A minute, in milliseconds.
const MINUTE: u64 = 60_000;

fn versions() -> GuardRules {
    GuardRules { etag: TagSource::Version, other_writers: false, ..guard() }
}

/// Writes need no precondition, and may be held back by leases.
fn leases() -> GuardRules {
    let lease = LeaseRules { auth: LeaseAuth::None, min: Duration::from_secs(1), ..rules() };
    let claim = wait_at_most(Duration::from_millis(50));
    GuardRules { require: Require::Never, lease: Some(lease), claim, ..versions() }
}

/// Restarts the counts of store operations.
fn begin(fixture: &Fixture) {
    fixture.store.fail(Fault::Unavailable, When::Never);
}

/// The tag of a PUT's answer serves the next one.
async fn put(fixture: &Fixture, tag: &str, body: &str) -> String {
    let answer = fixture.put(tag, body).await;
    assert_eq!(answer.status, 204, "{}", answer.body);
    answer.tag().expect("a tag").to_owned()
}

#[tokio::test]
async fn a_write_by_the_process_that_saw_the_record_last_reads_nothing() {
    for etag in [TagSource::Version, TagSource::Content] {
        let rules = || GuardRules { etag: etag.clone(), ..versions() };
        for (fixture, times) in
            [(Fixture::sharing(rules()).await, 1), (Fixture::sharing_without_clock(rules()).await, 0)]
        {
            let mut tag = fixture.tag().await;
            for body in ["two", "three"] {
                begin(&fixture);
                tag = put(&fixture, &tag, body).await;
                assert_eq!(fixture.store.asked(), Asked { times, ..NO_READ }, "{etag:?} {body}");
            }
        }
    }
}

/// If others may write without the proxy, the upstream is probed, and a probe in vain costs more than a read.
#[tokio::test]
async fn a_write_that_memory_cannot_judge_reads_the_record() {
    let fixture = Fixture::sharing_without_clock(GuardRules { other_writers: true, ..guard() }).await;
    let tag = fixture.tag().await;
    begin(&fixture);
    put(&fixture, &tag, "two").await;
    assert_eq!(fixture.store.asked(), Asked { reads: 1, ..NO_READ });
}

/// Only one process has its record in mind, so nothing is saved and nothing is lost.
#[tokio::test]
async fn a_store_of_one_process_is_read() {
    let fixture = Fixture::with(versions()).await;
    let tag = fixture.tag().await;
    begin(&fixture);
    put(&fixture, &tag, "two").await;
    assert_eq!(fixture.store.asked(), Asked { reads: 1, swaps: 2, times: 1 });
}

/// Rule 7: the swap shows that another process has written. The write is judged by the record that the swap returns.
#[tokio::test]
async fn a_tag_that_another_process_has_outdated_fails() {
    let one = Fixture::sharing_without_clock(versions()).await;
    let (other, tag) = (one.beside().await, one.tag().await);
    put(&other, &tag, "theirs").await;
    begin(&one);
    let refused = one.put(&tag, "ours").await;
    assert_eq!((refused.status, one.writes(), &*one.content().await), (412, 1, "theirs"), "{}", refused.body);
    assert_eq!(one.store.asked(), Asked { reads: 0, swaps: 1, times: 0 });
}

/// Memory refuses nothing: the tag is that of a state which only the other process has seen.
#[tokio::test]
async fn a_tag_that_another_process_gave_passes() {
    let one = Fixture::sharing_without_clock(versions()).await;
    let (other, tag) = (one.beside().await, one.tag().await);
    let newer = put(&other, &tag, "theirs").await;
    begin(&one);
    put(&one, &newer, "ours").await;
    assert_eq!((one.writes(), one.store.asked()), (2, Asked { reads: 1, ..NO_READ }));
}

/// Rule 10: a lease that another process has granted holds writes back here, though the memory has no lease.
#[tokio::test]
async fn a_lease_that_another_process_has_granted_counts() {
    let one = Fixture::sharing_without_clock(leases()).await;
    let other = one.beside().await;
    one.tag().await;
    let grant = other.lease("doc", Method::POST, "Lease-Duration: 60\r\n").await;
    let refused = one.send(Method::PUT, "", "ours").await;
    assert_eq!((refused.status, one.writes()), (412, 0), "{}", refused.body);
    assert!(refused.body.contains("\"code\":\"lease-id-missing\""), "{}", refused.body);
    let id = format!("Lease-Id: {}\r\n", grant.field("lease-id").expect("an id"));
    assert_eq!(one.send(Method::PUT, &id, "theirs").await.status, 204);
}

/// A lease that has ended elsewhere, and one that ends with time, are no right to write.
#[tokio::test]
async fn a_lease_in_memory_is_no_right_to_write() {
    for ends_with_time in [false, true] {
        let one = Fixture::sharing_without_clock(leases()).await;
        let other = one.beside().await;
        let grant = one.lease("doc", Method::POST, "Lease-Duration: 60\r\n").await;
        let id = format!("Lease-Id: {}\r\n", grant.field("lease-id").expect("an id"));
        begin(&one);
        assert_eq!(one.send(Method::PUT, &id, "two").await.status, 204);
        assert_eq!(one.store.asked(), NO_READ);
        if ends_with_time {
            one.store.pass(MINUTE);
        } else {
            assert_eq!(other.lease("doc", Method::DELETE, &id).await.status, 204);
        }
        let refused = one.send(Method::PUT, &id, "three").await;
        assert_eq!((refused.status, one.writes()), (412, 1), "{ends_with_time}: {}", refused.body);
    }
}

/// Each fencing token that the upstream gets is that of the last grant, no matter which process has made it.
#[tokio::test]
async fn a_lease_that_another_process_has_granted_anew_brings_its_own_fence() {
    let one = Fixture::sharing_without_clock(leases()).await;
    let other = one.beside().await;
    let id = "Lease-Id: 11111111-1111-4111-8111-111111111111\r\n";
    let acquire = format!("{id}Lease-Duration: 60\r\n");
    let first = one.lease("doc", Method::POST, &acquire).await;
    assert_eq!(other.lease("doc", Method::DELETE, id).await.status, 204);
    let second = other.lease("doc", Method::POST, &acquire).await;
    assert_ne!(first.field("fencing-token"), second.field("fencing-token"));
    begin(&one);
    assert_eq!(one.send(Method::PUT, id, "two").await.status, 204);
    assert_eq!(one.store.asked().swaps, 3, "the first one was in vain");
    assert_eq!(one.last_fence().await.as_deref(), second.field("fencing-token"));
}

/// Rule 1: the mark of another process keeps a write away, and so does its sign (rule 16), until they end.
#[tokio::test]
async fn a_write_of_another_process_keeps_its_turn() {
    for has_mark in [true, false] {
        let one = Fixture::sharing_without_clock(leases()).await;
        one.tag().await;
        let key = ResourceKey::from_text("doc");
        let free = one.store.look(&key).await;
        let until = free.now.plus(Duration::from_secs(60));
        let (late_write_window, leaves_lease) = (Duration::ZERO, true);
        let mark = Mark { owner: 99, nonce: 1, deadline: until, late_write_window, leaves_lease };
        let taken = if has_mark { claim(&free, mark) } else { sign(&free, 99, until) };
        one.store.put(&key, taken.expect("nothing is in the way")).await;
        let refused = one.send(Method::PUT, "", "two").await;
        assert_eq!((refused.status, one.writes()), (409, 0), "{}", refused.body);
        one.store.pass(MINUTE);
        assert_eq!(one.send(Method::PUT, "", "two").await.status, 204);
    }
}

/// An outdated memory is no conflict with another write, so a write that may not wait is judged again.
#[tokio::test]
async fn a_write_that_may_not_wait_is_not_refused_by_an_outdated_memory() {
    let rules = GuardRules { require: Require::Never, claim: wait_at_most(Duration::ZERO), ..versions() };
    let one = Fixture::sharing_without_clock(rules).await;
    let (other, tag) = (one.beside().await, one.tag().await);
    put(&other, &tag, "theirs").await;
    begin(&one);
    let answer = one.send(Method::PUT, "", "ours").await;
    assert_eq!((answer.status, one.writes()), (204, 2), "{}", answer.body);
    assert_eq!(one.store.asked(), Asked { swaps: 3, ..NO_READ }, "the first one was in vain");
}

/// Rule 12: after a failure the first call is a read, which a circuit breaker refuses at once.
#[tokio::test]
async fn a_store_that_has_failed_is_read_first() {
    let fixture = Fixture::sharing_without_clock(versions()).await;
    let tag = fixture.tag().await;
    fixture.store.fail(Fault::Unavailable, When::From(0));
    assert_eq!(fixture.put(&tag, "two").await.status, 503);
    assert_eq!(fixture.store.asked().swaps, 1, "it was not read");
    fixture.store.fail(Fault::Unavailable, When::From(0));
    assert_eq!(fixture.put(&tag, "two").await.status, 503);
    assert_eq!(fixture.store.asked().swaps, 0);
    assert_eq!(fixture.writes(), 0);
}

/// An upload that the client has not sent yet is not requested on the strength of a memory.
#[tokio::test]
async fn a_costly_upload_reads_the_record() {
    let fixture = Fixture::sharing_without_clock(versions()).await;
    let fields = format!("If-Match: {}\r\nExpect: 100-continue\r\n", fixture.tag().await);
    begin(&fixture);
    fixture.send(Method::PUT, &fields, "two").await;
    assert_eq!((fixture.writes(), fixture.store.asked()), (1, Asked { reads: 1, ..NO_READ }));
}
