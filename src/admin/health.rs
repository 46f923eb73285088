//! Health checks: whether the process lives, and whether it should get requests.
//!
//! Reads and writes have separate checks. Reads pass while the store is unavailable, except on routes whose leases
//! guard them. Writes need a store in which a change lasts. A balancer that took a proxy out because of its store would
//! take all of them out at once.

use std::time::{Duration, Instant};

use axum::{
    Json,
    extract::State,
    response::{IntoResponse as _, Response},
};
use http::{HeaderMap, StatusCode, Uri};
use serde_json::{Value, json};
use tokio::{sync::Mutex, time::timeout};

use super::{AdminAnswer, AdminListener, AdminState, milliseconds};
use crate::{
    config::Route,
    core::{lease::Usage, resource::ResourceKey},
    guard::Guard,
    server::Stop,
    store::StoreError,
};

/// Reports that the process lives; a dead one would not answer.
pub(super) async fn alive() -> Json<Value> {
    Json(json!({ "alive": true }))
}

/// How long the last result about writes counts. With any number of clients that ask, checks write to the store no more
/// often.
const FOUND_OUT: Duration = Duration::from_secs(1);
/// How long a check of reads waits for the store: a balancer gives a check a second or two.
const READS_WAIT: Duration = Duration::from_millis(400);

/// The last finding about whether a change would last in the store.
#[derive(Debug, Default)]
pub(super) struct Durability(Mutex<Option<(Instant, Result<(), StoreError>)>>);

impl Durability {
    /// Checks whether a change lasts, unless the last result is recent. Concurrent callers wait for the same result.
    async fn holds(&self, guards: &Guard) -> Result<(), StoreError> {
        let mut last = self.0.lock().await;
        match &*last {
            Some((when, holds)) if when.elapsed() < FOUND_OUT => holds.clone(),
            _ => {
                let holds = guards.try_out().await;
                *last = Some((Instant::now(), holds.clone()));
                holds
            }
        }
    }
}

/// The state of the store, looked up for this very request. The result of an earlier request may be old: without
/// requests, a process whose store failed would not notice that the store answers again.
#[derive(Clone, Debug)]
pub(super) struct StoreCheck {
    available: bool,
    /// The result of a change: an error if it does not last.
    writable: Result<(), StoreError>,
    /// How much longer writes are held back after the start.
    held_back: Duration,
}

impl StoreCheck {
    fn failed(error: StoreError) -> Self {
        Self { available: false, writable: Err(error), held_back: Duration::ZERO }
    }

    /// Looks at the store. One that is slow counts as unavailable.
    pub(super) async fn within_patience(admin: &AdminListener) -> Self {
        let found = timeout(READS_WAIT, admin.look_at_store(&admin.guards())).await;
        found.unwrap_or_else(|_elapsed| Self::failed(StoreError::Unavailable))
    }
}

impl AdminListener {
    async fn look_at_store(&self, guards: &Guard) -> StoreCheck {
        // This key belongs to no resource and is never written.
        let snapshot = match guards.look(&ResourceKey::from_text("ready?")).await {
            Ok(snapshot) => snapshot,
            Err(error) => return StoreCheck::failed(error),
        };
        let writable = self.durability.holds(guards).await;
        StoreCheck { available: true, writable, held_back: guards.held_back(snapshot.now) }
    }

    /// True if reads are answered, by the state of the store.
    pub(super) fn reads_pass(&self, found: &StoreCheck) -> bool {
        found.available || !self.subject.live.serving().routes().iter().any(|route| needs_store(route))
    }

    pub(super) fn is_draining(&self) -> bool {
        *self.subject.stop.borrow() != Stop::Not
    }

    /// Returns the answer: all details for a client that calls the listener by its name, else only the verdict.
    fn told(&self, ready: bool, found: &StoreCheck, headers: &HeaderMap, uri: &Uri) -> Response {
        let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        if !self.access.is_known_as(uri, headers) {
            return (status, Json(json!({ "ready": ready }))).into_response();
        }
        (status, Json(self.readiness(ready, found))).into_response()
    }

    /// Returns all details.
    pub(super) fn readiness(&self, ready: bool, found: &StoreCheck) -> Value {
        let draining = self.is_draining();
        json!({
            "ready": ready,
            "reads": !draining && self.reads_pass(found),
            "writes": !draining && takes_writes(found),
            "store": {
                "kind": self.config().store.kind.word(),
                "available": found.available,
                "writable": found.writable.is_ok(),
                "problem": found.writable.as_ref().err().map(problem),
            },
            "listeners": self.subject.listeners,
            "draining": draining,
            "start_grace": { "over": found.held_back.is_zero(), "remaining_ms": milliseconds(found.held_back) },
        })
    }
}

/// True if reads of a route depend on leases in the store.
fn needs_store(route: &Route) -> bool {
    let lease = route.guard.as_ref().and_then(|guard| guard.lease.as_ref());
    route.reads_may_be_leased || lease.is_some_and(|lease| lease.guards.covers(Usage::Read))
}

fn takes_writes(found: &StoreCheck) -> bool {
    found.writable.is_ok() && found.held_back.is_zero()
}

/// Returns the word for a problem of a store. Only `lost-writes` waits for an operator.
fn problem(error: &StoreError) -> &'static str {
    match error {
        StoreError::Full => "full",
        StoreError::Unavailable | StoreError::Damaged => "failed",
        StoreError::LostWrites => "lost-writes",
    }
}

/// Reports whether the process should get requests: reads are answered, and it is not about to end.
pub(super) async fn reads(State(admin): AdminState, uri: Uri, headers: HeaderMap) -> AdminAnswer {
    let found = StoreCheck::within_patience(&admin).await;
    Ok(admin.told(!admin.is_draining() && admin.reads_pass(&found), &found, &headers, &uri))
}

/// Reports whether the process should get writes: a change in its store lasted just now, no write is held back, and the
/// process is not about to end.
pub(super) async fn writes(State(admin): AdminState, uri: Uri, headers: HeaderMap) -> AdminAnswer {
    let guards = admin.guards();
    let found = admin.look_at_store(&guards).await;
    Ok(admin.told(!admin.is_draining() && takes_writes(&found), &found, &headers, &uri))
}
