//! The refusals of locks, in words for the users of Terraform.

use std::time::Duration;

use super::MalformedLockInfo;
use crate::core::{
    lease::{Denied, HolderLabel, UseDenied},
    refusal::{Code, Refusal},
};

/// When to retry while a lock is held. It has no end.
const RETRY_LOCKED: Duration = Duration::from_secs(10);
/// When to retry after an obstacle that passes.
const RETRY_SOON: Duration = Duration::from_secs(1);

/// Returns the refusal of an operation on a lock.
pub(super) fn refuse(denied: &Denied) -> Refusal {
    match denied {
        Denied::Held { holder, .. } => {
            let refusal = Refusal::new(Code::LeaseHeld, LOCKED).retry_after(RETRY_LOCKED);
            match holder.as_ref().map(HolderLabel::as_str) {
                Some(holder) => refusal.held_by(holder),
                None => refusal,
            }
        }
        Denied::NoPlace { .. } => Refusal::new(Code::LeaseHeld, LOCKED).retry_after(RETRY_LOCKED),
        Denied::IdMismatch => {
            Refusal::new(Code::LeaseIdMismatch, "the state is locked with another ID, or by another client")
        }
        Denied::NotPresent => Refusal::new(Code::LeaseNotPresent, "no lock has this ID"),
        Denied::Breaking | Denied::Broken => {
            Refusal::new(Code::LeaseBroken, "the lock was ended by another client or an operator: lock the state anew")
        }
        Denied::BeyondHoldMax => Refusal::new(Code::LeaseHoldMax, "the state was locked for too long"),
        Denied::DeletePending => {
            Refusal::new(Code::DeletePending, "the state is about to be deleted").retry_after(RETRY_SOON)
        }
        Denied::Busy(_) => {
            let detail = "a write of the state is in flight or in doubt; it can be locked afterwards";
            Refusal::new(Code::WriteInFlight, detail).retry_after(RETRY_SOON)
        }
    }
}

const LOCKED: &str = "the state is locked: wait with -lock-timeout, or ask its holder; terraform force-unlock ends a lock \
                      whose holder has died";

/// Returns the refusal of a write that a lock forbids.
pub(super) fn refuse_use(denied: UseDenied) -> Refusal {
    match denied {
        UseDenied::IdMissing => Refusal::new(Code::LeaseIdMissing, LOCKED),
        UseDenied::IdMismatch | UseDenied::BeyondAccess => Refusal::new(Code::LeaseIdMismatchOnUse, LOCKED),
        UseDenied::LeaseRequired => {
            let detail = "this route takes no state without its lock: set lock_address and unlock_address in the backend \
                          block, and leave -lock=false out";
            Refusal::new(Code::LeaseIdMissing, detail)
        }
        UseDenied::NotPresent | UseDenied::Lost => {
            let detail = "the state is no longer locked with this ID, and others may have written it since: compare \
                          before you push what was not saved (errored.tfstate)";
            let code = if denied == UseDenied::Lost { Code::LeaseLost } else { Code::LeaseNotPresentOnUse };
            Refusal::new(code, detail)
        }
        UseDenied::DeletePending => {
            Refusal::new(Code::DeletePending, "the state is about to be deleted").retry_after(RETRY_SOON)
        }
    }
}

/// Refuses to end the lock of another client.
pub fn not_broken() -> Refusal {
    let detail = "this route lets no client end the lock of another (lease.client_break): an operator can, by the admin \
                  interface";
    Refusal::new(Code::LeaseIdMismatch, detail)
}

/// Refuses a body that describes no lock.
pub fn malformed_lock_info(malformed: MalformedLockInfo) -> Refusal {
    let code = match malformed {
        MalformedLockInfo::TooLong => Code::BodyTooLarge,
        MalformedLockInfo::NoId => Code::MalformedRequest,
    };
    Refusal::new(code, malformed.to_string())
}
