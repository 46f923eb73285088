//! The meaning of a request's method and fields.

use std::time::Duration;

use http::{HeaderMap, Method};

use super::{
    DESTINATION_LEASE_ID, LEASE_DURATION, LEASE_ID,
    fields::{LeaseField, LeaseFields, malformed, presented},
};
use crate::{
    core::{
        http::preferences::preferences,
        lease::{
            Acquire, Action, HolderLabel, LeaseDuration, LeaseId, LeaseMode, ShareMode, Usage, Usages, field_names,
        },
        policy::LeaseRules,
        refusal::{Code, Refusal},
    },
    dialect::LeaseOperation,
};

/// Reads a lease operation. `fresh` draws the id of a lease for which the client chooses none. It is called only for an
/// acquisition.
///
/// # Errors
///
/// The request cannot be read, or the route does not allow the operation. The refusal tells the client what to send.
pub fn read(
    method: &Method,
    headers: &HeaderMap,
    rules: &LeaseRules,
    fresh: impl FnOnce() -> Result<LeaseId, Refusal>,
) -> Result<LeaseOperation, Refusal> {
    let fields = LeaseFields::of(headers);
    let action = match *method {
        Method::GET | Method::HEAD => return Ok(LeaseOperation::Show),
        Method::POST => Action::Acquire(acquire(&fields, rules, fresh()?)?),
        Method::PUT => Action::Renew { id: fields.required_id(LeaseField::Id)?, duration: duration(&fields, rules)? },
        Method::PATCH => change(&fields)?,
        Method::DELETE => end(&fields, rules)?,
        _ => return Err(Refusal::new(Code::MethodNotAllowed, "a lease takes GET, POST, PUT, PATCH and DELETE")),
    };
    let wait = wait(headers).filter(|_| *method == Method::POST);
    Ok(LeaseOperation::Step { action, wait })
}

/// Reads the lease that a GET requests of its resource (`lease.acquire_on_read`); `None` if it requests none.
///
/// # Errors
///
/// Those of [`read`].
pub fn read_on_get(
    headers: &HeaderMap,
    rules: &LeaseRules,
    fresh: impl FnOnce() -> Result<LeaseId, Refusal>,
) -> Result<Option<Acquire>, Refusal> {
    let asks = rules.acquire_on_read && headers.contains_key(&LEASE_DURATION) && !headers.contains_key(&LEASE_ID);
    asks.then(|| acquire(&LeaseFields::of(headers), rules, fresh()?)).transpose()
}

/// Returns the id that a request presents.
///
/// # Errors
///
/// The field is present, but holds no id or several.
pub fn presented_id(headers: &HeaderMap) -> Result<Option<LeaseId>, Refusal> {
    presented(headers, &LEASE_ID, field_names::LEASE_ID.title)
}

/// Returns the id of the lease of its destination that a COPY or MOVE presents.
///
/// # Errors
///
/// The field is present, but holds no id or several.
pub fn presented_id_at_destination(headers: &HeaderMap) -> Result<Option<LeaseId>, Refusal> {
    presented(headers, &DESTINATION_LEASE_ID, field_names::DESTINATION_LEASE_ID.title)
}

fn acquire(fields: &LeaseFields<'_>, rules: &LeaseRules, fresh: LeaseId) -> Result<Acquire, Refusal> {
    let proposed = fields.id(LeaseField::Id)?.map(random).transpose()?;
    let duration = duration(fields, rules)?.unwrap_or(LeaseDuration::Fixed(rules.default));
    let holder = fields
        .value(LeaseField::Holder)?
        .map(|label| HolderLabel::parse_field(label.as_bytes()))
        .transpose()
        .map_err(|error| malformed(format!("Lease-Holder: {error}")))?;
    let (mode, takes_over) = (mode(fields, rules)?, takes_over(fields, rules)?);
    Ok(Acquire { proposed, fresh, mode, duration, holder, note: None, keeper: None, takes_over })
}

/// Reads the change of a lease: another id, or what becomes of the DELETE that waits for its holders.
fn change(fields: &LeaseFields<'_>) -> Result<Action, Refusal> {
    match (fields.text(LeaseField::DeletePending)?, fields.id(LeaseField::ProposedId)?) {
        (None, Some(proposed)) => {
            Ok(Action::Change { id: fields.required_id(LeaseField::Id)?, proposed: random(proposed)? })
        }
        // A boolean of RFC 9651.
        (Some("?0"), None) => Ok(Action::WithdrawDelete { id: fields.required_id(LeaseField::Id)? }),
        (Some(_), None) => Err(malformed(
            "Delete-Pending is ?0, which withdraws the DELETE that waits; to delete, send DELETE to the resource"
                .to_owned(),
        )),
        (None, None) => Err(malformed(
            "send Proposed-Lease-Id to change the id of the lease, or Delete-Pending: ?0 to keep the resource"
                .to_owned(),
        )),
        (Some(_), Some(_)) => Err(malformed("send one of Proposed-Lease-Id and Delete-Pending".to_owned())),
    }
}

