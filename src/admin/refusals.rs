//! The last refusals, and why each request was refused.

use std::time::SystemTime;

use axum::{
    Json,
    extract::{
        Path, Query, State,
        rejection::{PathRejection, QueryRejection},
    },
    response::IntoResponse as _,
};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    AdminAnswer, AdminListener, AdminState,
    answer::{AdminProblem, joined},
    clients, doubts, key,
    leases::limit,
    milliseconds,
};
use crate::{
    core::{
        cause::{Reason, RequestId, Setting, Untagged},
        resource::ResourceKey,
    },
    telemetry::refusal_log::{self, KeptRefusal, RefusalLog},
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RefusalFilter {
    key: Option<String>,
    limit: Option<usize>,
}

/// Lists the last refusals, the latest first: of one resource, or of all.
pub(super) async fn list(
    State(admin): AdminState,
    filter: Result<Query<RefusalFilter>, QueryRejection>,
) -> AdminAnswer {
    let Query(filter) = filter?;
    let (key, limit) = (filter.key.as_deref().map(key).transpose()?, limit(filter.limit)?);
    Ok(Json(last(&admin, key.as_ref(), limit)).into_response())
}

/// Returns at most `limit` of the last refusals, the latest first.
pub(super) fn last(admin: &AdminListener, key: Option<&ResourceKey>, limit: usize) -> Value {
    let now = SystemTime::now();
    let last = refusal_log::get().map(|log| log.last(key.map(ResourceKey::as_str), limit)).unwrap_or_default();
    let refusals: Vec<_> = last.iter().map(|refusal| view(admin, refusal, now)).collect();
    json!({ "refusals": refusals })
}

/// Returns how often requests of each route were refused with each code, among the refusals that are kept.
pub(super) fn groups() -> Value {
    let groups = refusal_log::get().map(RefusalLog::groups).unwrap_or_default();
    let groups = groups.iter().map(|group| {
        json!({
            "code": group.code.as_str(),
            "status": group.code.status().as_u16(),
            "route": group.route,
            "count": group.count,
            "last_at": humantime::format_rfc3339_millis(group.last).to_string(),
        })
    });
    json!({ "groups": groups.collect::<Vec<_>>() })
}

/// Shows the refusal of one request.
pub(super) async fn one(State(admin): AdminState, id: Result<Path<String>, PathRejection>) -> AdminAnswer {
    let id = id.ok().and_then(|Path(id)| RequestId::parse(&id)).ok_or_else(|| {
        AdminProblem::malformed("the id of a request has 16 hexadecimal digits, as request_id in the access log")
    })?;
    let refusal = refusal_log::get().and_then(|log| log.find(id)).ok_or_else(|| {
        let detail = "this process keeps no refusal with this id: it is too old, or another process made it";
        AdminProblem::new(StatusCode::NOT_FOUND, "refusal-not-present", detail)
    })?;
    Ok(Json(view(&admin, &refusal, SystemTime::now())).into_response())
}

/// Returns a refusal as operators see it.
fn view(admin: &AdminListener, refusal: &KeptRefusal, now: SystemTime) -> Value {
    let cause = &refusal.cause;
    let document = json!({
        "id": refusal.id.to_string(),
        "at": humantime::format_rfc3339_millis(refusal.at).to_string(),
        "age_ms": milliseconds(now.duration_since(refusal.at).unwrap_or_default()),
        "method": refusal.method,
        "path": refusal.path,
        "route": refusal.route,
        "policy": refusal.policy,
        "key": refusal.key.as_deref(),
        "trace_id": refusal.trace_id(),
        "status": refusal.code.status().as_u16(),
        "code": refusal.code.as_str(),
        "reason": cause.reason.map(Reason::word),
        "detail": refusal.detail,
        "in_doubt": refusal.in_doubt,
        "retry_after_ms": refusal.retry_after.map(milliseconds),
        "sent_tag": cause.sent_tag,
        "current_tag": cause.current_tag,
        "last_change": cause.last_change.as_ref().map(|change| {
            json!({ "age_ms": milliseconds(change.age), "trace_id": change.trace_id, "is_unread": change.is_unread })
        }),
        "probe_status": cause.probe_status,
        "lease": cause.lease.as_ref().map(|lease| {
            json!({ "holder": lease.holder, "remaining_ms": lease.remaining.map(milliseconds) })
        }),
        "untagged": cause.untagged.map(Untagged::word),
        "saved_by": cause.saved_by.map(Setting::word),
        "doubt": doubts::behind(admin, refusal),
    });
    joined(document, clients::view(refusal.client, admin.guards().incarnation()))
}
