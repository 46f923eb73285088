//! The meaning of a refused release of a lock for the client that unlocks.

use super::LockInfo;
use crate::core::{
    lease::LeaseId,
    refusal::{Code, Refusal},
};

/// The reason why a lock was not released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotReleased {
    /// The state is not locked, which is what the client wants.
    NotLocked,
    /// Another principal holds the lock of this very ID. So the client was shown the ID, and wants to end the lock of
    /// another, as `OpenTofu`'s `force-unlock` does.
    OfAnother,
    /// Anything else: the refusal stands.
    Refused,
}

/// Returns why the lease of this id was not released, by the refusal of its release.
pub fn after_release(refusal: &Refusal, id: LeaseId) -> NotReleased {
    if !matches!(refusal.code, Code::LeaseIdMismatch | Code::LeaseNotPresent) {
        return NotReleased::Refused;
    }
    let Some(held) = refusal.cause.as_ref().and_then(|cause| cause.lease.as_ref()) else {
        return NotReleased::NotLocked;
    };
    let info = held.note.as_ref().and_then(LockInfo::of_note);
    if info.is_some_and(|info| info.lease_id() == id) { NotReleased::OfAnother } else { NotReleased::Refused }
}
