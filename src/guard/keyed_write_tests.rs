//! Tests of writes with an idempotency key in a shared store, for failures of the store or the owner at each moment
//! (DESIGN, section 3, rules 3, 7 and 12).

use std::time::Duration;

use http::Method;

use super::testing::{Fault, Fixture, Response, When, until};
use crate::{
    core::{
        policy::{GuardRules, Idempotency, TagSource},
        records::{
            attempt_steps::{begin, progress},
            idempotency::Progress,
            record::{Availability, Mark, Record},
            steps::claim,
        },
        resource::ResourceKey,
    },
    testing::guard,
};

const KEY: &str = "Idempotency-Key: \"8e03978e\"\r\n";
const REPLAY_FOR_MILLISECONDS: u64 = 60_000;
/// A time longer than any mark or doubt lasts.
const LONG_MILLISECONDS: u64 = 10 * 60 * 1000;
const LATE_WRITE_WINDOW: Duration = Duration::from_secs(77);
/// At least the window of the fixture's upstream.
const LATE_WRITE_WINDOW_MILLISECONDS: u64 = 30_000;

async fn sharing() -> Fixture {
    Fixture::sharing(GuardRules {
        etag: TagSource::Version,
        other_writers: false,
        idempotency: Idempotency::Accept,
        idempotency_ttl: Duration::from_millis(REPLAY_FOR_MILLISECONDS),
        ..guard()
    })
    .await
}

async fn put(fixture: &Fixture, tag: &str, body: &str) -> Response {
    fixture.send(Method::PUT, &format!("If-Match: {tag}\r\n{KEY}"), body).await
}

fn is_replay(response: &Response) -> bool {
    response.field("idempotent-replayed") == Some("true")
}

fn mark(deadline: crate::core::time::StoreTime) -> Mark {
    Mark { owner: 99, nonce: 1, deadline, late_write_window: LATE_WRITE_WINDOW, leaves_lease: true }
}

#[tokio::test]
async fn a_success_is_replayed_from_the_store_for_its_term() {
    let mut fixture = sharing().await;
    let tag = fixture.tag().await;
    let first = put(&fixture, &tag, "two").await;
    assert_eq!((first.status, is_replay(&first)), (204, false), "{}", first.head);
    fixture.store.pass(REPLAY_FOR_MILLISECONDS - 1);
    fixture.reload();
    let retry = put(&fixture, &tag, "two").await;
    assert_eq!((retry.status, is_replay(&retry), retry.tag()), (204, true, first.tag()), "{}", retry.head);
    assert_eq!(put(&fixture, &tag, "three").await.status, 422);
    fixture.store.pass(1);
    let later = put(&fixture, &tag, "two").await;
    assert_eq!((later.status, fixture.writes()), (412, 1), "{}", later.head);
}

/// Rule 12: for any failure of any operation, the backend sees the write at most once, and a refused write not at all.
/// While its record is there, no retry is sent. When all terms are over, the retry is judged.
#[tokio::test]
async fn a_keyed_write_fails_closed_whatever_operation_of_the_store_fails() {
    let operations = {
        let fixture = sharing().await;
        let tag = fixture.tag().await;
        fixture.store.fail(Fault::Unavailable, When::Never);
        assert_eq!(put(&fixture, &tag, "two").await.status, 204);
        fixture.store.operations()
    };
    for fault in [Fault::Unavailable, Fault::Hangs, Fault::AnswerLost] {
        for number in 0..operations {
            for when in [When::Once(number), When::From(number)] {
                write_while_failing(fault, when).await;
            }
        }
    }
}

async fn write_while_failing(fault: Fault, when: When) {
    let case = format!("{fault:?} {when:?}");
    let fixture = sharing().await;
    let tag = fixture.tag().await;
    fixture.store.fail(fault, when);
    let response = put(&fixture, &tag, "two").await;
    let sent = fixture.writes();
    assert_eq!((response.status, sent), if sent == 0 { (503, 0) } else { (204, 1) }, "{case}: {}", response.head);
    fixture.store.fail(fault, When::Never);
    for _ in 0..5 {
        let retry = put(&fixture, &tag, "two").await;
        match fixture.writes() - sent {
            0 if is_replay(&retry) => assert_eq!((retry.status, sent), (204, 1), "{case}: {}", retry.head),
            0 => assert!([409, 412].contains(&retry.status), "{case}: {}", retry.head),
            more => assert_eq!((retry.status, sent, more), (204, 0, 1), "{case}: {}", retry.head),
        }
        if retry.status != 409 {
            break;
        }
        fixture.store.pass(LONG_MILLISECONDS);
        // Only the store's clock has jumped. A read shows that to the process.
        fixture.tag().await;
    }
    assert!(fixture.writes() <= 1, "{case}");
    let retry = put(&fixture, &tag, "two").await;
    assert_ne!(retry.status, 409, "{case}: it is settled in the end");
}

