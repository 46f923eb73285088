//! The power of the generated histories: the share of seeds with which they find a fault of each known kind, and the
//! number of operations that they need for it (`docs/histories.md`).

use std::{
    collections::BTreeSet,
    path::Path,
    process::{Command, Stdio},
};

use super::{copy, program};

/// The test target, and its test of generated configurations.
const TARGET: &str = "histories";
const TEST: &str = "histories_of_generated_configurations_keep_the_promise";

/// The known kinds of faults, each with a mutant that has it. A retry that is not recognised is planted by a configuration
/// (`tests/histories/untrue.rs`).
pub const FAULTS: [(&str, &str); 7] = [
    ("a lost mark", "mark-conflict-is-a-claim"),
    ("a doubt forgotten", "send-abandoned-is-not-applied"),
    ("a coarse tag believed", "coarse-tag-without-suffix"),
    ("a claim on one of two keys", "held-on-one-of-two-keys"),
    ("a stale date", "date-outlives-its-state"),
    ("a lease given twice", "acquire-held-lease"),
    ("a late write let through", "take-over-without-doubt"),
];

/// The findings of the seeds about one fault.
pub struct Power {
    pub kind: &'static str,
    pub seeds: usize,
    pub found: usize,
    /// All operations of all runs, and all anomalies that they found.
    operations: usize,
    anomalies: usize,
}

impl Power {
    pub fn line(&self) -> String {
        let Self { kind, seeds, found, operations, anomalies } = self;
        let each = operations.checked_div(*anomalies).map_or("never".to_owned(), |each| each.to_string());
        format!("| {kind} | {found} of {seeds} | {operations} | {each} |")
    }
}

/// Builds the copy's histories, and runs them with each fault and these seeds.
pub fn measure(root: &Path, seeds: usize) -> Vec<Power> {
    let programs = program::build(root, &BTreeSet::from([TARGET.to_owned()]));
    let of = |(kind, mutant)| {
        let mut power = Power { kind, seeds, found: 0, operations: 0, anomalies: 0 };
        for seed in 1..=seeds {
            let (operations, anomalies) = run(&programs[TARGET], mutant, seed);
            power.found += usize::from(anomalies > 0);
            power.operations += operations;
            power.anomalies += anomalies;
        }
        println!("{}", power.line());
        power
    };
    FAULTS.into_iter().map(of).collect()
}

/// Runs the histories once, and returns the numbers of operations and of anomalies.
fn run(program: &Path, mutant: &str, seed: usize) -> (usize, usize) {
    let mut command = Command::new(program);
    command.args([TEST, "--exact", "--nocapture"]).current_dir(copy::directory(super::root()));
    command.env_remove("MUTANTS").env(copy::SWITCH, mutant).env("IFMATCH_SEED", seed.to_string());
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().expect("the tests start");
    let printed = String::from_utf8_lossy(&output.stdout);
    let total = printed.lines().find(|line| line.contains(" configurations: ") && line.contains(" anomalies"));
    total.map_or((0, 0), |total| (before(total, " operations"), before(total, " anomalies")))
}

/// Returns the number before a word.
fn before(text: &str, word: &str) -> usize {
    let (text, _) = text.split_once(word).expect("the total of the runs names it");
    text.rsplit(' ').next().and_then(|number| number.parse().ok()).expect("a number")
}

#[test]
fn the_numbers_of_a_total_are_read() {
    let total = "4 configurations: 1411 operations, Tally { reads: 9 }, 12 disturbances, Counts {}, 3 anomalies";
    assert_eq!((before(total, " operations"), before(total, " anomalies")), (1411, 3));
}
