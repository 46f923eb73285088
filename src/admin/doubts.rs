//! Writes in doubt: which resources they hold, and the requests that left them.

use std::{
    ops::RangeInclusive,
    time::{Duration, SystemTime},
};

use axum::{
    Json,
    extract::{Query, State, rejection::QueryRejection},
    response::IntoResponse as _,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    AdminAnswer, AdminListener, AdminState,
    answer::{AdminProblem, joined},
    leases::limit,
    milliseconds,
    sweep::{Cursor, Swept, sweep},
};
use crate::{
    core::{cause::Reason, records::record::Snapshot, resource::ResourceKey},
    telemetry::refusal_log::{self, KeptRefusal},
};

/// The most by which the clock of the store and that of this process may run apart within a doubt.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(1);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DoubtPage {
    cursor: Option<String>,
    limit: Option<usize>,
}

/// Lists the resources that have a write in doubt.
pub(super) async fn list(State(admin): AdminState, page: Result<Query<DoubtPage>, QueryRejection>) -> AdminAnswer {
    let Query(page) = page?;
    let cursor = page.cursor.as_deref().map(Cursor::read).transpose()?;
    let swept = sweep_doubts(&admin, cursor, limit(page.limit)?).await?;
    let cursor = swept.cursor.as_ref().map(Cursor::shown);
    Ok(Json(json!({ "doubts": swept.found, "cursor": cursor, "looked_at": swept.looked_at })).into_response())
}

/// Looks for doubts in one part of the records.
pub(super) async fn sweep_doubts(
    admin: &AdminListener,
    from: Option<Cursor>,
    limit: usize,
) -> Result<Swept<Value>, AdminProblem> {
    let row = |key: &ResourceKey, snapshot: &Snapshot| {
        Some(joined(json!({ "key": key.as_str() }), of(admin, key, snapshot)?))
    };
    sweep(&admin.guards(), from, limit, row).await
}

/// Shows the doubt that holds a resource: how long it lasts, how long ago it began, and the request that left it.
pub(super) fn of(admin: &AdminListener, key: &ResourceKey, snapshot: &Snapshot) -> Option<Value> {
    let doubt = snapshot.record.doubt.filter(|doubt| snapshot.now < doubt.until)?;
    let (remaining, now) = (snapshot.now.until(doubt.until), SystemTime::now());
    let since = age(admin, key.as_str(), remaining);
    let request = since.and_then(|since| refusal_log::get()?.last_doubted(key.as_str(), began(now, since)));
    let request = request.as_ref();
    Some(json!({
        "since_ms": since.map(milliseconds),
        "remaining_ms": milliseconds(remaining),
        "request_id": request.map(|request| request.id.to_string()),
        "method": request.map(|request| &request.method),
        "route": request.and_then(|request| request.route.as_deref()),
    }))
}

/// Shows the write that held the resource of a refused request because its outcome was not known.
pub(super) fn behind(admin: &AdminListener, refused: &KeptRefusal) -> Option<Value> {
    let (key, remaining) = (refused.key.as_deref()?, refused.retry_after?);
    if refused.cause.reason != Some(Reason::WriteInDoubt) {
        return None;
    }
    let since = age(admin, key, remaining)?;
    let write = refusal_log::get()?.last_doubted(key, began(refused.at, since))?;
    Some(json!({
        "request_id": write.id.to_string(),
        "method": write.method,
        "age_ms": milliseconds(refused.at.duration_since(write.at).unwrap_or_default()),
    }))
}

/// Returns the age of a doubt with this remaining time. It is computed from the current configuration.
fn age(admin: &AdminListener, key: &str, remaining: Duration) -> Option<Duration> {
    let config = admin.config();
    let mut upstreams = config.routes.iter().map(|route| &route.upstream);
    let is_its = |identity: &str| key.strip_prefix(identity).is_some_and(|rest| rest.starts_with(':'));
    let window = upstreams.find(|upstream| is_its(&upstream.identity))?.late_write_window;
    Some(window.saturating_sub(remaining))
}

/// When the client of the write was answered, if its doubt is this old at `now`. The id of its request is not in the store.
fn began(now: SystemTime, age: Duration) -> RangeInclusive<SystemTime> {
    now - age - CLOCK_TOLERANCE..=now
}
