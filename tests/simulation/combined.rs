//! Settings that combine what other kinds of runs have alone: collections with clients that watch, or that hold leases by
//! streams, and chains of restarts and reloads beside collections, streams, queues and the next member.

use std::time::Duration;

use fastrand::Rng;

use crate::{
    azure_queues,
    backend::Tags,
    next_member,
    operation::{Manner, Operation},
    options::Options,
    process::{self, Keeping},
    run::{Setting, Step, config},
    schedule::Faults,
    streams::{self, LASTS_SECONDS},
    trees,
    watchers::{self, MEMBERS},
};

/// The largest number of faults in a chain of restarts.
const FAULTS_MAX: u32 = 6;

/// The text of a configuration with these options.
pub type Text = fn(&Options) -> String;

/// A kind of run: its options, the text of their configuration, and its setting.
pub type Drawn = (Options, Text, Setting);

/// Draws one of the kinds, with such a store.
pub fn drawn(random: &mut Rng, keeping: Keeping) -> Drawn {
    type Build = fn(&mut Rng, Keeping) -> (Options, Setting);
    let kinds: [(Build, Text); 4] = [
        (|random, keeping| trees::setting_with(random, keeping, |options| options), Options::text_of_trees),
        (streams::setting_with, Options::text),
        (next_member::setting_with, Options::text_of_members),
        (azure_queues::setting_with, Options::text_of_queue),
    ];
    let (build, text) = kinds[random.usize(..kinds.len())];
    let (options, setting) = build(random, keeping);
    (options, text, setting)
}

/// Builds a setting from a seed: one process after another on the same file, each with its own times.
pub fn restarted(random: &mut Rng) -> Setting {
    let (options, text, setting) = drawn(random, Keeping::Disk);
    let successors = (0..random.usize(1..4)).map(|_| {
        let mut seconds = || (random.u64(1..20), random.u64(1..20));
        config(&text(&Options { late_write_window: seconds(), timeout: seconds(), ..options }))
    });
    let successors = successors.collect();
    Setting { successors, faults: Faults { left: random.u32(2..=FAULTS_MAX), fails: false, kills: true }, ..setting }
}

/// Builds a setting from a seed: processes load other rules, and a process alone other times.
pub fn reloaded(random: &mut Rng) -> Setting {
    let keeping = [Keeping::Shared, Keeping::Shared, Keeping::Memory, Keeping::Disk][random.usize(..4)];
    let (options, text, setting) = drawn(random, keeping);
    let Options { omits, reads, late_write_window, timeout, .. } = options.reloaded(random, setting.proxies == 1);
    let other = Options { omits, reads, late_write_window, timeout, ..options };
    let settled_reads = setting.settled_reads && other.has_settled_reads();
    Setting { other: Some(text(&other)), settled_reads, ..setting }
}

/// Builds a setting from a seed: clients watch members of collections that others write, move and lock.
pub fn watched_trees(random: &mut Rng) -> Setting {
    let adapt = |options| Options { tags: Tags::Precise, contents: u32::MAX, identity_ttl: Some(5), ..options };
    let keeping = [Keeping::Shared, Keeping::Shared, Keeping::Memory, Keeping::Disk][random.usize(..4)];
    let (options, mut setting) = trees::setting_with(random, keeping, adapt);
    for _ in 0..random.usize(1..3) {
        let read =
            |target: &str| Step { operation: Operation::Read, target: target.to_owned(), manner: Manner::default() };
        setting.prologue.push(MEMBERS.map(read).to_vec());
        setting.steps.push((0..random.usize(1..5)).map(|_| watchers::watch(random, MEMBERS)).collect());
    }
    Setting {
        remembers: process::ALL,
        loses_notices: random.u32(..3) == 0,
        names_clients: true,
        right_lasts: options.identity_ttl.map(Duration::from_secs),
        ..setting
    }
}

/// Builds a setting from a seed: clients hold leases of members by streams, beside writes and locks of their collections.
pub fn streams_in_trees(random: &mut Rng) -> Setting {
    let keeping = [Keeping::Shared, Keeping::Shared, Keeping::Memory, Keeping::Disk][random.usize(..4)];
    let adapt = |options| Options { leased: (true, true), shared: true, ..options };
    let (_, mut setting) = trees::setting_with(random, keeping, adapt);
    for steps in &mut setting.steps {
        for _ in 0..random.usize(1..3) {
            let target = MEMBERS[random.usize(..2)].to_owned();
            let step = match random.u32(..4) {
                0 => Step { operation: Operation::HangUp, target, manner: Manner::default() },
                resumes => Step { target, ..streams::hold(random, resumes == 1) },
            };
            let place = random.usize(..=steps.len());
            steps.insert(place, step);
        }
    }
    // A client that takes its lease up again keeps the mode. It may shorten the term, although it learns of a failure.
    let shares = random.bool();
    for step in setting.steps.iter_mut().chain(&mut setting.prologue).flatten() {
        if step.operation == Operation::Acquire && !trees::is_root(&step.target) {
            (step.manner.lasts, step.manner.shares) = (Some(LASTS_SECONDS), shares);
        }
    }
    setting
}
