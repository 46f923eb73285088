//! A mark that this process has put into a record, and its end (DESIGN, section 3, rules 1 and 3).

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use tokio::{runtime::Handle, time::Instant};

use super::pending_mark::{PendingMark, Tried};
use crate::{
    core::{
        bare_tags::Shown,
        lease::TargetName,
        record::{Known, Mark, Snapshot},
        resource::ResourceKey,
        steps::{Outcome, Settlement, add_unclaimed, claim, settle},
        time::StoreTime,
    },
    store::{Records, StoreError, Swapped},
    telemetry::{Step, metrics},
};

/// Makes the marks of this process.
pub(crate) struct Marker {
    records: Records,
    owner: u64,
    next_nonce: AtomicU64,
}

/// What kind of mark a write makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MarkKind {
    /// The claim: the one write in flight.
    Claim,
    /// One of several unclaimed writes.
    Unclaimed,
}

/// What a write is about to do to a resource.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MarkIntent {
    /// How it is marked.
    pub(crate) kind: MarkKind,
    /// A moment before the record was read, by this process's own clock.
    pub(crate) since: Instant,
    /// When the mark's owner is taken for dead.
    pub(crate) deadline: StoreTime,
    /// Whether it leaves a lease that has ended as it is ([`Mark::leaves_lease`]).
    pub(crate) leaves_lease: bool,
    /// The target that it removes, if it removes one.
    pub(crate) removes: Option<TargetName>,
    /// How long after it was abandoned the upstream may still apply it.
    pub(crate) late_max: Duration,
}

/// What became of the attempt to mark a resource.
pub(crate) enum Marked {
    /// The mark is in the record.
    Done(Claim),
    /// The record is another: judge again by what it is now.
    Conflict(Box<Snapshot>),
    /// There are too many unclaimed writes in flight.
    Full,
}

/// A settled write.
pub(crate) struct Settled {
    /// The record with its outcome.
    pub(crate) snapshot: Snapshot,
    /// Whether no other write began or ended while it was in flight.
    pub(crate) undisturbed: bool,
}

/// A mark in the store. To drop it unsettled, for whatever reason, makes its write a doubt.
pub(crate) struct Claim {
    records: Records,
    key: ResourceKey,
    mark: Mark,
    /// Its deadline by this process's own clock, or a moment before that.
    ends: Instant,
    /// The record as it was marked.
    marked: Box<Snapshot>,
    removes: Option<TargetName>,
    is_settled: bool,
    /// The marks of the same write on other resources: they end as this one does.
    related: Vec<Claim>,
}

impl Marker {
    /// Marks made in the name of the process `owner`, a random number.
    pub(crate) const fn new(records: Records, owner: u64) -> Self {
        Self { records, owner, next_nonce: AtomicU64::new(0) }
    }

    /// The process in whose name they are made.
    pub(crate) const fn owner(&self) -> u64 {
        self.owner
    }

    /// Marks the resource as it was read.
    pub(crate) async fn mark(
        &self,
        key: &ResourceKey,
        snapshot: &Snapshot,
        intent: MarkIntent,
    ) -> Result<Marked, StoreError> {
        let MarkIntent { kind, since, deadline, leaves_lease, removes, late_max } = intent;
        let nonce = self.next_nonce.fetch_add(1, Ordering::Relaxed);
        let mark = Mark { owner: self.owner, nonce, deadline, late_max, leaves_lease };
        let next = match kind {
            MarkKind::Claim => claim(snapshot, mark),
            MarkKind::Unclaimed => add_unclaimed(snapshot, mark),
        };
        let Some(next) = next else {
            return Ok(if kind == MarkKind::Claim {
                Marked::Conflict(Box::new(snapshot.clone()))
            } else {
                Marked::Full
            });
        };
        let had_doubt = snapshot.record.doubt.is_some();
        let attempt = PendingMark::new(&self.records, key, Tried::Mark(mark), snapshot);
        Ok(match attempt.make(next).await? {
            Swapped::Conflict(current) => Marked::Conflict(Box::new(current)),
            Swapped::Done(marked) => {
                if let (true, None, Some(metrics)) = (had_doubt, marked.record.doubt, metrics::get()) {
                    metrics.doubt_resolved();
                }
                Marked::Done(Claim {
                    records: self.records.clone(),
                    key: key.clone(),
                    mark,
                    ends: since + snapshot.now.until(deadline),
                    marked: Box::new(marked),
                    removes,
                    is_settled: false,
                    related: Vec::new(),
                })
            }
        })
    }
}

impl Claim {
    /// Whether `needed` is left before others may take the owner of this mark for dead. To be asked directly before
    /// the first byte of the write (rule 7).
    ///
    /// The store's time may be old when it arrives, and the own clock may have stood still while the machine slept: what
    /// counts is the later of both.
    pub(crate) async fn has_left(&self, needed: Duration) -> bool {
        let now = self.records.now().await;
        now.is_ok_and(|now| now.plus(needed) < self.mark.deadline) && Instant::now() + needed < self.ends
    }

    /// Puts another mark of the same write under this one.
    pub(crate) fn add_related(&mut self, mark: Self) {
        self.related.push(mark);
    }

    /// Records what became of the write, on the resources that it touches too. `None` if the record cannot tell: the store is not available, or others
    /// made a doubt of the write already.
    pub(crate) async fn settle(self, outcome: Outcome, learned: Option<Known>) -> Option<Settled> {
        self.settle_shown(outcome, learned, None).await
    }

    /// The same for a write that has shown tags of its target.
    pub(crate) async fn settle_shown(
        mut self,
        outcome: Outcome,
        learned: Option<Known>,
        shown: Option<Shown>,
    ) -> Option<Settled> {
        for related in std::mem::take(&mut self.related) {
            // A mark has no others under it but those of its own write.
            Box::pin(related.settle(outcome, None)).await;
        }
        let mut step = Step::begin("settle");
        step.set("ifmatch.outcome", outcome.word());
        let settled = self.try_settle(outcome, learned, shown).await;
        // A store that does not answer now may do so in a moment: then dropping tries once more, as a doubt.
        self.is_settled = settled.is_ok();
        settled.ok().flatten()
    }

    async fn try_settle(
        &self,
        outcome: Outcome,
        learned: Option<Known>,
        shown: Option<Shown>,
    ) -> Result<Option<Settled>, StoreError> {
        let settlement = Settlement {
            mark: self.mark,
            marked_at: self.marked.revision,
            outcome,
            removes: self.removes,
            learned,
            shown,
        };
        // Where nobody came between, the record need not be read again; else the swap tells what it is.
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
        count_doubt(outcome);
        Ok(Some(Settled { snapshot: updated.snapshot, undisturbed }))
    }

    /// The same claim for a task of its own, and nothing left in this one.
    fn take(&mut self) -> Self {
        self.is_settled = true;
        let (records, key, marked) = (self.records.clone(), self.key.clone(), self.marked.clone());
        Self { records, key, marked, is_settled: true, related: Vec::new(), ..*self }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if self.is_settled {
            return;
        }
        let orphan = self.take();
        tracing::warn!(key = ?orphan.key, "a write ended without a verdict: it is in doubt");
        // Without a runtime the process is ending: the mark becomes a doubt at its deadline.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                if let Err(error) = orphan.try_settle(Outcome::Doubt, None, None).await {
                    tracing::error!(key = ?orphan.key, %error, "a doubt could not be recorded: its mark stays until its deadline");
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
