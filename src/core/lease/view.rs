//! The public view of the lease of a resource.

use std::time::Duration;

use serde::Serialize;

use super::{HolderLabel, LeaseDuration};
use crate::core::records::record::Snapshot;

/// The public view of a lease. It never contains the id.
#[derive(Debug, Serialize)]
pub struct PublicLease<'a> {
    state: &'static str,
    /// The number of clients that share the lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    shared_by: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remaining: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    holder: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fence: Option<u64>,
}

impl<'a> PublicLease<'a> {
    /// The view of a resource's lease: of several leases, the one that lasts longest.
    pub fn of(snapshot: &'a Snapshot) -> Self {
        let (state, lease) = (snapshot.lease_state(), snapshot.lease());
        let held = lease.filter(|_| state.is_held());
        Self {
            state: state.word(),
            shared_by: held.filter(|lease| lease.mode.is_shared()).map(|_| snapshot.held_leases().count()),
            duration: held.map(|lease| if lease.duration == LeaseDuration::Infinite { "infinite" } else { "fixed" }),
            remaining: held.and_then(|lease| lease.remaining(snapshot.now)).map(rounded_up),
            holder: held.and_then(|lease| lease.holder.as_ref()).map(HolderLabel::as_str),
            fence: lease.map(|_| snapshot.fence().0),
        }
    }
}

/// Returns a duration in seconds, rounded up: a client that waits that long does not come too early.
pub fn rounded_up(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}