/// Reads how long the client wants the lease, if it says so.
fn duration(fields: &LeaseFields<'_>, rules: &LeaseRules) -> Result<Option<LeaseDuration>, Refusal> {
    let duration = match fields.text(LeaseField::Duration)? {
        None => return Ok(None),
        Some(text) if text.eq_ignore_ascii_case("infinite") => LeaseDuration::Infinite,
        Some(text) => LeaseDuration::Fixed(seconds(LeaseField::Duration, text)?),
    };
    if duration.is_allowed(rules) {
        return Ok(Some(duration));
    }
    let infinite = if rules.infinite { ", or infinite" } else { "" };
    let (min, max) = (rules.min.as_secs_f64(), rules.max.as_secs_f64());
    Err(malformed(format!("Lease-Duration is a number of seconds from {min} to {max}{infinite}")))
}

fn mode(fields: &LeaseFields<'_>, rules: &LeaseRules) -> Result<LeaseMode, Refusal> {
    let word = fields.text(LeaseField::Mode)?.unwrap_or(LeaseMode::Exclusive.word());
    let (access, share) = (usages(fields, LeaseField::Access)?, usages(fields, LeaseField::Share)?);
    let modes = [LeaseMode::Exclusive, LeaseMode::SHARED];
    match modes.into_iter().find(|mode| word.eq_ignore_ascii_case(mode.word())) {
        Some(LeaseMode::Shared(_)) if !rules.shared => {
            Err(malformed("this route grants no shared leases: leave Lease-Mode out".to_owned()))
        }
        Some(LeaseMode::Shared(_)) if access == Some(Usages::NONE) => {
            Err(malformed("Lease-Access names at least one of read, write and delete".to_owned()))
        }
        Some(LeaseMode::Shared(all)) => {
            Ok(LeaseMode::Shared(ShareMode { access: access.unwrap_or(all.access), share: share.unwrap_or(all.share) }))
        }
        Some(LeaseMode::Exclusive) if access.or(share).is_some() => {
            Err(malformed("Lease-Access and Lease-Share need Lease-Mode: shared".to_owned()))
        }
        Some(LeaseMode::Exclusive) => Ok(LeaseMode::Exclusive),
        None => Err(malformed("Lease-Mode is exclusive or shared".to_owned())),
    }
}

/// Reads a list of uses.
fn usages(fields: &LeaseFields<'_>, field: LeaseField) -> Result<Option<Usages>, Refusal> {
    let Some(list) = fields.text(field)? else { return Ok(None) };
    if list.eq_ignore_ascii_case("none") {
        return Ok(Some(Usages::NONE));
    }
    let usage = |word: &str| Usage::ALL.into_iter().find(|usage| word.trim().eq_ignore_ascii_case(usage.word()));
    let usages: Option<Usages> = list.split(',').map(usage).collect();
    let message = || format!("{} is a list of read, write and delete, or none", field.title());
    usages.map(Some).ok_or_else(|| malformed(message()))
}

/// True if an acquisition ends the leases of others.
fn takes_over(fields: &LeaseFields<'_>, rules: &LeaseRules) -> Result<bool, Refusal> {
    match break_period(fields, rules)? {
        None => Ok(false),
        Some(Duration::ZERO) => Ok(true),
        Some(_) => Err(malformed(
            "with POST, Lease-Break-Period is 0; to give the holder time, break the lease by DELETE, and acquire it with \
             Prefer: wait=N"
                .to_owned(),
        )),
    }
}

/// The time that the holder of a broken lease has, if the request breaks one.
fn break_period(fields: &LeaseFields<'_>, rules: &LeaseRules) -> Result<Option<Duration>, Refusal> {
    match fields.text(LeaseField::BreakPeriod)? {
        Some(_) if !rules.client_break => {
            Err(Refusal::new(Code::MethodNotAllowed, "this route does not let clients break a lease; wait for its end"))
        }
        text => text.map(|text| seconds(LeaseField::BreakPeriod, text)).transpose(),
    }
}

fn end(fields: &LeaseFields<'_>, rules: &LeaseRules) -> Result<Action, Refusal> {
    if let Some(id) = fields.id(LeaseField::Id)? {
        return Ok(Action::Release { id });
    }
    match break_period(fields, rules)? {
        None => Err(malformed("send the Lease-Id of the lease to release it".to_owned())),
        period => Ok(Action::Break { period }),
    }
}

/// Returns how long the client is willing to wait (RFC 7240 section 4.3). A preference that cannot be read is ignored.
pub fn wait(headers: &HeaderMap) -> Option<Duration> {
    let mut waits = preferences(headers).filter(|(name, _)| name.eq_ignore_ascii_case("wait"));
    waits.find_map(|(_, seconds)| seconds.parse().ok().map(Duration::from_secs))
}

/// Checks that an id chosen by a client is as hard to guess as an id that the proxy draws.
fn random(id: LeaseId) -> Result<LeaseId, Refusal> {
    let message = || malformed("a lease id is a UUID of version 4: random, so that it cannot be guessed".to_owned());
    id.is_random().then_some(id).ok_or_else(message)
}

fn seconds(field: LeaseField, text: &str) -> Result<Duration, Refusal> {
    let number = text.parse().map(Duration::from_secs);
    let other = if field == LeaseField::Duration { ", or infinite" } else { "" };
    number.map_err(|_error| malformed(format!("{} is a whole number of seconds{other}", field.title())))
}
