//! Leases: which client holds what, and how an operator takes it away.

use std::time::Duration;

use axum::{
    Extension, Json,
    extract::{
        Query, State,
        rejection::{JsonRejection, QueryRejection},
    },
    response::IntoResponse as _,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    AdminAnswer, AdminListener, AdminState,
    answer::AdminProblem,
    clients::pseudonym,
    key, milliseconds,
    serve::Caller,
    sweep::{Cursor, Swept, sweep},
};
use crate::{
    core::{
        lease::{HolderLabel, Lease, LeaseDuration, LeaseState},
        records::record::{Availability, Revision, Snapshot},
        resource::ResourceKey,
        time::StoreTime,
    },
    guard::Broken,
    store::Incarnation,
};

/// The default number of leases in one answer.
const LIMIT: usize = 100;
/// The largest number of leases in one answer.
const LIMIT_MAX: usize = 1_000;
/// The longest time that a break can leave the holder to finish.
const PERIOD_MAX: Duration = Duration::from_secs(24 * 3_600);

/// A lease as operators see it. Only its holder sees its id.
#[derive(Debug, Serialize)]
pub(super) struct LeaseView {
    pub(super) state: &'static str,
    /// The mode: `shared` if other clients may hold shared leases of the resource.
    pub(super) mode: &'static str,
    /// The label that the holder gave itself.
    pub(super) holder: Option<String>,
    /// A pseudonym of the client, equal for all of its leases.
    pub(super) principal: Option<String>,
    /// The fence, which names the lease among those of its resource.
    pub(super) fence: u64,
    /// The time since the lease was granted.
    pub(super) age_ms: u64,
    /// The time until the lease ends unless it is renewed; `None` for an infinite lease.
    pub(super) remaining_ms: Option<u64>,
    /// The duration for which the lease was granted; `None` for an infinite lease.
    pub(super) duration_ms: Option<u64>,
    /// The moment at which the lease ends or ended, to tell a renewal from the passing of time.
    #[serde(skip)]
    pub(super) ends_at: Option<StoreTime>,
}

