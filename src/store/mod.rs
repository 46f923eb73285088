//! The stores of records: compare-and-swap over [`Record`]s with the store's own time (DESIGN, section 7).
//!
//! A store does not depend on HTTP, on leases, or on the meaning of a record. Its contract:
//!
//! * [`Store::swap`] succeeds only against the current revision of the record. Each success gives the record a revision
//!   greater than any that the store gave before. Swaps of two resources that succeed at the same moment may get the
//!   same revision.
//! * An absent record has a revision too: the floor of its bucket. The step that forgets a record also raises the floor
//!   to that record's revision. A swap that was decided on "absent" before that step fails after it.
//! * A record that is not idle ([`Record::is_idle`]) is never forgotten. If there is no room for one, the operation
//!   fails with [`StoreError::Full`].
//! * [`Snapshot::now`] is the store's time at the moment of the operation.

use std::fmt;

use async_trait::async_trait;

use crate::{
    core::{
        records::{
            counts::Counts,
            owed::Owed,
            record::{Record, Revision, Snapshot},
            trees::TreeRoot,
        },
        resource::ResourceKey,
        time::StoreTime,
    },
    telemetry::metrics::store::{FULL, UNAVAILABLE},
};

pub mod census;
pub mod disk;
pub mod encoding;
mod followed;
mod late;
pub mod memory;
mod open;
mod recent;
mod records;
#[cfg(feature = "shared-stores")]
mod shared;
#[cfg(not(feature = "shared-stores"))]
#[path = "without_shared.rs"]
mod shared;

pub use followed::Follower;
pub use open::{OpenError, Opened, PASSWORD_VARIABLE, open, owed};
pub use recent::Sighting;
pub use records::{Records, Updated};
pub use shared::SHARED_KINDS;
#[cfg(feature = "shared-stores")]
pub use shared::{etcd, postgres, redis};

/// The number that distinguishes the versions of one store from those of any other. It is drawn at random at the
/// store's first start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incarnation(pub u64);

impl fmt::Display for Incarnation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:016x}", self.0)
    }
}

/// A page of a scan: records with their resources, in the order of the keys.
pub type Scanned = Vec<(ResourceKey, Snapshot)>;

/// The result of a swap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Swapped {
    /// The swap was made. Holds the new record.
    Done(Snapshot),
    /// The record had another revision. Holds the current record.
    Conflict(Snapshot),
}

/// The reason why a store operation failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Busy records take up all the room.
    #[error("no room for another busy record")]
    Full,
    /// The store could not be reached, or did not answer in time.
    #[error("the store is not available")]
    Unavailable,
    /// The store answers, and what it keeps of the resource cannot be read.
    #[error("the record cannot be read")]
    Damaged,
    /// The store has lost writes that it had acknowledged, and is not used any more.
    #[error("the store has lost acknowledged writes")]
    LostWrites,
}

impl StoreError {
    /// The name of the error in metrics.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Full => FULL,
            Self::Unavailable | Self::Damaged | Self::LostWrites => UNAVAILABLE,
        }
    }
}

/// The number of records that a search reads from an engine at once.
const SEARCHED_AT_ONCE: usize = 1_000;

/// A store of records. The documentation of this module states its contract.
#[async_trait]
pub trait Store: Send + Sync {
    /// Returns the incarnation of the store.
    fn incarnation(&self) -> Incarnation;

    /// Returns the store's time, without reading a record.
    async fn now(&self) -> Result<StoreTime, StoreError>;

    /// Reads the record of a resource.
    async fn read(&self, key: &ResourceKey) -> Result<Snapshot, StoreError>;

    /// Replaces the record with `next` if it has the revision `expected`.
    async fn swap(&self, key: &ResourceKey, expected: Revision, next: Record) -> Result<Swapped, StoreError>;

    /// Returns up to `limit` records after that of `after`, or from the first record on. The order is the store's own.
    /// Fewer than `limit` records mean the end. A record that is added or forgotten meanwhile may be missing or
    /// present.
    async fn scan(&self, after: Option<&ResourceKey>, limit: usize) -> Result<Scanned, StoreError>;

    /// Returns the records of resources below these collections that must not be forgotten, but at most `limit`. One that is
    /// added or leaves meanwhile may be missing or present.
    async fn pinned_below(&self, roots: &[TreeRoot], limit: usize) -> Result<Scanned, StoreError> {
        let (mut found, mut after) = (Scanned::new(), None);
        loop {
            let page = self.scan(after.as_ref(), SEARCHED_AT_ONCE).await?;
            let is_over = page.len() < SEARCHED_AT_ONCE;
            after = page.last().map(|(key, _)| key.clone());
            let is_pinned = |(key, snapshot): &(ResourceKey, Snapshot)| {
                roots.iter().any(|root| root.is_above(key)) && !snapshot.record.is_idle(snapshot.now)
            };
            found.extend(page.into_iter().filter(is_pinned).take(limit - found.len()));
            if is_over || found.len() == limit {
                return Ok(found);
            }
        }
    }

    /// Waits until the record has another revision than `seen`. May return early; the caller reads again and bounds
    /// the wait.
    async fn changed(&self, key: &ResourceKey, seen: Revision);

    /// True if other processes use the records too, now or after this one has ended.
    fn is_shared(&self) -> bool {
        false
    }

    /// True if this process keeps the store's time itself, so that [`Store::now`] costs no call of the engine.
    fn has_own_time(&self) -> bool {
        false
    }

    /// Counts what the store holds, if it can do so without reading every record.
    fn count(&self) -> Option<Counts> {
        None
    }

    /// Gives every absent record a later revision, and with it another version. Whatever was learned of a resource
    /// without a record is then invalid. Only operators use this: an engine may take seconds.
    async fn raise_floors(&self) -> Result<(), StoreError>;

    /// Checks whether a change would be durable now, by making one that changes nothing.
    async fn try_out(&self) -> Result<(), StoreError> {
        let nothing = ResourceKey::from_text("ready?");
        let before = self.read(&nothing).await?;
        match self.swap(&nothing, before.revision, before.draft()).await {
            // If another swap came first, that change was durable. If there is no room for another record, existing
            // records can still be changed.
            Ok(_) | Err(StoreError::Full) => Ok(()),
            Err(error @ (StoreError::Unavailable | StoreError::Damaged | StoreError::LostWrites)) => Err(error),
        }
    }

    /// Notes what the writes of this process leave from now on, besides what its earlier ones do. Once this returns, a
    /// later process holds back for as long. A store that keeps the marks of dead processes has no need of it.
    async fn owe(&self, _owed: Owed) -> Result<(), StoreError> {
        Ok(())
    }

    /// Ends the use of the store by this process in an orderly way.
    async fn close(&self) {}
}
