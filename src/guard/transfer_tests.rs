//! Tests of COPY and MOVE, which claim two resources (DESIGN, section 3, rules 1, 3, 4 and 16).

use std::time::Duration;

use futures_util::future::join_all;
use http::Method;

use super::testing::{Fault, Fixture, When, code, until};
use crate::{
    core::{
        lease,
        policy::{GuardRules, Require, TagSource},
        records::{
            record::{Availability, Mark, Revision},
            steps::{Outcome, Settlement, add_unclaimed, claim, settle},
        },
        resource::ResourceKey,
    },
    patience::within,
    testing::{guard, wait_at_most},
};

/// The two resources, in both orders of their keys.
const PAIRS: [(&str, &str); 2] = [("a", "z"), ("z", "a")];
const METHODS: [&str; 2] = ["COPY", "MOVE"];
const LATE_WRITE_WINDOW: Duration = Duration::from_secs(2);

fn rules(max_wait: Duration) -> GuardRules {
    let (etag, require) = (TagSource::Version, Require::Never);
    GuardRules { etag, other_writers: false, require, claim: wait_at_most(max_wait), ..guard() }
}

async fn impatient() -> Fixture {
    Fixture::with(rules(Duration::from_millis(50))).await
}

fn key(text: &str) -> ResourceKey {
    ResourceKey::from_text(text)
}

async fn availability(fixture: &Fixture, resource: &str) -> Availability {
    fixture.store.look(&key(resource)).await.availability()
}

async fn version(fixture: &Fixture, resource: &str) -> Revision {
    fixture.store.look(&key(resource)).await.version()
}

/// Marks a resource for a write of another process.
async fn begin_elsewhere(fixture: &Fixture, resource: &str, is_claimed: bool) -> (Mark, Revision) {
    let snapshot = fixture.store.look(&key(resource)).await;
    let deadline = snapshot.now.plus(Duration::from_secs(60));
    let mark = Mark { owner: 99, nonce: 1, deadline, late_write_window: LATE_WRITE_WINDOW, leaves_lease: false };
    let marked = if is_claimed { claim(&snapshot, mark) } else { add_unclaimed(&snapshot, mark) };
    fixture.store.put(&key(resource), marked.expect("it is free")).await;
    (mark, fixture.store.look(&key(resource)).await.revision)
}

async fn end_elsewhere(fixture: &Fixture, resource: &str, (mark, marked_at): (Mark, Revision), outcome: Outcome) {
    let snapshot = fixture.store.look(&key(resource)).await;
    let settlement = Settlement { mark, marked_at, outcome, leaves: None, learned: None, shown: None, end: None };
    fixture.store.put(&key(resource), settle(&snapshot, settlement).expect("the mark is there")).await;
}

/// Rule 1: both are claimed before the first byte, and settled with what has become of each.
#[tokio::test]
async fn both_resources_are_claimed_and_settled() {
    for (pair, method) in PAIRS.into_iter().flat_map(|pair| METHODS.map(|method| (pair, method))) {
        let (source, destination) = pair;
        let fixture = impatient().await;
        let before = (version(&fixture, source).await, version(&fixture, destination).await);
        let held = fixture.hold_writes().await;
        let is_busy =
            async |resource: &str| matches!(availability(&fixture, resource).await, Availability::Busy { .. });
        let moved = fixture.transfer(pair, method, "");
        let (answer, ()) = tokio::join!(moved, async {
            until("the marks", async || is_busy(source).await && is_busy(destination).await).await;
            drop(held);
        });
        assert_eq!((answer.status, answer.tag()), (204, None), "{method} {pair:?}: {}", answer.body);
        assert_eq!(fixture.last_field("destination").await, Some(format!("http://x/doc/{destination}")));
        for resource in [source, destination] {
            assert_eq!(availability(&fixture, resource).await, Availability::Free, "{method} {pair:?} {resource}");
        }
        let changed = (version(&fixture, source).await > before.0, version(&fixture, destination).await > before.1);
        assert_eq!(changed, (method == "MOVE", true), "{method} {pair:?}: a COPY leaves its source as it is");
    }
}

