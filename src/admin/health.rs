//! Whether the process lives, and whether it should get requests.
//!
//! Reads and writes are told apart: reads pass while the store is out, except where leases guard them, and writes need a
//! store in which a change lasts. A balancer that took a proxy out for its store would take all of them out at once.

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
    config::{Route, StoreKind},
    core::{lease::Usage, resource::ResourceKey},
    guard::Guard,
    server::Stop,
};

/// It lives, or nobody would answer.
pub(super) async fn alive() -> Json<Value> {
    Json(json!({ "alive": true }))
}

/// How long what was found out about writes counts: whoever asks, and however many, a store is written to for it no more
/// often.
const FOUND_OUT: Duration = Duration::from_secs(1);
/// How long the store is waited for where the answer is about reads: a balancer gives a check a second or two.
const READS_WAIT: Duration = Duration::from_millis(400);

/// Whether a change would last in the store, as it was found out last.
#[derive(Debug, Default)]
pub(super) struct Durability(Mutex<Option<(Instant, bool)>>);

impl Durability {
    /// Finds it out, unless that was done just now. Those who ask meanwhile wait for the same answer.
    async fn holds(&self, guards: &Guard) -> bool {
        let mut last = self.0.lock().await;
        match *last {
            Some((when, holds)) if when.elapsed() < FOUND_OUT => holds,
            _ => {
                let holds = guards.try_out().await.is_ok();
                *last = Some((Instant::now(), holds));
                holds
            }
        }
    }
}

/// The store, as it was found here and now: what the last request found may be old, and a process that gets no requests
/// because its store failed would not find out that it answers again.
#[derive(Clone, Copy, Debug, Default)]
struct StoreCheck {
    available: bool,
    writable: bool,
    /// How long writes are held back after the start.
    held_back: Duration,
}

impl AdminListener {
    async fn look_at_store(&self, guards: &Guard) -> StoreCheck {
        // The key of no resource, and never written.
        let Ok(snapshot) = guards.look(&ResourceKey::from_text("ready?")).await else { return StoreCheck::default() };
        let writable = self.durability.holds(guards).await;
        StoreCheck { available: true, writable, held_back: guards.held_back(snapshot.now) }
    }

    /// Whether reads are answered, as far as the store has to do with it.
    fn reads_pass(&self, found: StoreCheck) -> bool {
        found.available || !self.subject.live.serving().routes().iter().any(|route| needs_store(route))
    }

    fn is_draining(&self) -> bool {
        *self.subject.stop.borrow() != Stop::Not
    }

    /// What whoever knows the listener by its name is told.
    fn told(&self, ready: bool, found: StoreCheck, headers: &HeaderMap, uri: &Uri) -> Response {
        let draining = self.is_draining();
        let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        if !self.access.is_known_as(uri, headers) {
            return (status, Json(json!({ "ready": ready }))).into_response();
        }
        let document = json!({
            "ready": ready,
            "reads": !draining && self.reads_pass(found),
            "writes": !draining && takes_writes(found),
            "store": {
                "kind": kind(&self.config().store.kind),
                "available": found.available,
                "writable": found.writable,
            },
            "listeners": self.subject.listeners,
            "draining": draining,
            "start_grace": { "over": found.held_back.is_zero(), "remaining_ms": milliseconds(found.held_back) },
        });
        (status, Json(document)).into_response()
    }
}

/// Whether reads of a route wait for what a lease says.
fn needs_store(route: &Route) -> bool {
    let lease = route.guard.as_ref().and_then(|guard| guard.lease.as_ref());
    route.reads_may_be_leased || lease.is_some_and(|lease| lease.guards.covers(Usage::Read))
}

fn takes_writes(found: StoreCheck) -> bool {
    found.writable && found.held_back.is_zero()
}

/// It should get requests: reads are answered, and it is not about to end.
pub(super) async fn reads(State(admin): AdminState, uri: Uri, headers: HeaderMap) -> AdminAnswer {
    let guards = admin.guards();
    let found = timeout(READS_WAIT, admin.look_at_store(&guards)).await.unwrap_or_default();
    Ok(admin.told(!admin.is_draining() && admin.reads_pass(found), found, &headers, &uri))
}

/// It should get writes: a change of its store lasted just now, none is held back, and it is not about to end.
pub(super) async fn writes(State(admin): AdminState, uri: Uri, headers: HeaderMap) -> AdminAnswer {
    let guards = admin.guards();
    let found = admin.look_at_store(&guards).await;
    Ok(admin.told(!admin.is_draining() && takes_writes(found), found, &headers, &uri))
}

/// The word for a kind of store.
pub(super) fn kind(kind: &StoreKind) -> &'static str {
    match kind {
        StoreKind::Memory => "memory",
        StoreKind::Disk { .. } => "disk",
        StoreKind::Etcd(_) => "etcd",
        StoreKind::Redis(_) => "redis",
    }
}
