//! The native dialect: the lease of `/docs/42` is the resource `/.leases/docs/42` (DESIGN, section 8).
//!
//! | request | does | success |
//! |---|---|---|
//! | `POST` | acquires | 201 |
//! | `PUT` with `Lease-Id` | renews | 200 |
//! | `PATCH` with `Lease-Id`, `Proposed-Lease-Id` | changes the id | 200 |
//! | `DELETE` with `Lease-Id` | releases | 204 |
//! | `DELETE` with `Lease-Break-Period` | breaks | 202 |
//! | `GET` | shows | 200 |

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use serde::Serialize;

use super::Operation;
use crate::core::{
    lease::{Acquire, Action, Denied, Done, HolderLabel, LeaseDuration, LeaseId, LeaseState, UseDenied},
    policy::LeaseRules,
    record::Snapshot,
    refusal::{Code, Refusal},
};

/// The id of a lease: proves it on every request that uses it.
pub const LEASE_ID: HeaderName = HeaderName::from_static("lease-id");
/// How long a lease is wanted for: seconds, or `infinite`.
pub const LEASE_DURATION: HeaderName = HeaderName::from_static("lease-duration");
/// The number that grows with every grant.
pub const FENCING_TOKEN: HeaderName = HeaderName::from_static("fencing-token");
const LEASE_HOLDER: HeaderName = HeaderName::from_static("lease-holder");
const LEASE_TIME: HeaderName = HeaderName::from_static("lease-time");
const LEASE_BREAK_PERIOD: HeaderName = HeaderName::from_static("lease-break-period");
const PROPOSED_LEASE_ID: HeaderName = HeaderName::from_static("proposed-lease-id");
const PREFER: HeaderName = HeaderName::from_static("prefer");
const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");

/// When to come back where a lease without an end is held.
const RETRY_INFINITE: Duration = Duration::from_secs(60);

/// A successful operation as a response.
#[derive(Debug)]
pub struct Response {
    /// Its status.
    pub status: StatusCode,
    /// Its fields.
    pub fields: HeaderMap,
    /// Its body: JSON, on `GET`.
    pub body: Option<String>,
}

/// Reads a lease operation. `fresh` is the id of a lease whose client chooses none.
///
/// # Errors
///
/// The request cannot be read, or asks for what the route does not allow; the refusal says what to send.
pub fn read(method: &Method, headers: &HeaderMap, rules: &LeaseRules, fresh: LeaseId) -> Result<Operation, Refusal> {
    let action = match *method {
        Method::GET | Method::HEAD => return Ok(Operation::Show),
        Method::POST => Action::Acquire(acquire(headers, rules, fresh)?),
        Method::PUT => Action::Renew { id: required_id(headers, &LEASE_ID)? },
        Method::PATCH => {
            let proposed = required_id(headers, &PROPOSED_LEASE_ID)?;
            Action::Change { id: required_id(headers, &LEASE_ID)?, proposed: random(proposed)? }
        }
        Method::DELETE => end(headers, rules)?,
        _ => return Err(Refusal::new(Code::MethodNotAllowed, "a lease takes GET, POST, PUT, PATCH and DELETE")),
    };
    let wait = wait(headers).filter(|_| *method == Method::POST).map(|wait| wait.min(rules.max_wait));
    Ok(Operation::Step { action, wait })
}

/// What a GET asks for that is to take the lease of what it reads (`lease.acquire_on_read`); `None` if it does not.
///
/// # Errors
///
/// As [`read`].
pub fn read_on_get(headers: &HeaderMap, rules: &LeaseRules, fresh: LeaseId) -> Result<Option<Acquire>, Refusal> {
    let asks = rules.acquire_on_read && headers.contains_key(&LEASE_DURATION) && !headers.contains_key(&LEASE_ID);
    asks.then(|| acquire(headers, rules, fresh)).transpose()
}

/// The id that a request presents.
///
/// # Errors
///
/// The field is there and holds no id, or several.
pub fn presented_id(headers: &HeaderMap) -> Result<Option<LeaseId>, Refusal> {
    id(headers, &LEASE_ID)
}

fn acquire(headers: &HeaderMap, rules: &LeaseRules, fresh: LeaseId) -> Result<Acquire, Refusal> {
    let proposed = id(headers, &LEASE_ID)?.map(random).transpose()?;
    let duration = match single(headers, &LEASE_DURATION)? {
        None => LeaseDuration::Fixed(rules.default),
        Some(text) if text.eq_ignore_ascii_case("infinite") => LeaseDuration::Infinite,
        Some(text) => LeaseDuration::Fixed(seconds(&LEASE_DURATION, text)?),
    };
    if !duration.is_allowed(rules) {
        let infinite = if rules.infinite { ", or infinite" } else { "" };
        let (min, max) = (rules.min.as_secs_f64(), rules.max.as_secs_f64());
        return Err(malformed(format!("Lease-Duration is a number of seconds from {min} to {max}{infinite}")));
    }
    let holder = single(headers, &LEASE_HOLDER)?
        .map(|label| HolderLabel::parse(label.as_bytes()).map_err(|error| malformed(format!("Lease-Holder: {error}"))))
        .transpose()?;
    Ok(Acquire { proposed, fresh, duration, holder })
}

