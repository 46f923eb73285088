//! Where records are kept: compare-and-swap over [`Record`]s with the store's own time (DESIGN, section 7).
//!
//! A store knows nothing of HTTP, of leases, or of what a record means. Its contract:
//!
//! * [`Store::swap`] succeeds only against the revision that the record has at that moment. Each success gives the
//!   record a revision greater than any that the store gave before; those of two resources that succeed in the same
//!   moment may be equal.
//! * An absent record has a revision too: the floor of its bucket. In the step that forgets a record the floor is
//!   raised to that record's revision, so a swap that was decided on "absent" before fails afterwards.
//! * A record that is not idle ([`Record::is_idle`]) is never forgotten. Where there is no room for one, the answer is
//!   [`StoreError::Full`].
//! * [`Snapshot::now`] is the store's time at the moment of the operation.

use std::fmt;

use async_trait::async_trait;

use crate::{
    core::{
        counts::Counts,
        record::{Record, Revision, Snapshot},
        resource::ResourceKey,
        time::StoreTime,
    },
    telemetry::metrics::store::{FULL, UNAVAILABLE},
};

mod breaker;
pub mod census;
pub mod disk;
pub mod encoding;
mod epoch;
pub mod etcd;
mod health;
mod labels;
pub mod memory;
mod open;
mod records;
pub mod redis;
mod secret;

pub use open::{Left, OpenError, Opened, open};
pub use records::{Records, Updated};
pub use secret::PASSWORD_VARIABLE;

/// What tells the versions of one store from those of any other; drawn at random with the store's first start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incarnation(pub u64);

impl fmt::Display for Incarnation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:016x}", self.0)
    }
}

/// What became of a swap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Swapped {
    /// It happened: the record as it is now.
    Done(Snapshot),
    /// The record had another revision: the record as it is now.
    Conflict(Snapshot),
}

/// Why a store did not do what it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Every place is taken by a busy record.
    #[error("no room for another busy record")]
    Full,
    /// It could not be asked, or did not answer in time.
    #[error("the store is not available")]
    Unavailable,
}

impl StoreError {
    /// Its name in metrics.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Full => FULL,
            Self::Unavailable => UNAVAILABLE,
        }
    }
}

/// The contract of the module's documentation.
#[async_trait]
pub trait Store: Send + Sync {
    /// Its incarnation.
    fn incarnation(&self) -> Incarnation;

    /// Its time, without a record.
    async fn now(&self) -> Result<StoreTime, StoreError>;

    /// The record of a resource.
    async fn read(&self, key: &ResourceKey) -> Result<Snapshot, StoreError>;

    /// Puts `next` in the place of the record that has the revision `expected`.
    async fn swap(&self, key: &ResourceKey, expected: Revision, next: Record) -> Result<Swapped, StoreError>;

    /// Up to `limit` of the records that come after that of `after`, or from the first on, in an order that is the
    /// store's own. The end is reached where there are fewer. A record that is put in or forgotten meanwhile may be
    /// among them or not.
    async fn scan(&self, after: Option<&ResourceKey>, limit: usize)
    -> Result<Vec<(ResourceKey, Snapshot)>, StoreError>;

    /// Waits until the record has another revision than `seen`. May return early; the caller reads again and bounds
    /// the wait.
    async fn changed(&self, key: &ResourceKey, seen: Revision);

    /// How much it holds, where it can tell without a look at every record.
    fn count(&self) -> Option<Counts> {
        None
    }

    /// Gives every absent record a later revision, and with it another version: nothing that was learned of a resource
    /// without a record holds any longer. It is for an operator: an engine may take seconds for it.
    async fn raise_floors(&self) -> Result<(), StoreError>;

    /// Whether a change would last now: makes one that changes nothing.
    async fn try_out(&self) -> Result<(), StoreError> {
        let nothing = ResourceKey::from_text("ready?");
        let before = self.read(&nothing).await?;
        match self.swap(&nothing, before.revision, before.record).await {
            // Where somebody else came before, his change has lasted. Where there is no room for another record, those
            // that are there can be changed.
            Ok(_) | Err(StoreError::Full) => Ok(()),
            Err(StoreError::Unavailable) => Err(StoreError::Unavailable),
        }
    }

    /// Ends the use of the store by this process, in good order.
    async fn close(&self) {}
}
