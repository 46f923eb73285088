//! Tests of writes that change several resources (DESIGN, section 3, rules 1, 3 and 16).

use std::time::Duration;

use futures_util::future::join_all;
use http::Method;

use super::testing::{Asked, Fault, Fixture, When, until};
use crate::{
    core::{
        policy::{GuardRules, Require, TagSource},
        records::{
            record::{Availability, Mark, Revision},
            steps::{Outcome, Settlement, add_unclaimed, claim, settle},
        },
        resource::ResourceKey,
        route::{PathPattern, TouchTemplate},
    },
    patience::within,
    testing::{guard, wait_at_most},
};

/// The resource that the writes of the fixture touch.
const TOUCHED: &str = "backend:/doc";
/// Resources before and after it in the order of keys.
const OWN: [&str; 2] = ["a", "z"];
const LATE_WRITE_WINDOW: Duration = Duration::from_secs(2);

fn rules(max_wait: Duration) -> GuardRules {
    let path = PathPattern::parse("/doc").unwrap();
    GuardRules {
        etag: TagSource::Version,
        other_writers: false,
        require: Require::Never,
        claim: wait_at_most(max_wait),
        also_changes: vec![TouchTemplate::parse("/doc", &path).unwrap()],
        ..guard()
    }
}

async fn impatient() -> Fixture {
    Fixture::with(rules(Duration::from_millis(50))).await
}

fn key(text: &str) -> ResourceKey {
    ResourceKey::from_text(text)
}

/// The kind of a write that another process makes.
#[derive(Clone, Copy, Debug)]
enum Elsewhere {
    Claimed,
    Unclaimed,
}

/// Marks a resource for a write of another process.
async fn begin_elsewhere(fixture: &Fixture, resource: &str, kind: Elsewhere) -> (Mark, Revision) {
    let snapshot = fixture.store.look(&key(resource)).await;
    let deadline = snapshot.now.plus(Duration::from_secs(60));
    let mark = Mark { owner: 99, nonce: 1, deadline, late_write_window: LATE_WRITE_WINDOW, leaves_lease: false };
    let marked = match kind {
        Elsewhere::Claimed => claim(&snapshot, mark),
        Elsewhere::Unclaimed => add_unclaimed(&snapshot, mark),
    };
    fixture.store.put(&key(resource), marked.expect("it is free")).await;
    (mark, fixture.store.look(&key(resource)).await.revision)
}

async fn end_elsewhere(fixture: &Fixture, resource: &str, (mark, marked_at): (Mark, Revision), outcome: Outcome) {
    let snapshot = fixture.store.look(&key(resource)).await;
    let settlement = Settlement { mark, marked_at, outcome, leaves: None, learned: None, shown: None, end: None };
    fixture.store.put(&key(resource), settle(&snapshot, settlement).expect("the mark is there")).await;
}

async fn availability(fixture: &Fixture, resource: &str) -> Availability {
    fixture.store.look(&key(resource)).await.availability()
}

/// Rule 1: a write that was judged before would be applied after the touch, and replace it.
#[tokio::test]
async fn a_write_waits_for_a_claimed_one_on_what_it_touches_and_holds_nothing_meanwhile() {
    for (own, method) in [(OWN[0], Method::PUT), (OWN[1], Method::PUT), (OWN[0], Method::POST), (OWN[1], Method::POST)]
    {
        let fixture = impatient().await;
        let elsewhere = begin_elsewhere(&fixture, TOUCHED, Elsewhere::Claimed).await;
        let before = fixture.store.look(&key(own)).await.revision;
        let refused = fixture.send_to(own, method.clone(), "", "two").await;
        assert_eq!(refused.status, 409, "{own} {method}: {}", refused.body);
        assert!(refused.body.contains("\"code\":\"write-in-flight\""), "{}", refused.body);
        assert_eq!((fixture.writes(), fixture.store.look(&key(own)).await.revision), (0, before), "{own} {method}");
        end_elsewhere(&fixture, TOUCHED, elsewhere, Outcome::Applied).await;
        assert_eq!(fixture.send_to(own, method, "", "two").await.status, 204, "{own}");
    }
}

/// Appends and touches replace nothing.
#[tokio::test]
async fn a_write_runs_beside_unclaimed_ones_on_what_it_touches() {
    for own in OWN {
        let fixture = impatient().await;
        begin_elsewhere(&fixture, TOUCHED, Elsewhere::Unclaimed).await;
        assert_eq!(fixture.send_to(own, Method::PUT, "", "two").await.status, 204, "{own}");
    }
}

#[tokio::test]
async fn a_write_goes_on_as_soon_as_what_it_touches_is_free() {
    for own in OWN {
        let fixture = Fixture::with(rules(Duration::from_secs(20))).await;
        let elsewhere = begin_elsewhere(&fixture, TOUCHED, Elsewhere::Claimed).await;
        fixture.store.fail(Fault::Unavailable, When::Never);
        let write = fixture.send_to(own, Method::PUT, "", "two");
        let freed = async {
            until("the write to look", async || fixture.store.asked().reads >= 2).await;
            assert_eq!(availability(&fixture, own).await, Availability::Free, "it holds nothing while it waits");
            end_elsewhere(&fixture, TOUCHED, elsewhere, Outcome::Applied).await;
        };
        let (answer, ()) = within(Duration::from_secs(10), async { tokio::join!(write, freed) }).await.expect("a turn");
        assert_eq!((answer.status, fixture.writes()), (204, 1), "{own}");
    }
}

