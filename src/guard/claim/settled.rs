//! The wait of a read for the end of all writes on its resource (`reads = "settled"`). It holds no place in the line of
//! writes, so it delays none.

use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::{Claims, queue::NoTurn};
use crate::{
    core::{
        cause::Reason,
        records::{
            record::Snapshot,
            settled::{ReadStep, next_step},
        },
        refusal::Refusal,
    },
    guard::{refusals, request::Request},
    telemetry::{TimedPart, timing},
};

/// The record of a resource at one moment.
pub(crate) enum SettledNow {
    /// No write is in flight or in doubt.
    Settled(Snapshot),
    /// A read would wait.
    Pending(Snapshot),
}

impl Claims {
    /// Reads the record, and tells whether a read need not wait.
    pub(crate) async fn settled_now(&self, request: &Request) -> Result<SettledNow, Refusal> {
        let read = self.records.read(&request.key).await;
        let snapshot = read.map_err(|error| refusals::of_store(&error))?;
        Ok(match next_step(&snapshot, self.held_back(snapshot.now), Duration::ZERO) {
            ReadStep::Ask => SettledNow::Settled(snapshot),
            ReadStep::TakeOver | ReadStep::Wait(_) | ReadStep::GiveUp { .. } => SettledNow::Pending(snapshot),
        })
    }

    /// Waits until no write of the resource is in flight or in doubt, at the latest until `end`. Returns the record.
    /// Reads write to the store in one case: the mark of a dead process becomes a doubt, as writes make it.
    pub(crate) async fn settled(&self, request: &Request, end: Instant) -> Result<Snapshot, Refusal> {
        let mut waiter = None;
        loop {
            let read = self.records.read(&request.key).await;
            let snapshot = read.map_err(|error| refusals::of_store(&error))?;
            let left = end.saturating_duration_since(Instant::now());
            let wait = match next_step(&snapshot, self.held_back(snapshot.now), left) {
                ReadStep::Ask => return Ok(snapshot),
                ReadStep::TakeOver => {
                    let taken = self.take_over_dead(&request.key, Some(snapshot)).await;
                    taken.map_err(|error| refusals::of_store(&error))?;
                    continue;
                }
                ReadStep::Wait(wait) => wait,
                ReadStep::GiveUp { reason, settled_after } => {
                    let settled_after = match reason {
                        // The other process may be alive, so the client stays away no longer than it may wait here.
                        Reason::WriteInFlight => {
                            snapshot.held_by_others(self.owner()).min(request.rules().claim.max_wait)
                        }
                        _ => settled_after,
                    };
                    return Err(refusals::unsettled(settled_after, reason));
                }
            };
            let counted = if let Some(counted) = &mut waiter {
                counted
            } else {
                let waiters_max = request.rules().claim.max_waiters;
                let counted = self.reads.waiter(&request.key, request.line_client(), waiters_max);
                waiter.insert(counted.map_err(refusals::of_read_turn)?)
            };
            tokio::select! {
                biased;
                () = self.wait_for_change(request, &snapshot, wait) => {}
                () = counted.loses_place() => return Err(refusals::of_read_turn(NoTurn::LineFull)),
            }
        }
    }

    async fn wait_for_change(&self, request: &Request, snapshot: &Snapshot, wait: Duration) {
        let change = timeout(wait, self.records.changed(&request.key, snapshot, snapshot.revision));
        let _waiting = timing(TimedPart::Claim);
        let _ = change.await;
    }
}
