//! Writes that add a member to a collection, or remove one. The leases that reach the list of its members judge them
//! (RFC 4918 section 7.4).
//!
//! # Design
//!
//! *Which POST adds a member?* The RFC names PUT and MKCOL of a missing resource, and leaves POST to the server. A POST
//! to a missing resource can only create it, so it is judged like them. A POST to a file or to another collection adds
//! nothing at its own target. One to the leased collection itself needs the lease of that.

use super::Writes;
use crate::{
    core::{
        cause::Reason,
        lease::{Usage, UseDenied},
        records::{
            record::Snapshot,
            tree_leases::{LeaseAround, LeaseReach},
        },
    },
    guard::{Halt, TypeSeen, request::Request},
};

impl Writes {
    /// Refuses a write that would change the list of members of a collection which another client has leased.
    pub(super) async fn judge_membership(&self, request: &Request, snapshot: &Snapshot) -> Result<(), Halt> {
        let Some(lease) = unproved(request, snapshot) else { return Ok(()) };
        // Boxed, so that the futures of other writes stay small.
        let is_changed = request.place.usages.contains(Usage::Delete) || Box::pin(self.may_create(request)).await?;
        if !is_changed {
            return Ok(());
        }
        let path = request.path_of(&lease.root).unwrap_or_default();
        let mut refusal = request.grammar().use_denied(UseDenied::IdMissing).because(Reason::LeaseHeld);
        refusal.detail = format!("the list of members of {path} is leased: {}", refusal.detail).into();
        let mut refused = self.leases.refuse_by_lease(request, snapshot, refusal).await;
        if let Halt::Refused(refusal) = &mut refused {
            refusal.cause_mut().leased_elsewhere = Some(path.into());
        }
        Err(refused)
    }

    /// True if nothing may be at the target of a write.
    async fn may_create(&self, request: &Request) -> Result<bool, Halt> {
        let seen = self.probes.type_of(request).await?;
        Ok(!matches!(seen, Some(TypeSeen::Plain | TypeSeen::Collection)))
    }
}

/// The lease of the list of members that the resource is in, unless the request names one of these leases.
fn unproved<'a>(request: &Request, snapshot: &'a Snapshot) -> Option<&'a LeaseAround> {
    let principal = Some(request.sender.principal.holder());
    let mut leases = snapshot.held_around(LeaseReach::Membership);
    let named = || request.sender.lease_ids.iter().chain(&request.sender.lease_id);
    let is_proved = |around: &LeaseAround| named().any(|id| around.lease.is_proved_by(*id, principal));
    if leases.clone().any(is_proved) { None } else { leases.next() }
}
