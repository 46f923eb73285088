//! The trees of an upstream, and the effect of their record on the resources below them.

use std::time::Duration;

use super::*;
use crate::core::{
    lease::testing::TARGET,
    records::{
        presence::Presence,
        record::{Known, VariantName},
        steps::{Outcome, Settlement, settle, take_over},
        trees::{CHANGES_BYTES_MAX, CHANGES_MAX, is_below},
    },
    tags::{bare_tags::BareTags, validators::Representation},
};

const WINDOW: Duration = Duration::from_millis(50);

fn at(milliseconds: u64) -> StoreTime {
    StoreTime::from_milliseconds(milliseconds)
}

/// A model of the record of trees: each swap gets the next revision.
struct Around(Snapshot);

impl Around {
    fn new() -> Self {
        Self(Snapshot::new(Revision(10), Record::absent(Revision(10)), at(1_000)))
    }

    fn swap(&mut self, next: Record) {
        let revision = Revision(self.0.revision.0 + 1);
        self.0 = Snapshot::new(revision, next.resolved(revision), self.0.now);
    }

    fn pass(&mut self, milliseconds: u64) {
        self.0.now = self.0.now.plus(Duration::from_millis(milliseconds));
    }

    fn mark(&self) -> Mark {
        let deadline = self.0.now.plus(Duration::from_millis(100));
        Mark { owner: 1, nonce: 1, deadline, late_write_window: WINDOW, leaves_lease: false }
    }

    /// Begins the write of these trees. Only those that end with `!` are changed.
    fn begin(&mut self, roots: &[&str]) -> Mark {
        let mark = self.mark();
        let root = |root: &&str| TreeRoot { key: root.trim_end_matches('!').into(), is_read: !root.ends_with('!') };
        let roots: Vec<_> = roots.iter().map(root).collect();
        self.swap(claim_trees(&self.0, mark, &roots).expect("no other tree is written"));
        mark
    }

    fn end(&mut self, mark: Mark, outcome: Outcome) {
        let marked_at = self.0.revision;
        let settlement = Settlement { mark, marked_at, outcome, leaves: None, learned: None, shown: None, end: None };
        self.swap(settle(&self.0, settlement).expect("the mark is there"));
    }

    fn write(&mut self, root: &str, outcome: Outcome) -> Revision {
        let mark = self.begin(&[&format!("{root}!")]);
        self.end(mark, outcome);
        self.0.revision
    }

    fn change(&mut self, root: &str) -> Revision {
        self.write(root, Outcome::Applied)
    }

    fn refuse(&mut self, root: &str) -> Revision {
        self.write(root, Outcome::NotAppliedAsKnown)
    }

    fn of(&self, key: &str) -> (u64, Availability) {
        let Cover { change, availability, .. } = cover(&self.0, key);
        (change.0, availability)
    }

    fn last_of(&self, key: &str) -> Revision {
        cover(&self.0, key).last
    }
}

#[test]
fn what_is_below_a_collection_is_told_by_its_name() {
    for (key, root, expected) in [
        ("u:/a/b", "u:/a", true),
        ("u:/a/b/c", "u:/a", true),
        ("u:/a", "u:/a", false),
        ("u:/ab", "u:/a", false),
        ("u:/b/a", "u:/a", false),
        ("v:/a/b", "u:/a", false),
        ("u:/a", "u:/", true),
        ("u:/", "u:/", false),
        ("u:/a/b", "u:/a/b/c", false),
        ("u:/a(1)", "u:/a", false),
        ("u:/a(1)", "u:/a(", true),
        ("u:/ab(1)", "u:/a(", false),
        ("u:/a", "u:/a(", false),
    ] {
        assert_eq!(is_below(key, root), expected, "{key} {root}");
    }
}

/// Rule 1: a tree that is written is busy for all below it, and only one is written at a time.
#[test]
fn a_tree_in_flight_covers_all_below_it() {
    let mut around = Around::new();
    assert_eq!(around.of("u:/a/b"), (0, Availability::Free));
    let mark = around.begin(&["u:/a", "u:/c!"]);
    let busy = Availability::Busy { deadline: mark.deadline };
    for (key, expected) in
        [("u:/a/b", busy), ("u:/c/d/e", busy), ("u:/a", Availability::Free), ("u:/d", Availability::Free)]
    {
        assert_eq!(around.of(key), (0, expected), "{key}");
    }
    assert_eq!(claim_trees(&around.0, around.mark(), &[]), None, "another write of a tree waits");
    around.pass(100);
    assert_eq!(around.of("u:/c/d").1, Availability::Orphaned, "its owner is dead");
}

