//! Tests that no date is valid for any state but the one that clients got it for. They follow every path through the
//! changes of a record, with a backend whose dates are coarse, behind, or go back.

use std::{collections::BTreeMap, time::Duration};

use super::*;
use crate::core::{
    records::{
        record::{Mark, Record, Revision, Snapshot},
        steps::{self, Outcome, Settlement},
    },
    tags::validators::Modified,
    time::StoreTime,
};

fn at(seconds: u64) -> HttpDate {
    HttpDate::from_unix_seconds(seconds)
}

fn end(answered: u64, before: Option<u64>) -> WriteEnd {
    WriteEnd { answered: at(answered), before: before.map(at) }
}

/// Rule 2: the first date after a write is that of its answer, or the second after the date before it.
#[test]
fn the_first_date_is_after_all_that_were_told() {
    for (before, end, expected) in [
        (FirstDate::ANY, end(100, None), 100),
        (FirstDate::ANY, end(100, Some(50)), 100),
        (FirstDate::ANY, end(100, Some(100)), 101),
        (FirstDate::ANY, end(100, Some(500)), 501),
        (FirstDate::of_number(300), end(100, Some(50)), 300),
        (FirstDate::NONE, end(100, None), 100),
    ] {
        assert_eq!(before.after(Some(end)), FirstDate::at(at(expected)), "{before:?} {end:?}");
        assert_eq!(before.after(None), FirstDate::NONE);
    }
}

/// Rule 2: on a route that shows weak dates, the date of the answer may be that of the state before.
#[test]
fn a_date_that_is_told_in_its_second_counts_no_more() {
    for (before, expected) in [(None, 101), (Some(50), 101), (Some(500), 501)] {
        let told = Some(end(100, before).with_weak_dates_told(true));
        assert_eq!(FirstDate::ANY.after(told), FirstDate::at(at(expected)), "{before:?}");
    }
    assert_eq!(end(100, None).with_weak_dates_told(false), end(100, None));
}

/// Rule 2: which dates pass, by the date that the backend shows and by the record.
#[test]
fn a_date_passes_only_if_it_is_that_of_the_current_state_alone() {
    let (any, none, from) = (FirstDate::ANY, FirstDate::NONE, FirstDate::of_number);
    for (shown, sent, first, dates) in [
        // A resource that no client wrote: a date of the very second may be that of two states.
        (100, Some(101), any, [(99, false), (100, true), (101, true)]),
        (100, Some(100), any, [(99, false), (100, false), (101, true)]),
        (100, None, any, [(99, false), (100, false), (101, true)]),
        // A write that was answered in the second of its state.
        (100, Some(101), from(100), [(99, false), (100, true), (101, true)]),
        (100, Some(100), from(100), [(99, false), (100, false), (101, true)]),
        // A write whose state has an older date, such as that of a clock behind.
        (99, Some(200), from(100), [(99, false), (100, false), (101, true)]),
        (40, Some(200), from(100), [(40, false), (100, false), (101, true)]),
        // Nothing is known, and only a date that no response can have shown is later.
        (99, Some(200), none, [(99, false), (200, false), (201, true)]),
        (99, None, none, [(99, false), (200, false), (999, false)]),
    ] {
        let headers: HeaderMap = [(header::LAST_MODIFIED, Some(shown)), (header::DATE, sent)]
            .into_iter()
            .filter_map(|(name, date)| Some((name, at(date?).to_string().parse().unwrap())))
            .collect();
        let modified = Modified::from_headers(&headers).unwrap().by_record(first);
        for (date, passes) in dates {
            assert_eq!(modified.admits(at(date)), passes, "{date} of {shown}, sent at {sent:?}, {first:?}");
        }
    }
}

/// A resource at a backend whose dates do not move with its states, its record, and all dates that clients got.
#[derive(Clone)]
struct World {
    now: u64,
    shown: u64,
    state: u32,
    first: FirstDate,
    told: BTreeMap<u64, u32>,
}

/// One step of the backend or of a client.
#[derive(Clone, Copy, Debug)]
enum Step {
    Tick,
    /// A client reads, and keeps the date if it gets one.
    Read,
    /// A write ends, and the state has this date from then on. `knows`: the proxy knows the date before. `dated`: the
    /// answer has a date.
    Write {
        shows: u64,
        knows: bool,
        dated: bool,
    },
}

