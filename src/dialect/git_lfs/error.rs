//! The document of a refusal: a problem document that has the `message` which clients show, and the lock in the way.

use http::StatusCode;
use serde_json::{Map, Value};

use super::{Lock, MEDIA_TYPE};
use crate::{
    core::refusal::{Code, Refusal},
    dialect::{
        ErrorDocument,
        endless_locks::{is_passing, with_members},
    },
};

/// Returns the document of a refusal.
pub(super) fn document(refusal: &Refusal) -> ErrorDocument {
    let mut members = Map::from_iter([("message".to_owned(), Value::from(&*refusal.detail))]);
    let note = refusal.cause.as_ref().and_then(|cause| cause.lease.as_ref()?.note.as_ref());
    let lock = note.and_then(Lock::of_note).filter(|_| refusal.code == Code::LeaseHeld);
    if let Some(Ok(lock)) = lock.map(serde_json::to_value) {
        members.insert("lock".to_owned(), lock);
    }
    ErrorDocument { content_type: MEDIA_TYPE, ..with_members(refusal, status_of(refusal), members) }
}

/// Returns the status of a refusal. Clients take 409 for a lock that is held.
fn status_of(refusal: &Refusal) -> StatusCode {
    let named = refusal.service.and_then(|service| StatusCode::from_u16(service.status).ok());
    let passing = is_passing(refusal).then_some(StatusCode::SERVICE_UNAVAILABLE);
    named.or(passing).unwrap_or(refusal.code.status())
}
