//! The meaning of a request's method and fields.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Method};

use super::{
    DELETE_PENDING, DESTINATION_LEASE_ID, LEASE_ACCESS, LEASE_BREAK_PERIOD, LEASE_DURATION, LEASE_HOLDER, LEASE_ID,
    LEASE_MODE, LEASE_SHARE, PROPOSED_LEASE_ID,
};
use crate::{
    core::{
        http::preferences::preferences,
        lease::{Acquire, Action, HolderLabel, LeaseDuration, LeaseId, LeaseMode, ShareMode, Usage, Usages},
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
    let action = match *method {
        Method::GET | Method::HEAD => return Ok(LeaseOperation::Show),
        Method::POST => Action::Acquire(acquire(headers, rules, fresh()?)?),
        Method::PUT => Action::Renew { id: required_id(headers, &LEASE_ID)?, duration: duration(headers, rules)? },
        Method::PATCH => change(headers)?,
        Method::DELETE => end(headers, rules)?,
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
    asks.then(|| acquire(headers, rules, fresh()?)).transpose()
}

/// Returns the id that a request presents.
///
/// # Errors
///
/// The field is present, but holds no id or several.
pub fn presented_id(headers: &HeaderMap) -> Result<Option<LeaseId>, Refusal> {
    id(headers, &LEASE_ID)
}

/// Returns the id of the lease of its destination that a COPY or MOVE presents.
///
/// # Errors
///
/// The field is present, but holds no id or several.
pub fn presented_id_at_destination(headers: &HeaderMap) -> Result<Option<LeaseId>, Refusal> {
    id(headers, &DESTINATION_LEASE_ID)
}

fn acquire(headers: &HeaderMap, rules: &LeaseRules, fresh: LeaseId) -> Result<Acquire, Refusal> {
    let proposed = id(headers, &LEASE_ID)?.map(random).transpose()?;
    let duration = duration(headers, rules)?.unwrap_or(LeaseDuration::Fixed(rules.default));
    let holder = single_value(headers, &LEASE_HOLDER)?
        .map(|label| HolderLabel::parse_field(label.as_bytes()))
        .transpose()
        .map_err(|error| malformed(format!("Lease-Holder: {error}")))?;
    let (mode, takes_over) = (mode(headers, rules)?, takes_over(headers, rules)?);
    Ok(Acquire { proposed, fresh, mode, duration, holder, note: None, keeper: None, takes_over })
}

/// Reads the change of a lease: another id, or what becomes of the DELETE that waits for its holders.
fn change(headers: &HeaderMap) -> Result<Action, Refusal> {
    match (single(headers, &DELETE_PENDING)?, id(headers, &PROPOSED_LEASE_ID)?) {
        (None, Some(proposed)) => {
            Ok(Action::Change { id: required_id(headers, &LEASE_ID)?, proposed: random(proposed)? })
        }
        // A boolean of RFC 9651.
        (Some("?0"), None) => Ok(Action::WithdrawDelete { id: required_id(headers, &LEASE_ID)? }),
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
fn duration(headers: &HeaderMap, rules: &LeaseRules) -> Result<Option<LeaseDuration>, Refusal> {
    let duration = match single(headers, &LEASE_DURATION)? {
        None => return Ok(None),
        Some(text) if text.eq_ignore_ascii_case("infinite") => LeaseDuration::Infinite,
        Some(text) => LeaseDuration::Fixed(seconds(&LEASE_DURATION, text)?),
    };
    if duration.is_allowed(rules) {
        return Ok(Some(duration));
    }
    let infinite = if rules.infinite { ", or infinite" } else { "" };
    let (min, max) = (rules.min.as_secs_f64(), rules.max.as_secs_f64());
    Err(malformed(format!("Lease-Duration is a number of seconds from {min} to {max}{infinite}")))
}

fn mode(headers: &HeaderMap, rules: &LeaseRules) -> Result<LeaseMode, Refusal> {
    let word = single(headers, &LEASE_MODE)?.unwrap_or(LeaseMode::Exclusive.word());
    let (access, share) = (usages(headers, &LEASE_ACCESS)?, usages(headers, &LEASE_SHARE)?);
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
fn usages(headers: &HeaderMap, name: &HeaderName) -> Result<Option<Usages>, Refusal> {
    let Some(list) = single(headers, name)? else { return Ok(None) };
    if list.eq_ignore_ascii_case("none") {
        return Ok(Some(Usages::NONE));
    }
    let usage = |word: &str| Usage::ALL.into_iter().find(|usage| word.trim().eq_ignore_ascii_case(usage.word()));
    let usages: Option<Usages> = list.split(',').map(usage).collect();
    let message = || format!("{} is a list of read, write and delete, or none", title(name));
    usages.map(Some).ok_or_else(|| malformed(message()))
}

/// True if an acquisition ends the leases of others.
fn takes_over(headers: &HeaderMap, rules: &LeaseRules) -> Result<bool, Refusal> {
    match break_period(headers, rules)? {
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
fn break_period(headers: &HeaderMap, rules: &LeaseRules) -> Result<Option<Duration>, Refusal> {
    match single(headers, &LEASE_BREAK_PERIOD)? {
        Some(_) if !rules.client_break => {
            Err(Refusal::new(Code::MethodNotAllowed, "this route does not let clients break a lease; wait for its end"))
        }
        text => text.map(|text| seconds(&LEASE_BREAK_PERIOD, text)).transpose(),
    }
}

fn end(headers: &HeaderMap, rules: &LeaseRules) -> Result<Action, Refusal> {
    if let Some(id) = id(headers, &LEASE_ID)? {
        return Ok(Action::Release { id });
    }
    match break_period(headers, rules)? {
        None => Err(malformed("send the Lease-Id of the lease to release it".to_owned())),
        period => Ok(Action::Break { period }),
    }
}

/// Returns how long the client is willing to wait (RFC 7240 section 4.3). A preference that cannot be read is ignored.
pub fn wait(headers: &HeaderMap) -> Option<Duration> {
    let mut waits = preferences(headers).filter(|(name, _)| name.eq_ignore_ascii_case("wait"));
    waits.find_map(|(_, seconds)| seconds.parse().ok().map(Duration::from_secs))
}

fn id(headers: &HeaderMap, name: &HeaderName) -> Result<Option<LeaseId>, Refusal> {
    let parse =
        |text: &str| LeaseId::parse(text.as_bytes()).map_err(|error| malformed(format!("{}: {error}", title(name))));
    single(headers, name)?.map(parse).transpose()
}

fn required_id(headers: &HeaderMap, name: &HeaderName) -> Result<LeaseId, Refusal> {
    id(headers, name)?.ok_or_else(|| malformed(format!("send {}", title(name))))
}

/// Checks that an id chosen by a client is as hard to guess as an id that the proxy draws.
fn random(id: LeaseId) -> Result<LeaseId, Refusal> {
    let message = || malformed("a lease id is a UUID of version 4: random, so that it cannot be guessed".to_owned());
    id.is_random().then_some(id).ok_or_else(message)
}

fn seconds(name: &HeaderName, text: &str) -> Result<Duration, Refusal> {
    let number = text.parse().map(Duration::from_secs);
    let other = if *name == LEASE_DURATION { ", or infinite" } else { "" };
    number.map_err(|_error| malformed(format!("{} is a whole number of seconds{other}", title(name))))
}

fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Refusal> {
    let text = single_value(headers, name)?.map(HeaderValue::to_str).transpose();
    text.map(|text| text.map(str::trim)).map_err(|_error| malformed(format!("{} is visible ASCII", title(name))))
}

fn single_value<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a HeaderValue>, Refusal> {
    let mut lines = headers.get_all(name).iter();
    match (lines.next(), lines.next()) {
        (value, None) => Ok(value),
        (_, Some(_)) => Err(malformed(format!("send {} once", title(name)))),
    }
}

/// Returns the usual spelling of a field's name.
fn title(name: &HeaderName) -> String {
    let capital =
        |word: &str| word.get(..1).unwrap_or_default().to_ascii_uppercase() + word.get(1..).unwrap_or_default();
    name.as_str().split('-').map(capital).collect::<Vec<_>>().join("-")
}

fn malformed(detail: String) -> Refusal {
    Refusal::new(Code::MalformedLeaseHeader, detail)
}
