//! The writes of trees: each changes a collection together with all resources below it (DESIGN, section 3, rule 1).
//!
//! # Design
//!
//! *Why one record for all trees of an upstream?* No write can claim each resource below a collection: there may be a
//! million of them, and new ones may come. So a write of a tree claims its own resource and one record that all writes
//! below the same upstream look at. Two writes of trees there exclude each other.
//!
//! *How do a tree and its members exclude each other?* Each side publishes, then checks. The write of a tree claims the
//! record of trees, and then looks for marks, doubts and leases below its roots. A write of a member makes its mark, and
//! then looks at the record of trees again. Of two at the same time, one at least sees the other, and the member gives way.
//!
//! *How do members learn of a change?* The record lists the roots of the last changes. A resource below one of them
//! counts as changed at that moment, no matter what its own record shows ([`under_trees`]). Its record notes the change
//! with its next step, so no step restores an outdated state. A write that the upstream has refused is listed too if
//! its answer shows that a known state may be wrong: then only that state is forgotten.
//!
//! *Why are there two numbers in a member's record?* `touched` is also the end of steps that knew nothing of a change, such
//! as that of a mark that gave way. `tree_change` is the last end of a tree that the record takes into account.

use super::{
    record::{Availability, Mark, Record, Revision, Snapshot, Stamp},
    steps::{claim, forget_state, withdraw_if_conditional},
    trees::{TreeEffect, TreeInTheWay, TreeRoot},
};
use crate::core::{tags::told_dates::FirstDate, time::StoreTime};

/// The part of the record of trees that concerns one resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cover {
    /// The last change of a tree around the resource. Zero if there was none.
    pub change: Revision,
    /// The end of the last write of such a tree that counts: the change, or a later one that has changed nothing.
    pub last: Revision,
    /// The availability of the resource to a write, by the trees alone.
    pub availability: Availability,
    /// The time from which nothing of the write that changes such a tree can arrive any more, while its mark stands.
    pub mark_over_from: Option<StoreTime>,
}

/// Claims the record of trees for a write of these.
pub fn claim_trees(snapshot: &Snapshot, mark: Mark, roots: &[TreeRoot]) -> Option<Record> {
    let mut record = claim(snapshot, mark)?;
    record.trees.get_or_insert_default().roots = roots.to_vec();
    Some(record)
}

/// Returns the part of the record of trees that concerns the resource with this key.
pub fn cover(trees: &Snapshot, key: &str) -> Cover {
    let free = Cover { change: Revision(0), last: Revision(0), availability: Availability::Free, mark_over_from: None };
    let Some(kept) = &trees.record.trees else { return free };
    let last = |effect| kept.ended(key, effect).map(|at| at.resolve(trees.revision)).max().unwrap_or_default();
    // A write whose doubt is over counts as one that has ended then.
    let doubt = trees.record.doubt.filter(|doubt| doubt.until <= trees.now && kept.changes_below(key));
    let ended = doubt.map(|doubt| doubt.version.resolve(trees.revision));
    let change = last(TreeEffect::Changed).max(ended.unwrap_or_default());
    Cover {
        change,
        last: last(TreeEffect::Forgotten).max(change),
        availability: if kept.covers(key) { trees.availability() } else { Availability::Free },
        mark_over_from: trees.record.marks().map(Mark::over_from).max().filter(|_| kept.changes_below(key)),
    }
}

/// Returns a resource as it is under the trees around it, by their record. It counts as changed by the last change of one,
/// and as unknown since the last end of one.
#[must_use]
pub fn under_trees(own: Snapshot, key: &str, trees: &Snapshot) -> Snapshot {
    let Cover { change, last, availability, mark_over_from } = cover(trees, key);
    let in_the_way = TreeInTheWay { availability, seen: trees.revision, mark_over_from };
    let above = Some(in_the_way).filter(|above| above.availability != Availability::Free);
    let accounted_for = own.record.tree_change;
    if last <= accounted_for {
        return Snapshot { above, ..own };
    }
    let mut record = own.draft();
    if change > accounted_for {
        take_change(&mut record, change, own.now);
    }
    record.tree_change = last;
    forget_state(&mut record);
    record.touched = Stamp::At(record.touched.resolve(own.revision).max(last));
    Snapshot { record: record.into(), above, ..own }
}

/// Lets a record count as that of a resource whose last write has ended at this moment, and has shown nothing.
fn take_change(record: &mut Record, change: Revision, now: StoreTime) {
    record.bare_tags = std::mem::take(&mut record.bare_tags).changed(None);
    record.first_date = FirstDate::NONE;
    record.leases.retain(|lease| lease.state(now).is_held());
    withdraw_if_conditional(record, None);
    let doubt = record.doubt.as_mut().map(|doubt| &mut doubt.version);
    for stamp in [&mut record.version].into_iter().chain(doubt) {
        *stamp = Stamp::At(stamp.resolve(change).max(change));
    }
}

#[cfg(test)]
#[path = "under_trees_tests.rs"]
mod tests;