/// Rule 2: a resource that was changed, or may have been, counts as changed at the end of the write. One that was only
/// read does not.
#[test]
fn the_end_of_a_tree_is_a_change_of_all_that_it_has_written() {
    for (outcome, is_change) in [
        (Outcome::Applied, true),
        (Outcome::Unclear, true),
        (Outcome::NotAppliedAsKnown, false),
        (Outcome::NotApplied, false),
    ] {
        let mut around = Around::new();
        let mark = around.begin(&["u:/a", "u:/c!"]);
        around.end(mark, outcome);
        let ended = if is_change { around.0.revision.0 } else { 0 };
        assert_eq!(around.of("u:/c/d"), (ended, Availability::Free), "{outcome:?}");
        assert_eq!(around.of("u:/a/b"), (0, Availability::Free), "{outcome:?}: it was only read");
        assert_eq!(around.of("u:/c").0, 0, "{outcome:?}: the collection has a record of its own");
    }
}

/// Rule 3: the doubt covers the tree until it is over, and counts as a change then.
#[test]
fn a_tree_in_doubt_is_closed_and_then_changed() {
    for is_dead in [true, false] {
        let mut around = Around::new();
        let mark = around.begin(&["u:/a", "u:/c!"]);
        if is_dead {
            around.pass(100);
            around.swap(take_over(&around.0).expect("the owner is dead"));
        } else {
            around.end(mark, Outcome::Doubt);
        }
        let (until, made) = (around.0.now.plus(WINDOW), around.0.revision.0);
        for key in ["u:/a/b", "u:/c/d"] {
            assert_eq!(around.of(key), (0, Availability::InDoubt { until }), "{key}");
        }
        around.pass(50);
        assert_eq!((around.of("u:/c/d"), around.of("u:/a/b")), ((made, Availability::Free), (0, Availability::Free)));
        let next = around.begin(&["u:/x!"]);
        assert_eq!(around.of("u:/c/d"), (made, Availability::Free), "the next claim keeps the change");
        around.end(next, Outcome::NotApplied);
        assert_eq!(around.of("u:/c/d"), (made, Availability::Free));
    }
}

#[test]
fn changes_that_are_too_many_to_be_listed_count_everywhere() {
    let mut around = Around::new();
    let first = around.change("u:/first");
    let last = (1..CHANGES_MAX).map(|number| around.change(&format!("u:/{number}"))).last().expect("some");
    assert_eq!((around.of("u:/first/a").0, around.of("u:/other").0), (first.0, 0));
    around.change("u:/one-more");
    assert_eq!((around.of("u:/first/a").0, around.of("u:/other").0), (first.0, first.0));
    assert_eq!(around.of(&format!("u:/{}/a", CHANGES_MAX - 1)).0, last.0, "the others stay apart");
    let long = format!("u:/{}", "a".repeat(CHANGES_BYTES_MAX));
    let before = around.0.revision;
    let alone = around.change(&long);
    assert!(around.of("u:/other").0 > before.0, "one that is too long for the list counts everywhere too");
    assert_eq!(around.of(&format!("{long}/a")).0, alone.0);
}

#[test]
fn a_change_replaces_those_that_it_covers() {
    let mut around = Around::new();
    around.change("u:/a/b");
    around.change("u:/ab");
    let last = around.change("u:/a");
    let changes = &around.0.record.trees.as_ref().expect("trees").changes;
    assert_eq!(changes.iter().map(|change| &*change.root).collect::<Vec<_>>(), ["u:/ab", "u:/a"]);
    assert_eq!(around.of("u:/a/b/c").0, last.0);
}

#[test]
fn the_record_of_trees_is_never_forgotten() {
    let mut around = Around::new();
    around.change("u:/a");
    assert_eq!(around.0.record.idle_from(), None);
}

fn member(tree_change: u64) -> Snapshot {
    let known = Known { variant: VariantName([1; 16]), representation: Representation::Unknown };
    let record = Record {
        known: Some(known),
        presence: Some(Presence::present(TARGET)),
        bare_tags: BareTags::All,
        first_date: FirstDate::ANY,
        tree_change: Revision(tree_change),
        ..Record::absent(Revision(5))
    };
    Snapshot::new(Revision(8), record, at(1_000))
}

/// Rule 2: no tag, date or content from before the change counts after it, no matter what the record shows.
#[test]
fn a_member_counts_as_changed_by_the_tree_around_it() {
    let mut around = Around::new();
    let change = around.change("u:/a");
    let shown = under_trees(member(0), "u:/a/b", &around.0);
    assert_eq!((shown.version(), shown.touched(), shown.revision), (change, change, Revision(8)));
    assert_eq!((shown.known(), shown.record.presence, &shown.record.bare_tags), (None, None, &BareTags::None));
    assert_eq!((shown.record.first_date, shown.record.tree_change), (FirstDate::NONE, change));
    assert_eq!(under_trees(shown.clone(), "u:/a/b", &around.0), shown, "once is enough");
    let other = under_trees(member(0), "u:/b", &around.0);
    assert_eq!(other, member(0), "it is below no tree that has changed");
}