fn end(headers: &HeaderMap, rules: &LeaseRules) -> Result<Action, Refusal> {
    if let Some(id) = id(headers, &LEASE_ID)? {
        return Ok(Action::Release { id });
    }
    match single(headers, &LEASE_BREAK_PERIOD)? {
        Some(_) if !rules.client_break => {
            Err(Refusal::new(Code::MethodNotAllowed, "this route does not let clients break a lease; wait for its end"))
        }
        Some(text) => Ok(Action::Break { period: Some(seconds(&LEASE_BREAK_PERIOD, text)?) }),
        None => Err(malformed("send the Lease-Id of the lease to release it".to_owned())),
    }
}

/// How long the client would wait (RFC 7240 section 4.3); what cannot be read is no preference.
pub fn wait(headers: &HeaderMap) -> Option<Duration> {
    let lines = headers.get_all(&PREFER).iter().filter_map(|line| line.to_str().ok());
    let mut preferences = lines.flat_map(|line| line.split(','));
    preferences.find_map(|preference| {
        let (name, value) = preference.split(';').next()?.split_once('=')?;
        let is_wait = name.trim().eq_ignore_ascii_case("wait");
        is_wait.then(|| value.trim().trim_matches('"').parse().ok().map(Duration::from_secs)).flatten()
    })
}

fn id(headers: &HeaderMap, name: &HeaderName) -> Result<Option<LeaseId>, Refusal> {
    let parse =
        |text: &str| LeaseId::parse(text.as_bytes()).map_err(|error| malformed(format!("{}: {error}", title(name))));
    single(headers, name)?.map(parse).transpose()
}

fn required_id(headers: &HeaderMap, name: &HeaderName) -> Result<LeaseId, Refusal> {
    id(headers, name)?.ok_or_else(|| malformed(format!("send {}", title(name))))
}

/// An id that a client has chosen must be as hard to guess as one of ours.
fn random(id: LeaseId) -> Result<LeaseId, Refusal> {
    let message = || malformed("a lease id is a UUID of version 4: random, so that nobody guesses it".to_owned());
    id.is_random().then_some(id).ok_or_else(message)
}

fn seconds(name: &HeaderName, text: &str) -> Result<Duration, Refusal> {
    let number = text.parse().map(Duration::from_secs);
    number.map_err(|_error| malformed(format!("{} is a whole number of seconds", title(name))))
}

fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Refusal> {
    let mut lines = headers.get_all(name).iter();
    match (lines.next(), lines.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value
            .to_str()
            .map(|text| Some(text.trim()))
            .map_err(|_error| malformed(format!("{} is visible ASCII", title(name)))),
        (Some(_), Some(_)) => Err(malformed(format!("send {} once", title(name)))),
    }
}

/// A field's name as it is usually written.
fn title(name: &HeaderName) -> String {
    let capital =
        |word: &str| word.get(..1).unwrap_or_default().to_ascii_uppercase() + word.get(1..).unwrap_or_default();
    name.as_str().split('-').map(capital).collect::<Vec<_>>().join("-")
}

fn malformed(detail: String) -> Refusal {
    Refusal::new(Code::MalformedLeaseHeader, detail)
}

/// The response to an operation that was done. `snapshot` is the record with it.
pub fn done(done: Done, snapshot: &Snapshot, waited: bool) -> Response {
    let mut fields = HeaderMap::new();
    fields.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let status = match done {
        Done::Acquired { id, duration, .. } => {
            fields.extend(grant_fields(id, duration, snapshot));
            StatusCode::CREATED
        }
        Done::Renewed { duration } => {
            fields.insert(LEASE_DURATION, duration_value(duration));
            fields.insert(FENCING_TOKEN, HeaderValue::from(snapshot.fence().0));
            StatusCode::OK
        }
        Done::Changed { id } => {
            fields.insert(LEASE_ID, id_value(id));
            StatusCode::OK
        }
        Done::Released | Done::AlreadyReleased => StatusCode::NO_CONTENT,
        Done::Broken { remaining } => {
            fields.insert(LEASE_TIME, HeaderValue::from(rounded_up(remaining)));
            StatusCode::ACCEPTED
        }
    };
    if waited {
        fields.insert(PREFERENCE_APPLIED, HeaderValue::from_static("wait"));
    }
    Response { status, fields, body: None }
}

