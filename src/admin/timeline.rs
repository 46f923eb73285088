//! The recent events of one resource that this process knows: writes, refusals and leases.

use axum::{
    Json,
    extract::{Query, State, rejection::QueryRejection},
    response::IntoResponse as _,
};
use serde_json::{Value, json};

use super::{
    AdminAnswer, AdminListener, AdminState,
    answer::{AdminProblem, joined},
    clients, key, records, refusals,
};
use crate::{
    core::{lease::Lease, resource::ResourceKey, time::StoreTime},
    store::Incarnation,
    telemetry::{Decision, ended_writes::EndedWrite},
};

/// The number of writes, and of refusals, in one timeline.
const EVENTS_MAX: usize = 50;

/// Shows the timeline of one resource.
pub(super) async fn one(State(admin): AdminState, asked: Result<Query<records::One>, QueryRejection>) -> AdminAnswer {
    let Query(asked) = asked?;
    let (document, _) = timeline(&admin, &key(&asked.key)?).await?;
    Ok(Json(document).into_response())
}

/// Returns the timeline of a resource, and the moments at which its leases end.
pub(super) async fn timeline(
    admin: &AdminListener,
    key: &ResourceKey,
) -> Result<(Value, Vec<Option<StoreTime>>), AdminProblem> {
    let guards = admin.guards();
    let snapshot = guards.look(key).await?;
    let incarnation = guards.incarnation();
    let writes = admin.subject.activity.writes(key, EVENTS_MAX);
    let document = json!({
        "key": key.as_str(),
        "record": records::record(admin, key, &snapshot, incarnation),
        "writes": writes.iter().map(|write| view(write, incarnation)).collect::<Vec<_>>(),
    });
    let document = joined(document, refusals::last(admin, Some(key), EVENTS_MAX));
    Ok((document, snapshot.leases().map(Lease::end).collect()))
}

fn view(write: &EndedWrite, incarnation: Incarnation) -> Value {
    let document = json!({
        "at": humantime::format_rfc3339_millis(write.at).to_string(),
        "method": write.method.as_str(),
        "status": write.status,
        "verdict": write.verdict.map(Decision::word),
        "version": write.version,
    });
    joined(document, clients::view(write.client, incarnation))
}
