//! A mark that this process has put into a record, and its end (DESIGN, section 3, rules 1 and 3).

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use tokio::{runtime::Handle, time::Instant};

use super::pending_mark::{PendingMark, Tried};
use crate::{
    core::{
        records::{
            attempt_end::AttemptEnd,
            attempt_steps,
            first_attempt::SentWrite,
            presence::Presence,
            record::{Availability, Known, Mark, Snapshot},
            steps::{Outcome, Settlement, add_touch, add_unclaimed, claim, settle},
            trees::TreeRoot,
            under_trees::claim_trees,
        },
        resource::ResourceKey,
        tags::{bare_tags::Shown, told_dates::WriteEnd},
        time::StoreTime,
    },
    store::{Records, StoreError, Swapped},
    telemetry::{Step, metrics},
};

/// Makes the marks of this process.
pub(crate) struct Marker {
    records: Records,
    /// The process in whose name the marks are made.
    pub(crate) owner: u64,
    next_nonce: AtomicU64,
}

/// The kind of mark that a write makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MarkKind<'a> {
    /// The claim: the mark of the one write in flight.
    Claim,
    /// The mark of one of several unclaimed writes.
    Unclaimed,
    /// The mark of a write of another resource that changes this one too.
    Touch,
    /// The claim in the record of a write that came with an idempotency key, which counts for this long after its end.
    Attempt(SentWrite, Duration),
    /// The claim in the record of trees, for a write that changes these.
    Trees(&'a [TreeRoot]),
}

/// The properties of a write that its mark and its settlement depend on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MarkIntent<'a> {
    /// The kind of the mark.
    pub(crate) kind: MarkKind<'a>,
    /// A moment before the record was read, by this process's own clock.
    pub(crate) since: Instant,
    /// The time from which the owner of the mark counts as dead.
    pub(crate) deadline: StoreTime,
    /// True if the write leaves an ended lease in place ([`Mark::leaves_lease`]).
    pub(crate) leaves_lease: bool,
    /// The state of its target that the write leaves if it is applied; `None` if that is unknown.
    pub(crate) leaves: Option<Presence>,
    /// The time for which the upstream may still apply the write after it was abandoned.
    pub(crate) late_write_window: Duration,
}

/// The result of an attempt to mark a resource.
pub(crate) enum Marked {
    /// The mark is in the record.
    Done(Claim),
    /// The record has changed: the caller must judge the write again, by this record.
    Conflict(Box<Snapshot>),
    /// The record has no room for another unclaimed write.
    Full,
}

/// A settled write.
pub(crate) struct Settled {
    /// The record with the outcome of the write.
    pub(crate) snapshot: Snapshot,
    /// True if no other write began or ended while this one was in flight.
    pub(crate) undisturbed: bool,
}

/// One moment by two clocks.
#[derive(Clone, Copy)]
struct Deadline {
    /// By the store's time.
    of_store: StoreTime,
    /// By this process's own clock, or a moment before it.
    of_process: Instant,
}

/// A mark in the store. Dropping it unsettled, for any reason, makes its write a doubt.
pub(crate) struct Claim {
    records: Records,
    key: ResourceKey,
    mark: Mark,
    /// The time by which the write must have ended: the deadline of the mark, or a moment before it.
    deadline: Deadline,
    /// The record with the mark.
    marked: Box<Snapshot>,
    leaves: Option<Presence>,
    is_settled: bool,
    /// True if this is the claim of an attempt of which no byte can have been sent.
    is_unsent_attempt: bool,
}

impl Marker {
    /// Creates a marker for the process `owner`, a random number.
    pub(crate) const fn new(records: Records, owner: u64) -> Self {
        Self { records, owner, next_nonce: AtomicU64::new(0) }
    }

