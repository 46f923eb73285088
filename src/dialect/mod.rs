//! Ways of speaking about leases: a request's head becomes a lease operation, and its outcome a response. Pure.

use std::time::Duration;

use crate::core::lease::Action;

pub mod azure;
pub mod native;
pub mod s3;
pub mod xml;

/// What a request wants of the lease of a resource.
#[derive(Clone, Debug)]
pub enum LeaseOperation {
    /// To change it.
    Step {
        /// How.
        action: Action,
        /// How long the client would wait for it, if it is held by another.
        wait: Option<Duration>,
    },
    /// To see it.
    Show,
}
