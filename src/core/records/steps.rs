//! Every step on a record: mark, settle, doubt (DESIGN, sections 3 and 4).
//!
//! Each step takes the record as it was read and returns the record to swap in, without side effects. Forgetting is
//! the store's own step, since it raises a floor ([`Record::is_idle`] tells when that is allowed).

use http::StatusCode;

use super::{
    pending_delete::PendingDelete,
    presence::Presence,
    record::{Availability, Doubt, Known, Mark, Record, Revision, Snapshot, Stamp},
    trees::TreeEffect,
    waiting::served,
};
use crate::core::{
    lease::{Lease, TargetName, Usage},
    tags::{
        bare_tags::Shown,
        followed_tags::Followed,
        recent_tags::RecentTags,
        told_dates::{FirstDate, WriteEnd},
    },
    time::StoreTime,
};

/// The maximum number of unclaimed writes in flight on one resource: each costs 56 bytes in its record, which every
/// swap copies.
pub const UNCLAIMED_MARKS_MAX: usize = 1_000;

/// The outcome of a write, as its record keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The upstream applied the write.
    Applied,
    /// The upstream did not apply the write, and the known state is still right.
    NotApplied,
    /// The upstream did not apply the write, and its answer shows that the known state may be wrong.
    NotAppliedAsKnown,
    /// The upstream answered, but the answer does not tell.
    Unclear,
    /// The upstream may still apply the write.
    Doubt,
}

impl Outcome {
    /// The name of the outcome in traces.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::NotApplied | Self::NotAppliedAsKnown => "not-applied",
            Self::Unclear => "unclear",
            Self::Doubt => "doubt",
        }
    }

    /// Returns the outcome for a resource that the write only reads: the resource stays as it is. A write in doubt may
    /// still read it.
    #[must_use]
    pub const fn of_what_is_read(self) -> Self {
        match self {
            Self::Applied => Self::NotApplied,
            Self::NotApplied | Self::NotAppliedAsKnown | Self::Unclear | Self::Doubt => self,
        }
    }

    /// The outcome that follows from the upstream's final status (DESIGN, section 4, step 8). 307 and 308 name another
    /// target for the same request: nothing was done (RFC 9110 sections 15.4.8 and 15.4.9).
    pub fn of_status(status: StatusCode) -> Self {
        match status.as_u16() {
            202 | 207 | 408 | 499 => Self::Unclear,
            200..=299 => Self::Applied,
            404 | 409 | 410 | 412 => Self::NotAppliedAsKnown,
            307 | 308 | 400..=499 => Self::NotApplied,
            502 | 504 => Self::Doubt,
            _ => Self::Unclear,
        }
    }
}

/// The end of a write.
#[derive(Clone, Debug)]
pub struct Settlement {
    /// The mark of the write.
    pub mark: Mark,
    /// The revision at which the write was marked.
    pub marked_at: Revision,
    /// The outcome of the write.
    pub outcome: Outcome,
    /// The state of its target that the write leaves if it is applied; `None` if that is unknown. A lease that was
    /// acquired by the very target that the write removes ends with it, unless it does not guard deletion. Otherwise
    /// any client could end it by a DELETE that needs no lease.
    pub leaves: Option<Presence>,
    /// The validators of the new state that were read under the claim.
    pub learned: Option<Known>,
    /// The tags of the write's target that the proxy has seen.
    pub shown: Option<Shown>,
    /// The dates by which the write has ended.
    pub end: Option<WriteEnd>,
}

impl Settlement {
    /// True if no other write began or ended since the mark. Only then is a state that was learned under the mark the
    /// current one.
    pub fn is_undisturbed(&self, snapshot: &Snapshot) -> bool {
        snapshot.touched() == self.marked_at
    }

    /// The target that the write removes, if any.
    fn removed(&self) -> Option<TargetName> {
        self.leaves.filter(|left| !left.is_present).map(|left| left.target)
    }

    /// True if settling this record depends on the time.
    pub fn needs_time(&self, record: &Record) -> bool {
        self.outcome == Outcome::Doubt || record.doubt.is_some() || !record.leases.is_empty()
    }
}