impl World {
    fn modified(&self) -> Modified {
        let fields = [(header::LAST_MODIFIED, self.shown), (header::DATE, self.now)];
        let headers = fields.into_iter().map(|(name, date)| (name, at(date).to_string().parse().unwrap())).collect();
        Modified::from_headers(&headers).unwrap().by_record(self.first)
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Tick => self.now += 1,
            Step::Read if self.modified().strong => {
                self.told.entry(self.shown).or_insert(self.state);
            }
            Step::Read => {}
            Step::Write { shows, knows, dated } => {
                let before = knows.then(|| at(self.shown));
                self.first = self.first.after(dated.then(|| WriteEnd { answered: at(self.now), before }));
                (self.shown, self.state) = (shows, self.state + 1);
            }
        }
        for (date, state) in &self.told {
            let passes = self.modified().admits(at(*date));
            assert!(!passes || *state == self.state, "{date} of state {state} passes on {}", self.state);
        }
    }
}

fn explore(world: &World, steps: &[Step], depth: u32) {
    for step in steps {
        let mut next = world.clone();
        next.step(*step);
        if depth > 1 {
            explore(&next, steps, depth - 1);
        }
    }
}

/// Rule 2: tries every sequence of six steps. Dates go back and forth, and stay.
#[test]
fn no_date_outlives_its_state() {
    let mut steps = vec![Step::Tick, Step::Read];
    for (knows, dated) in [(true, true), (false, true), (false, false)] {
        steps.extend([99, 100].map(|shows| Step::Write { shows, knows, dated }));
    }
    let world = World { now: 100, shown: 99, state: 0, first: FirstDate::ANY, told: BTreeMap::new() };
    explore(&world, &steps, 6);
}

fn after(snapshot: &Snapshot, record: Record) -> Snapshot {
    let revision = Revision(snapshot.revision.0 + 1);
    Snapshot::new(revision, record.resolved(revision), snapshot.now)
}

fn settled(snapshot: &Snapshot, nonce: u64, outcome: Outcome) -> Snapshot {
    let end = Some(WriteEnd { answered: at(100), before: None });
    let (mark, marked_at) = (mark(nonce), snapshot.revision);
    let settlement = Settlement { mark, marked_at, outcome, leaves: None, learned: None, shown: None, end };
    after(snapshot, steps::settle(snapshot, settlement).expect("the mark is there"))
}

fn mark(nonce: u64) -> Mark {
    let (deadline, late_write_window) = (StoreTime::from_milliseconds(1 << 40), Duration::from_secs(9));
    Mark { owner: 1, nonce, deadline, late_write_window, leaves_lease: true }
}

/// Rule 2: which ends of a write make dates count.
#[test]
fn dates_count_after_a_write_that_was_applied_and_answered() {
    let free = Snapshot::new(Revision(0), Record::absent(Revision(0)), StoreTime::default());
    let claimed = after(&free, steps::claim(&free, mark(1)).expect("it is free"));
    for (outcome, expected) in [
        (Outcome::Applied, FirstDate::at(at(100))),
        (Outcome::NotApplied, FirstDate::ANY),
        (Outcome::NotAppliedAsKnown, FirstDate::ANY),
        (Outcome::Unclear, FirstDate::NONE),
        (Outcome::Doubt, FirstDate::NONE),
    ] {
        assert_eq!(settled(&claimed, 1, outcome).record.first_date, expected, "{outcome:?}");
    }
    let beside = after(&claimed, steps::add_unclaimed(&claimed, mark(2)).expect("there is room"));
    let in_doubt = settled(&beside, 2, Outcome::Doubt);
    let first = settled(&in_doubt, 1, Outcome::Applied).record.first_date;
    assert_eq!(first, FirstDate::NONE, "the write in doubt may end later");
    assert_eq!(Record::absent(Revision(5)).first_date, FirstDate::NONE, "a record was forgotten");
    let end = Some(WriteEnd { answered: at(100), before: None });
    assert_eq!(steps::touch(&free, end).first_date, FirstDate::at(at(100)));
    assert_eq!(steps::touch(&free, None).first_date, FirstDate::NONE);
}
