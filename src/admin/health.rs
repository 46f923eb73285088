//! Whether the process lives, and whether it should get requests.

use std::time::{Duration, Instant};

use axum::{
    Json,
    extract::State,
    response::{IntoResponse as _, Response},
};
use http::StatusCode;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::{Answer, Shared, milliseconds};
use crate::{config::StoreKind, core::resource::ResourceKey, guard::Guards, server::Stop};

/// It lives, or nobody would answer.
pub(super) async fn alive() -> Json<Value> {
    Json(json!({ "alive": true }))
}

/// How long what was found out about writes counts: whoever asks, and however many, a store is written to for it no more
/// often.
const FOUND_OUT: Duration = Duration::from_secs(1);

/// Whether a change would last in the store, as it was found out last.
#[derive(Debug, Default)]
pub(super) struct Durability(Mutex<Option<(Instant, bool)>>);

impl Durability {
    /// Finds it out, unless that was done just now. Those who ask meanwhile wait for the same answer.
    async fn holds(&self, guards: &Guards) -> bool {
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

/// It should get requests: its store answers, a change of it lasts, and it is not about to end.
///
/// The store is asked here and now. What the last request found may be old, and a process that gets no requests because
/// its store failed would not find out that it answers again.
pub(super) async fn ready(State(admin): Shared) -> Answer {
    let guards = admin.guards()?;
    // The key of no resource, and never written.
    let record = guards.look(&ResourceKey::from_text("ready?")).await;
    let draining = *admin.subject.stop.borrow() != Stop::Not;
    let writable = record.is_ok() && admin.durability.holds(&guards).await;
    let ready = writable && !draining;
    let held_back = record.as_ref().map(|snapshot| guards.held_back(snapshot.now)).unwrap_or_default();
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let document = json!({
        "ready": ready,
        "store": { "kind": kind(&admin.config().store.kind), "available": record.is_ok(), "writable": writable },
        "listeners": admin.subject.listeners,
        "draining": draining,
        // Reads are served meanwhile, and writes are told when to come back.
        "start_grace": { "over": held_back.is_zero(), "remaining_ms": milliseconds(held_back) },
    });
    Ok::<Response, _>((status, Json(document)).into_response())
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
