//! States and their locks, over a guard with a store and a clock under the test's control.

use std::time::Duration;

use http::Method;
use serde_json::Value;
use tokio::time::timeout;

use crate::{
    core::{
        lease::testing::rules,
        policy::{AbsentLease, GuardRules, LeaseAuth, LeaseRules, OnWrite, Require, StoreMethod, TagSource},
        resource::ResourceKey,
    },
    guard::testing::{Fault, Fixture, OWNER, Response, When, dialect},
    testing::{guard, wait_at_most},
};

const ANN: &str = r#"{"ID":"ann-1","Operation":"OperationTypeApply","Who":"ann@host"}"#;
const BOB: &str = r#"{"ID":"bob-1","Operation":"OperationTypePlan","Who":"bob@host"}"#;

fn of_states(lease: LeaseRules) -> GuardRules {
    let terraform = dialect("terraform");
    GuardRules {
        dialect: terraform,
        quirks: terraform.quirks(),
        etag: TagSource::Upstream,
        on_write: OnWrite::Omit,
        require: Require::Never,
        append_methods: Vec::new(),
        store_method: StoreMethod::Put,
        lease: Some(lease),
        ..guard()
    }
}

fn locks() -> LeaseRules {
    LeaseRules { auth: LeaseAuth::Probe, absent: AbsentLease::Allow, ..rules() }
}

async fn lock(fixture: &Fixture, name: &str, fields: &str, info: &str) -> Response {
    fixture.send(Method::from_bytes(name.as_bytes()).expect("a token"), fields, info).await
}

async fn post(fixture: &Fixture, id: Option<&str>, fields: &str, state: &str) -> Response {
    let target = id.map_or("/doc".to_owned(), |id| format!("/doc?ID={id}"));
    fixture.send_for(&target, Method::POST, fields, state).await
}

/// Asserts that an answer shows Ann's lock.
fn assert_of_ann(response: &Response, status: u16) {
    assert_eq!(response.status, status, "{}", response.body);
    let body: Value = serde_json::from_str(&response.body).expect("JSON");
    assert_eq!((&body["ID"], &body["Who"], &body["status"]), (&"ann-1".into(), &"ann@host".into(), &status.into()));
}

/// Rule 1: a state is written by the holder of its lock alone.
#[tokio::test]
async fn a_state_is_locked_written_and_unlocked() {
    let fixture = Fixture::with(of_states(locks())).await;
    let held = lock(&fixture, "LOCK", "", ANN).await;
    assert_eq!((held.status, &*held.body, held.field("cache-control")), (200, "", Some("no-store")));
    assert_eq!(lock(&fixture, "LOCK", "", ANN).await.status, 200, "a repeated request");
    assert_of_ann(&lock(&fixture, "LOCK", "", BOB).await, 423);
    assert_of_ann(&post(&fixture, None, "", "nobody's").await, 423);
    assert_of_ann(&post(&fixture, Some("bob-1"), "", "bob's").await, 423);
    assert_of_ann(&fixture.send_for("/doc?ID=bob-1", Method::DELETE, "", "").await, 423);
    assert_eq!(fixture.writes(), 0);
    let stored = post(&fixture, Some("ann-1"), "", "ann's").await;
    assert_eq!((stored.status, stored.field("content-length")), (200, Some("0")));
    assert_eq!((&*fixture.last_write().await, &*fixture.content().await), ("put /doc http/1.1", "ann's"));
    assert!(fixture.last_fence().await.is_some());
    assert_of_ann(&lock(&fixture, "UNLOCK", "", BOB).await, 409);
    for _ in 0..2 {
        let released = lock(&fixture, "UNLOCK", "", ANN).await;
        assert_eq!((released.status, &*released.body), (200, ""));
    }
    assert_eq!(lock(&fixture, "UNLOCK", "", BOB).await.status, 200, "nobody holds a lock");
    assert_eq!(post(&fixture, None, "", "free").await.status, 200);
    let late = post(&fixture, Some("ann-1"), "", "late").await;
    assert_eq!((late.status, &*fixture.content().await), (409, "free"), "{}", late.body);
}