/// Rule 3: the doubtful write may still come, and would replace the touch.
#[tokio::test]
async fn a_write_is_refused_while_a_write_of_what_it_touches_is_in_doubt() {
    for own in OWN {
        let fixture = impatient().await;
        let elsewhere = begin_elsewhere(&fixture, TOUCHED, Elsewhere::Claimed).await;
        end_elsewhere(&fixture, TOUCHED, elsewhere, Outcome::Doubt).await;
        let refused = fixture.send_to(own, Method::PUT, "", "two").await;
        assert_eq!((refused.status, refused.field("retry-after"), fixture.writes()), (409, Some("2"), 0), "{own}");
        fixture.store.pass(2_000);
        assert_eq!(fixture.send_to(own, Method::PUT, "", "two").await.status, 204, "{own}");
    }
}

/// Whichever operation of the store fails before the first byte, all marks are given back.
#[tokio::test]
async fn a_write_that_was_not_sent_leaves_all_resources_as_they_were() {
    for (own, other) in [(OWN[0], OWN[1]), (OWN[1], OWN[0])] {
        let mut unsent = 0;
        for failing in 0..8 {
            let fixture = impatient().await;
            assert_eq!(fixture.send_to(other, Method::PUT, "", "one").await.status, 204);
            let version = fixture.store.look(&key(TOUCHED)).await.version();
            fixture.store.fail(Fault::AnswerLost, When::Once(failing));
            let answer = fixture.send_to(own, Method::PUT, "", "two").await;
            if fixture.writes() > 1 {
                continue;
            }
            unsent += 1;
            assert_eq!(answer.status, 503, "{failing}: {}", answer.body);
            for resource in [own, TOUCHED] {
                let is_free = async || availability(&fixture, resource).await == Availability::Free;
                until("the mark to be given back", is_free).await;
            }
            assert_eq!(fixture.store.look(&key(TOUCHED)).await.version(), version, "{own} {failing}");
        }
        assert!(unsent >= 4, "{own}: each read and each mark failed once");
    }
}

/// Rule 3: the process dies, or a task is dropped, between the marks of a write and its end.
#[tokio::test]
async fn a_write_that_is_dropped_is_a_doubt_on_all_that_it_touches() {
    for own in OWN {
        let fixture = impatient().await;
        let held = fixture.hold_writes().await;
        let is_busy =
            async |resource: &str| matches!(availability(&fixture, resource).await, Availability::Busy { .. });
        tokio::select! {
            answer = fixture.send_to(own, Method::PUT, "", "two") => panic!("{}", answer.body),
            () = until("the marks", async || is_busy(own).await && is_busy(TOUCHED).await) => {}
        }
        for resource in [own, TOUCHED] {
            let in_doubt = async || matches!(availability(&fixture, resource).await, Availability::InDoubt { .. });
            until("the doubt", in_doubt).await;
        }
        drop(held);
    }
}

/// Each touched resource costs a read and two swaps.
#[tokio::test]
async fn a_touched_resource_is_read_once_and_marked_and_settled() {
    for own in OWN {
        let fixture = impatient().await;
        let version = fixture.store.look(&key(TOUCHED)).await.version();
        fixture.store.fail(Fault::Unavailable, When::Never);
        assert_eq!(fixture.send_to(own, Method::PUT, "", "two").await.status, 204);
        assert_eq!(fixture.store.asked(), Asked { reads: 2, swaps: 4, times: 1 }, "{own}");
        assert!(fixture.store.look(&key(TOUCHED)).await.version() > version, "it has changed too");
    }
}

/// Rule 16: writes that touch a resource, and those of the resource itself, through two processes, all get their turns.
#[tokio::test]
async fn writes_of_one_and_of_several_resources_in_two_processes_do_not_starve_each_other() {
    const EACH: usize = 10;
    let one = Fixture::sharing(rules(Duration::from_secs(20))).await;
    let other = one.beside().await;
    let processes = [&one, &other];
    let writes = processes.into_iter().flat_map(|process| {
        let resources = [OWN[0], TOUCHED, OWN[1]].into_iter().cycle().take(3 * EACH);
        resources.map(move |resource| Box::pin(process.send_to(resource, Method::PUT, "", "two")))
    });
    let answers = within(Duration::from_secs(20), join_all(writes)).await.expect("all have their turns");
    let refused: Vec<_> = answers.iter().filter(|answer| answer.status != 204).map(|answer| &answer.body).collect();
    assert!(refused.is_empty(), "{refused:?}");
    assert_eq!(one.writes(), 6 * EACH);
    for resource in [OWN[0], TOUCHED, OWN[1]] {
        assert_eq!(availability(&one, resource).await, Availability::Free);
    }
}
