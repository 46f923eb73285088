//! Records: what the proxy knows of a resource, and how an operator makes it forget.

use axum::{
    Extension, Json,
    extract::{
        Query, State,
        rejection::{JsonRejection, QueryRejection},
    },
    response::IntoResponse as _,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    AdminAnswer, AdminListener, AdminState,
    answer::AdminProblem,
    doubts, key,
    leases::views,
    milliseconds,
    serve::Caller,
    sweep::{Cursor, sweep},
};
use crate::{
    core::{
        records::record::Snapshot,
        resource::ResourceKey,
        tags::{
            issued_tag::version_tag,
            validators::{Representation, Validators},
        },
    },
    guard::Guard,
    store::Incarnation,
};

/// The number of resources that one request forgets by prefix; the answer carries the cursor for the next request.
const FORGOTTEN_AT_ONCE: usize = 1_000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct One {
    pub(super) key: String,
}

/// Shows what the proxy knows of one resource. A resource that was never written, or long ago, has no record; then the
/// answer shows the values that stand for absence.
pub(super) async fn one(State(admin): AdminState, asked: Result<Query<One>, QueryRejection>) -> AdminAnswer {
    let Query(asked) = asked?;
    let key = key(&asked.key)?;
    let guards = admin.guards();
    let snapshot = guards.look(&key).await?;
    Ok(Json(record(&admin, &key, &snapshot, guards.incarnation())).into_response())
}

/// Returns what the proxy knows of a resource.
pub(super) fn record(admin: &AdminListener, key: &ResourceKey, snapshot: &Snapshot, incarnation: Incarnation) -> Value {
    let record = &snapshot.record;
    let known = snapshot.known().map(|known| match &known.representation {
        Representation::Unknown => json!({ "representation": "unknown" }),
        Representation::Absent => json!({ "representation": "absent" }),
        Representation::Present(validators) => present(validators),
    });
    let deadline = |mark: &crate::core::records::record::Mark| milliseconds(snapshot.now.until(mark.deadline));
    json!({
        "key": key.as_str(),
        "revision": snapshot.revision.0,
        "version": snapshot.version().0,
        "version_tag": version_tag(incarnation.0, snapshot.version(), 0).and_then(|tag| text(&tag.to_header_value())),
        "last_write": snapshot.touched().0,
        "fence": snapshot.fence().0,
        "known": known,
        "write_in_flight": record.claim.as_ref().map(|mark| json!({ "deadline_ms": deadline(mark) })),
        "unclaimed_writes_in_flight": record.unclaimed.len(),
        "doubt": doubts::of(admin, key, snapshot),
        "pending_delete": record.pending_delete.as_ref().map(|delete| {
            json!({ "target": String::from_utf8_lossy(&delete.target) })
        }),
        "leases": views(snapshot, incarnation).collect::<Vec<_>>(),
    })
}

fn present(validators: &Validators) -> Value {
    json!({
        "representation": "present",
        "tag": validators.tag.as_ref().and_then(|tag| text(&tag.to_header_value())),
        "last_modified": validators.modified.map(|modified| modified.date.to_string()),
    })
}

fn text(value: &http::HeaderValue) -> Option<String> {
    value.to_str().ok().map(str::to_owned)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Forget {
    key: Option<String>,
    prefix: Option<String>,
    cursor: Option<String>,
}

/// Forgets what the proxy knows of a resource, or of all resources whose keys begin with a prefix.
pub(super) async fn forget(
    State(admin): AdminState,
    Extension(Caller(caller)): Extension<Caller>,
    request: Result<Json<Forget>, JsonRejection>,
) -> AdminAnswer {
    let Json(request) = request?;
    let guards = admin.guards();
    let (keys, cursor) = match (&request.key, &request.prefix) {
        (Some(text), None) if request.cursor.is_none() => (vec![key(text)?], None),
        (None, Some(prefix)) => {
            let cursor = request.cursor.as_deref().map(Cursor::read).transpose()?;
            if cursor.is_none() {
                guards.forget_absent().await?;
            }
            let of_prefix = |key: &ResourceKey, _: &Snapshot| key.as_str().starts_with(prefix).then(|| key.clone());
            let swept = sweep(&guards, cursor, FORGOTTEN_AT_ONCE, of_prefix).await?;
            (swept.found, swept.cursor)
        }
        _ => return Err(AdminProblem::malformed("name a key, or a prefix and, from the second request on, a cursor")),
    };
    let busy = forget_all(&guards, &keys).await?;
    guards.forget_read_grants();
    let (key, prefix) = (request.key.as_deref(), request.prefix.as_deref());
    tracing::info!(target: "ifmatch::audit", by = %caller, key, prefix, records = keys.len(), "records were forgotten");
    let cursor = cursor.as_ref().map(Cursor::shown);
    Ok(Json(json!({ "forgotten": keys.len(), "busy": busy, "cursor": cursor })).into_response())
}

/// Forgets these resources, and returns the ones that had a write in flight or in doubt.
async fn forget_all(guards: &Guard, keys: &[ResourceKey]) -> Result<Vec<String>, AdminProblem> {
    let mut busy = Vec::new();
    for key in keys {
        if guards.forget(key).await?.was_busy {
            busy.push(key.to_string());
        }
    }
    Ok(busy)
}