/// Marks the resource as claimed, if no other write is in the way. The record takes the fence of a lease around the
/// resource: what is sent later, after the end of that lease, must not go back behind it.
pub fn claim(snapshot: &Snapshot, mark: Mark) -> Option<Record> {
    let free = snapshot.availability() == Availability::Free;
    let record = || served(without_past(snapshot), mark.owner);
    let fence = || Stamp::At(snapshot.fence_of_writes());
    free.then(|| Record { claim: Some(mark), touched: Stamp::Itself, fence: fence(), ..record() })
}

/// Adds the mark of an unclaimed write, beside any others in flight, if there is room for it.
pub fn add_unclaimed(snapshot: &Snapshot, mark: Mark) -> Option<Record> {
    let mut record = Record { touched: Stamp::Itself, ..served(without_past(snapshot), mark.owner) };
    record.unclaimed.push(mark);
    (record.unclaimed.len() <= UNCLAIMED_MARKS_MAX).then_some(record)
}

/// Adds the mark of a write of another resource that changes this one too. `None` if a claimed write is in flight, a
/// write is in doubt, or there is no room.
pub fn add_touch(snapshot: &Snapshot, mark: Mark) -> Option<Record> {
    let is_free = snapshot.availability_to_touch() == Availability::Free;
    is_free.then(|| add_unclaimed(snapshot, mark)).flatten()
}

/// Records that a write on another resource, with this end, has changed this one: the known state is outdated.
pub fn touch(snapshot: &Snapshot, end: Option<WriteEnd>) -> Record {
    let mut record = Record { touched: Stamp::Itself, ..without_past(snapshot) };
    forget_state(&mut record);
    record.leases.retain(|lease| lease.state(snapshot.now).is_held());
    withdraw_if_conditional(&mut record, None);
    change_state(&mut record, None, end);
    record
}

/// Records what became of a marked write. `None` if its mark is gone: another process took its owner for dead, and has
/// already made the write a doubt.
pub fn settle(snapshot: &Snapshot, settlement: Settlement) -> Option<Record> {
    let is_ours = |mark: &Mark| mark.is_same_write(&settlement.mark);
    let mut record = Record { touched: Stamp::Itself, ..without_past(snapshot) };
    let (undisturbed, removed) = (settlement.is_undisturbed(snapshot), settlement.removed());
    let mark = if record.claim.as_ref().is_some_and(is_ours) {
        record.claim.take()?
    } else {
        let place = record.unclaimed.iter().position(is_ours)?;
        record.unclaimed.swap_remove(place)
    };
    if !matches!(settlement.outcome, Outcome::NotApplied | Outcome::NotAppliedAsKnown) {
        take_ended_leases(&mut record, mark, snapshot.now);
    }
    if let Some(trees) = &mut record.trees {
        match settlement.outcome {
            Outcome::NotApplied => trees.roots.clear(),
            Outcome::NotAppliedAsKnown => trees.end(Stamp::Itself, TreeEffect::Forgotten),
            Outcome::Applied | Outcome::Unclear => trees.end(Stamp::Itself, TreeEffect::Changed),
            // They are the trees of the doubt.
            Outcome::Doubt => {}
        }
    }
    match settlement.outcome {
        Outcome::NotApplied => {}
        Outcome::NotAppliedAsKnown => forget_state(&mut record),
        Outcome::Applied => {
            // The tags of states in between are in no list.
            change_state(&mut record, settlement.shown.filter(|_| undisturbed), settlement.end);
            record.known = settlement.learned.filter(|_| undisturbed);
            record.presence = settlement.leaves.filter(|_| undisturbed);
            let ends = |lease: &Lease| removed == Some(lease.target) && lease.guards.covers(Usage::Delete);
            record.leases.retain(|lease| !ends(lease));
            record.pending_delete = record.pending_delete.filter(|delete| removed != Some(delete.name));
            withdraw_if_conditional(&mut record, None);
        }
        Outcome::Unclear => {
            withdraw_if_conditional(&mut record, removed);
            change_state(&mut record, None, None);
            forget_state(&mut record);
        }
        Outcome::Doubt => {
            withdraw_if_conditional(&mut record, removed);
            doubt(&mut record, snapshot.now.plus(mark.late_write_window));
        }
    }
    Some(record)
}