/// The same as for a single resource: nothing has changed, and the upstream must be asked.
#[test]
fn a_refused_tree_leaves_all_below_as_it_is_but_unknown() {
    let mut around = Around::new();
    let refused = around.refuse("u:/a");
    let shown = under_trees(member(0), "u:/a/b", &around.0);
    let before = member(0);
    assert_eq!((shown.known(), shown.touched(), shown.record.tree_change), (None, refused, refused));
    assert_eq!(
        (shown.version(), &shown.record.bare_tags, shown.record.first_date),
        (before.version(), &before.record.bare_tags, before.record.first_date)
    );
    assert_eq!(under_trees(shown.clone(), "u:/a/b", &around.0), shown, "once is enough");
    assert_eq!(under_trees(member(0), "u:/b", &around.0), member(0), "it is below no tree that was written");
    assert_eq!(under_trees(member(refused.0), "u:/a/b", &around.0).known(), member(0).known(), "it was learned since");
}

/// The source of a COPY may be what the upstream has not found.
#[test]
fn a_refused_copy_may_speak_of_what_it_only_reads() {
    let mut around = Around::new();
    let mark = around.begin(&["u:/a", "u:/c!"]);
    around.end(mark, Outcome::NotAppliedAsKnown);
    assert_eq!((around.last_of("u:/a/b"), around.last_of("u:/c/b")), (around.0.revision, around.0.revision));
}

#[test]
fn a_refused_tree_hides_no_change() {
    let mut around = Around::new();
    let change = around.change("u:/a/b");
    let refused = around.refuse("u:/a");
    let of_member = under_trees(member(0), "u:/a/b/c", &around.0);
    assert_eq!((of_member.version(), of_member.touched()), (change, refused));
    let again = around.refuse("u:/a");
    assert_eq!(around.0.record.trees.as_ref().map(|trees| trees.changes.len()), Some(2), "it replaces the first");
    assert_eq!(around.last_of("u:/a/b/c"), again);
}

#[test]
fn refused_trees_push_no_change_out_of_the_list() {
    let mut around = Around::new();
    let change = around.change("u:/a");
    let refused: Vec<_> = (0..=CHANGES_MAX).map(|number| around.refuse(&format!("u:/{number}"))).collect();
    assert_eq!((around.of("u:/a/b").0, around.of("u:/other").0), (change.0, 0));
    assert_eq!(around.last_of("u:/other"), refused[1], "the first two found no room");
    assert_eq!(around.last_of("u:/2/a"), refused[2]);
}

/// A mark that gave way ends later than the change, and its record knows nothing of it.
#[test]
fn a_record_that_was_swapped_later_may_not_know_of_a_change() {
    let mut around = Around::new();
    let change = around.change("u:/a");
    let later = Revision(change.0 + 5);
    let of_mark = Record { touched: Stamp::At(later), ..member(0).draft() };
    let shown = under_trees(Snapshot::new(later, of_mark, at(1_000)), "u:/a/b", &around.0);
    assert_eq!((shown.version(), shown.touched(), shown.known()), (change, later, None));
}

#[test]
fn a_version_never_falls() {
    let mut around = Around::new();
    around.change("u:/a");
    let newer = Record { version: Stamp::At(Revision(90)), ..member(0).draft() };
    let shown = under_trees(Snapshot::new(Revision(91), newer, at(1_000)), "u:/a/b", &around.0);
    assert_eq!(shown.version(), Revision(90));
}

/// Rule 3: the write of a tree whose proxy has died may be applied until its time is over.
#[test]
fn a_member_knows_when_the_write_of_its_tree_is_over() {
    let mut around = Around::new();
    let mark = around.begin(&["u:/a!", "u:/c"]);
    let over = |key| under_trees(member(0), key, &around.0).above.map(|above| above.mark_over_from);
    let expected = [Some(Some(mark.deadline.plus(WINDOW))), Some(None), None];
    assert_eq!(["u:/a/b", "u:/c/b", "u:/d"].map(over), expected, "a COPY changes nothing at its source");
}

/// Rules 1 and 2: nothing is answered from memory, and nothing begins, while the tree is written.
#[test]
fn a_member_of_a_busy_tree_is_busy() {
    let mut around = Around::new();
    let mark = around.begin(&["u:/a!"]);
    let shown = under_trees(member(0), "u:/a/b", &around.0);
    let busy = Availability::Busy { deadline: mark.deadline };
    assert_eq!((shown.availability(), shown.availability_to_touch()), (busy, busy));
    assert!(!shown.has_no_pending_writes() && shown.known().is_none());
    assert_eq!((shown.availability_by_own(), claim(&shown, mark)), (Availability::Free, None));
    assert_eq!(take_over(&shown), None, "its own record has nothing to take over");
    assert!(shown.draft().claim.is_none(), "the mark stays in the record of trees");
}
