//! Tests of claims that end without a verdict: each such write is a doubt (DESIGN, section 3, rule 3).

use std::sync::Arc;

use super::*;
use crate::{
    core::records::record::Availability,
    guard::testing::{Fault, FaultyStore, When, until},
    store::Store as _,
};

const STORE_TIMEOUT: Duration = Duration::from_millis(50);
const LATE_WRITE_WINDOW: Duration = Duration::from_secs(2);
const DEADLINE_MILLISECONDS: u64 = 10_000;

fn key() -> ResourceKey {
    ResourceKey::from_text("a")
}

struct Fixture {
    store: Arc<FaultyStore>,
    marker: Marker,
}

impl Fixture {
    fn new() -> Self {
        let store = Arc::new(FaultyStore::new());
        let marker = Marker::new(Records::new(Arc::<FaultyStore>::clone(&store), STORE_TIMEOUT), 1);
        Self { store, marker }
    }

    async fn mark(&self, kind: MarkKind<'_>) -> Marked {
        let since = Instant::now();
        let snapshot = self.store.look(&key()).await;
        let deadline = snapshot.now.plus(Duration::from_millis(DEADLINE_MILLISECONDS));
        let intent = MarkIntent {
            kind,
            since,
            deadline,
            leaves_lease: false,
            leaves: None,
            late_write_window: LATE_WRITE_WINDOW,
        };
        self.marker.mark(&key(), &snapshot, intent).await.unwrap()
    }

    async fn claim(&self) -> Claim {
        match self.mark(MarkKind::Claim).await {
            Marked::Done(claim) => claim,
            Marked::Conflict(_) | Marked::Full => panic!("the resource is not free"),
        }
    }

    async fn availability(&self) -> Availability {
        self.store.look(&key()).await.availability()
    }

    /// Waits until a mark has become a doubt.
    async fn in_doubt(&self) {
        let doubted = async || matches!(self.availability().await, Availability::InDoubt { .. });
        until("the write to be in doubt", doubted).await;
    }

    /// Waits until the store has received this number of operations.
    async fn asked(&self, operations: u64) {
        until("the store to be asked", async || self.store.operations() >= operations).await;
    }
}

/// Rule 3: a claim dropped without a verdict keeps others out until `late_write_window` has passed.
#[tokio::test]
async fn a_claim_that_is_dropped_is_a_doubt() {
    let fixture = Fixture::new();
    let version = fixture.store.look(&key()).await.version();
    drop(fixture.claim().await);
    fixture.in_doubt().await;
    assert!(matches!(fixture.mark(MarkKind::Claim).await, Marked::Conflict(_)));
    fixture.store.pass(2_000);
    let after = fixture.store.look(&key()).await;
    assert_eq!(after.availability(), Availability::Free);
    assert!(after.version() > version, "a version that was read before has ended");
}

#[tokio::test]
async fn a_mark_that_is_dropped_is_a_doubt_without_a_claim_too() {
    let fixture = Fixture::new();
    drop(fixture.mark(MarkKind::Unclaimed).await);
    fixture.in_doubt().await;
}

#[tokio::test]
async fn a_panic_under_a_claim_is_a_doubt() {
    let fixture = Fixture::new();
    let claim = fixture.claim().await;
    let panicked = tokio::spawn(async move {
        let _under_it = claim;
        panic!("in the middle of a write");
    });
    assert!(panicked.await.is_err_and(|error| error.is_panic()));
    fixture.in_doubt().await;
}

#[tokio::test]
async fn a_settled_claim_is_no_doubt() {
    let fixture = Fixture::new();
    let settled = fixture.claim().await.settle(Outcome::Applied, None).await.expect("the store works");
    assert!(settled.undisturbed);
    // Any work that dropping has started is done after these rounds.
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    assert_eq!(fixture.availability().await, Availability::Free);
}

/// The owner counted as dead, and another process has made its write a doubt (rule 7).
#[tokio::test]
async fn a_claim_that_was_taken_over_cannot_be_settled() {
    let fixture = Fixture::new();
    let claim = fixture.claim().await;
    fixture.store.pass(DEADLINE_MILLISECONDS);
    let snapshot = fixture.store.look(&key()).await;
    assert_eq!(snapshot.availability(), Availability::Orphaned);
    let doubted = crate::core::records::steps::take_over(&snapshot).expect("its owner must be dead");
    fixture.store.swap(&key(), snapshot.revision, doubted).await.unwrap();
    assert!(claim.settle(Outcome::Applied, None).await.is_none());
    fixture.in_doubt().await;
}

