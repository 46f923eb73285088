//! The refusals of the API, in words for the users of Git LFS.

use std::time::Duration;

use crate::core::{
    lease::{Denied, HolderLabel},
    refusal::{Code, Refusal},
};

/// The holder of a lock without a name.
const SOMEBODY: &str = "another client";

/// When to retry after an obstacle that passes.
const RETRY_SOON: Duration = Duration::from_secs(1);

/// Returns the refusal of an operation on a lock.
pub(super) fn refuse(denied: &Denied) -> Refusal {
    match denied {
        Denied::Held { holder, .. } => {
            let holder = holder.as_ref().map_or(SOMEBODY, HolderLabel::as_str);
            let detail =
                format!("{holder} has locked the path: ask for it, or end the lock with git lfs unlock --force");
            Refusal::new(Code::LeaseHeld, detail).held_by(holder)
        }
        Denied::Busy(_) | Denied::NoPlace { .. } | Denied::DeletePending => {
            Refusal::new(Code::WriteInFlight, "the path cannot be locked at this moment; try again")
                .retry_after(RETRY_SOON)
        }
        Denied::IdMismatch | Denied::NotPresent | Denied::Breaking | Denied::Broken | Denied::BeyondHoldMax => {
            lock_not_found()
        }
    }
}

/// Refuses an operation on a lock that no client holds.
pub fn lock_not_found() -> Refusal {
    let detail = "no lock has this id: it has ended, or never was; git lfs locks shows those that are held";
    Refusal::new(Code::LeaseNotPresent, detail).called(404, "lock-not-found")
}

/// Refuses to unlock what another client has locked.
pub fn not_owner(owner: Option<&str>) -> Refusal {
    let owner = owner.unwrap_or(SOMEBODY);
    let detail = format!("{owner} has locked the path: ask for it, or end the lock with --force");
    Refusal::new(Code::LeaseIdMismatch, detail).called(403, "not-the-owner")
}

/// Refuses to end the lock of another client, whether or not the request says so.
pub fn no_force() -> Refusal {
    let detail = "this route lets no client end the lock of another (lease.client_break): an operator can, by the admin \
                  interface";
    Refusal::new(Code::LeaseIdMismatch, detail).called(403, "no-force")
}

/// Refuses a path that cannot be kept with its lock.
pub fn too_long_lock() -> Refusal {
    Refusal::new(Code::BodyTooLarge, "the path and the name of the owner have about 4,000 bytes at most")
}

/// Refuses a document that is too long.
pub fn too_large() -> Refusal {
    Refusal::new(Code::BodyTooLarge, "a batch has at most 1,000 objects, and the path of a lock about 4,000 bytes")
}

/// Refuses a repository whose paths take several routes.
pub fn elsewhere() -> Refusal {
    let detail = "the objects or locks of the repository take a route without dialect = \"git-lfs\", or to another server: \
                  one route has to take all paths below the repository";
    Refusal::new(Code::NotSupported, detail)
}

/// Refuses a body that does not have the SHA-256 in its name.
pub(super) fn other_content() -> Refusal {
    let detail = "the content does not have the SHA-256 that its name says: it was damaged in flight; send it again";
    Refusal::new(Code::MalformedRequest, detail).called(422, "other-content")
}

pub(super) fn no_operation() -> Refusal {
    let detail = "this route serves the API of Git LFS alone: objects/batch, objects/ab/cd/ID and locks, below the URL of \
                  a repository (git config lfs.url)";
    Refusal::new(Code::NotSupported, detail)
}

pub(super) fn bad_method() -> Refusal {
    let detail = "an object takes GET and PUT, locks take GET and POST, and all other operations of Git LFS are POST";
    Refusal::new(Code::MethodNotAllowed, detail)
}

pub(super) fn malformed_document(members: &str) -> Refusal {
    let detail = format!("the body is a JSON object with {members}");
    Refusal::new(Code::MalformedRequest, detail).called(422, "malformed-document")
}

pub(super) fn other_hash() -> Refusal {
    Refusal::new(Code::NotSupported, "objects have the hash sha256 here").called(409, "other-hash")
}

pub(super) fn bad_page() -> Refusal {
    Refusal::new(Code::MalformedRequest, "cursor is what an answer had as next_cursor, and limit is a number")
}

pub(super) fn repeated_parameter() -> Refusal {
    Refusal::new(Code::MalformedRequest, "send each parameter of the query once, as percent-encoded UTF-8")
}
