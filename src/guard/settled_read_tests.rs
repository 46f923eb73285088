//! Tests of reads that show settled states alone, beside dead processes, after a start, and while the store fails.

use std::time::Duration;

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use http::Method;
use tokio::time::sleep;

use super::testing::{Fault, Fixture, OWNER, When};
use crate::{
    core::{
        policy::{ClaimRules, GuardRules, ReadConsistency, TagSource},
        records::{
            record::{Availability, Mark},
            steps::add_unclaimed,
        },
        resource::ResourceKey,
    },
    testing::{guard, wait_at_most},
};

const LATE_WRITE_WINDOW: Duration = Duration::from_secs(77);

fn rules() -> GuardRules {
    GuardRules {
        etag: TagSource::Version,
        other_writers: false,
        reads: ReadConsistency::Settled,
        claim: wait_at_most(Duration::from_millis(50)),
        ..guard()
    }
}

/// Leaves the mark of another process, with a deadline after a second. Returns the resource.
async fn leave_mark(fixture: &Fixture) -> ResourceKey {
    let key = ResourceKey::from_text("doc");
    let snapshot = fixture.store.look(&key).await;
    let deadline = snapshot.now.plus(Duration::from_secs(1));
    let mark = Mark { owner: 99, nonce: 1, deadline, late_write_window: LATE_WRITE_WINDOW, leaves_lease: true };
    fixture.store.put(&key, add_unclaimed(&snapshot, mark).expect("there is room")).await;
    key
}

/// A dead process ends no wait. The reader makes a doubt of its write, and the doubt ends.
#[tokio::test]
async fn a_read_takes_the_mark_of_a_dead_process_over() {
    let fixture = Fixture::with(rules()).await;
    // It may know of writes that it waits for.
    assert_eq!(fixture.send(Method::GET, "", "").await.body, "one");
    let key = leave_mark(&fixture).await;
    let refused = fixture.send(Method::GET, "", "").await;
    assert!(refused.body.contains("\"reason\":\"write-in-flight\""), "{}", refused.body);
    assert_eq!((refused.status, refused.field("retry-after")), (503, Some("1")));
    fixture.store.pass(1_000);
    let refused = fixture.send(Method::GET, "", "").await;
    assert!(refused.body.contains("\"reason\":\"write-in-doubt\""), "{}", refused.body);
    assert_eq!((refused.status, refused.field("retry-after")), (503, Some("77")));
    assert!(matches!(fixture.store.look(&key).await.availability(), Availability::InDoubt { .. }));
    assert_eq!(fixture.reads().await.len(), 1, "nothing more was requested from the backend");
    fixture.store.pass(77_000);
    assert_eq!(fixture.send(Method::GET, "", "").await.body, "one");
}

/// A write in flight may create a resource that the upstream does not show yet, or have removed one that it showed
/// before. Only a resource that it has shown to another client may be hidden, and is then shown to be missing at once.
#[tokio::test]
async fn a_read_of_a_resource_that_was_shown_to_no_client_waits_for_the_write() {
    for (is_shown, expected) in [(false, 503), (true, 404)] {
        let fixture = Fixture::with(rules()).await;
        if is_shown {
            assert_eq!(fixture.send(Method::GET, "Authorization: another\r\n", "").await.status, 200);
        }
        leave_mark(&fixture).await;
        fixture.answer_reads(|_head| "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned()).await;
        assert_eq!(fixture.send(Method::GET, "", "").await.status, expected, "shown to another: {is_shown}");
    }
}

/// Writes of the predecessor may still arrive.
#[tokio::test]
async fn a_read_right_after_a_start_is_held_back_as_writes_are() {
    let fixture = Fixture::held_back(rules(), Duration::from_secs(5)).await;
    let refused = fixture.send(Method::GET, "", "").await;
    assert!(refused.body.contains("\"reason\":\"start-grace\""), "{}", refused.body);
    assert_eq!(refused.status, 503);
    fixture.store.pass(5_000);
    assert_eq!(fixture.send(Method::GET, "", "").await.body, "one");
}

/// Rule 16: a client whose reads take all places to wait leaves one to another client.
#[tokio::test]
async fn a_read_that_waits_gives_its_place_to_a_client_with_fewer() {
    let claim = ClaimRules { max_wait: Duration::from_secs(20), max_waiters: 2 };
    let fixture = Fixture::with(GuardRules { claim, ..rules() }).await;
    for fields in ["", OWNER] {
        assert_eq!(fixture.send(Method::GET, fields, "").await.body, "one");
    }
    let key = ResourceKey::from_text("doc");
    let snapshot = fixture.store.look(&key).await;
    let deadline = snapshot.now.plus(Duration::from_secs(60));
    let mark = Mark { owner: 99, nonce: 1, deadline, late_write_window: LATE_WRITE_WINDOW, leaves_lease: true };
    fixture.store.put(&key, add_unclaimed(&snapshot, mark).expect("there is room")).await;
    let sender = &fixture;
    let read = |fields| async move { (fields, sender.send(Method::GET, fields, "").await) };
    let mut reads = FuturesUnordered::from_iter([read(""), read("")]);
    let both_wait = async {
        while fixture.waiting_reads() < 2 {
            sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::select! {
        _ = reads.next() => panic!("the write is in flight"),
        () = both_wait => {}
    }
    reads.push(read(OWNER));
    let (fields, refused) = reads.next().await.expect("a read gives way");
    assert_eq!((fields, refused.status, fixture.waiting_reads()), ("", 503, 2), "{}", refused.body);
    assert!(refused.body.contains("\"reason\":\"line-full\""), "{}", refused.body);
}

/// A read looks at the record twice, and relays nothing if it cannot.
#[tokio::test]
async fn a_read_is_refused_whichever_look_at_the_record_fails() {
    for fault in [Fault::Unavailable, Fault::Hangs] {
        for number in 0..2 {
            let fixture = Fixture::with(rules()).await;
            fixture.store.fail(fault, When::Once(number));
            let refused = fixture.send(Method::GET, "", "").await;
            assert!(refused.body.contains("store-unavailable"), "{fault:?} {number}: {}", refused.body);
            assert_eq!(refused.status, 503);
            assert_eq!(fixture.send(Method::GET, "", "").await.body, "one");
        }
    }
}
