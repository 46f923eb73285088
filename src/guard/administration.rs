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

use tokio::time::timeout;

use super::{Guards, claim::swap};
use crate::{
    core::{
        lease::break_lease,
        record::{Availability, Snapshot},
        resource::ResourceKey,
        steps::touch,
        time::StoreTime,
    },
    store::{Incarnation, StoreError, Swapped},
};

/// How often a swap is tried again because something else changed the record: each time somebody else got on.
const ATTEMPTS_MAX: usize = 100;

/// How long raising the floors of all buckets may take: an engine does it in some hundred steps.
const RAISE_MAX: Duration = Duration::from_secs(60);

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

impl Guards {
    /// The record of a resource.
    pub async fn look(&self, key: &ResourceKey) -> Result<Snapshot, StoreError> {
        self.snapshot(key).await
    }

    /// Whether a change would last in the store now.
    pub async fn try_out(&self) -> Result<(), StoreError> {
        timeout(self.store_timeout, self.store.try_out()).await.map_err(|_elapsed| StoreError::Unavailable)?
    }

    /// The next records of the store, in its own order ([`Store::scan`](crate::store::Store::scan)).
    pub async fn page(
        &self,
        after: Option<&ResourceKey>,
        limit: usize,
    ) -> Result<Vec<(ResourceKey, Snapshot)>, StoreError> {
        timeout(self.store_timeout, self.store.scan(after, limit)).await.map_err(|_elapsed| StoreError::Unavailable)?
    }

    /// What the version tags of the store begin with.
    pub fn incarnation(&self) -> Incarnation {
        self.store.incarnation()
    }

    /// How long guarded writes and grants are still held back after the start.
    pub fn held_back(&self, now: StoreTime) -> Duration {
        now.until(self.held_until)
    }

    /// Breaks the lease of a resource, whoever holds it; its holder has at most `period` to finish.
    pub async fn break_lease(&self, key: &ResourceKey, period: Duration) -> Result<Snapshot, NotBroken> {
        for _ in 0..ATTEMPTS_MAX {
            let snapshot = self.snapshot(key).await?;
            let (record, remaining) = break_lease(&snapshot, period).map_err(|_no_lease| NotBroken::NoLease)?;
            let swapped = swap(&*self.store, self.store_timeout, key, snapshot.revision, record).await?;
            if let Swapped::Done(snapshot) = swapped {
                if remaining.is_zero() {
                    self.holdings.free(key);
                } else {
                    self.holdings.change_end(key, Some(snapshot.now.plus(remaining)));
                }
                return Ok(snapshot);
            }
        }
        Err(StoreError::Unavailable.into())
    }

    /// Forgets what is known of a resource.
    pub async fn forget(&self, key: &ResourceKey) -> Result<Forgotten, StoreError> {
        for _ in 0..ATTEMPTS_MAX {
            let before = self.snapshot(key).await?;
            let swapped = swap(&*self.store, self.store_timeout, key, before.revision, touch(&before)).await?;
            if let Swapped::Done(snapshot) = swapped {
                return Ok(Forgotten { snapshot, was_busy: before.availability() != Availability::Free });
            }
        }
        Err(StoreError::Unavailable)
    }

    /// Forgets what is known of every resource that has no record.
    pub async fn forget_absent(&self) -> Result<(), StoreError> {
        timeout(RAISE_MAX, self.store.raise_floors()).await.map_err(|_elapsed| StoreError::Unavailable)?
    }

    /// Forgets whom the upstream has let read what: each client is asked about at the upstream again.
    pub fn forget_acquaintances(&self) {
        self.acquaintances.forget_all();
    }
}
