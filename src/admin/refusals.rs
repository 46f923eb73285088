//! The last refusals, and why each request was refused.

use std::time::SystemTime;

use axum::{
    Json,
    extract::{
        Path, Query,
        rejection::{PathRejection, QueryRejection},
    },
    response::IntoResponse as _,
};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{AdminAnswer, answer::AdminProblem, key, leases::limit, milliseconds};
use crate::{
    core::{
        cause::{Reason, RequestId, Untagged},
        resource::ResourceKey,
    },
    telemetry::refusal_log::{self, KeptRefusal},
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RefusalFilter {
    key: Option<String>,
    limit: Option<usize>,
}

/// Lists the last refusals, the latest first: of one resource, or of all.
pub(super) async fn list(filter: Result<Query<RefusalFilter>, QueryRejection>) -> AdminAnswer {
    let Query(filter) = filter?;
    let (key, limit) = (filter.key.as_deref().map(key).transpose()?, limit(filter.limit)?);
    let last = refusal_log::get().map(|log| log.last(key.as_ref().map(ResourceKey::as_str), limit));
    let refusals: Vec<Value> =
        last.unwrap_or_default().iter().map(|refusal| view(refusal, SystemTime::now())).collect();
    Ok(Json(json!({ "refusals": refusals })).into_response())
}

/// Shows the refusal of one request.
pub(super) async fn one(id: Result<Path<String>, PathRejection>) -> AdminAnswer {
    let id = id.ok().and_then(|Path(id)| RequestId::parse(&id)).ok_or_else(|| {
        AdminProblem::malformed("the id of a request has 16 hexadecimal digits, as request_id in the access log")
    })?;
    let refusal = refusal_log::get().and_then(|log| log.find(id)).ok_or_else(|| {
        let detail = "this process keeps no refusal with this id: it is too old, or another process made it";
        AdminProblem::new(StatusCode::NOT_FOUND, "refusal-not-present", detail)
    })?;
    Ok(Json(view(&refusal, SystemTime::now())).into_response())
}

/// Returns a refusal as operators see it.
fn view(refusal: &KeptRefusal, now: SystemTime) -> Value {
    let cause = &refusal.cause;
    json!({
        "id": refusal.id.to_string(),
        "at": humantime::format_rfc3339_millis(refusal.at).to_string(),
        "age_ms": milliseconds(now.duration_since(refusal.at).unwrap_or_default()),
        "method": refusal.method,
        "path": refusal.path,
        "route": refusal.route,
        "policy": refusal.policy,
        "key": refusal.key,
        "trace_id": refusal.trace_id,
        "status": refusal.code.status().as_u16(),
        "code": refusal.code.as_str(),
        "reason": cause.reason.map(Reason::word),
        "detail": refusal.detail,
        "in_doubt": refusal.in_doubt,
        "retry_after_ms": refusal.retry_after.map(milliseconds),
        "sent_tag": cause.sent_tag,
        "current_tag": cause.current_tag,
        "last_change": cause.last_change.as_ref().map(|change| {
            json!({ "age_ms": milliseconds(change.age), "trace_id": change.trace_id })
        }),
        "probe_status": cause.probe_status,
        "lease": cause.lease.as_ref().map(|lease| {
            json!({ "holder": lease.holder, "remaining_ms": lease.remaining.map(milliseconds) })
        }),
        "untagged": cause.untagged.map(Untagged::word),
    })
}
