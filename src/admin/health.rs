//! Whether the process lives, and whether it should get requests.

use axum::{
    Json,
    extract::State,
    response::{IntoResponse as _, Response},
};
use http::StatusCode;
use serde_json::{Value, json};

use super::{Answer, Shared, milliseconds};
use crate::{config::StoreKind, core::resource::ResourceKey, server::Stop};

/// It lives, or nobody would answer.
pub(super) async fn alive() -> Json<Value> {
    Json(json!({ "alive": true }))
}

/// It should get requests: its store answers and it is not about to end.
///
/// The store is asked here and now. What the last request found may be old, and a process that gets no requests because
/// its store failed would not find out that it answers again.
pub(super) async fn ready(State(admin): Shared) -> Answer {
    let guards = admin.guards()?;
    // The key of no resource, and never written.
    let record = guards.look(&ResourceKey::from_text("ready?")).await;
    let draining = *admin.subject.stop.borrow() != Stop::Not;
    let ready = record.is_ok() && !draining;
    let held_back = record.as_ref().map(|snapshot| guards.held_back(snapshot.now)).unwrap_or_default();
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let document = json!({
        "ready": ready,
        "store": { "kind": kind(&admin.config().store.kind), "available": record.is_ok() },
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
