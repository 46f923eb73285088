//! What an operator may do to records, whatever their routes say: look, break a lease, forget what is known.
//!
//! # Design
//!
//! *What does forgetting do?* It gives the resource a new version, as a write that touches it would: no tag of before is
//! current, no remembered response stands, in any process of the store. Marks, doubts and leases stay: a write in flight
//! ends as it must, and keeps nothing of what it learned.
//!
//! *And what has no record?* Its version is the floor of its bucket, and the buckets of a prefix are all of them. So
//! the floors of all are raised, once, before the records of the prefix are gone through: what is forgotten meanwhile
//! finds the raised floor.

use std::time::Duration;

use super::Guard;
use crate::{
    core::{
        lease::break_lease,
        record::{Availability, Snapshot},
        resource::ResourceKey,
        steps::touch,
        time::StoreTime,
    },
    store::{Incarnation, StoreError, Updated},
};

/// Why a lease was not broken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotBroken {
    /// There is none, or it has ended and is forgotten.
    #[error("there is no lease")]
    NoLease,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What became of a record whose knowledge was forgotten.
#[derive(Clone, Debug)]
pub struct Forgotten {
    /// The record since then.
    pub snapshot: Snapshot,
    /// Whether a write was in flight or in doubt: it was judged by what was known before.
    pub was_busy: bool,
}

impl Guard {
    /// The record of a resource.
    pub async fn look(&self, key: &ResourceKey) -> Result<Snapshot, StoreError> {
        self.knowledge.snapshot(key).await
    }

    /// Whether a change would last in the store now.
    pub async fn try_out(&self) -> Result<(), StoreError> {
        self.knowledge.records().try_out().await
    }

    /// The next records of the store, in its own order ([`Store::scan`](crate::store::Store::scan)).
    pub async fn page(
        &self,
        after: Option<&ResourceKey>,
        limit: usize,
    ) -> Result<Vec<(ResourceKey, Snapshot)>, StoreError> {
        self.knowledge.records().scan(after, limit).await
    }

    /// What the version tags of the store begin with.
    pub fn incarnation(&self) -> Incarnation {
        self.knowledge.records().incarnation()
    }

    /// How long guarded writes and grants are still held back after the start.
    pub fn held_back(&self, now: StoreTime) -> Duration {
        self.claims.held_back(now)
    }

    /// Breaks the lease of a resource, whoever holds it; its holder has at most `period` to finish.
    pub async fn break_lease(&self, key: &ResourceKey, period: Duration) -> Result<Snapshot, NotBroken> {
        let mut remaining = None;
        let step = |snapshot: &Snapshot| {
            let (record, left) = break_lease(snapshot, period).ok()?;
            remaining = Some(left);
            Some(record)
        };
        let Updated { snapshot, is_changed } = self.knowledge.records().update(key, None, step).await?;
        match remaining.filter(|_| is_changed) {
            None => return Err(NotBroken::NoLease),
            Some(Duration::ZERO) => self.leases.free_place(key),
            Some(left) => self.leases.change_end(key, Some(snapshot.now.plus(left))),
        }
        Ok(snapshot)
    }

    /// Forgets what is known of a resource.
    pub async fn forget(&self, key: &ResourceKey) -> Result<Forgotten, StoreError> {
        let mut was_busy = false;
        let step = |before: &Snapshot| {
            was_busy = before.availability() != Availability::Free;
            Some(touch(before))
        };
        let snapshot = self.knowledge.records().update(key, None, step).await?.snapshot;
        Ok(Forgotten { snapshot, was_busy })
    }

    /// Forgets what is known of every resource that has no record.
    pub async fn forget_absent(&self) -> Result<(), StoreError> {
        self.knowledge.records().raise_floors().await
    }

    /// Forgets whom the upstream has let read what: each client is asked about at the upstream again.
    pub fn forget_read_grants(&self) {
        self.knowledge.forget_read_grants();
    }
}