/// Rule 1: any write of the source meanwhile would be copied in part, and one of the destination replaced unseen.
#[tokio::test]
async fn a_transfer_waits_for_a_write_of_either_and_holds_nothing_meanwhile() {
    for (pair, is_claimed) in PAIRS.into_iter().flat_map(|pair| [(pair, true), (pair, false)]) {
        for (busy, other) in [pair, (pair.1, pair.0)] {
            let fixture = impatient().await;
            let elsewhere = begin_elsewhere(&fixture, busy, is_claimed).await;
            let before = fixture.store.look(&key(other)).await.revision;
            let refused = fixture.transfer(pair, "COPY", "").await;
            assert_eq!(code(&refused), (409, "write-in-flight"), "{pair:?} {busy}: {}", refused.body);
            let now = fixture.store.look(&key(other)).await.revision;
            assert_eq!((fixture.writes(), now), (0, before), "{pair:?} {busy}");
            end_elsewhere(&fixture, busy, elsewhere, Outcome::Applied).await;
            assert_eq!(fixture.transfer(pair, "COPY", "").await.status, 204, "{pair:?} {busy}");
        }
    }
}

/// Rule 3: the doubtful write may still come.
#[tokio::test]
async fn a_transfer_is_refused_while_a_write_of_either_is_in_doubt() {
    for pair in PAIRS {
        for busy in [pair.0, pair.1] {
            let fixture = impatient().await;
            let elsewhere = begin_elsewhere(&fixture, busy, true).await;
            end_elsewhere(&fixture, busy, elsewhere, Outcome::Doubt).await;
            let refused = fixture.transfer(pair, "MOVE", "").await;
            assert_eq!((refused.status, refused.field("retry-after"), fixture.writes()), (409, Some("2"), 0), "{busy}");
            fixture.store.pass(2_000);
            assert_eq!(fixture.transfer(pair, "MOVE", "").await.status, 204, "{pair:?} {busy}");
        }
    }
}

/// Whichever operation of the store fails before the first byte, both marks are given back.
#[tokio::test]
async fn a_transfer_that_was_not_sent_leaves_both_as_they_were() {
    for pair in PAIRS {
        let mut unsent = 0;
        for failing in 0..8 {
            let fixture = impatient().await;
            let before = (version(&fixture, pair.0).await, version(&fixture, pair.1).await);
            fixture.store.fail(Fault::AnswerLost, When::Once(failing));
            let answer = fixture.transfer(pair, "MOVE", "").await;
            if fixture.writes() > 0 {
                continue;
            }
            unsent += 1;
            assert_eq!(answer.status, 503, "{failing}: {}", answer.body);
            for resource in [pair.0, pair.1] {
                let is_free = async || availability(&fixture, resource).await == Availability::Free;
                until("the mark to be given back", is_free).await;
            }
            let now = (version(&fixture, pair.0).await, version(&fixture, pair.1).await);
            assert_eq!(now, before, "{pair:?} {failing}");
        }
        assert!(unsent >= 4, "{pair:?}: each read and each mark failed once");
    }
}

/// Rule 3: the process dies, or a task is dropped, between the marks and their end.
#[tokio::test]
async fn a_transfer_that_is_dropped_is_a_doubt_on_both() {
    for (pair, method) in PAIRS.into_iter().flat_map(|pair| METHODS.map(|method| (pair, method))) {
        let fixture = impatient().await;
        let held = fixture.hold_writes().await;
        let is_busy =
            async |resource: &str| matches!(availability(&fixture, resource).await, Availability::Busy { .. });
        tokio::select! {
            answer = fixture.transfer(pair, method, "") => panic!("{}", answer.body),
            () = until("the marks", async || is_busy(pair.0).await && is_busy(pair.1).await) => {}
        }
        for resource in [pair.0, pair.1] {
            let in_doubt = async || matches!(availability(&fixture, resource).await, Availability::InDoubt { .. });
            until("the doubt", in_doubt).await;
        }
        drop(held);
    }
}

