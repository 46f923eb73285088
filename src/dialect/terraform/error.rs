//! The document of a refusal: a problem document (RFC 9457) that has the description of the lock in the way at its top
//! level, where clients look for it.

use http::StatusCode;
use serde_json::{Map, Value};

use super::LockInfo;
use crate::{
    core::{
        cause::Reason,
        refusal::{Code, Refusal},
    },
    dialect::{ErrorDocument, native},
};

/// Returns the document of a refusal.
pub(super) fn document(refusal: &Refusal) -> ErrorDocument {
    let (status, plain) = (status_of(refusal), native::problem(refusal));
    let lock = refusal.cause.as_ref().and_then(|cause| cause.lease.as_ref()?.note.as_ref()).and_then(LockInfo::of_note);
    let members = lock.as_ref().map(LockInfo::members);
    let body = told(&plain.body, status, members).unwrap_or(plain.body);
    ErrorDocument { status, body, ..plain }
}

/// Returns a problem document with this status and these members. The members of the problem itself go first: what a
/// client has written cannot take their place.
fn told(problem: &str, status: StatusCode, lock: Option<&Map<String, Value>>) -> Option<String> {
    let mut members: Map<String, Value> = serde_json::from_str(problem).ok()?;
    members.insert("status".to_owned(), status.as_u16().into());
    for (name, value) in lock.into_iter().flatten() {
        members.entry(name).or_insert_with(|| value.clone());
    }
    serde_json::to_string(&members).ok()
}

/// Returns the status of a refusal. Clients take 409 and 423 for the lock of another client, and repeat after 503.
pub(super) fn status_of(refusal: &Refusal) -> StatusCode {
    let is_awaited = refusal.cause.as_ref().is_some_and(|cause| cause.reason == Some(Reason::LeaseAwaited));
    match refusal.code {
        Code::WriteInFlight | Code::IdempotencyInFlight | Code::DeletePending => StatusCode::SERVICE_UNAVAILABLE,
        Code::LeaseHeld if is_awaited => StatusCode::SERVICE_UNAVAILABLE,
        Code::LeaseHeld | Code::LeaseIdMissing | Code::LeaseAccess | Code::LeaseIdMismatchOnUse => StatusCode::LOCKED,
        Code::LeaseLost | Code::LeaseNotPresentOnUse => StatusCode::CONFLICT,
        code => code.status(),
    }
}
