//! The document of a refusal: a problem document (RFC 9457) that has the `message` which clients show, and the lock in the
//! way.

use http::StatusCode;
use serde_json::{Map, Value};

use super::{Lock, MEDIA_TYPE};
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
    let note = refusal.cause.as_ref().and_then(|cause| cause.lease.as_ref()?.note.as_ref());
    let lock = note.and_then(Lock::of_note).filter(|_| refusal.code == Code::LeaseHeld);
    let body = told(&plain.body, status, (&refusal.detail, lock)).unwrap_or(plain.body);
    ErrorDocument { status, body, content_type: MEDIA_TYPE, ..plain }
}

fn told(problem: &str, status: StatusCode, (message, lock): (&str, Option<Lock>)) -> Option<String> {
    let mut members: Map<String, Value> = serde_json::from_str(problem).ok()?;
    members.insert("status".to_owned(), status.as_u16().into());
    members.insert("message".to_owned(), message.into());
    if let Some(lock) = lock {
        members.insert("lock".to_owned(), serde_json::to_value(lock).ok()?);
    }
    serde_json::to_string(&members).ok()
}

/// Returns the status of a refusal. Clients take 409 for a lock that is held, and repeat after 503.
pub(super) fn status_of(refusal: &Refusal) -> StatusCode {
    if let Some(named) = refusal.service.and_then(|service| StatusCode::from_u16(service.status).ok()) {
        return named;
    }
    let is_awaited = refusal.cause.as_ref().is_some_and(|cause| cause.reason == Some(Reason::LeaseAwaited));
    match refusal.code {
        Code::WriteInFlight | Code::IdempotencyInFlight | Code::DeletePending => StatusCode::SERVICE_UNAVAILABLE,
        Code::LeaseHeld if is_awaited => StatusCode::SERVICE_UNAVAILABLE,
        code => code.status(),
    }
}
