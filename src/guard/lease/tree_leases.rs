//! The leases of collections that reach the resources below them ([`tree_leases`](crate::core::records::tree_leases)).

use std::time::Duration;

use pingora::ErrorType;
use tokio::time::Instant;

use super::{
    Leases, Operated, rules_of_leases,
    step::Stepped,
    untold::{UntoldGrant, has_nobody_to_tell},
};
use crate::{
    body::Client,
    core::{
        cause::Reason,
        lease::{Acquire, Action, Denied, Done, Lease, LeaseId, LeaseMode},
        policy::{LeaseAuth, LeaseRules},
        records::{
            record::Snapshot,
            tree_leases::{LeaseReach, TREE_LEASES, TreeLease},
            trees::TreeRoot,
        },
        refusal::{Code, Refusal},
        resource::ResourceKey,
    },
    guard::{Halt, refusals, request::Request},
};

impl Leases {
    /// Acquires the lease of a collection that reaches this far below it. If the lease of a resource there is in the way, its
    /// path is in the cause of the refusal.
    ///
    /// # Errors
    ///
    /// The lease is denied, perhaps because of another one below it, or its route has no leases.
    pub(crate) async fn acquire_tree(
        &self,
        client: &mut dyn Client,
        request: &Request,
        (wanted, reach): (Acquire, LeaseReach),
    ) -> Result<Operated, Halt> {
        let (rules, mode) = (of_trees(rules_of_leases(request)?), wanted.mode);
        let end = Instant::now() + request.rules().claim.max_wait;
        let around = self.knowledge.records.trees_around(&request.key).ok_or_else(refusals::unknown_state)?;
        let stepped = self.take_step(client, request, &rules, Action::Acquire(wanted), None).await?;
        let Stepped { done, snapshot, waited, asked, untold } = stepped;
        let Done::Acquired { id, duration, .. } = done else { return Err(refusals::unknown_state().into()) };
        let lease = TreeLease { root: request.key.as_str().into(), fence: snapshot.fence(), reach };
        let reached = match self.list(&around, &lease, TREE_LEASES).await {
            Ok(true) => self.wait_for_reached(request, &lease, mode, end).await,
            Ok(false) => Err(too_many()),
            Err(error) => Err(refusals::of_lease_store(&error)),
        };
        if let Err(refused) = reached {
            self.give_back(client, request, (id, untold)).await;
            return Err(refused.into());
        }
        if has_nobody_to_tell(client, duration) {
            return Err(Halt::Broken(pingora::Error::new_down(ErrorType::ConnectionClosed)));
        }
        Ok(Operated { done: Some(done), snapshot, waited, asked, untold, validators: None })
    }

    /// Carries out another operation on such a lease.
    pub(crate) async fn operate_tree(
        &self,
        client: &mut dyn Client,
        request: &Request,
        action: Action,
    ) -> Result<Operated, Halt> {
        let rules = rules_of_leases(request)?;
        if rules.auth == LeaseAuth::Probe {
            // Few servers answer a GET of a collection.
            self.probes.type_of(request).await?;
        }
        let stepped = self.take_step(client, request, &of_trees(rules), action, None).await?;
        let Stepped { done, snapshot, waited, asked, untold } = stepped;
        if done == Done::Released {
            self.unlist_ended_of(&request.key, &snapshot).await;
        }
        Ok(Operated { done: Some(done), snapshot, waited, asked, untold, validators: None })
    }

    /// Waits until no write is in progress that a new lease reaches. Fails if another client has a lease in its way.
    async fn wait_for_reached(
        &self,
        request: &Request,
        lease: &TreeLease,
        mode: LeaseMode,
        end: Instant,
    ) -> Result<(), Refusal> {
        let root = TreeRoot { key: lease.root.clone(), is_read: false };
        let is_reached = |key: &ResourceKey| lease.reaches(key.as_str());
        let judge = |key: &ResourceKey, snapshot: &Snapshot| {
            let is_in_the_way = |other: &&Lease| !other.mode.stands_beside(mode);
            match snapshot.held_leases().find(is_in_the_way).filter(|_| lease.reach == LeaseReach::Tree) {
                Some(other) => Err(in_the_way(request, key, (other, snapshot))),
                None => Ok(()),
            }
        };
        self.claims.wait_below(&[root], is_reached, judge, end).await
    }

    /// Gives up a lease whose client does not get its id.
    async fn give_back(
        &self,
        client: &mut dyn Client,
        request: &Request,
        (id, untold): (LeaseId, Option<UntoldGrant>),
    ) {
        let Some(rules) = &request.rules().lease else { return };
        let released = self.take_step(client, request, &of_trees(rules), Action::Release { id }, None).await;
        // Otherwise it is taken back when `untold` is dropped.
        if let Ok(Stepped { snapshot, .. }) = released {
            self.unlist_ended_of(&request.key, &snapshot).await;
            if let Some(untold) = untold {
                untold.told();
            }
        }
    }

    /// Removes the ended leases of a collection from the list. If that fails, they are removed later.
    async fn unlist_ended_of(&self, key: &ResourceKey, snapshot: &Snapshot) {
        if let Some(around) = self.knowledge.records.trees_around(key) {
            self.unlist(&around, key, snapshot).await;
        }
    }
}

/// The rules by which such a lease is granted: it cannot be renewed after its end.
fn of_trees(rules: &LeaseRules) -> LeaseRules {
    LeaseRules { remember_time: Duration::ZERO, ..rules.clone() }
}

/// The refusal of a lease that would reach a resource that another client has leased.
fn in_the_way(request: &Request, key: &ResourceKey, (other, snapshot): (&Lease, &Snapshot)) -> Refusal {
    let denied =
        Denied::Held { remaining: other.remaining(snapshot.now), holder: other.holder.clone(), is_breaking: false };
    let path = request.path_of(key).unwrap_or_default();
    let mut refusal = request.grammar().lease_denied(denied).because(Reason::LeaseHeld);
    refusal.detail = format!("{path}, which is below the collection, is leased: {}", refusal.detail).into();
    refusal.cause_mut().leased_elsewhere = Some(path.into());
    refusal
}

fn too_many() -> Refusal {
    let detail = format!(
        "clients hold {} locks of collections of this server, or long names of them: try again later",
        TREE_LEASES.leases
    );
    Refusal::new(Code::StoreFull, detail).retry_after(refusals::RETRY_SOON)
}