    /// Marks a resource whose record was read as `snapshot`.
    pub(crate) async fn mark(
        &self,
        key: &ResourceKey,
        snapshot: &Snapshot,
        intent: MarkIntent<'_>,
    ) -> Result<Marked, StoreError> {
        let MarkIntent { kind, since, deadline, leaves_lease, leaves, late_write_window } = intent;
        let nonce = self.next_nonce.fetch_add(1, Ordering::Relaxed);
        let mark = Mark { owner: self.owner, nonce, deadline, late_write_window, leaves_lease };
        let next = match kind {
            MarkKind::Claim => claim(snapshot, mark),
            MarkKind::Unclaimed => add_unclaimed(snapshot, mark),
            MarkKind::Touch => add_touch(snapshot, mark),
            MarkKind::Attempt(sent, remembered_for) => attempt_steps::begin(snapshot, mark, sent, remembered_for),
            MarkKind::Trees(roots) => claim_trees(snapshot, mark, roots),
        };
        let Some(next) = next else {
            let is_full = match kind {
                MarkKind::Claim | MarkKind::Attempt(..) | MarkKind::Trees(_) => false,
                MarkKind::Unclaimed => true,
                MarkKind::Touch => snapshot.availability_to_touch() == Availability::Free,
            };
            return Ok(if is_full { Marked::Full } else { Marked::Conflict(Box::new(snapshot.clone())) });
        };
        let had_doubt = snapshot.record.doubt.is_some() && next.attempt.is_none();
        let attempt = PendingMark::new(&self.records, key, Tried::Mark(mark), snapshot);
        Ok(match attempt.make(next).await?.0 {
            Swapped::Conflict(current) => Marked::Conflict(Box::new(current)),
            Swapped::Done(marked) => {
                // The write was judged by these.
                let marked = Snapshot { leases_around: snapshot.leases_around.clone(), ..marked };
                if let (true, None, Some(metrics)) = (had_doubt, marked.record.doubt, metrics::get()) {
                    metrics.doubt_resolved();
                }
                Marked::Done(Claim {
                    records: self.records.clone(),
                    key: key.clone(),
                    mark,
                    deadline: Deadline { of_store: deadline, of_process: since + snapshot.now.until(deadline) },
                    marked: Box::new(marked),
                    leaves,
                    is_settled: false,
                    is_unsent_attempt: matches!(kind, MarkKind::Attempt(..)),
                })
            }
        })
    }
}

impl Claim {
    /// The resource.
    pub(crate) const fn key(&self) -> &ResourceKey {
        &self.key
    }

    /// The record with the mark.
    pub(crate) fn marked(&self) -> &Snapshot {
        &self.marked
    }

    /// True if at least `needed` is left before others may take the owner of this mark for dead. The caller checks this
    /// directly before the first byte of the write (rule 7).
    ///
    /// The store's time may be old when it arrives, and the process's own clock may have stood still while the machine
    /// slept. So the later of the two decides.
    pub(crate) async fn has_left(&self, needed: Duration) -> bool {
        let now = self.records.now().await;
        let Deadline { of_store, of_process } = self.deadline;
        now.is_ok_and(|now| now.plus(needed) < of_store) && Instant::now() + needed < of_process
    }

    /// Returns the mark as it stands in the record.
    pub(crate) const fn mark(&self) -> Mark {
        self.mark
    }

    /// Notes that the upstream shows something else than what the write should have left.
    pub(super) const fn leaves_unknown(&mut self) {
        self.leaves = None;
    }

    /// Gives the write no more time than this other mark of the same write has.
    pub(crate) fn bounded_by(&mut self, other: &Self) {
        self.deadline.of_store = self.deadline.of_store.min(other.deadline.of_store);
        self.deadline.of_process = self.deadline.of_process.min(other.deadline.of_process);
    }

    /// Notes that the write of this attempt is about to be sent.
    pub(crate) fn may_be_sent(&mut self) {
        self.is_unsent_attempt = false;
    }

    /// Records what became of a write that has shown nothing else.
    #[cfg(test)]
    pub(crate) async fn settle(self, outcome: Outcome, learned: Option<Known>) -> Option<Settled> {
        self.settle_shown(outcome, learned, None, None).await
    }

