//! The availability of a resource to a write.

use crate::core::time::StoreTime;

/// The obstacle that a write finds when it tries to claim the resource, if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Availability {
    /// No other write is in the way.
    Free,
    /// Other writes are in flight. Their marks end with them, or at this moment at the latest.
    Busy {
        /// The last of their deadlines.
        deadline: StoreTime,
    },
    /// The owner of a mark has died, and its write must become a doubt.
    Orphaned,
    /// A write is in doubt until this moment.
    InDoubt {
        /// The end of the doubt.
        until: StoreTime,
    },
}