/// The answer that the backend gave goes out, and no retry is sent before the write can no longer be applied.
#[tokio::test]
async fn a_success_that_the_store_does_not_take_is_in_doubt() {
    let fixture = sharing().await;
    let tag = fixture.tag().await;
    fixture.store.fail(Fault::Unavailable, When::Never);
    assert_eq!(put(&fixture, &tag, "two").await.status, 204);
    let last = fixture.store.operations() - 1;
    for when in [When::Once(last), When::From(last)] {
        let fixture = sharing().await;
        let tag = fixture.tag().await;
        fixture.store.fail(Fault::Unavailable, when);
        assert_eq!(put(&fixture, &tag, "two").await.status, 204);
        if when == When::From(last) {
            // The second attempt to record the end fails too.
            until("the doubt to be tried", async || fixture.store.operations() > last + 1).await;
            fixture.store.fail(Fault::Unavailable, When::Never);
            assert_eq!(progress(&fixture.store.attempt().await.1).map(|(_, said)| said), Some(Progress::InFlight));
            fixture.store.pass(LONG_MILLISECONDS);
        } else {
            let in_doubt =
                async || matches!(fixture.store.attempt().await.1.availability(), Availability::InDoubt { .. });
            until("the doubt", in_doubt).await;
        }
        let retry = put(&fixture, &tag, "two").await;
        assert_eq!((retry.status, retry.body.contains("\"in_doubt\":true")), (409, true), "{}", retry.body);
        if when == When::Once(last) {
            fixture.store.pass(LATE_WRITE_WINDOW_MILLISECONDS);
            assert_outcome_unknown(&put(&fixture, &tag, "two").await);
        }
        fixture.store.pass(LONG_MILLISECONDS);
        assert_eq!((put(&fixture, &tag, "two").await.status, fixture.writes()), (412, 1));
    }
}

fn assert_outcome_unknown(response: &Response) {
    assert_eq!((response.status, response.field("retry-after")), (409, None), "{}", response.body);
    assert!(response.body.contains("idempotency-outcome-unknown"), "{}", response.body);
}

/// Rule 7: at its deadline a dead owner's attempt is a doubt for the time in its mark. Rule 21 keeps its retry from being
/// sent for `idempotency_ttl`.
#[tokio::test]
async fn an_attempt_of_a_dead_owner_is_in_doubt_from_its_deadline_on() {
    let fixture = sharing().await;
    let tag = fixture.tag().await;
    assert_eq!(put(&fixture, &tag, "two").await.status, 204);
    let (key, ended) = fixture.store.attempt().await;
    fixture.store.pass(REPLAY_FOR_MILLISECONDS);
    let before = fixture.store.look(&key).await;
    let sent = ended.record.attempt.as_ref().expect("an attempt").sent;
    let remembered_for = Duration::from_millis(2 * REPLAY_FOR_MILLISECONDS);
    let begun = begin(&before, mark(before.now.plus(Duration::from_secs(10))), sent, remembered_for);
    fixture.store.put(&key, begun.expect("the earlier one counts no more")).await;
    let in_flight = put(&fixture, &tag, "two").await;
    assert_eq!((in_flight.status, in_flight.field("retry-after")), (409, Some("1")), "{}", in_flight.body);
    assert_eq!(put(&fixture, &tag, "three").await.status, 422);
    fixture.store.pass(10_000);
    let in_doubt = put(&fixture, &tag, "two").await;
    assert_eq!((in_doubt.status, in_doubt.field("retry-after")), (409, Some("77")), "{}", in_doubt.body);
    assert!(in_doubt.body.contains("\"in_doubt\":true"), "{}", in_doubt.body);
    fixture.store.pass(76_999);
    assert_eq!(put(&fixture, &tag, "two").await.status, 409);
    fixture.store.pass(1);
    assert_outcome_unknown(&put(&fixture, &tag, "two").await);
    fixture.store.pass(2 * REPLAY_FOR_MILLISECONDS - 77_001);
    assert_outcome_unknown(&put(&fixture, &tag, "two").await);
    fixture.store.pass(1);
    assert_eq!((put(&fixture, &tag, "two").await.status, fixture.writes()), (412, 1), "it is judged");
}

