//! All orders of events, over the production steps: a small world of clients, a store and an upstream is explored
//! until nothing new can happen, and in each of its states the promise must hold (DESIGN, sections 1 and 3).
//!
//! `world` is the world and its events, `promise` what must hold in it, `client` what a client does next, `rules` the rules that can be broken on
//! purpose: an exploration that does not notice a broken rule would prove nothing of the kept ones.

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

mod client;
mod promise;
mod rules;
mod store;
mod world;

use std::{
    collections::HashSet,
    hash::{BuildHasher, RandomState},
};

use rules::{Mode, Rules};
use world::{Cast, Event, World};

/// Follows every event from every state, and gives the number of states, or how the promise is broken: with the events
/// that led there.
fn explore(start: World, rules: &Rules) -> Result<usize, String> {
    // Their hashes alone: that two of some hundred thousand states share 64 bits is not to be expected.
    let hasher = RandomState::new();
    let mut seen = HashSet::from([hasher.hash_one(&start)]);
    // Of each state, the one before it and the event between them.
    let mut origins = vec![(0, (None, "begins"))];
    let mut open = vec![(start, 0)];
    while let Some((world, origin)) = open.pop() {
        let followers = world.events(rules).map_err(|broken| tell(&broken, &origins, origin))?;
        if followers.is_empty() {
            world.check_end().map_err(|broken| tell(&broken, &origins, origin))?;
        }
        for (event, mut next) in followers {
            let checked = next.check();
            next.renumber();
            if checked.is_err() || seen.insert(hasher.hash_one(&next)) {
                origins.push((origin, event));
                checked.map_err(|broken| tell(&broken, &origins, origins.len() - 1))?;
                open.push((next, origins.len() - 1));
            }
        }
    }
    Ok(seen.len())
}

fn tell(broken: &str, origins: &[(usize, Event)], last: usize) -> String {
    let mut events = Vec::new();
    let mut place = last;
    while place > 0 {
        let (before, (who, what)) = origins[place];
        events.push(who.map_or_else(|| what.to_owned(), |who| format!("{who} {what}")));
        place = before;
    }
    events.reverse();
    format!("{broken}, after: {}", events.join("; "))
}

fn holds(cast: Cast) {
    for mode in Mode::ALL {
        match explore(World::new(mode, cast), &Rules::default()) {
            Ok(states) => println!("{mode:?}, {cast:?}: {states} states"),
            Err(broken) => panic!("{mode:?}, {cast:?}: {broken}"),
        }
    }
}

/// Rules 1, 2, 3, 7 and 8.
#[test]
fn no_update_is_lost_between_two_writers_one_of_which_fails() {
    holds(Cast { writers: 2, posters: 0, faults: 1, forgets: 1 });
}

/// The same beside a write that appends, which fails or not.
#[test]
fn no_update_is_lost_beside_an_unclaimed_write() {
    holds(Cast { writers: 1, posters: 1, faults: 1, forgets: 1 });
    holds(Cast { writers: 2, posters: 1, faults: 0, forgets: 1 });
}

/// A third writer: the second one has brought the first content back.
#[test]
fn no_update_is_lost_between_three_writers() {
    holds(Cast { writers: 3, posters: 0, faults: 0, forgets: 0 });
}

/// The world in which each broken rule is noticed.
fn is_noticed(rules: &Rules, mode: Mode, cast: Cast) {
    let noticed = explore(World::new(mode, cast), rules);
    assert!(noticed.is_err(), "{rules:?} in {mode:?}: nothing was noticed in {noticed:?} states");
}

const TWO: Cast = Cast { writers: 2, posters: 0, faults: 1, forgets: 1 };

/// Rule 8.
#[test]
fn a_floor_that_is_not_raised_is_noticed() {
    for mode in [Mode::Version, Mode::ContentExclusive] {
        is_noticed(&Rules { floor_is_raised: false, ..Rules::default() }, mode, TWO);
    }
}

/// Rule 3.
#[test]
fn a_doubt_that_holds_nothing_is_noticed() {
    for mode in Mode::ALL {
        is_noticed(&Rules { doubt_holds: false, ..Rules::default() }, mode, TWO);
    }
}

/// Rule 3.
#[test]
fn an_unclear_outcome_that_mints_no_version_is_noticed() {
    is_noticed(&Rules { unclear_mints: false, ..Rules::default() }, Mode::Version, TWO);
}

/// Rule 2.
#[test]
fn a_tag_learned_beside_another_write_is_noticed() {
    let beside_a_post = Cast { writers: 1, posters: 1, faults: 0, forgets: 0 };
    let rules = Rules { disturbed_is_dropped: false, ..Rules::default() };
    is_noticed(&rules, Mode::ContentExclusive, beside_a_post);
}

/// Rule 7.
#[test]
fn a_verdict_on_another_revision_is_noticed() {
    for mode in Mode::ALL {
        is_noticed(&Rules { verdict_is_bound: false, ..Rules::default() }, mode, TWO);
    }
}

/// Rule 2.
#[test]
fn a_read_that_is_remembered_although_a_write_came_between_is_noticed() {
    is_noticed(&Rules { reads_are_bound: false, ..Rules::default() }, Mode::ContentExclusive, TWO);
}

/// Rule 2.
#[test]
fn a_version_read_after_the_content_is_noticed() {
    is_noticed(&Rules { version_goes_first: false, ..Rules::default() }, Mode::Version, TWO);
}

/// Rule 7: an owner that begins although its mark may be taken over before its exchange is over.
#[test]
fn an_owner_that_does_not_look_at_the_clock_is_noticed() {
    for mode in Mode::ALL {
        is_noticed(&Rules { clock_is_read_again: false, ..Rules::default() }, mode, TWO);
    }
}
