//! The places of leases in the quota of their holders, as a step gives and takes them.

use super::{
    Leases,
    quota::{GrantedLease, Holder, Most, QuotaExceeded, Reservation},
};
use crate::{
    core::{
        lease::Done,
        policy::LeaseRules,
        records::record::Snapshot,
        refusal::{Code, Refusal},
        resource::ResourceKey,
    },
    guard::request::Request,
};

impl Leases {
    /// Counts the leases of a resource as they are now: one that has ended frees its place in its holder's quota.
    pub(crate) fn recount(&self, key: &ResourceKey, snapshot: &Snapshot) {
        self.quota.follow(key, snapshot);
    }

    /// Reserves a place in the principal's quota for a lease that is about to be granted.
    pub(super) fn reserve_place(
        &self,
        request: &Request,
        rules: &LeaseRules,
        snapshot: &Snapshot,
        done: Done,
    ) -> Result<Option<Reservation<'_>>, Refusal> {
        let Done::Acquired { id, .. } = done else { return Ok(None) };
        let most = Most { per_principal: rules.max_per_principal, per_address: rules.max_per_address };
        self.quota.follow(&request.key, snapshot);
        let own = snapshot.leases().find(|lease| lease.id == id).map(|lease| lease.fence.resolve(snapshot.revision));
        let place = self.quota.reserve(holder(request), (&request.key, own), snapshot.now, most);
        let refuse = |no_place| match no_place {
            QuotaExceeded::Principal => {
                Refusal::new(Code::TooManyLeases, "release a lease before you acquire another one")
            }
            QuotaExceeded::Address => Refusal::new(
                Code::TooManyLeases,
                "the clients at your address hold as many leases as they may: release one before you acquire another",
            ),
        };
        place.map(Some).map_err(refuse)
    }

    /// Updates the quota from the current leases.
    pub(super) fn note_lease(&self, request: &Request, snapshot: &Snapshot, done: Done) {
        self.quota.follow(&request.key, snapshot);
        if let Done::Acquired { id, .. } = done
            && let Some(lease) = snapshot.leases().find(|lease| lease.id == id)
        {
            let (fence, as_of) = (lease.fence.resolve(snapshot.revision), snapshot.revision);
            let granted = GrantedLease { fence, holder: holder(request), end: lease.end(), as_of };
            self.quota.hold(&request.key, granted, snapshot.now);
        }
    }
}

/// Returns the holder that a lease is granted to.
fn holder(request: &Request) -> Holder {
    Holder { principal: request.sender.principal, address: request.sender.address }
}
