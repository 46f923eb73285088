//! Names in place of the numbers that depend on chance and on the order of unrelated events.
//!
//! A store numbers all its records together, a process all its marks, and lease ids are random. So two orders of
//! events that have nothing to do with each other give different records, which behave alike. A state is described by
//! names instead: a revision is the third of its record, a mark the second of its request.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
};

use ifmatch::core::{
    lease::LeaseId,
    records::record::{Mark, Record, Revision, Snapshot, Stamp},
    resource::ResourceKey,
};

/// The names that were given so far.
#[derive(Default)]
pub struct Names {
    revisions: HashMap<Revision, u64>,
    /// The number of revisions of each record.
    swaps: HashMap<ResourceKey, u64>,
    marks: HashMap<(u64, u64), u64>,
    leases: HashMap<LeaseId, u64>,
    /// The number of marks and leases that each request has made.
    made: HashMap<Option<usize>, u64>,
}

impl Names {
    /// Names what a request puts into a record that it wants to write.
    pub fn of_request(&mut self, request: Option<usize>, next: &Record) {
        let made = self.made.entry(request).or_default();
        let mut name = || {
            *made += 1;
            hash(&(request, *made))
        };
        for mark in next.marks() {
            self.marks.entry((mark.owner, mark.nonce)).or_insert_with(&mut name);
        }
        for lease in &next.leases {
            self.leases.entry(lease.id).or_insert_with(&mut name);
        }
    }

    /// Names the revision that a swap gave to a record.
    pub fn of_swap(&mut self, key: &ResourceKey, revision: Revision) {
        let swaps = self.swaps.entry(key.clone()).or_default();
        *swaps += 1;
        let name = hash(&(key.as_str(), *swaps));
        self.revisions.entry(revision).or_insert(name);
    }

    /// Returns the name of a revision; one that no swap gave has none but itself.
    pub fn revision(&self, revision: Revision) -> Revision {
        self.revisions.get(&revision).map_or(revision, |name| Revision(*name))
    }

    /// Returns all of a record that its readers can distinguish, as a number.
    pub fn snapshot(&self, Snapshot { revision, record, now, .. }: &Snapshot) -> u64 {
        hash(&(self.revision(*revision), self.record(record), now))
    }

    /// Returns a record with names in it.
    pub fn record(&self, record: &Record) -> Record {
        let mut named = record.clone();
        let stamps = [&mut named.version, &mut named.touched, &mut named.fence];
        let of_doubt = named.doubt.iter_mut().map(|doubt| &mut doubt.version);
        let of_trees = named.trees.iter_mut().flat_map(|trees| trees.changes.iter_mut().map(|change| &mut change.at));
        let of_leases = named.leases.iter_mut().map(|lease| &mut lease.fence);
        stamps.into_iter().chain(of_doubt).chain(of_leases).chain(of_trees).for_each(|stamp| self.name(stamp));
        for lease in &mut named.leases {
            let name = self.leases.get(&lease.id).map_or(0, |name| u128::from(*name));
            lease.id = LeaseId::from_random(name.to_le_bytes());
        }
        named.claim.iter_mut().chain(&mut named.unclaimed).for_each(|mark| self.name_mark(mark));
        named
    }

    fn name(&self, stamp: &mut Stamp) {
        if let Stamp::At(revision) = stamp {
            *revision = self.revision(*revision);
        }
    }

    fn name_mark(&self, mark: &mut Mark) {
        mark.nonce = self.marks.get(&(mark.owner, mark.nonce)).copied().unwrap_or(mark.nonce);
    }
}

/// Returns a hash that is the same in each process.
pub fn hash(what: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}
