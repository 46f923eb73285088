//! Tests of leases while the store's clock misbehaves: it jumps, stands still, and runs too fast or too slow.

use std::time::Duration;

use http::Method;
use tokio::time::timeout;

use super::testing::{Fault, Fixture, Response, When};
use crate::{
    core::{
        lease::testing::rules,
        policy::{GuardRules, LeaseRules, Require, TagSource},
        resource::ResourceKey,
    },
    testing::guard,
};

const DOC: &str = "doc";

/// A pessimistic route with leases of at least one second.
async fn start() -> Fixture {
    start_with(LeaseRules { min: Duration::from_secs(1), max_per_principal: 1000, max_per_address: 1000, ..rules() })
        .await
}

async fn start_with(rules: LeaseRules) -> Fixture {
    let (etag, require) = (TagSource::Version, Require::Never);
    Fixture::with(GuardRules { etag, other_writers: false, require, lease: Some(rules), ..guard() }).await
}

/// A client with a lease.
struct Holder {
    id: String,
    fence: u64,
}

impl Holder {
    fn of(response: &Response) -> Self {
        assert_eq!(response.status, 201, "{} {}", response.head, response.body);
        let fence = response.field("fencing-token").expect("a fence").parse().expect("a number");
        Self { id: response.field("lease-id").expect("an id").to_owned(), fence }
    }

    async fn put(&self, fixture: &Fixture, body: &str) -> Response {
        fixture.send(Method::PUT, &format!("Lease-Id: {}\r\n", self.id), body).await
    }

    async fn renew(&self, fixture: &Fixture) -> Response {
        fixture.lease(DOC, Method::PUT, &format!("Lease-Id: {}\r\n", self.id)).await
    }
}

async fn acquire(fixture: &Fixture, seconds: u64) -> Response {
    fixture.lease(DOC, Method::POST, &format!("Lease-Duration: {seconds}\r\n")).await
}

fn assert_refused(response: &Response, status: u16, code: &str) {
    assert_eq!(response.status, status, "{} {}", response.head, response.body);
    assert!(response.body.contains(&format!("\"code\":\"{code}\"")), "{}", response.body);
}

/// The current holder writes, and the previous one neither writes nor renews.
async fn assert_overtaken(fixture: &Fixture, late: &Holder, holder: &Holder) {
    assert!(holder.fence > late.fence, "{} after {}", holder.fence, late.fence);
    let writes = fixture.writes();
    assert_refused(&late.put(fixture, "late").await, 412, "lease-id-mismatch");
    assert_refused(&late.renew(fixture).await, 409, "lease-id-mismatch");
    assert_eq!(fixture.writes(), writes, "nothing of it reaches the backend");
    assert_eq!(holder.put(fixture, "two").await.status, 204);
    assert_eq!(fixture.content().await, "two");
}

/// The holder pauses, as for garbage collection: 70 seconds within a lease of 60.
#[tokio::test]
async fn a_holder_that_stalls_for_longer_than_its_lease_writes_nothing_after_another_was_granted() {
    let fixture = start().await;
    let stalled = Holder::of(&acquire(&fixture, 60).await);
    assert_eq!(stalled.put(&fixture, "one").await.status, 204);
    assert_refused(&acquire(&fixture, 60).await, 409, "lease-held");
    fixture.store.pass(70_000);
    let other = Holder::of(&acquire(&fixture, 60).await);
    assert_overtaken(&fixture, &stalled, &other).await;
}

/// The store's clock decides, to the millisecond, not the machine's own.
#[tokio::test]
async fn a_lease_ends_at_its_end_and_not_before() {
    let fixture = start().await;
    let holder = Holder::of(&acquire(&fixture, 60).await);
    fixture.store.pass(59_999);
    assert_refused(&acquire(&fixture, 60).await, 409, "lease-held");
    assert_eq!(holder.put(&fixture, "in time").await.status, 204);
    fixture.store.pass(1);
    assert_refused(&holder.put(&fixture, "late").await, 412, "lease-lost");
    assert!(Holder::of(&acquire(&fixture, 60).await).fence > holder.fence);
}

/// A store whose clock stands still keeps its leases. A client that waits for one waits on, without more requests to
/// the store.
#[tokio::test]
async fn no_lease_runs_out_while_the_clock_stands_still() {
    let fixture = start().await;
    let holder = Holder::of(&acquire(&fixture, 1).await);
    fixture.store.fail(Fault::Unavailable, When::Never);
    let waited = fixture.lease(DOC, Method::POST, "Lease-Duration: 1\r\nPrefer: wait=2\r\n").await;
    assert_refused(&waited, 409, "lease-held");
    assert!(fixture.store.operations() < 10, "{} operations", fixture.store.operations());
    assert_eq!(holder.put(&fixture, "two").await.status, 204);
}

