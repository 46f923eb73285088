//! The document of a refusal: a problem document that has the description of the lock in the way at its top level, where
//! clients look for it.

use http::StatusCode;

use super::LockInfo;
use crate::{
    core::refusal::{Code, Refusal},
    dialect::{
        ErrorDocument,
        endless_locks::{is_passing, with_members},
    },
};

/// Returns the document of a refusal.
pub(super) fn document(refusal: &Refusal) -> ErrorDocument {
    let lock = refusal.cause.as_ref().and_then(|cause| cause.lease.as_ref()?.note.as_ref()).and_then(LockInfo::of_note);
    let members = lock.map(|lock| lock.members().clone());
    with_members(refusal, status_of(refusal), members.unwrap_or_default())
}

/// Returns the status of a refusal. Clients take 409 and 423 for the lock of another client.
pub(super) fn status_of(refusal: &Refusal) -> StatusCode {
    match refusal.code {
        _ if is_passing(refusal) => StatusCode::SERVICE_UNAVAILABLE,
        Code::LeaseHeld | Code::LeaseIdMissing | Code::LeaseAccess | Code::LeaseIdMismatchOnUse => StatusCode::LOCKED,
        Code::LeaseLost | Code::LeaseNotPresentOnUse => StatusCode::CONFLICT,
        code => code.status(),
    }
}