/// A lease and its resource.
#[derive(Debug, Serialize)]
pub(super) struct LeaseRow {
    key: String,
    #[serde(flatten)]
    pub(super) lease: LeaseView,
    write_in_flight: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Filter {
    prefix: Option<String>,
    state: Option<String>,
    holder: Option<String>,
    cursor: Option<String>,
    limit: Option<usize>,
}

/// The states of a lease that is held or remembered.
const STATES: [LeaseState; 4] = [LeaseState::Leased, LeaseState::Breaking, LeaseState::Broken, LeaseState::Expired];

/// The filter of the wanted leases.
pub(super) struct LeaseFilter {
    /// The beginning of their keys.
    pub(super) prefix: String,
    pub(super) states: Vec<LeaseState>,
    /// A part of the label of their holder.
    pub(super) holder: Option<String>,
}

impl LeaseFilter {
    fn wants(&self, lease: &LeaseView) -> bool {
        self.holder.as_ref().is_none_or(|part| lease.holder.as_ref().is_some_and(|holder| holder.contains(part)))
    }
}

/// Lists the leases that match the filter.
pub(super) async fn list(State(admin): AdminState, asked: Result<Query<Filter>, QueryRejection>) -> AdminAnswer {
    let Query(asked) = asked?;
    let states = states(asked.state.as_deref())?;
    let filter = LeaseFilter { prefix: asked.prefix.unwrap_or_default(), states, holder: asked.holder };
    let cursor = asked.cursor.as_deref().map(Cursor::read).transpose()?;
    let swept = sweep_leases(&admin, &filter, cursor, limit(asked.limit)?).await?;
    let cursor = swept.cursor.as_ref().map(Cursor::shown);
    Ok(Json(json!({ "leases": swept.found, "cursor": cursor, "looked_at": swept.looked_at })).into_response())
}

/// Looks for leases in one part of the records.
pub(super) async fn sweep_leases(
    admin: &AdminListener,
    filter: &LeaseFilter,
    from: Option<Cursor>,
    limit: usize,
) -> Result<Swept<LeaseRow>, AdminProblem> {
    let guards = admin.guards();
    let incarnation = guards.incarnation();
    let rows = |key: &ResourceKey, snapshot: &Snapshot| {
        let is_wanted = key.as_str().starts_with(&filter.prefix);
        let write_in_flight = matches!(snapshot.availability(), Availability::Busy { .. } | Availability::Orphaned);
        let leases = snapshot.leases().filter(|lease| is_wanted && filter.states.contains(&lease.state(snapshot.now)));
        let views = leases.filter_map(|lease| view(lease, snapshot, incarnation)).filter(|lease| filter.wants(lease));
        views.map(|lease| LeaseRow { key: key.to_string(), lease, write_in_flight }).collect::<Vec<_>>()
    };
    sweep(&guards, from, limit, rows).await
}

/// Returns the states in a list of words, or all states if there is no list.
fn states(words: Option<&str>) -> Result<Vec<LeaseState>, AdminProblem> {
    let Some(words) = words.filter(|words| !words.is_empty()) else {
        return Ok(STATES.to_vec());
    };
    let state = |word: &str| STATES.into_iter().find(|state| state.word() == word);
    let states = words.split(',').map(|word| state(word.trim())).collect::<Option<_>>();
    states.ok_or_else(|| {
        AdminProblem::malformed("state is a comma-separated list of leased, breaking, broken and expired")
    })
}

pub(super) fn limit(asked: Option<usize>) -> Result<usize, AdminProblem> {
    let limit = asked.unwrap_or(LIMIT);
    let is_fit = (1..=LIMIT_MAX).contains(&limit);
    is_fit.then_some(limit).ok_or_else(|| AdminProblem::malformed(format!("limit is from 1 to {LIMIT_MAX}")))
}

/// Returns the leases of a record that are held or remembered.
pub(super) fn views(snapshot: &Snapshot, incarnation: Incarnation) -> impl Iterator<Item = LeaseView> {
    snapshot.leases().filter_map(move |lease| view(lease, snapshot, incarnation))
}

fn view(lease: &Lease, snapshot: &Snapshot, incarnation: Incarnation) -> Option<LeaseView> {
    let state = lease.state(snapshot.now);
    STATES.contains(&state).then(|| LeaseView {
        state: state.word(),
        mode: lease.mode.word(),
        holder: lease.holder.as_ref().map(HolderLabel::as_str).map(str::to_owned),
        principal: lease.principal.map(|principal| pseudonym(principal, incarnation)),
        fence: lease.fence.resolve(snapshot.revision).0,
        age_ms: milliseconds(lease.granted.until(snapshot.now)),
        remaining_ms: lease.remaining(snapshot.now).map(milliseconds),
        duration_ms: match lease.duration {
            LeaseDuration::Fixed(duration) => Some(milliseconds(duration)),
            LeaseDuration::Infinite => None,
        },
        ends_at: lease.end(),
    })
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Break {
    key: String,
    /// The fence of one lease; without it, all leases of the resource are broken.
    fence: Option<u64>,
    period: Option<String>,
}

/// Breaks the leases of a resource, or one of them, and logs who broke it.
pub(super) async fn break_them(
    State(admin): AdminState,
    Extension(Caller(caller)): Extension<Caller>,
    request: Result<Json<Break>, JsonRejection>,
) -> AdminAnswer {
    let Json(request) = request?;
    let key = key(&request.key)?;
    let period = period(request.period.as_deref())?;
    let guards = admin.guards();
    let Broken { snapshot, was_broken } = guards.break_leases(&key, period, request.fence.map(Revision)).await?;
    let is_meant = |lease: &LeaseView| request.fence.is_none_or(|fence| lease.fence == fence);
    let leases = views(&snapshot, guards.incarnation()).filter(is_meant).collect::<Vec<_>>();
    for lease in leases.iter().filter(|_| !was_broken) {
        let (holder, fence) = (lease.holder.as_deref(), lease.fence);
        tracing::info!(target: "ifmatch::audit", by = %caller, key = %key, holder, fence, ?period, "a lease was broken");
    }
    Ok(Json(json!({ "key": key.as_str(), "leases": leases, "was_broken": was_broken })).into_response())
}

fn period(text: Option<&str>) -> Result<Duration, AdminProblem> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(Duration::ZERO) };
    let period = humantime::parse_duration(text).ok().filter(|period| *period <= PERIOD_MAX);
    period.ok_or_else(|| AdminProblem::malformed("period is a duration of at most a day: \"0s\", \"30s\", \"5m\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_named_by_words() {
        assert_eq!(states(None).map(|states| states.len()).ok(), Some(4));
        assert_eq!(states(Some("leased, broken")).ok(), Some(vec![LeaseState::Leased, LeaseState::Broken]));
        assert!(states(Some("leased,available")).is_err());
    }

    #[test]
    fn a_period_has_a_unit_and_an_end() {
        assert_eq!(period(None).ok(), Some(Duration::ZERO));
        assert_eq!(period(Some("1m 30s")).ok(), Some(Duration::from_secs(90)));
        for text in ["30", "soon", "25h", "-1s"] {
            assert!(period(Some(text)).is_err(), "{text}");
        }
    }
}
