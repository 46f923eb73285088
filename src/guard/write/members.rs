//! The resources below the collections that a write changes or copies (DESIGN, section 3, rules 1 and 4).
//!
//! # Design
//!
//! *When does a write turn out to be that of a tree?* Under its claim: until then, others may make a collection of a file.
//! It then gives its claim back, and is judged again as the write of a tree. So a DELETE of a file costs no more than
//! elsewhere.
//!
//! *Why may it wait while it holds marks?* The writes that it waits for have all their marks, and wait for nobody. Later
//! ones give way. The deadline of its marks comes after the wait.
//!
//! *Whose leases count?* Each that is held below a tree that changes. Its holder must name all of them.

use tokio::time::{Instant, timeout};

use super::Writes;
use crate::{
    core::{
        cause::Reason,
        lease::{Lease, Usage, UseDenied},
        records::{
            record::{Availability, Record, Snapshot},
            steps::Outcome,
            trees::TreeRoot,
        },
        refusal::{Code, Refusal},
        resource::ResourceKey,
    },
    guard::{Halt, claim::Held, refusals, request::Request},
    store::StoreError,
};

/// The most resources below a tree that writes or leases are in progress at. The write of the tree looks at each of them
/// while all writes below it wait.
const PINNED_MAX: usize = 1_000;

/// What a write has found below its resources.
pub(super) enum FoundBelow {
    /// Nothing that it would change, or all of it is held by its claim.
    Held(Held),
    /// These trees. The claim is given back.
    Of(Vec<TreeRoot>),
}

/// What the resources below a tree have in its way.
enum InTheWay {
    Nothing,
    /// A write of one of them, until its record changes.
    Write(ResourceKey, Snapshot),
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
            Box::pin(self.wait_for_members(request, &claim, trees, end)).await.map(|()| Vec::new())
        };
        match found {
            Ok(found) if found.is_empty() => Ok(FoundBelow::Held(claim)),
            other => {
                claim.settle(Outcome::NotApplied, None).await;
                other.map(FoundBelow::Of)
            }
        }
    }

    /// Waits until no write below these trees is in progress.
    async fn wait_for_members(
        &self,
        request: &Request,
        claim: &Held,
        trees: &[TreeRoot],
        end: Instant,
    ) -> Result<(), Halt> {
        loop {
            let InTheWay::Write(key, snapshot) = self.look_below(request, claim, trees).await? else { return Ok(()) };
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(refusals::write_in_flight(refusals::RETRY_SOON, Reason::WriteInFlight).into());
            }
            let deadline = snapshot.record.marks().map(|mark| snapshot.now.until(mark.deadline)).min();
            let change = self.knowledge.records.changed(&key, &snapshot, snapshot.revision);
            let _ = timeout(left.min(deadline.unwrap_or_default()), change).await;
        }
    }

    async fn look_below(&self, request: &Request, claim: &Held, trees: &[TreeRoot]) -> Result<InTheWay, Halt> {
        let of_store = |error: StoreError| refusals::of_store(&error);
        let pinned = self.knowledge.records.pinned_below(trees, PINNED_MAX + 1).await.map_err(of_store)?;
        if pinned.len() > PINNED_MAX {
            return Err(too_many_members().into());
        }
        let mut in_the_way = InTheWay::Nothing;
        for (key, snapshot) in pinned.into_iter().filter(|(key, _)| !claim.is_on(key)) {
            let snapshot = match snapshot.availability_by_own() {
                Availability::Orphaned => self.claims.take_over_dead(&key, Some(snapshot)).await.map_err(of_store)?,
                _ => snapshot,
            };
            match snapshot.availability_by_own() {
                Availability::Free => {}
                Availability::InDoubt { until } => {
                    return Err(refusals::write_in_flight(snapshot.now.until(until), Reason::WriteInDoubt).into());
                }
                Availability::Busy { .. } | Availability::Orphaned => {
                    in_the_way = InTheWay::Write(key, snapshot);
                    continue;
                }
            }
            if trees.iter().any(|tree| !tree.is_read && tree.is_above(&key)) {
                judge_by_leases(request, &key, &snapshot)?;
            }
        }
        Ok(in_the_way)
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
                    tracing::warn!(?key, %error, "cannot end the lease of a resource that was moved or removed");
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
    let path = key.as_str().strip_prefix(request.upstream().identity.as_str()).and_then(|rest| rest.strip_prefix(':'));
    let path = path.map(|path| request.route().mapping.to_client(path.as_bytes()).unwrap_or_else(|| path.into()));
    let path = path.map(|path| String::from_utf8_lossy(&path).into_owned()).unwrap_or_default();
    let mut refusal = request.grammar().use_denied(denied).because(Reason::LeaseHeld);
    refusal.detail = format!("{path}, which is below the collection, is leased: {}", refusal.detail).into();
    refusal.cause_mut().leased_member = Some(path.into());
    Err(refusal)
}

fn too_many_members() -> Refusal {
    let detail =
        "more than 1,000 resources below the collection are leased or written: nothing was done; try again later";
    Refusal::new(Code::Overloaded, detail).retry_after(refusals::RETRY_SOON)
}