#[tokio::test]
async fn a_jump_ahead_ends_leases_and_takes_nothing_from_a_holder_that_nobody_overtook() {
    let fixture = start().await;
    let holder = Holder::of(&acquire(&fixture, 60).await);
    fixture.store.pass(300_000);
    assert_refused(&holder.put(&fixture, "late").await, 412, "lease-lost");
    let renewed = holder.renew(&fixture).await;
    assert_eq!((renewed.status, renewed.field("fencing-token")), (200, Some(&*holder.fence.to_string())));
    assert_eq!(holder.put(&fixture, "two").await.status, 204);
    // A lease is remembered for less than this time.
    fixture.store.pass(24 * 3_600_000);
    assert_refused(&holder.renew(&fixture).await, 409, "lease-not-present");
}

/// Rule 10: the holder could not know of the write.
#[tokio::test]
async fn a_lease_that_has_ended_is_lost_to_a_write_by_somebody_else() {
    let fixture = start().await;
    let holder = Holder::of(&acquire(&fixture, 60).await);
    fixture.store.pass(60_000);
    assert_eq!(fixture.send(Method::PUT, "", "two").await.status, 204);
    assert_refused(&holder.renew(&fixture).await, 409, "lease-not-present");
    assert_refused(&holder.put(&fixture, "late").await, 412, "lease-not-present");
    assert_eq!(fixture.content().await, "two");
}

/// A failover can bring the clock of another machine. A grant stays a grant, and a lease can only become longer.
#[tokio::test]
async fn a_jump_back_gives_no_lease_to_two() {
    let fixture = start().await;
    // The clock goes back beyond the start of the proxy.
    let first = Holder::of(&acquire(&fixture, 60).await);
    fixture.store.pass(60_000);
    let second = Holder::of(&acquire(&fixture, 60).await);
    fixture.store.go_back(90_000);
    assert_refused(&acquire(&fixture, 60).await, 409, "lease-held");
    assert_overtaken(&fixture, &first, &second).await;
    // The time at which the second lease began.
    fixture.store.pass(90_000);
    assert_refused(&acquire(&fixture, 60).await, 409, "lease-held");
    fixture.store.pass(60_000);
    let third = Holder::of(&acquire(&fixture, 60).await);
    assert_overtaken(&fixture, &second, &third).await;
}

/// The clock stands still, so the lease does not end.
#[tokio::test]
async fn a_client_waits_for_a_lease_no_longer_than_the_route_allows() {
    let fixture = start_with(LeaseRules { max_wait: Duration::from_millis(50), ..rules() }).await;
    Holder::of(&acquire(&fixture, 60).await);
    let waiting = fixture.lease(DOC, Method::POST, "Lease-Duration: 60\r\nPrefer: wait=60\r\n");
    let waited = timeout(Duration::from_secs(10), waiting).await.expect("the wait ends");
    assert_refused(&waited, 409, "lease-held");
}

/// A waiter measures with its own clock and then asks the store. It comes too early if that clock is slow, late if it
/// is fast.
#[tokio::test]
async fn a_waiter_is_granted_a_lease_when_it_is_over_by_a_clock_that_drifts() {
    for percent in [60, 700] {
        let fixture = start().await;
        fixture.store.run(percent);
        let before = fixture.store.time();
        let first = Holder::of(&acquire(&fixture, 1).await);
        let waited = fixture.lease(DOC, Method::POST, "Lease-Duration: 60\r\nPrefer: wait=20\r\n").await;
        assert!(fixture.store.time() >= before.plus(Duration::from_secs(1)), "{percent} %: granted too early");
        assert_overtaken(&fixture, &first, &Holder::of(&waited)).await;
    }
}

/// Any number of leases may end without effect: no record changes, and the next operation asks the store no more often.
#[tokio::test]
async fn the_end_of_leases_is_found_where_it_is_asked_for_and_never_by_a_scan() {
    let fixture = start().await;
    fixture.store.fail(Fault::Unavailable, When::Never);
    Holder::of(&acquire(&fixture, 60).await);
    let alone = fixture.store.operations();

    let others: Vec<String> = (0..500).map(|number| format!("other {number}")).collect();
    for other in &others {
        Holder::of(&fixture.lease(other, Method::POST, "Lease-Duration: 60\r\n").await);
    }
    let mut revisions = Vec::new();
    for other in &others {
        revisions.push(fixture.store.look(&ResourceKey::from_text(other)).await.revision);
    }
    fixture.store.pass(60_000);
    fixture.store.fail(Fault::Unavailable, When::Never);
    Holder::of(&acquire(&fixture, 60).await);
    assert_eq!(fixture.store.operations(), alone);
    for (other, revision) in others.iter().zip(revisions) {
        let snapshot = fixture.store.look(&ResourceKey::from_text(other)).await;
        assert_eq!(snapshot.revision, revision);
        assert!(!snapshot.lease_state().is_held());
    }
}