    /// Records what became of the write, the tags of its target that it has shown, and its end. Returns `None` if the
    /// outcome was not recorded: the store is not available, or another process has already made the write a doubt.
    pub(crate) async fn settle_shown(
        mut self,
        outcome: Outcome,
        learned: Option<Known>,
        shown: Option<Shown>,
        end: Option<WriteEnd>,
    ) -> Option<Settled> {
        let mut step = Step::begin("settle");
        step.set("ifmatch.outcome", outcome.word());
        let settled = self.try_settle(outcome, learned, shown, end).await;
        // A store that fails now may answer in a moment. Then dropping the claim tries once more, with a doubt.
        self.is_settled = settled.is_ok();
        settled.ok().flatten()
    }

    /// Records the end of a write that came with an idempotency key, in the record of the write.
    pub(crate) async fn end_attempt(mut self, end: AttemptEnd, remembered_for: Duration) {
        // If the store fails, dropping the claim tries once more, with a doubt if the write was sent.
        self.is_settled = self.try_end_attempt(&end, remembered_for).await.is_ok();
    }

    async fn try_end_attempt(&self, end: &AttemptEnd, remembered_for: Duration) -> Result<(), StoreError> {
        let mut snapshot = Snapshot::clone(&self.marked);
        if *end != AttemptEnd::Nothing {
            snapshot.now = self.records.now().await?;
        }
        let step = |snapshot: &Snapshot| attempt_steps::end(snapshot, self.mark, end.clone(), remembered_for);
        self.records.update(&self.key, Some(snapshot), step).await.map(drop)
    }

    async fn try_settle(
        &self,
        outcome: Outcome,
        learned: Option<Known>,
        shown: Option<Shown>,
        end: Option<WriteEnd>,
    ) -> Result<Option<Settled>, StoreError> {
        let settlement = Settlement {
            mark: self.mark,
            marked_at: self.marked.revision,
            outcome,
            leaves: self.leaves,
            learned,
            shown,
            end,
        };
        // If the record has not changed meanwhile, it need not be read again; if it has, the failed swap returns it.
        let mut snapshot = Snapshot::clone(&self.marked);
        if settlement.needs_time(&snapshot.record) {
            snapshot.now = self.records.now().await?;
        }
        let mut undisturbed = false;
        let step = |snapshot: &Snapshot| {
            undisturbed = settlement.is_undisturbed(snapshot);
            settle(snapshot, settlement.clone())
        };
        let updated = self.records.update(&self.key, Some(snapshot), step).await?;
        if !updated.is_changed {
            return Ok(None);
        }
        if self.marked.record.attempt.is_none() {
            count_doubt(outcome);
        }
        Ok(Some(Settled { snapshot: updated.snapshot, undisturbed }))
    }

    /// Moves the claim into another task; this one is left settled, so that dropping it does nothing.
    fn take(&mut self) -> Self {
        self.is_settled = true;
        let (records, key, marked) = (self.records.clone(), self.key.clone(), self.marked.clone());
        Self { records, key, marked, is_settled: true, ..*self }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if self.is_settled {
            return;
        }
        let orphan = self.take();
        if !orphan.is_unsent_attempt {
            tracing::warn!(key = %orphan.key, "a write ended without a verdict and is in doubt");
        }
        // Without a runtime the process is ending: the mark becomes a doubt at its deadline.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                let ended = if orphan.is_unsent_attempt {
                    orphan.try_end_attempt(&AttemptEnd::Nothing, Duration::ZERO).await
                } else {
                    orphan.try_settle(Outcome::Doubt, None, None, None).await.map(drop)
                };
                if let Err(error) = ended {
                    tracing::error!(
                        key = %orphan.key,
                        %error,
                        "cannot record the end of a write; its mark stays until its deadline"
                    );
                }
            });
        }
    }
}

/// Counts a write whose outcome cannot be known.
fn count_doubt(outcome: Outcome) {
    if let (Outcome::Doubt, Some(metrics)) = (outcome, metrics::get()) {
        metrics.doubt_made();
    }
}

#[cfg(test)]
#[path = "mark_tests.rs"]
mod tests;