#[tokio::test]
async fn a_claim_may_begin_while_enough_is_left_before_its_deadline() {
    let fixture = Fixture::new();
    let claim = fixture.claim().await;
    let needed = Duration::from_secs(4);
    fixture.store.pass(5_999);
    assert!(claim.has_left(needed).await);
    fixture.store.pass(1);
    assert!(!claim.has_left(needed).await);
    claim.settle(Outcome::NotApplied, None).await;
}

/// Rule 7: an owner also gives up by its own clock, because the store's time may be old when it arrives.
#[tokio::test(start_paused = true)]
async fn a_claim_may_not_begin_when_its_own_clock_says_that_too_little_is_left() {
    let fixture = Fixture::new();
    let claim = fixture.claim().await;
    let needed = Duration::from_secs(4);
    tokio::time::advance(Duration::from_millis(5_999)).await;
    assert!(claim.has_left(needed).await, "the store's time stands still");
    tokio::time::advance(Duration::from_millis(1)).await;
    assert!(!claim.has_left(needed).await);
    claim.settle(Outcome::NotApplied, None).await;
}

#[tokio::test]
async fn a_claim_may_not_begin_when_the_time_is_unknown() {
    for fault in [Fault::Unavailable, Fault::Hangs] {
        let fixture = Fixture::new();
        let claim = fixture.claim().await;
        fixture.store.fail(fault, When::Once(0));
        assert!(!claim.has_left(Duration::ZERO).await, "{fault:?}");
        claim.settle(Outcome::NotApplied, None).await;
    }
}

/// This settlement needs no time from the store, so its only operation is the swap.
#[tokio::test]
async fn a_settlement_that_fails_once_is_a_doubt() {
    for fault in [Fault::Unavailable, Fault::Hangs] {
        let fixture = Fixture::new();
        let claim = fixture.claim().await;
        fixture.store.fail(fault, When::Once(0));
        assert!(claim.settle(Outcome::Applied, None).await.is_none(), "{fault:?}");
        fixture.in_doubt().await;
    }
}

/// The outcome is in the record although its answer was lost: no mark is left that could become a doubt.
#[tokio::test]
async fn a_settlement_whose_answer_is_lost_has_happened() {
    let fixture = Fixture::new();
    let version = fixture.store.look(&key()).await.version();
    let claim = fixture.claim().await;
    fixture.store.fail(Fault::AnswerLost, When::Once(0));
    assert!(claim.settle(Outcome::Applied, None).await.is_none());
    fixture.asked(3).await;
    let after = fixture.store.look(&key()).await;
    assert_eq!((after.availability(), after.version() > version), (Availability::Free, true));
}

/// The mark keeps every other write away until its deadline. Then its write becomes a doubt.
#[tokio::test]
async fn a_mark_stays_while_the_store_is_down() {
    let fixture = Fixture::new();
    let claim = fixture.claim().await;
    fixture.store.fail(Fault::Unavailable, When::From(0));
    assert!(claim.settle(Outcome::Applied, None).await.is_none());
    fixture.asked(2).await;
    fixture.store.fail(Fault::Unavailable, When::Never);
    assert!(matches!(fixture.availability().await, Availability::Busy { .. }));
    fixture.store.pass(DEADLINE_MILLISECONDS);
    assert_eq!(fixture.availability().await, Availability::Orphaned);
}

/// A settlement changes the current record, not the one that was marked.
#[tokio::test]
async fn a_settlement_keeps_what_came_between() {
    let fixture = Fixture::new();
    let claim = fixture.claim().await;
    let Marked::Done(beside) = fixture.mark(MarkKind::Unclaimed).await else { panic!("there is room") };
    let settled = claim.settle(Outcome::Applied, None).await.expect("the store works");
    assert!(!settled.undisturbed);
    assert!(matches!(settled.snapshot.availability(), Availability::Busy { .. }));
    beside.settle(Outcome::Applied, None).await;
    assert_eq!(fixture.availability().await, Availability::Free);
}