/// Each is judged by its own lease: a MOVE removes its source and writes its destination, a COPY only writes there.
#[tokio::test]
async fn the_lease_of_each_resource_counts() {
    let lease = Some(lease::testing::rules());
    let rules = GuardRules { lease, ..rules(Duration::from_millis(50)) };
    let id = |number: u8| format!("00000000-0000-4000-8000-0000000000{number:02}");
    for pair in PAIRS {
        let fixture = Fixture::with(rules.clone()).await;
        for (resource, number) in [(pair.0, 1), (pair.1, 2)] {
            let fields = format!("Lease-Duration: 60\r\nLease-Id: {}\r\n", id(number));
            let path = format!("/.leases/doc/{resource}");
            assert_eq!(fixture.exchange(resource, &path, Method::POST, &fields, "").await.status, 201);
        }
        let (of_source, of_destination) =
            (format!("Lease-Id: {}\r\n", id(1)), format!("Destination-Lease-Id: {}\r\n", id(2)));
        let wrong = format!("Destination-Lease-Id: {}\r\n", id(1));
        let both = format!("{of_source}{of_destination}");
        for (method, fields, expected) in [
            ("MOVE", "", (412, "lease-id-missing")),
            ("MOVE", &*of_source, (412, "lease-id-missing")),
            ("MOVE", &*of_destination, (412, "lease-id-missing")),
            ("COPY", "", (412, "lease-id-missing")),
            ("COPY", &*of_source, (412, "lease-id-missing")),
            ("COPY", &*wrong, (412, "lease-id-mismatch")),
            ("COPY", &*of_destination, (204, "")),
            ("MOVE", &*both, (204, "")),
        ] {
            let answer = fixture.transfer(pair, method, fields).await;
            assert_eq!(code(&answer), expected, "{method} {pair:?} {fields}: {}", answer.body);
            if expected.0 == 204 {
                let fence = fixture.store.look(&key(pair.1)).await.fence().0.to_string();
                assert_eq!(fixture.last_fence().await, Some(fence), "what is written is the destination");
                assert_eq!(fixture.last_field("destination-lease-id").await, None, "{method}");
            }
        }
        let is_leased = async |resource: &str| fixture.store.look(&key(resource)).await.lease_state().is_held();
        assert!(!is_leased(pair.0).await, "the lease of what was moved ends, and does not travel");
        assert!(is_leased(pair.1).await, "the lease of what was replaced stays");
    }
}

/// The demands of the destination's route, if something is there that would be replaced.
#[tokio::test]
async fn what_is_at_the_destination_is_not_replaced_unseen() {
    let absent: fn(&str) -> String = |head| {
        let is_destination = head.contains(" /doc/z ");
        let status = if is_destination { "404 Not Found" } else { "200 OK" };
        format!("HTTP/1.1 {status}\r\nContent-Length: 3\r\n\r\none")
    };
    for (require, fields, is_there, expected) in [
        (Require::Never, "", true, (204, "")),
        (Require::Never, "Overwrite: F\r\n", true, (412, "precondition-failed")),
        (Require::Never, "Overwrite: F\r\n", false, (204, "")),
        (Require::Always, "", true, (428, "precondition-required")),
        (Require::Existing, "", true, (428, "precondition-required")),
        (Require::Always, "", false, (204, "")),
        (Require::Always, "Overwrite: F\r\n", true, (412, "precondition-failed")),
        (Require::Always, "Overwrite: F\r\n", false, (204, "")),
    ] {
        let fixture = Fixture::with(GuardRules { require, ..rules(Duration::from_millis(50)) }).await;
        if !is_there {
            fixture.answer_reads(absent).await;
        }
        let answer = fixture.transfer(("a", "z"), "COPY", fields).await;
        assert_eq!(code(&answer), expected, "{require:?} {fields:?} {is_there}: {}", answer.body);
        assert!(expected.0 == 204 || answer.body.contains("Overwrite"), "it says what to send: {}", answer.body);
        assert_eq!(fixture.writes(), usize::from(expected.0 == 204), "{require:?} {fields:?}");
    }
}