/// The fields by which a client learns of its grant.
pub fn grant_fields(id: LeaseId, duration: LeaseDuration, snapshot: &Snapshot) -> [(HeaderName, HeaderValue); 3] {
    [
        (LEASE_ID, id_value(id)),
        (LEASE_DURATION, duration_value(duration)),
        (FENCING_TOKEN, HeaderValue::from(snapshot.fence().0)),
    ]
}

fn duration_value(duration: LeaseDuration) -> HeaderValue {
    match duration {
        LeaseDuration::Infinite => HeaderValue::from_static("infinite"),
        // A holder that counts on less than it has is safe.
        LeaseDuration::Fixed(duration) => HeaderValue::from(duration.as_secs()),
    }
}

fn id_value(id: LeaseId) -> HeaderValue {
    let mut value = HeaderValue::from_str(&id.reveal()).unwrap_or(HeaderValue::from_static(""));
    value.set_sensitive(true);
    value
}

fn rounded_up(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}

/// What anybody who may ask is shown of a lease; never its id.
#[derive(Serialize)]
struct View<'a> {
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remaining: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    holder: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fence: Option<u64>,
}

/// The answer to `GET`.
pub fn show(snapshot: &Snapshot) -> Response {
    let (state, lease) = (snapshot.lease_state(), snapshot.lease());
    let held = lease.filter(|_| state.is_held());
    let view = View {
        state: match state {
            LeaseState::Available => "available",
            LeaseState::Leased => "leased",
            LeaseState::Breaking => "breaking",
            LeaseState::Broken => "broken",
            LeaseState::Expired => "expired",
        },
        duration: held.map(|lease| if lease.duration == LeaseDuration::Infinite { "infinite" } else { "fixed" }),
        remaining: held.and_then(|lease| lease.remaining(snapshot.now)).map(rounded_up),
        holder: held.and_then(|lease| lease.holder.as_ref()).map(HolderLabel::as_str),
        fence: lease.map(|_| snapshot.fence().0),
    };
    let mut fields = HeaderMap::new();
    fields.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    fields.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    // Words and numbers always have a form in JSON.
    let body = serde_json::to_string(&view).unwrap_or_default();
    Response { status: StatusCode::OK, fields, body: Some(body) }
}

/// The refusal of an operation.
pub fn refuse(denied: Denied) -> Refusal {
    match denied {
        Denied::Held { remaining, holder, .. } => {
            let detail = "somebody else holds the lease; come back after retry_after, or wait with Prefer: wait=N";
            let refusal = Refusal::new(Code::LeaseHeld, detail).retry_after(remaining.unwrap_or(RETRY_INFINITE));
            match holder {
                Some(holder) => refusal.held_by(holder.as_str()),
                None => refusal,
            }
        }
        Denied::IdMismatch => {
            Refusal::new(Code::LeaseIdMismatch, "the lease has another id, or belongs to another client")
        }
        Denied::NotPresent => Refusal::new(Code::LeaseNotPresent, "there is no such lease; acquire it with POST"),
        Denied::Breaking => {
            Refusal::new(Code::LeaseBreaking, "the lease is being broken: finish and release it, then acquire it anew")
        }
        Denied::Broken => Refusal::new(Code::LeaseBroken, "the lease was broken; acquire it anew with POST"),
        Denied::BeyondHoldMax => Refusal::new(
            Code::LeaseHoldMax,
            "the lease was held for as long as this route allows: release it, so that others get their turn",
        ),
        Denied::Busy(_) => {
            let detail = "a write is in flight or in doubt: the lease can be granted when it is not; come back later";
            Refusal::new(Code::WriteInFlight, detail).retry_after(Duration::from_secs(1))
        }
    }
}

/// The refusal of a read or write that a lease forbids.
pub fn refuse_use(denied: UseDenied) -> Refusal {
    match denied {
        UseDenied::IdMissing => Refusal::new(
            Code::LeaseIdMissing,
            "the resource is leased: send the Lease-Id of the lease, or come back later",
        ),
        UseDenied::LeaseRequired => {
            Refusal::new(Code::LeaseIdMissing, "acquire a lease of the resource first, and send its Lease-Id")
        }
        UseDenied::IdMismatch => {
            Refusal::new(Code::LeaseIdMismatchOnUse, "somebody else holds the lease of the resource")
        }
        UseDenied::NotPresent => {
            Refusal::new(Code::LeaseNotPresentOnUse, "there is no lease of this id; acquire one, or send no Lease-Id")
        }
        UseDenied::Lost => Refusal::new(
            Code::LeaseLost,
            "the lease has ended: acquire it anew, and read the resource before you write, as others may have written",
        ),
    }
}

#[cfg(test)]
#[path = "native_tests.rs"]
mod tests;