/// Turns every mark whose owner must be dead into a doubt, the `late_write_window` of each counted from now. `None` if there is
/// none.
pub fn take_over(snapshot: &Snapshot) -> Option<Record> {
    let is_dead = |mark: &Mark| mark.deadline <= snapshot.now;
    if snapshot.availability_by_own() != Availability::Orphaned {
        return None;
    }
    let mut record = Record { touched: Stamp::Itself, ..without_past(snapshot) };
    record.claim = record.claim.filter(|mark| !is_dead(mark));
    record.unclaimed.retain(|mark| !is_dead(mark));
    for mark in snapshot.record.marks().copied().filter(is_dead) {
        take_ended_leases(&mut record, mark, snapshot.now);
        withdraw_if_conditional(&mut record, None);
        doubt(&mut record, snapshot.now.plus(mark.late_write_window));
    }
    Some(record)
}

/// Gives the resource a new version, after a write that has shown these tags and had this end. During a doubt the
/// resource gets the version that was kept for the doubt's end, and the end gets a later one. The record's own revision
/// must not name the state that is read now. It becomes the version of the absent record when this one is forgotten.
fn change_state(record: &mut Record, shown: Option<Shown>, end: Option<WriteEnd>) {
    let bare = shown.filter(|shown| shown.purpose == Followed::Bare);
    record.bare_tags = std::mem::take(&mut record.bare_tags).changed(bare);
    if let Some(unique) = shown.filter(|shown| shown.purpose == Followed::Unique) {
        record.recent_tags = Some(RecentTags::followed_by(record.recent_tags.take(), unique));
    }
    // A write in doubt may end later than this one.
    record.first_date = record.first_date.after(end.filter(|_| record.doubt.is_none()));
    record.version = match &mut record.doubt {
        Some(doubt) => std::mem::replace(&mut doubt.version, Stamp::Itself),
        None => Stamp::Itself,
    };
}

/// Withdraws the DELETE that waits if it means one state: a write has changed that state, or may have. A DELETE of
/// `removed` whose outcome is open is the same request, and is judged again by its conditions.
pub(super) fn withdraw_if_conditional(record: &mut Record, removed: Option<TargetName>) {
    let stays = |delete: &PendingDelete| !delete.is_conditional() || removed == Some(delete.name);
    record.pending_delete = record.pending_delete.take().filter(|delete| stays(delete));
}

fn doubt(record: &mut Record, until: StoreTime) {
    let until = record.doubt.map_or(until, |earlier| earlier.until.max(until));
    record.doubt = Some(Doubt { until, version: Stamp::Itself });
    record.bare_tags = std::mem::take(&mut record.bare_tags).changed(None);
    record.first_date = FirstDate::NONE;
    forget_state(record);
}

/// Forgets what the last write has revealed of the state.
pub(super) fn forget_state(record: &mut Record) {
    record.known = None;
    record.presence = None;
}

/// Forgets the leases that have ended, if a client other than their holders has written, or may have. A renewal would
/// then prove something untrue.
fn take_ended_leases(record: &mut Record, mark: Mark, now: StoreTime) {
    record.leases.retain(|lease| !mark.takes(lease, now));
}

/// Returns the record with an ended doubt resolved, and without forgotten leases or expired signs.
fn without_past(snapshot: &Snapshot) -> Record {
    let mut record = snapshot.draft();
    if let Some(doubt) = record.doubt.take_if(|doubt| doubt.until <= snapshot.now) {
        record.version = Stamp::At(snapshot.version());
        forget_state(&mut record);
        if let Some(trees) = &mut record.trees {
            trees.end(doubt.version, TreeEffect::Changed);
        }
    }
    record.leases.retain(|lease| lease.is_remembered(snapshot.now));
    record.exclusive_awaited_until = record.exclusive_awaited_until.filter(|until| snapshot.now < *until);
    record.waiting.retain(|waiting| snapshot.now < waiting.until);
    record
}

#[cfg(test)]
#[path = "steps_tests.rs"]
mod tests;
