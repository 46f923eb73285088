//! The operations of an operator on records, on any route: look, break a lease, forget the known state.
//!
//! # Design
//!
//! *What does forgetting do?* It gives the resource a new version, like a write that touches it. No earlier tag is
//! current any more and no remembered response counts, in any process of the store. Marks, doubts and leases stay. A
//! DELETE that waits for the holders of a lease is given up. A write in flight ends as usual, but keeps nothing of what
//! it learned.
//!
//! *What about a resource without a record?* Its version is the floor of its bucket, and a prefix can reach every
//! bucket. So all floors are raised once, before the records of the prefix are changed. A record that is forgotten
//! meanwhile falls back to the raised floor.

use std::time::Duration;

use super::Guard;
use crate::{
    core::{
        lease::{Lease, LeaseState, break_leases},
        records::{
            record::{Availability, Record, Revision, Snapshot},
            steps::touch,
        },
        resource::ResourceKey,
        time::StoreTime,
    },
    store::{Incarnation, Scanned, StoreError},
};

/// The reason why no lease was broken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotBroken {
    /// The resource has no lease, or its lease has ended and is forgotten.
    #[error("there is no lease")]
    NoLease,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The result of forgetting the known state of a resource.
#[derive(Clone, Debug)]
pub struct Forgotten {
    /// The record after that.
    pub snapshot: Snapshot,
    /// True if a write was in flight or in doubt. It was judged by the earlier state.
    pub was_busy: bool,
}

/// The result of breaking leases.
#[derive(Clone, Debug)]
pub struct Broken {
    /// The record after that.
    pub snapshot: Snapshot,
    /// True if the leases were broken before. Then nothing has changed.
    pub was_broken: bool,
}

impl Guard {
    /// The record of a resource.
    pub async fn look(&self, key: &ResourceKey) -> Result<Snapshot, StoreError> {
        self.knowledge.snapshot(key).await
    }

    /// Checks that the store would make a change durable now.
    pub async fn try_out(&self) -> Result<(), StoreError> {
        self.knowledge.records.try_out().await
    }

    /// Returns the next records of the store, in its own order ([`Store::scan`](crate::store::Store::scan)).
    pub async fn page(&self, after: Option<&ResourceKey>, limit: usize) -> Result<Scanned, StoreError> {
        self.knowledge.records.scan(after, limit).await
    }

    /// The first part of every version tag of the store.
    pub fn incarnation(&self) -> Incarnation {
        self.knowledge.records.incarnation()
    }

    /// Returns how much longer guarded writes and grants are held back after the start.
    pub fn held_back(&self, now: StoreTime) -> Duration {
        self.claims.held_back(now)
    }

    /// Breaks the leases of a resource without their ids: the one with this fence, or all. Each holder has at most
    /// `period` to finish.
    pub async fn break_leases(
        &self,
        key: &ResourceKey,
        period: Duration,
        fence: Option<Revision>,
    ) -> Result<Broken, NotBroken> {
        let (mut is_there, mut was_broken) = (false, false);
        let step = |snapshot: &Snapshot| {
            let is_meant = |lease: &Lease| fence.is_none_or(|fence| lease.fence.resolve(snapshot.revision) == fence);
            let state = snapshot.leases().filter(|lease| is_meant(lease)).map(|lease| lease.state(snapshot.now)).max();
            was_broken = state == Some(LeaseState::Broken);
            let broken = break_leases(snapshot, period, fence).ok();
            is_there = broken.is_some();
            broken.filter(|_| !was_broken)
        };
        let snapshot = self.knowledge.records.update(key, None, step).await?.snapshot;
        if !is_there {
            return Err(NotBroken::NoLease);
        }
        self.leases.recount(key, &snapshot);
        Ok(Broken { snapshot, was_broken })
    }

    /// Forgets the known state of a resource.
    pub async fn forget(&self, key: &ResourceKey) -> Result<Forgotten, StoreError> {
        let mut was_busy = false;
        let step = |before: &Snapshot| {
            was_busy = before.availability() != Availability::Free;
            Some(Record { pending_delete: None, ..touch(before, None) })
        };
        let snapshot = self.knowledge.records.update(key, None, step).await?.snapshot;
        Ok(Forgotten { snapshot, was_busy })
    }

    /// Forgets the known state of every resource that has no record.
    pub async fn forget_absent(&self) -> Result<(), StoreError> {
        self.knowledge.records.raise_floors().await
    }

    /// Forgets which clients the upstream has let read which resources. The proxy then asks the upstream about each
    /// again.
    pub fn forget_read_grants(&self) {
        self.knowledge.forget_read_grants();
    }
}
