//! Leases of single resources that a list names, so that all of them can be shown.
//!
//! # Design
//!
//! *What does a list promise?* It names each lease whose client got its id: the proxy grants the lease, then lists it,
//! and only then answers. Only the record of its resource shows whether an entry still counts.
//!
//! *What if a process dies before it lists a lease?* No client got the id of that lease. A process that shows the lease
//! to another client lists it first ([`put_on_list`](Leases::put_on_list)).

use super::{Leases, Operated, rules_of_leases};
use crate::{
    body::Client,
    core::{
        lease::{Acquire, Action, Done},
        records::{
            record::Snapshot,
            tree_leases::{LISTED_LEASES, LeaseReach, TreeLease},
        },
        refusal::{Code, Refusal},
        resource::ResourceKey,
    },
    dialect::LeaseOperation,
    guard::{Halt, refusals, request::Request},
};

impl Leases {
    /// Acquires a lease, and puts it on a list.
    ///
    /// # Errors
    ///
    /// The lease is denied, the list is full, or its route has no leases.
    pub(crate) async fn acquire_listed(
        &self,
        client: &mut dyn Client,
        request: &Request,
        (wanted, named): (Acquire, &ResourceKey),
    ) -> Result<Operated, Halt> {
        let rules = rules_of_leases(request)?;
        let operation = LeaseOperation::Step { action: Action::Acquire(wanted), wait: None };
        let operated = self.operate(client, request, rules, operation).await?;
        let Some(Done::Acquired { id, .. }) = operated.done else { return Err(refusals::unknown_state().into()) };
        let Err(refused) = self.put_on_list(&request.key, &operated.snapshot, named).await else {
            return Ok(operated);
        };
        let released = self.take_step(client, request, rules, Action::Release { id }, None).await;
        // Otherwise it is taken back when `untold` is dropped.
        if let (Ok(_), Some(untold)) = (released, operated.untold) {
            untold.told();
        }
        Err(refused.into())
    }

    /// Carries out an operation that ends a lease, and takes it off its list.
    pub(crate) async fn end_listed(
        &self,
        client: &mut dyn Client,
        request: &Request,
        (action, named): (Action, &ResourceKey),
    ) -> Result<Operated, Halt> {
        let operation = LeaseOperation::Step { action, wait: None };
        let operated = self.operate(client, request, rules_of_leases(request)?, operation).await?;
        self.unlist(named, &request.key, &operated.snapshot).await;
        Ok(operated)
    }

    /// Puts the lease that a record shows on a list, unless it is there.
    pub(crate) async fn put_on_list(
        &self,
        key: &ResourceKey,
        found: &Snapshot,
        named: &ResourceKey,
    ) -> Result<(), Refusal> {
        let lease = TreeLease { root: key.as_str().into(), fence: found.fence(), reach: LeaseReach::Itself };
        match self.list(named, &lease, LISTED_LEASES).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(too_many()),
            Err(error) => Err(refusals::of_lease_store(&error)),
        }
    }
}

fn too_many() -> Refusal {
    let detail = format!(
        "clients hold {} locks of this collection, or locks with long names: release some of them first",
        LISTED_LEASES.leases
    );
    Refusal::new(Code::StoreFull, detail).retry_after(refusals::RETRY_SOON)
}
