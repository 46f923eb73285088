//! All orders of events, over the production steps. A small world of clients, two proxies, a store and an upstream is
//! explored until nothing new can happen. In each of its states the promise must hold (DESIGN, sections 1 and 3).
//! `docs/exploration.md` describes what is explored, and how to run the large bounds.
//!
//! `world` is the world and its events, `writer` and `holder` hold the moves of clients, and `route` the verdicts on
//! the route. `shell` holds the production steps, `promise` what must hold, `normal` which worlds are the same,
//! `explore` the way through them. `rules` are the rules that `broken` breaks on purpose.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::trivially_copy_pass_by_ref,
    missing_docs,
    unreachable_pub,
    reason = "a test stops at the first surprise, and nothing outside this binary can name its parts"
)]

mod broken;
mod client;
mod explore;
mod holder;
mod normal;
mod promise;
mod route;
mod rules;
mod shell;
mod store;
mod world;
mod writer;

use std::{collections::BTreeSet, env, time::Instant};

use client::Role::{self, Holder, Plain, Poster, Writer};
use rules::{Mode, Rules};
use world::{Cast, World};

/// A world to explore, and its least number of states, which shows when a change of the model explores less.
struct Bounds {
    mode: Mode,
    roles: &'static [Role],
    /// The number of faults, and the number of times that the record is forgotten.
    budget: (u8, u8),
    states_min: usize,
}

const fn bounds(mode: Mode, roles: &'static [Role], budget: (u8, u8), states_min: usize) -> Bounds {
    Bounds { mode, roles, budget, states_min }
}

/// Explores the small bounds, or the full ones (`EXPLORE=full`), and returns the kinds of events that happened.
fn holds(small: &[Bounds], full: &[Bounds]) -> BTreeSet<&'static str> {
    let all = match env::var("EXPLORE") {
        Err(_) => small,
        Ok(word) if word == "full" => full,
        Ok(word) => panic!("EXPLORE is {word:?}; it is `full`, or not set"),
    };
    let mut kinds = BTreeSet::new();
    for Bounds { mode, roles, budget: (faults, forgets), states_min } in all {
        let (cast, begun) = (Cast { roles, faults: *faults, forgets: *forgets }, Instant::now());
        let Ok(mut size) = explore::explore(&World::new(*mode, cast), &Rules::KEPT) else {
            let shortest = explore::shortest(World::new(*mode, cast), &Rules::KEPT, "");
            panic!(
                "{mode:?}, {cast:?}: {}",
                shortest.map_or("it goes round in circles".to_owned(), |it| it.to_string())
            );
        };
        let (states, events, depth) = (size.states, size.events, size.depth);
        let seconds = begun.elapsed().as_secs();
        println!("| {mode:?} | {roles:?} | {faults} | {forgets} | {states} | {events} | {depth} | {seconds} s |");
        assert!(states >= *states_min, "{mode:?}, {cast:?}: {states} states, and {states_min} were there once");
        kinds.append(&mut size.kinds);
    }
    kinds
}

/// Checks that the events which the exploration is meant to cover have happened.
fn has_happened(kinds: &BTreeSet<&'static str>, expected: &[&'static str]) {
    for kind in expected {
        assert!(kinds.contains(kind), "{kind:?} has never happened; what has: {kinds:?}");
    }
}

const FAILURES: [&str; 6] = [
    "gets no answer in time",
    "has its write applied and gets no answer in time",
    "is applied late",
    "dies and is started again",
    "makes a doubt of what a dead owner has left",
    "is too late to begin",
];

/// Checks rules 1, 2, 3, 7 and 8.
#[test]
fn no_update_is_lost_between_writers() {
    let (two, three): (&[Role], &[Role]) = (&[Writer, Writer], &[Writer, Writer, Writer]);
    let small = [
        bounds(Mode::Version, two, (1, 1), 5600),
        bounds(Mode::ContentExclusive, two, (1, 1), 29_800),
        bounds(Mode::ContentShared, two, (1, 1), 17_200),
        bounds(Mode::Version, three, (0, 1), 46_600),
    ];
    let full = [
        bounds(Mode::Version, two, (3, 2), 32_300),
        bounds(Mode::ContentExclusive, two, (3, 2), 119_000),
        bounds(Mode::ContentShared, two, (3, 2), 86_500),
        bounds(Mode::Version, three, (2, 1), 1_242_000),
        bounds(Mode::ContentExclusive, three, (1, 1), 8_047_000),
        bounds(Mode::ContentShared, three, (1, 1), 3_152_000),
    ];
    let kinds = holds(&small, &full);
    has_happened(&kinds, &FAILURES);
    has_happened(&kinds, &["the record is forgotten", "reads the new state", "is refused by what is remembered"]);
}

/// Like [`no_update_is_lost_between_writers`], but beside a write that appends.
#[test]
fn no_update_is_lost_beside_an_unclaimed_write() {
    let (two, three): (&[Role], &[Role]) = (&[Writer, Poster], &[Writer, Writer, Poster]);
    let small = [
        bounds(Mode::Version, two, (1, 1), 16_200),
        bounds(Mode::ContentExclusive, two, (1, 1), 29_400),
        bounds(Mode::ContentShared, two, (1, 1), 21_600),
    ];
    let full = [
        bounds(Mode::Version, two, (3, 2), 84_000),
        bounds(Mode::ContentExclusive, two, (3, 2), 128_000),
        bounds(Mode::ContentShared, two, (3, 2), 109_000),
        bounds(Mode::Version, three, (1, 1), 1_442_000),
        bounds(Mode::ContentExclusive, three, (1, 1), 7_352_000),
        bounds(Mode::ContentShared, three, (1, 1), 3_592_000),
    ];
    let kinds = holds(&small, &full);
    has_happened(&kinds, &FAILURES);
}

/// On a leased resource only the holder writes, and never after the lease was granted to another client.
#[test]
fn nobody_writes_under_the_lease_of_another() {
    // Tags do not matter if no write has a precondition.
    let any = Mode::ContentShared;
    let small = [
        bounds(any, &[Holder, Plain], (1, 0), 33_900),
        bounds(any, &[Holder, Poster], (0, 1), 14_700),
        bounds(any, &[Holder, Holder], (0, 1), 45_100),
        bounds(Mode::Version, &[Holder, Writer], (0, 1), 13_300),
    ];
    let full = [
        bounds(any, &[Holder, Plain], (3, 2), 1_068_000),
        bounds(any, &[Holder, Poster], (3, 2), 1_746_000),
        bounds(any, &[Holder, Holder], (2, 1), 1_140_000),
        bounds(Mode::Version, &[Holder, Writer], (2, 1), 592_000),
        bounds(Mode::ContentExclusive, &[Holder, Writer], (2, 1), 1_253_000),
        bounds(any, &[Holder, Holder, Plain], (1, 1), 17_372_000),
        bounds(any, &[Holder, Holder, Holder], (0, 1), 6_261_000),
    ];
    let kinds = holds(&small, &full);
    has_happened(&kinds, &FAILURES);
    has_happened(&kinds, &["renews its lease", "is refused by the lease", "the lease is broken"]);
    has_happened(&kinds, &["does its lease operation, which the store does not confirm, and repeats it"]);
}
