//! The leases of one resource: one exclusive lease, or the shared leases of several clients.
//!
//! # Design
//!
//! *Why does a shared lease have a fence of its own?* It names the lease among the others, for an operator who must not
//! see the id. The record has the fence of the last grant, and the proxy sends that one with a write of any holder. So a
//! backend that checks fences accepts all holders, and refuses what was sent before the last grant.
//!
//! *Why are ended leases kept beside held ones?* A shared lease that ran out can be renewed as long as only its other
//! holders have written. A lease that begins while no client holds any replaces all that have ended.

use super::{Lease, LeaseId, LeaseState, PrincipalName};
use crate::core::{
    records::revision::{Revision, Stamp},
    time::StoreTime,
};

/// The maximum number of leases of one resource, ended ones included. Each change of one of them writes all again: 64
/// with the longest labels take 70 kB.
pub const SHARED_LEASES_MAX: usize = 64;

/// The leases of one resource, held or remembered: at most one exclusive lease, or only shared ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct LeaseSet(Vec<Lease>);

impl LeaseSet {
    /// A set without leases.
    pub const NONE: Self = Self(Vec::new());

    /// True if the set has no leases.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All leases of the set.
    pub fn iter(&self) -> std::slice::Iter<'_, Lease> {
        self.0.iter()
    }

    /// All leases of the set, to change them.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, Lease> {
        self.0.iter_mut()
    }

    /// A copy with only the leases that are kept.
    #[must_use]
    pub fn only(&self, is_kept: impl Fn(&Lease) -> bool) -> Self {
        let kept = self.iter().filter(|lease| is_kept(lease));
        // A copy that grew step by step would have room for four leases, and most resources have one at most.
        let mut leases = Vec::with_capacity(kept.clone().count());
        leases.extend(kept.cloned());
        Self(leases)
    }

    /// Removes all other leases than these.
    pub fn retain(&mut self, is_kept: impl FnMut(&Lease) -> bool) {
        self.0.retain(is_kept);
    }

    /// The state of the resource by its leases.
    pub fn state(&self, now: StoreTime) -> LeaseState {
        self.iter().map(|lease| lease.state(now)).max().unwrap_or(LeaseState::Available)
    }

    /// The leases that are held or remembered.
    pub fn remembered(&self, now: StoreTime) -> impl Iterator<Item = &Lease> {
        self.iter().filter(move |lease| lease.is_remembered(now))
    }

    /// The remembered lease that keeps others away for longest.
    pub fn foremost(&self, now: StoreTime) -> Option<&Lease> {
        self.remembered(now).max_by_key(|lease| (lease.state(now), lease.end().is_none(), lease.end()))
    }

    /// The leases that clients hold.
    pub fn held(&self, now: StoreTime) -> impl Iterator<Item = &Lease> {
        self.iter().filter(move |lease| lease.state(now).is_held())
    }

    /// The lease that the bearer of this id holds, or held.
    pub fn proved_by(&self, id: LeaseId, principal: Option<PrincipalName>) -> Option<&Lease> {
        self.iter().find(|lease| lease.is_proved_by(id, principal))
    }

    /// The time from which no lease counts any more; `None` if one of them has no end.
    pub fn forgotten_from(&self) -> Option<StoreTime> {
        self.iter().try_fold(StoreTime::default(), |latest, lease| Some(lease.forgotten_from()?.max(latest)))
    }

    /// Writes the revision of their record into the leases.
    pub fn resolve(&mut self, own: Revision) {
        for lease in self {
            lease.fence = Stamp::At(lease.fence.resolve(own));
        }
    }

    /// The same leases with the revision of their record written into them.
    #[must_use]
    pub fn resolved(mut self, own: Revision) -> Self {
        self.resolve(own);
        self
    }

    /// Puts a lease in place of the one with the same id, or behind the others. If the set is full, the lease that
    /// ended first is forgotten.
    pub(super) fn put(&mut self, lease: Lease, now: StoreTime) {
        if let Some(same) = self.iter_mut().find(|other| other.id == lease.id) {
            *same = lease;
            return;
        }
        let ended = self.iter().enumerate().filter(|(_, other)| !other.state(now).is_held());
        if let Some((place, _)) = ended.min_by_key(|(_, other)| other.end())
            && self.0.len() >= SHARED_LEASES_MAX
        {
            self.0.remove(place);
        }
        self.0.reserve_exact(1);
        self.0.push(lease);
    }
}

impl<'a> IntoIterator for &'a LeaseSet {
    type Item = &'a Lease;
    type IntoIter = std::slice::Iter<'a, Lease>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a> IntoIterator for &'a mut LeaseSet {
    type Item = &'a mut Lease;
    type IntoIter = std::slice::IterMut<'a, Lease>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

impl FromIterator<Lease> for LeaseSet {
    fn from_iter<Source: IntoIterator<Item = Lease>>(leases: Source) -> Self {
        Self(leases.into_iter().collect())
    }
}
