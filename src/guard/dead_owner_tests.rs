//! Tests of the doubt about the write of a dead owner: it lasts for the time in its mark, no matter which process finds
//! it (DESIGN, section 3, rule 7). The upstream of the process that finds it here has another `late_write_window`.

use std::time::Duration;

use http::Method;
use tokio::time::timeout;

use super::testing::{Fixture, dialect};
use crate::{
    core::{
        policy::{GuardRules, Require, TagSource},
        records::{
            record::{Availability, Mark},
            steps::{add_unclaimed, claim},
        },
        resource::ResourceKey,
        route::{PathPattern, TouchTemplate},
    },
    testing::{guard, wait_at_most},
};

const LATE_WRITE_WINDOW: Duration = Duration::from_secs(77);

fn versions() -> GuardRules {
    GuardRules { etag: TagSource::Version, other_writers: false, require: Require::Never, ..guard() }
}

/// Leaves the mark of another process, past its deadline.
async fn leave_mark(fixture: &Fixture, key: &str, is_claim: bool) {
    mark(fixture, key, is_claim, Duration::from_millis(1)).await;
    fixture.store.pass(1);
}

/// Makes the mark of another process, with a deadline after this time.
async fn mark(fixture: &Fixture, key: &str, is_claim: bool, lives: Duration) {
    let key = ResourceKey::from_text(key);
    let snapshot = fixture.store.look(&key).await;
    let deadline = snapshot.now.plus(lives);
    let mark = Mark { owner: 99, nonce: 1, deadline, late_write_window: LATE_WRITE_WINDOW, leaves_lease: true };
    let marked = if is_claim { claim(&snapshot, mark) } else { add_unclaimed(&snapshot, mark) };
    fixture.store.put(&key, marked.expect("nothing is in the way")).await;
}

/// Rule 7: the `late_write_window` in the mark counts, and not that of the taker.
#[tokio::test]
async fn a_write_waits_for_as_long_as_that_of_the_dead_owner_may_come_late() {
    for is_claim in [true, false] {
        let fixture = Fixture::with(versions()).await;
        leave_mark(&fixture, "doc", is_claim).await;
        let refused = fixture.send(Method::PUT, "", "over it").await;
        assert_eq!((refused.status, refused.field("retry-after")), (409, Some("77")), "{}", refused.body);
        fixture.store.pass(76_999);
        assert_eq!(fixture.send(Method::PUT, "", "over it").await.status, 409);
        assert_eq!(fixture.writes(), 0);
        fixture.store.pass(1);
        assert_eq!(fixture.send(Method::PUT, "", "after it").await.status, 204);
    }
}

/// Rule 7: a client to which the backend shows nothing learns nothing of the mark, and takes it over all the same. A
/// client that creates anew what the dead owner has removed is not sent away for as long as others remember it.
#[tokio::test]
async fn a_mark_is_taken_over_by_a_client_that_was_shown_nothing() {
    for method in [Method::PUT, Method::DELETE, Method::POST] {
        let fixture = Fixture::with(versions()).await;
        assert_eq!(fixture.send(Method::GET, "", "").await.status, 200, "its owner has seen it");
        leave_mark(&fixture, "doc", true).await;
        fixture.answer_reads(|_head| "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned()).await;
        fixture.send(method.clone(), "Authorization: another\r\n", "new").await;
        let availability = fixture.store.look(&ResourceKey::from_text("doc")).await.availability();
        assert!(matches!(availability, Availability::InDoubt { .. }), "{method}: {availability:?}");
        fixture.store.pass(77_000);
        assert_eq!(fixture.send(method.clone(), "Authorization: another\r\n", "new").await.status, 204, "{method}");
    }
}

/// No write may ever come that takes the mark over, and readers need the tag for a write of their own.
#[tokio::test]
async fn a_read_with_a_description_has_its_tag_again_when_the_write_of_a_dead_owner_can_come_no_more() {
    let azure = dialect("azure");
    let rules = GuardRules {
        dialect: azure,
        quirks: azure.quirks(),
        metadata_suffix: Some(".metadata.json".into()),
        ..versions()
    };
    let fixture = Fixture::with(rules).await;
    let answer = |head: &str| {
        let is_document = head.contains("/doc.metadata.json ");
        let (status, content) = if is_document { ("404 Not Found", "") } else { ("200 OK", "one") };
        format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{content}", content.len())
    };
    fixture.answer_reads(answer).await;
    leave_mark(&fixture, "doc", true).await;
    let read = fixture.send(Method::GET, "", "").await;
    assert_eq!((read.status, read.tag()), (200, None), "the write may still come");
    fixture.store.pass(77_000);
    let read = fixture.send(Method::GET, "", "").await;
    assert!(read.status == 200 && read.tag().is_some(), "{}", read.head);
}

/// The owner has died, and nothing changes the record.
#[tokio::test]
async fn a_write_that_waits_wakes_at_the_deadline_of_a_dead_owner() {
    let fixture = Fixture::with(versions()).await;
    mark(&fixture, "doc", true, Duration::from_millis(50)).await;
    fixture.store.run(100);
    let waiting = fixture.send(Method::PUT, "", "over it");
    // The write itself would wait for 30 seconds.
    let refused = timeout(Duration::from_secs(10), waiting).await.expect("it wakes");
    assert_eq!((refused.status, refused.field("retry-after")), (409, Some("77")), "{}", refused.body);
}

/// Retries before the deadline of a dead owner are in vain. The owner may be alive, so the client need not stay away for
/// longer than it has waited.
#[tokio::test]
async fn a_write_that_waited_in_vain_is_told_to_stay_away_for_as_long_again() {
    for (lives, stays_away) in [(60_000, "3"), (2_500, "1")] {
        let rules = GuardRules { claim: wait_at_most(Duration::from_millis(2_100)), ..versions() };
        let fixture = Fixture::with(rules).await;
        mark(&fixture, "doc", true, Duration::from_millis(lives)).await;
        fixture.store.pass(lives.min(2_000));
        let refused = fixture.send(Method::PUT, "", "over it").await;
        assert_eq!((refused.status, refused.field("retry-after")), (409, Some(stays_away)), "{}", refused.body);
    }
}

#[tokio::test]
async fn what_is_touched_beside_a_dead_owners_mark_is_in_doubt_for_as_long() {
    // The path of the fixture's requests has a key other than that of the requests.
    let path = PathPattern::parse("/doc").unwrap();
    let touches = vec![TouchTemplate::parse("/doc", &path).unwrap()];
    for is_claim in [true, false] {
        let fixture = Fixture::with(GuardRules { also_changes: touches.clone(), ..versions() }).await;
        leave_mark(&fixture, "backend:/doc", is_claim).await;
        let refused = fixture.send(Method::PUT, "", "two").await;
        assert_eq!((refused.status, fixture.writes()), (409, 0), "the dead owner's write may still replace the touch");
        let record = fixture.store.look(&ResourceKey::from_text("backend:/doc")).await;
        let until = fixture.store.time().plus(LATE_WRITE_WINDOW);
        assert_eq!(record.availability(), Availability::InDoubt { until });
    }
}

#[tokio::test]
async fn an_appending_write_beside_a_dead_owners_mark_makes_a_doubt_of_it() {
    let fixture = Fixture::with(versions()).await;
    leave_mark(&fixture, "doc", true).await;
    assert_eq!(fixture.send(Method::POST, "", "beside it").await.status, 204);
    let record = fixture.store.look(&ResourceKey::from_text("doc")).await;
    let until = fixture.store.time().plus(LATE_WRITE_WINDOW);
    assert_eq!(record.availability(), Availability::InDoubt { until });
}
