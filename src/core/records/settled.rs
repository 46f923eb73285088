//! Reads that show only settled states (`reads = "settled"`).
//!
//! # Design
//!
//! *Why two looks at the record?* Nothing keeps a write from beginning after the first look. So the record is read
//! again once the upstream has answered. `touched` changes whenever a write begins or ends. If it has not changed, no
//! write was in flight between the two looks.
//!
//! *Why does a read not line up?* A read changes nothing for others, so its wait must cost others nothing. Under writes
//! without a pause it may wait in vain, and is then refused.

use std::time::Duration;

use super::record::{Availability, Snapshot};
use crate::core::cause::Reason;

/// The next step of a settled read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadStep {
    /// The upstream can be asked: no write is in flight or in doubt.
    Ask,
    /// The owner of a mark has died. Its write must become a doubt, whose end can be waited for.
    TakeOver,
    /// The read waits at most this long for a change of the record.
    Wait(Duration),
    /// The read is refused: the wait would be in vain.
    GiveUp {
        /// The obstacle that the read has met.
        reason: Reason,
        /// The time after which the resource is settled at the latest.
        settled_after: Duration,
    },
}

/// Returns the next step of a read that waits no longer than `left`. Writes of a predecessor of this process may be in
/// flight for `held_back`, and no record shows them.
pub fn next_step(snapshot: &Snapshot, held_back: Duration, left: Duration) -> ReadStep {
    if !held_back.is_zero() {
        return wait_for_end(Reason::StartGrace, held_back, left);
    }
    match snapshot.availability() {
        Availability::Free => ReadStep::Ask,
        Availability::Orphaned => ReadStep::TakeOver,
        Availability::InDoubt { until } => wait_for_end(Reason::WriteInDoubt, snapshot.now.until(until), left),
        Availability::Busy { deadline } => {
            let settled_after = snapshot.now.until(deadline);
            // Most writes end long before their deadline.
            if left.is_zero() {
                ReadStep::GiveUp { reason: Reason::WriteInFlight, settled_after }
            } else {
                ReadStep::Wait(settled_after.min(left))
            }
        }
    }
}

/// Waits for an end that only time brings, unless it comes too late for the read.
fn wait_for_end(reason: Reason, settled_after: Duration, left: Duration) -> ReadStep {
    if settled_after > left { ReadStep::GiveUp { reason, settled_after } } else { ReadStep::Wait(settled_after) }
}

/// True if the upstream's answer shows a settled state, by the record before the request and after the answer.
pub fn shows_settled_state(before: &Snapshot, after: &Snapshot) -> bool {
    before.has_no_pending_writes() && after.has_no_pending_writes() && before.touched() == after.touched()
}

#[cfg(test)]
#[path = "settled_tests.rs"]
mod tests;
