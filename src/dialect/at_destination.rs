//! The part of a request that concerns a second resource.

use crate::core::{lease::LeaseId, tags::precondition::Preconditions};

/// The part of a COPY or MOVE that concerns its destination.
#[derive(Clone, Debug, Default)]
pub struct AtDestination {
    /// The preconditions of the request for the destination.
    pub conditions: Preconditions,
    /// The id of the lease of the destination that the request names.
    pub lease_id: Option<LeaseId>,
    /// True if a route that demands a lease demands that of the destination too.
    pub needs_lease: bool,
}
