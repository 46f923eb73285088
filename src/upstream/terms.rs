//! The facts that an exchange knows about its server.

use std::{sync::Arc, time::Duration};

use super::{Purpose, balance::places::Slot, idle::Destination};
use crate::config::Upstream;

/// The server of an exchange, and what it may take of it.
pub(super) struct Terms {
    pub(super) destination: Destination,
    pub(super) upstream: Arc<Upstream>,
    pub(super) purpose: Purpose,
    /// The slot that the exchange occupies on its server, if it takes one.
    pub(super) slot: Option<Slot>,
    /// How long the exchange waits for more of a response's body.
    pub(super) body_wait: Duration,
}
