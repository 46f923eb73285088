//! The steps of a deletion that waits until no client holds the lease of its resource any more (`lease.delete_pending`).
//!
//! # Design
//!
//! *Why does the record keep the target URI, the conditions and nothing else of the request?* The DELETE is sent when
//! its client is gone. Credentials would have to be kept for it, or the proxy would act with a right of its own. So only
//! a DELETE without credentials waits, and what is sent later is as anonymous as what was received.
//!
//! *What if the state changes while it waits?* The other holders may write. A DELETE without a condition removes any
//! state, as the removal of an open file does. One with a condition means one state: the step that records a change, or
//! that it is unknown whether there was one, withdraws it. When the late DELETE is sent, its conditions are judged
//! again, because a writer beside ifmatch is in no record. If they are false, it is withdrawn as well.
//!
//! *Why can the late DELETE remove nothing that was created later?* The sign of it and the claim are in one record.
//! While the sign is there, only clients that hold the lease already may write, and no other client gets the lease. The
//! sign goes in the step that records the deletion. If that step fails, the DELETE is sent again later, and meets the
//! same state or nothing.

use http::StatusCode;

use super::{
    pending_delete::PendingDelete,
    record::{Record, Snapshot},
    steps::Outcome,
};
use crate::core::{
    lease::{Lease, LeaseId, PrincipalName, Standing, TargetName, Term, UseDenied},
    tags::validators::tells_absence,
};

/// The fate of a DELETE by a client that holds the lease of its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// It is sent: no other client holds the lease of this target.
    Now,
    /// It waits until no client holds the lease.
    Later,
    /// It cannot wait, since a DELETE of another target with the same key already does.
    Never,
}

/// Decides what becomes of a DELETE of this target by the bearer of this id. The lease permits the DELETE.
pub fn deletion(
    snapshot: &Snapshot,
    target: TargetName,
    id: Option<LeaseId>,
    principal: Option<PrincipalName>,
) -> Deletion {
    let is_own = |lease: &Lease| id.is_some_and(|id| lease.is_proved_by(id, principal));
    let is_shared = snapshot.held_leases().any(|lease| lease.target == target && !is_own(lease));
    match &snapshot.record.pending_delete {
        _ if !is_shared => Deletion::Now,
        Some(pending) if pending.name != target => Deletion::Never,
        _ => Deletion::Later,
    }
}

/// Lets a DELETE wait for the other holders of the lease, and ends that of the client with this id.
pub fn defer(
    snapshot: &Snapshot,
    delete: PendingDelete,
    id: Option<LeaseId>,
    principal: Option<PrincipalName>,
) -> Record {
    let mut record = snapshot.draft();
    record.pending_delete = Some(Box::new(match record.pending_delete.take() {
        None => delete,
        // One of the two clients means any state, or else both mean the state that is there now.
        Some(first) if !first.is_conditional() => *first,
        Some(first) => PendingDelete { conditions: delete.conditions, ..*first },
    }));
    let is_own = |lease: &&mut Lease| id.is_some_and(|id| lease.is_proved_by(id, principal));
    record.leases.iter_mut().filter(is_own).for_each(|lease| lease.term = Term::Released(snapshot.now));
    record
}

/// Judges the late DELETE of this target: it has the place of the last holder.
///
/// # Errors
///
/// A client holds the lease, or no such DELETE waits any more.
pub fn judge_late_delete(snapshot: &Snapshot, target: TargetName) -> Result<Standing, UseDenied> {
    match snapshot.due_delete() {
        Some(delete) if delete.name == target => Ok(Standing::Holder),
        _ => Err(UseDenied::NotPresent),
    }
}

/// Withdraws a DELETE whose conditions are false by now. `None` if another one waits.
pub fn withdraw(snapshot: &Snapshot, delete: &PendingDelete) -> Option<Record> {
    let is_it = delete.is_conditional() && snapshot.record.pending_delete.as_deref() == Some(delete);
    is_it.then(|| Record { pending_delete: None, ..snapshot.draft() })
}

/// The outcome of a late DELETE that the upstream answered with this status: a resource that is gone is deleted.
pub fn outcome_of_late_delete(status: StatusCode) -> Outcome {
    if tells_absence(status) { Outcome::Applied } else { Outcome::of_status(status) }
}

#[cfg(test)]
#[path = "delete_steps_tests.rs"]
mod tests;