#[tokio::test]
async fn a_lock_needs_a_description_of_bounded_length() {
    let fixture = Fixture::with(of_states(locks())).await;
    for (info, status) in [("", 400), ("{}", 400), (&*format!(r#"{{"ID":"{}"}}"#, "a".repeat(4096)), 413)] {
        assert_eq!(lock(&fixture, "LOCK", "", info).await.status, status);
    }
    assert_eq!(lock(&fixture, "UNLOCK", "", "{}").await.status, 400);
    assert_eq!(post(&fixture, None, "", "free").await.status, 200);
}

/// Rule 3: an obstacle that passes is no lock of another client.
#[tokio::test]
async fn an_obstacle_that_passes_is_a_503() {
    let rules = GuardRules { claim: wait_at_most(Duration::ZERO), ..of_states(locks()) };
    let fixture = Fixture::with(rules).await;
    assert_eq!(lock(&fixture, "LOCK", "", ANN).await.status, 200);
    let held = fixture.hold_writes().await;
    let write = post(&fixture, Some("ann-1"), "", "first");
    let others = async {
        let key = ResourceKey::from_text("doc");
        while fixture.store.look(&key).await.has_no_pending_writes() {
            tokio::task::yield_now().await;
        }
        let second = post(&fixture, Some("ann-1"), "", "second").await;
        drop(held);
        second
    };
    let others = async { timeout(Duration::from_secs(20), others).await.expect("the first write is in flight") };
    let (first, second) = tokio::join!(write, others);
    assert_eq!(first.status, 200);
    assert_eq!((second.status, second.field("retry-after").is_some()), (503, true), "{}", second.body);
    fixture.store.fail(Fault::Unavailable, When::From(0));
    for refused in [lock(&fixture, "LOCK", "", BOB).await, post(&fixture, Some("ann-1"), "", "third").await] {
        assert_eq!((refused.status, refused.field("retry-after")), (503, Some("1")), "{}", refused.body);
    }
    assert_eq!(fixture.writes(), 1);
}

#[tokio::test]
async fn an_unlock_without_an_id_ends_the_lock_of_anybody() {
    let fixture = Fixture::with(of_states(locks())).await;
    assert_eq!(lock(&fixture, "UNLOCK", "", "").await.status, 200, "nobody holds a lock");
    assert_eq!(lock(&fixture, "LOCK", OWNER, ANN).await.status, 200);
    assert_eq!(lock(&fixture, "UNLOCK", "", "").await.status, 200);
    let lost = post(&fixture, Some("ann-1"), OWNER, "ann's").await;
    assert_eq!((lost.status, fixture.writes()), (409, 0), "{}", lost.body);
    assert_eq!(lock(&fixture, "LOCK", "", BOB).await.status, 200);
    assert_eq!(post(&fixture, Some("ann-1"), OWNER, "ann's").await.status, 423);
}

#[tokio::test]
async fn a_route_can_keep_locks_for_their_holders() {
    let fixture = Fixture::with(of_states(LeaseRules { client_break: false, ..locks() })).await;
    assert_eq!(lock(&fixture, "LOCK", OWNER, ANN).await.status, 200);
    assert_eq!(lock(&fixture, "UNLOCK", "", "").await.status, 409);
    let refused = lock(&fixture, "UNLOCK", "", ANN).await;
    assert_eq!(refused.status, 409, "another principal: {}", refused.body);
    assert_eq!(post(&fixture, Some("ann-1"), OWNER, "ann's").await.status, 200);
}

/// Rule 11: the ID of a lock is shown to all clients, and so proves nothing.
#[tokio::test]
async fn an_id_that_everybody_sees_is_no_right_to_write() {
    let fixture = Fixture::with(of_states(locks())).await;
    assert_eq!(lock(&fixture, "LOCK", OWNER, ANN).await.status, 200);
    assert_of_ann(&post(&fixture, Some("ann-1"), "", "stolen").await, 423);
    assert_of_ann(&lock(&fixture, "LOCK", "", ANN).await, 423);
    assert_eq!(fixture.writes(), 0);
    // OpenTofu's force-unlock: it names the ID that it was shown.
    assert_eq!(lock(&fixture, "UNLOCK", "", ANN).await.status, 200);
    assert_eq!(lock(&fixture, "LOCK", "", BOB).await.status, 200);
    let wrong = lock(&fixture, "UNLOCK", OWNER, ANN).await;
    assert_eq!(wrong.status, 409, "the lock of this ID has ended: {}", wrong.body);
    assert_eq!(post(&fixture, Some("bob-1"), "", "bob's").await.status, 200);
}

#[tokio::test]
async fn a_route_can_demand_the_lock() {
    let fixture = Fixture::with(of_states(LeaseRules { required: true, ..locks() })).await;
    let refused = post(&fixture, None, "", "unlocked").await;
    assert_eq!((refused.status, fixture.writes()), (423, 0), "{}", refused.body);
    assert!(refused.body.contains("lock_address"), "{}", refused.body);
    assert_eq!(lock(&fixture, "LOCK", "", ANN).await.status, 200);
    assert_eq!(post(&fixture, Some("ann-1"), "", "locked").await.status, 200);
}

/// Rule 4: who may not read a state learns nothing of its lock.
#[tokio::test]
async fn a_client_without_rights_gets_the_answer_of_the_upstream() {
    let fixture = Fixture::with(of_states(locks())).await;
    fixture.refuse_with(401);
    assert_eq!(lock(&fixture, "LOCK", OWNER, ANN).await.status, 200);
    for refused in [
        lock(&fixture, "LOCK", "", BOB).await,
        lock(&fixture, "UNLOCK", "", "").await,
        lock(&fixture, "UNLOCK", "", ANN).await,
        post(&fixture, None, "", "x").await,
    ] {
        assert_eq!((refused.status, refused.body.contains("ann")), (401, false), "{}", refused.body);
    }
    assert_eq!((post(&fixture, Some("ann-1"), OWNER, "ann's").await.status, fixture.writes()), (200, 1));
}