/// The backend may judge its own tags, but what a destination needs is demanded here.
#[tokio::test]
async fn the_destination_is_judged_here_even_if_the_backend_judges() {
    let delegate = GuardRules { etag: TagSource::Delegate, other_writers: true, ..rules(Duration::from_millis(50)) };
    let fixture = Fixture::with(delegate).await;
    let answer = fixture.transfer(("a", "z"), "COPY", "Overwrite: F\r\n").await;
    assert_eq!((code(&answer), fixture.writes()), ((412, "precondition-failed"), 0), "{}", answer.body);
}

/// `If-Match` speaks of the source (RFC 9110 section 13.1.1), which a MOVE removes as a DELETE does.
#[tokio::test]
async fn the_condition_of_a_transfer_speaks_of_its_source() {
    for method in METHODS {
        let fixture = Fixture::with(GuardRules { require: Require::Always, ..rules(Duration::from_millis(50)) }).await;
        let tag = fixture.exchange("a", "/doc/a", Method::GET, "", "").await.tag().expect("a tag").to_owned();
        let other = fixture.exchange("z", "/doc/z", Method::GET, "", "").await.tag().expect("a tag").to_owned();
        fixture
            .answer_reads(|head| {
                let status = if head.contains(" /doc/z ") { "404 Not Found" } else { "200 OK" };
                format!("HTTP/1.1 {status}\r\nContent-Length: 3\r\n\r\none")
            })
            .await;
        let unnamed = fixture.transfer(("a", "z"), method, "").await;
        let expected = if method == "MOVE" { (428, "precondition-required") } else { (204, "") };
        assert_eq!(code(&unnamed), expected, "{method}: {}", unnamed.body);
        let stale = format!("If-Match: {}\r\n", other.replace(['1', '2', '3', '4', '5', '6', '7', '8', '9'], "0"));
        let refused = fixture.transfer(("a", "z"), method, &stale).await;
        assert_eq!(code(&refused), (412, "precondition-failed"), "{method}: {}", refused.body);
        let named = fixture.transfer(("a", "z"), method, &format!("If-Match: {tag}\r\n")).await;
        assert_eq!(named.status, 204, "{method}: {}", named.body);
    }
}

/// Rule 16: transfers in both directions, and writes of each resource, through two processes, all get their turns.
#[tokio::test]
async fn transfers_in_both_directions_do_not_wait_for_each_other_for_ever() {
    const EACH: usize = 6;
    let one = Fixture::sharing(rules(Duration::from_secs(20))).await;
    let other = one.beside().await;
    let transfers = [&one, &other].into_iter().flat_map(|process| {
        let pairs = PAIRS.into_iter().cycle().take(2 * EACH);
        pairs.map(move |pair| Box::pin(process.transfer(pair, "MOVE", "")))
    });
    let writes = [&one, &other].into_iter().flat_map(|process| {
        let resources = ["a", "z"].into_iter().cycle().take(2 * EACH);
        resources.map(move |resource| Box::pin(process.send_to(resource, Method::PUT, "", "two")))
    });
    let all = async { tokio::join!(join_all(transfers), join_all(writes)) };
    let (moved, written) = within(Duration::from_secs(20), all).await.expect("all have their turns");
    let refused: Vec<_> =
        moved.iter().chain(&written).filter(|answer| answer.status != 204).map(|answer| &answer.body).collect();
    assert!(refused.is_empty(), "{refused:?}");
    for resource in ["a", "z"] {
        assert_eq!(availability(&one, resource).await, Availability::Free);
    }
}
