//! The resources below the collections that a write changes or copies (DESIGN, section 3, rules 1 and 4).
//!
//! # Design
//!
//! *When does a write turn out to be that of a tree?* Under its claim: until then, others may make a collection of a
//! file. The write then gives its claim back, and is judged again as the write of a tree. So a DELETE of a file costs
//! no more than elsewhere.
//!
//! *Why may it wait while it holds marks?* The deadline of its marks comes after the wait
//! ([`below`](crate::guard::claim::below)).
//!
//! *Whose leases count?* Each that is held below a tree that changes. Its holder must name all of them. If the
//! dialect removes a collection by one operation, the lease of the collection alone counts. The removal ends those of its
//! members, which are gone.

use tokio::time::Instant;

use super::Writes;
use crate::{
    core::{
        cause::Reason,
        lease::{Lease, Usage, UseDenied},
        records::{
            record::{Record, Snapshot},
            steps::Outcome,
            trees::TreeRoot,
        },
        refusal::Refusal,
        resource::ResourceKey,
    },
    guard::{
        Halt,
        claim::{Held, below::PINNED_MAX},
        request::Request,
    },
};

/// The resources that a write has found below its own.
pub(super) enum FoundBelow {
    /// There is nothing that the write would change, or its claim holds all of it.
    Held(Held),
    /// These trees are below. The claim is given back.
    Of(Vec<TreeRoot>),
}

impl Writes {
    /// Looks for resources that a claimed write would change besides those that it names. If it is judged as the write of
    /// these trees, waits for the writes below them, and judges it by the leases there.
    pub(super) async fn hold_members(
        &self,
        request: &Request,
        claim: Held,
        trees: &[TreeRoot],
        end: Instant,
    ) -> Result<FoundBelow, Halt> {
        // Boxed, so that the futures of other writes stay small.
        let found = if trees.is_empty() {
            Box::pin(self.probes.changed_trees(request)).await
        } else {
            let is_meant = |key: &ResourceKey| !claim.is_on(key);
            let judge = |key: &ResourceKey, snapshot: &Snapshot| {
                let changes = trees.iter().any(|tree| !tree.is_read && tree.is_above(key));
                if changes && !request.place.removes_tree { judge_by_leases(request, key, snapshot) } else { Ok(()) }
            };
            let waited = Box::pin(self.claims.wait_below(trees, is_meant, judge, end)).await;
            waited.map(|()| Vec::new()).map_err(Halt::from)
        };
        match found {
            Ok(found) if found.is_empty() => Ok(FoundBelow::Held(claim)),
            other => {
                claim.settle(Outcome::NotApplied, None).await;
                other.map(FoundBelow::Of)
            }
        }
    }

    /// Ends the leases below the trees that an applied write has removed or replaced. They do not travel.
    pub(super) async fn end_leases_below(&self, trees: &[TreeRoot]) {
        let changed: Vec<TreeRoot> = trees.iter().filter(|tree| !tree.is_read).cloned().collect();
        let Ok(pinned) = self.knowledge.records.pinned_below(&changed, PINNED_MAX).await else { return };
        for (key, _) in pinned.into_iter().filter(|(_, snapshot)| !snapshot.record.leases.is_empty()) {
            let without = |snapshot: &Snapshot| {
                let mut record = snapshot.draft();
                record.leases.retain(|lease| !lease.guards.covers(Usage::Delete));
                Some(Record { pending_delete: None, ..record })
            };
            match self.knowledge.records.update(&key, None, without).await {
                Ok(updated) => self.leases.recount(&key, &updated.snapshot),
                Err(error) => {
                    tracing::warn!(%key, %error, "cannot end the lease of a resource that was moved or removed");
                }
            }
        }
    }
}

/// Refuses the write of a tree by the leases of a resource below it, unless it names one of them.
fn judge_by_leases(request: &Request, key: &ResourceKey, snapshot: &Snapshot) -> Result<(), Refusal> {
    let principal = Some(request.sender.principal.holder());
    let guards = |lease: &&Lease| [Usage::Write, Usage::Delete].iter().any(|usage| lease.guards.covers(*usage));
    let named = || request.sender.lease_ids.iter().chain(&request.sender.lease_id);
    let is_proved = |lease: &Lease| named().any(|id| lease.is_proved_by(*id, principal));
    let guarding: Vec<&Lease> = snapshot.held_leases().filter(guards).collect();
    let denied = if snapshot.record.pending_delete.is_some() {
        UseDenied::DeletePending
    } else if guarding.is_empty() || guarding.into_iter().any(is_proved) {
        return Ok(());
    } else {
        UseDenied::IdMissing
    };
    let path = request.path_of(key).unwrap_or_default();
    let mut refusal = request.grammar().use_denied(denied).because(Reason::LeaseHeld);
    refusal.detail = format!("{path}, which is below the collection, is leased: {}", refusal.detail).into();
    refusal.cause_mut().leased_elsewhere = Some(path.into());
    Err(refusal)
}
