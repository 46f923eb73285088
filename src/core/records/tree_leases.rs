//! The leases of collections that reach the resources below them (DESIGN, section 3, rules 1 and 10).
//!
//! # Design
//!
//! *Why does the record of trees list them?* A resource cannot know which of the collections around it is leased, and
//! may have many. All resources look at the record of trees anyway. It names a lease by its collection and its fence.
//! Only the record of the collection shows whether the lease is still held, so a lease that has ended binds no client.
//!
//! *How do such a lease and the writes below it exclude each other?* Each side publishes, then checks. The lease is
//! granted, and then listed. Only then its client waits for the writes below that have begun. A write makes its mark, and
//! then looks at the list again. Of two at the same time, one at least sees the other.
//!
//! *Why is such a lease forgotten at its end?* A write below leaves no trace in the record of the collection. So a
//! renewal after the end could not show that there was no write meanwhile. An entry of the list therefore never counts
//! again once its lease has ended, and can be removed at any time.

use super::{
    record::{Record, Revision, Snapshot, Stamp},
    trees::{Trees, is_below},
};
use crate::core::{lease::Lease, resource::ResourceKey};

pub use super::trees::{LeaseAround, LeaseReach, TreeLease};

/// The most leases in a list, and the most bytes of their roots together.
#[derive(Clone, Copy, Debug)]
pub struct ListLimits {
    /// The number of leases.
    pub leases: usize,
    /// The bytes.
    pub bytes: usize,
}

/// The limits of the list of leases that reach below. Each resource that is read is compared with each of them, and every
/// read of a shared store fetches them.
pub const TREE_LEASES: ListLimits = ListLimits { leases: 256, bytes: 32 * 1024 };

/// The limits of a list that tells which resources are leased. Each grant writes the whole list again, as a text of up to
/// 700 kB. A request to etcd may have 1.5 MB.
pub const LISTED_LEASES: ListLimits = ListLimits { leases: 4_096, bytes: 448 * 1024 };

impl TreeLease {
    /// True if the lease reaches this resource.
    pub fn reaches(&self, key: &str) -> bool {
        let is_reached = match self.reach {
            LeaseReach::Itself => false,
            LeaseReach::Membership => is_member(key, &self.root),
            LeaseReach::Tree => true,
        };
        is_reached && is_below(key, &self.root)
    }
}

/// True if a resource is in a collection itself, and not in one below it.
fn is_member(key: &str, root: &str) -> bool {
    let root = root.strip_suffix('/').unwrap_or(root);
    key.strip_prefix(root).and_then(|rest| rest.strip_prefix('/')).is_some_and(|name| !name.contains('/'))
}

/// The leases in the list that reach this resource, held or not.
pub fn listed_around<'a>(trees: &'a Snapshot, key: &'a str) -> impl Iterator<Item = &'a TreeLease> {
    trees.listed_leases().filter(|listed| listed.reaches(key))
}

/// Returns the lease that an entry of the list names, by the record of its collection.
pub fn lease_around(listed: &TreeLease, root: ResourceKey, found: &Snapshot) -> Option<LeaseAround> {
    let mut lease = found.held_lease(listed.fence)?.clone();
    lease.fence = Stamp::At(listed.fence);
    Some(LeaseAround { root, lease, reach: listed.reach, seen: found.revision })
}

/// True if a record of its resource shows that the lease in an entry of the list has ended. A record that is older than
/// the entry shows nothing of the lease.
pub fn is_over(listed: &TreeLease, key: &ResourceKey, found: &Snapshot) -> bool {
    let is_known = *listed.root == *key.as_str() && listed.fence <= found.fence();
    is_known && found.held_lease(listed.fence).is_none()
}

/// Adds a lease to the list. `None` if it is there, or if the list is full.
pub fn list(trees: &Snapshot, lease: &TreeLease, most: ListLimits) -> Option<Record> {
    let mut record = trees.draft();
    let leases = &mut record.trees.get_or_insert_default().leases;
    let is_there = leases.contains(lease);
    leases.push(lease.clone());
    let bytes = leases.iter().map(|listed| listed.root.len()).sum::<usize>();
    (!is_there && leases.len() <= most.leases && bytes <= most.bytes).then_some(record)
}

/// Removes leases from the list. `None` if none of these is there.
pub fn unlist(trees: &Snapshot, is_over: impl Fn(&TreeLease) -> bool) -> Option<Record> {
    let mut record = trees.draft();
    let leases = &mut record.trees.as_mut()?.leases;
    let before = leases.len();
    leases.retain(|listed| !is_over(listed));
    (leases.len() < before).then_some(record)
}

impl Trees {
    /// Returns only what must survive a restart of the process: the leases, which do.
    pub fn lasting(&self) -> Option<Box<Self>> {
        let leases = self.leases.clone();
        (!leases.is_empty()).then(|| Box::new(Self { leases, ..Self::default() }))
    }
}

impl Snapshot {
    /// The leases in the list that the record is, held or not.
    pub fn listed_leases(&self) -> impl Iterator<Item = &TreeLease> {
        self.record.trees.iter().flat_map(|trees| &trees.leases)
    }

    /// The leases of collections around the resource that clients hold, and that reach it this far.
    pub fn held_around(&self, reach: LeaseReach) -> impl Iterator<Item = &LeaseAround> + Clone {
        let is_held = move |around: &&LeaseAround| around.lease.state(self.now).is_held();
        self.leases_around.iter().filter(move |around| around.reach == reach).filter(is_held)
    }

    /// The leases by which a client may hold the resource: its own, and those of all trees around it.
    pub fn holding_leases(&self) -> impl Iterator<Item = &Lease> {
        self.held_leases().chain(self.held_around(LeaseReach::Tree).map(|around| &around.lease))
    }

    /// True if this record shows each lease around the resource that is held in a later look at it.
    pub fn shows_all_around(&self, later: &Self) -> bool {
        let is_shown = |around: &LeaseAround| {
            let is_same = |known: &LeaseAround| known.lease.fence == around.lease.fence && known.root == around.root;
            self.leases_around.iter().any(is_same)
        };
        later.leases_around.iter().filter(|around| around.lease.state(later.now).is_held()).all(is_shown)
    }

    /// The number for a backend that checks fences: it grows with each grant of a lease by which a client holds the resource.
    pub fn fence_of_writes(&self) -> Revision {
        let around = self.held_around(LeaseReach::Tree).map(|around| around.lease.fence.resolve(around.seen));
        around.fold(self.fence(), Revision::max)
    }
}

#[cfg(test)]
#[path = "tree_leases_tests.rs"]
mod tests;
