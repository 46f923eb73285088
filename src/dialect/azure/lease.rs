//! Lease operations: reading requests, and answering them after success.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::{
    LEASE_ACTION, LEASE_BREAK_PERIOD, LEASE_DURATION, LEASE_ID, LEASE_TIME, LeaseVerb, PROPOSED_LEASE_ID,
    call::id,
    fields::single,
    refusals::{bad_field, missing_field, refuse, unknown_field},
};
use crate::{
    core::{
        lease::{Acquire, Action, Denied, Done, LeaseDuration, LeaseId, LeaseMode, rounded_up},
        policy::LeaseRules,
        refusal::{Code, Refusal},
    },
    dialect::native::id_value,
};

/// The longest time that a break can leave to the holder.
const BREAK_PERIOD_MAX: Duration = Duration::from_secs(60);

/// Reads the action of a lease operation. `fresh` draws the id of a lease for which the client proposes none.
///
/// # Errors
///
/// The request cannot be read, or the route does not allow the action.
pub fn action(
    headers: &HeaderMap,
    rules: &LeaseRules,
    fresh: impl FnOnce() -> Result<LeaseId, Refusal>,
) -> Result<Action, Refusal> {
    let word = required(headers, &LEASE_ACTION)?;
    let verb = LeaseVerb::of(word.as_bytes())
        .ok_or_else(|| bad_field(LEASE_ACTION.as_str(), "acquire, renew, change, release or break"))?;
    takes_only_its_fields(verb, headers)?;
    Ok(match verb {
        LeaseVerb::Acquire => {
            let duration = duration(required(headers, &LEASE_DURATION)?, rules)?;
            let proposed = id(headers, &PROPOSED_LEASE_ID)?;
            Action::Acquire(Acquire {
                proposed,
                fresh: fresh()?,
                mode: LeaseMode::Exclusive,
                duration,
                holder: None,
                note: None,
                keeper: None,
                takes_over: false,
            })
        }
        LeaseVerb::Renew => Action::Renew { id: required_id(headers, &LEASE_ID)?, duration: None },
        LeaseVerb::Change => {
            let proposed = required_id(headers, &PROPOSED_LEASE_ID)?;
            Action::Change { id: required_id(headers, &LEASE_ID)?, proposed }
        }
        LeaseVerb::Release => Action::Release { id: required_id(headers, &LEASE_ID)? },
        LeaseVerb::Break if !rules.client_break => {
            let detail = "This proxy does not let clients break a lease (lease.client_break).";
            return Err(Refusal::new(Code::MethodNotAllowed, detail).called(403, "AuthorizationPermissionMismatch"));
        }
        LeaseVerb::Break => Action::Break { period: single(headers, &LEASE_BREAK_PERIOD)?.map(period).transpose()? },
    })
}

/// Checks that only an acquisition has a duration, and only a break has a period.
fn takes_only_its_fields(verb: LeaseVerb, headers: &HeaderMap) -> Result<(), Refusal> {
    let strange = [(LeaseVerb::Acquire, &LEASE_DURATION), (LeaseVerb::Break, &LEASE_BREAK_PERIOD)];
    match strange.into_iter().find(|(owner, name)| *owner != verb && headers.contains_key(*name)) {
        Some((_, name)) => Err(unknown_field(name.as_str())),
        None => Ok(()),
    }
}

fn duration(value: &HeaderValue, rules: &LeaseRules) -> Result<LeaseDuration, Refusal> {
    let duration = match value.as_bytes() {
        b"-1" => Some(LeaseDuration::Infinite),
        _ => seconds(value).map(LeaseDuration::Fixed),
    };
    let (min, max) = (rules.min.as_secs(), rules.max.as_secs());
    let infinite = if rules.infinite { ", or -1" } else { "" };
    let expected = || format!("a number of seconds from {min} to {max}{infinite}");
    duration
        .filter(|duration| duration.is_allowed(rules))
        .ok_or_else(|| bad_field(LEASE_DURATION.as_str(), &expected()))
}

fn period(value: &HeaderValue) -> Result<Duration, Refusal> {
    seconds(value)
        .filter(|period| *period <= BREAK_PERIOD_MAX)
        .ok_or_else(|| bad_field(LEASE_BREAK_PERIOD.as_str(), "a number of seconds from 0 to 60"))
}

fn seconds(value: &HeaderValue) -> Option<Duration> {
    let digits = value.to_str().ok().filter(|text| text.bytes().all(|octet| octet.is_ascii_digit()))?;
    digits.parse().ok().map(Duration::from_secs)
}

fn required<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<&'a HeaderValue, Refusal> {
    single(headers, name)?.ok_or_else(|| missing_field(name.as_str()))
}

fn required_id(headers: &HeaderMap, name: &HeaderName) -> Result<LeaseId, Refusal> {
    id(headers, name)?.ok_or_else(|| missing_field(name.as_str()))
}

/// Returns the status and field that report the success of a lease operation. `held` is the id of a renewed lease.
///
/// # Errors
///
/// In Azure a repeated release fails, since the lease no longer exists.
pub fn done(done: Done, held: Option<LeaseId>) -> Result<(StatusCode, Option<(HeaderName, HeaderValue)>), Refusal> {
    match done {
        Done::Acquired { id, .. } => Ok((StatusCode::CREATED, Some((LEASE_ID, id_value(id))))),
        Done::Renewed { .. } => Ok((StatusCode::OK, held.map(|id| (LEASE_ID, id_value(id))))),
        Done::Changed { id } => Ok((StatusCode::OK, Some((LEASE_ID, id_value(id))))),
        Done::Released | Done::DeleteWithdrawn => Ok((StatusCode::OK, None)),
        Done::AlreadyReleased => Err(refuse(&Denied::NotPresent)),
        Done::Broken { remaining } => {
            Ok((StatusCode::ACCEPTED, Some((LEASE_TIME, HeaderValue::from(rounded_up(remaining))))))
        }
    }
}

#[cfg(test)]
#[path = "lease_tests.rs"]
mod tests;
