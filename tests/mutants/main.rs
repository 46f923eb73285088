//! The production code, broken on purpose in one place at a time: a test must find each break (`docs/mutants.md`).
//!
//! ```text
//! *.toml   the list: what a programmer got wrong, where, and which rule that breaks
//! list     reads it, and finds the places                -> list::Mutant
//! copy     the sources with a switch at each place       -> target/mutants/tree
//! program  builds the copy's tests once                  -> judge::Judge
//! judge    runs tests, and reports which of them fail
//! power    runs the histories with each known kind of fault
//! trial    each mutant before its judges, two at a time  -> report::Row
//! report   the table
//! ```
//!
//! Every run of the tests checks the list. `MUTANTS` chooses the mutants to try: `full`, or parts of their names or
//! files. `compile` only compiles the code with all switches.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs,
    unreachable_pub,
    reason = "a test stops at the first surprise, and nothing outside this binary can name its parts"
)]

mod copy;
mod judge;
mod list;
mod power;
mod program;
mod report;
mod trial;

use std::{collections::BTreeSet, env, path::Path};

use list::{Mutant, place};

/// The least number of mutants.
const MUTANTS_MIN: usize = 110;

/// The rules of DESIGN, section 3, that mutants must break.
const RULES: std::ops::RangeInclusive<u32> = 1..=21;

/// The rule that no file of these rooms implements.
const ELSEWHERE: u32 = 17;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn each_mutant_has_one_place_in_the_code() {
    let wrong: Vec<String> = list::all().iter().filter_map(|mutant| place(root(), mutant).err()).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_code_can_be_broken_in_all_places_at_once() {
    let mutants = list::all();
    let files: BTreeSet<&str> = mutants.iter().map(|mutant| mutant.file.as_str()).collect();
    let wrong: Vec<String> = files.iter().filter_map(|file| copy::switched(root(), file, &mutants).err()).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn there_are_mutants_enough_and_some_for_each_rule() {
    let mutants = list::all();
    assert!(mutants.len() >= MUTANTS_MIN, "only {} mutants", mutants.len());
    let names: BTreeSet<&str> = mutants.iter().map(|mutant| mutant.name.as_str()).collect();
    assert_eq!(names.len(), mutants.len(), "a name stands twice: {:?}", doubled(&mutants));
    let rules: BTreeSet<&str> = mutants.iter().flat_map(Mutant::rules).collect();
    let without: Vec<u32> =
        RULES.filter(|rule| *rule != ELSEWHERE && !rules.contains(rule.to_string().as_str())).collect();
    assert!(without.is_empty(), "no mutant breaks the rules {without:?}");
}

fn doubled(mutants: &[Mutant]) -> Vec<&str> {
    let names = mutants.iter().map(|mutant| mutant.name.as_str());
    names.clone().filter(|name| names.clone().filter(|other| other == name).count() > 1).collect()
}

/// Part of `make lint`, after which the check of the copy takes half a minute.
#[test]
fn all_mutants_compile() {
    if env::var("MUTANTS").is_ok_and(|chosen| chosen == "compile") {
        copy::make(root(), &list::all());
        program::check(root());
    }
}

/// The faults whose power is measured are in the list.
#[test]
fn each_known_kind_of_fault_has_a_mutant() {
    let mutants = list::all();
    let is_there = |name: &str| mutants.iter().any(|mutant| mutant.name == name);
    let missing: Vec<_> = power::FAULTS.iter().filter(|(_, mutant)| !is_there(mutant)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Takes many hours with a hundred seeds (`MUTANTS_SEEDS`).
#[test]
fn generated_histories_find_each_known_kind_of_fault() {
    let Ok(seeds) = env::var("MUTANTS_SEEDS") else { return };
    copy::make(root(), &list::all());
    let powers = power::measure(root(), seeds.parse().expect("a number"));
    let weak: Vec<String> = powers.iter().filter(|power| power.found < power.seeds).map(power::Power::line).collect();
    assert!(weak.is_empty(), "{}", weak.join("\n"));
}

/// Takes hours if all mutants are tried.
#[test]
fn a_test_finds_each_mutant() {
    let Some(chosen) = env::var("MUTANTS").ok().filter(|chosen| chosen != "compile") else { return };
    let is_named = |mutant: &Mutant, part: &str| mutant.name.contains(part) || mutant.file.contains(part);
    let is_chosen = |mutant: &Mutant| chosen == "full" || chosen.split(',').any(|part| is_named(mutant, part));
    let all = list::all();
    let mutants: Vec<Mutant> = all.iter().filter(|mutant| is_chosen(mutant)).cloned().collect();
    assert!(!mutants.is_empty(), "no mutant has {chosen:?} in its name or file");
    copy::make(root(), &all);
    let rows = trial::all(&mutants, judge::allowed().as_deref());
    report::write(root(), &rows);
    let wrong: Vec<&str> = rows.iter().filter(|row| row.is_wrong()).map(|row| row.mutant.name.as_str()).collect();
    assert!(wrong.is_empty(), "these survive without a reason, or have one and are found: {wrong:?}");
}