/// Rule 21: the request ends, for any reason, before a byte of it was sent. So its retry is no second write.
#[tokio::test]
async fn an_attempt_that_was_dropped_before_it_was_sent_leaves_nothing() {
    let fixture = sharing().await;
    let tag = fixture.tag().await;
    // The read and the mark of the attempt, and then the mark of the resource.
    fixture.store.fail(Fault::Hangs, When::Once(2));
    let asked = until("the mark", async || fixture.store.operations() == 3);
    tokio::select! {
        biased;
        response = put(&fixture, &tag, "two") => panic!("the store hangs: {}", response.head),
        () = asked => {}
    }
    until("the retry to be sent", async || put(&fixture, &tag, "two").await.status == 204).await;
    assert_eq!(fixture.writes(), 1);
}

/// Rule 7: the write waits for the resource. Its attempt allows for as long a wait as the route does. After that it may
/// have been taken over, and a retry may be on its way, so the write is not sent.
#[tokio::test]
async fn a_write_is_sent_while_its_attempt_lasts() {
    for (waits_milliseconds, expected) in [(29_000, (204, 1)), (LONG_MILLISECONDS, (503, 0))] {
        let fixture = sharing().await;
        let tag = fixture.tag().await;
        let doc = ResourceKey::from_text("doc");
        let free = fixture.store.look(&doc).await;
        let hour = Duration::from_secs(3_600);
        fixture.store.put(&doc, claim(&free, mark(free.now.plus(hour))).expect("it is free")).await;
        fixture.store.fail(Fault::Unavailable, When::Never);
        let other_ends = async {
            until("the write to wait", async || fixture.store.asked().swaps >= 1).await;
            fixture.store.pass(waits_milliseconds);
            fixture.store.put(&doc, free.draft()).await;
        };
        let (response, ()) = tokio::join!(put(&fixture, &tag, "two"), other_ends);
        assert_eq!((response.status, fixture.writes()), expected, "{} {}", response.head, response.body);
        assert_eq!(put(&fixture, &tag, "two").await.status, 204, "nothing is in its way, or it is replayed");
    }
}

/// Rule 7: time passes between the two marks of the write.
#[tokio::test]
async fn an_appending_write_whose_attempt_has_run_out_is_not_sent() {
    let fixture = sharing().await;
    // The read and the mark of the attempt, and then the read of the resource.
    fixture.store.fail(Fault::Late, When::Once(2));
    let time_passes = async {
        until("the second read", async || fixture.store.asked().reads == 2).await;
        fixture.store.pass(LONG_MILLISECONDS);
    };
    let ((), response) = tokio::join!(biased; time_passes, fixture.send(Method::POST, KEY, "two"));
    assert_eq!((response.status, fixture.writes()), (503, 0), "{} {}", response.head, response.body);
}

/// Rule 8: a keyed write takes a record of its own, and is refused like any other if there is no room for one.
#[tokio::test]
async fn a_full_store_refuses_a_keyed_write() {
    let fixture = sharing().await;
    let tag = fixture.tag().await;
    assert_eq!(fixture.put(&tag, "two").await.status, 204);
    let tag = fixture.tag().await;
    fixture.store.pass(LONG_MILLISECONDS);
    for number in 0..999 {
        let key = ResourceKey::from_text(&number.to_string());
        let free = fixture.store.look(&key).await;
        fixture.store.put(&key, claim(&free, mark(free.now.plus(LATE_WRITE_WINDOW))).expect("it is free")).await;
    }
    let keyed = put(&fixture, &tag, "three").await;
    assert_eq!((keyed.status, keyed.body.contains("store-full")), (503, true), "{}", keyed.body);
    assert_eq!(fixture.writes(), 1);
}

/// The first attempt ends between the two reads of its retry: that of the attempt and that of the resource. By the
/// latter the retry would be refused.
#[tokio::test]
async fn a_refusal_of_a_retry_is_not_early() {
    let fixture = sharing().await;
    let tag = fixture.tag().await;
    let first = put(&fixture, &tag, "two").await;
    assert_eq!(first.status, 204);
    let (key, ended) = fixture.store.attempt().await;
    fixture.store.put(&key, Record { attempt: None, ..ended.draft() }).await;
    fixture.store.fail(Fault::Late, When::Once(1));
    let first_ends = async {
        until("the second read", async || fixture.store.asked().reads == 2).await;
        fixture.store.put(&key, ended.draft()).await;
    };
    let ((), retry) = tokio::join!(biased; first_ends, put(&fixture, &tag, "two"));
    assert_eq!((retry.status, is_replay(&retry)), (204, true), "{} {}", retry.head, retry.body);
}
