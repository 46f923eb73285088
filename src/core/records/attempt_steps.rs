//! The steps on the record of a write that came with an idempotency key, in a shared store (DESIGN, section 3, rules 3,
//! 6 and 7).
//!
//! # Design
//!
//! *Why a record of its own?* A retry must be recognised even if the resource's record has changed: other writes change
//! it, and the store may forget it. The key of the write names the record ([`ResourceKey::of_keyed_write`]).
//!
//! *How does the record show that the write is in flight?* Its claim is the mark of the attempt. So all that holds for
//! claims of resources holds for it. Two attempts cannot both have it, and one whose answer was lost is taken back. At
//! its deadline the mark of a dead owner becomes a doubt for the owner's late write window.
//!
//! *How long does it count?* For `idempotency_ttl` from its end, and an owner that dies can note no end. So the time
//! that the record begins with is counted from the deadline of the mark, which is later than any end.
//!
//! [`ResourceKey::of_keyed_write`]: crate::core::resource::ResourceKey::of_keyed_write

use std::time::Duration;

use super::{
    attempt_end::AttemptEnd,
    first_attempt::{FirstAttempt, SentWrite},
    idempotency::Progress,
    record::{Availability, Mark, Record, Snapshot},
    steps::{Outcome, Settlement, claim, settle},
};

/// Returns the first attempt at a write and its progress. `None` if there is none that counts: the next attempt is a
/// write like any other.
pub fn progress(snapshot: &Snapshot) -> Option<(SentWrite, Progress)> {
    let first = snapshot.record.attempt.as_deref()?;
    let progress = match snapshot.availability() {
        Availability::Busy { .. } | Availability::Orphaned => Progress::InFlight,
        Availability::InDoubt { until } => Progress::InDoubt(snapshot.now.until(until)),
        Availability::Free if first.until <= snapshot.now => return None,
        Availability::Free => first.answer.clone().map_or(Progress::Unknown, Progress::Answered),
    };
    Some((first.sent, progress))
}

/// Begins the first attempt at a write, unless an earlier one counts. The attempt counts for this long after its end.
pub fn begin(snapshot: &Snapshot, mark: Mark, sent: SentWrite, remembered_for: Duration) -> Option<Record> {
    let attempt = Some(Box::new(FirstAttempt { sent, until: mark.deadline.plus(remembered_for), answer: None }));
    progress(snapshot).is_none().then(|| claim(snapshot, mark)).flatten().map(|record| Record { attempt, ..record })
}

/// Ends the attempt with this mark. Its answer is replayed for this long. `None` if the mark is gone: another process
/// took its owner for dead.
pub fn end(snapshot: &Snapshot, mark: Mark, end: AttemptEnd, remembered_for: Duration) -> Option<Record> {
    let outcome = if end == AttemptEnd::Doubt { Outcome::Doubt } else { Outcome::NotApplied };
    let marked_at = snapshot.revision;
    let settlement = Settlement { mark, marked_at, outcome, leaves: None, learned: None, shown: None, end: None };
    let mut record = settle(snapshot, settlement)?;
    match end {
        AttemptEnd::Nothing => record.attempt = None,
        AttemptEnd::Doubt => {}
        AttemptEnd::Unknown | AttemptEnd::Answered(_) => {
            let attempt = record.attempt.as_mut()?;
            attempt.until = snapshot.now.plus(remembered_for);
            attempt.answer = end.answer();
        }
    }
    Some(record)
}

#[cfg(test)]
#[path = "attempt_steps_tests.rs"]
mod tests;
