//! The production guard over simulated clients, upstream, store and clock (docs/simulation.md).
//!
//! `world` holds what is on the other side of the guard's seams: `client`, `upstream`, `store`. `backend` is the data
//! behind it. `schedule` lists the events that can happen next and lets one happen. `run` is one run from its beginning
//! to its `end`, and `judge` holds the rules that it must obey. `explore` goes through all schedules of a setting, and
//! `random` chooses one; `generate` and `scenarios` make the settings.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::struct_excessive_bools,
    missing_docs,
    unreachable_pub,
    reason = "a test stops at the first surprise, and nothing outside this binary can name its parts"
)]

mod appends;
mod azure_queues;
mod backend;
mod changed_bodies;
mod client;
mod clocks;
mod combined;
mod copies;
mod dates;
mod deferred;
mod end;
mod ended_leases;
mod explore;
mod generate;
mod grants;
mod heads;
mod judge;
mod keys;
mod late_deletes;
mod lives;
mod metadata;
mod names;
mod next_member;
mod operation;
mod options;
mod own;
mod process;
mod random;
mod reloads;
mod restarts;
mod retries;
mod run;
mod scenarios;
mod schedule;
mod slow_owners;
mod state;
mod store;
mod streams;
mod told_states;
mod transfers;
mod trees;
mod turns;
mod upstream;
mod watchers;
mod world;

use std::{
    collections::BTreeMap,
    env,
    ops::AddAssign,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use explore::{Again, Reduction, Size, explore};
use fastrand::Rng;
use random::Chance;
use run::{Outcome, Setting, run};
use scenarios::Scenario;

/// The program's allocator: a run consists mostly of many small allocations.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The extent of a test: short enough for every test run, or complete (`SIMULATE=full`).
struct Extent {
    random_runs: u64,
    /// The number of faults in an explored schedule, and the largest number of runs for each scenario.
    faults: u32,
    runs_max: usize,
    /// One scenario in this number is explored.
    one_of: usize,
}

const SHORT: Extent = Extent { random_runs: 500, faults: 1, runs_max: 30, one_of: 61 };
const FULL: Extent = Extent { random_runs: 2_000_000, faults: 2, runs_max: usize::MAX, one_of: 1 };

fn extent() -> Extent {
    match env::var("SIMULATE") {
        Err(_) => SHORT,
        Ok(word) if word == "full" => FULL,
        Ok(word) => panic!("SIMULATE is {word:?}; it is `full`, or not set"),
    }
}

fn number(name: &str) -> Option<u64> {
    env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is {text:?}, which is no number")))
}

/// The number of runs before a backend that is later than it says.
const LATE_RUNS: u64 = 200;

/// The number of runs of each kind that are repeated.
const REPEATED_RUNS: u64 = 31;

/// The number of broken runs after which to stop: they are enough to see what is wrong.
const BROKEN_MAX: u64 = 10;

/// Does one random run, in a setting that `generate` makes.
fn random_run(generate: fn(&mut Rng) -> Setting, seed: u64, story: bool) -> Outcome {
    let mut random = Rng::with_seed(seed);
    let setting = Arc::new(generate(&mut random));
    if story {
        println!("{setting:#?}");
    }
    run(&setting, &mut Chance::new(random), story)
}

/// Runs `each` for the numbers below `count` on all cores, and returns the results.
fn on_all_cores<T: Send>(count: u64, each: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let (next, all) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        break;
                    }
                    let given = each(number);
                    all.lock().unwrap().push(given);
                }
            });
        }
    });
    all.into_inner().unwrap()
}

#[test]
fn random_schedules_keep_the_promise() {
    random_runs(generate::setting);
}

#[test]
fn random_schedules_keep_the_promise_for_resources_with_metadata() {
    random_runs(generate::setting_with_metadata);
}

#[test]
fn random_schedules_keep_the_promise_over_reloads_that_rename_resources() {
    random_runs(reloads::setting);
}

#[test]
fn random_schedules_keep_the_promise_for_dates() {
    random_runs(dates::setting);
}

#[test]
fn random_schedules_keep_the_promise_for_tags_that_are_not_what_they_seem() {
    random_runs(dates::setting_with_untrue_tags);
}

#[test]
fn random_schedules_keep_the_promise_for_retries_that_differ() {
    random_runs(keys::setting);
}

#[test]
fn random_schedules_keep_the_promise_before_a_backend_whose_head_is_not_get() {
    random_runs(heads::setting);
}

/// Rule 20: what a process owes outlives it, through any chain of restarts.
#[test]
fn random_schedules_keep_the_promise_over_chains_of_restarts() {
    random_runs(restarts::setting);
}

/// Rule 1: a COPY or MOVE claims two resources.
#[test]
fn random_schedules_keep_the_promise_for_copies_and_moves() {
    random_runs(transfers::setting);
}

/// Rule 1: a write of a collection is one of all below it.
#[test]
fn random_schedules_keep_the_promise_for_trees() {
    random_runs(trees::setting);
}

#[test]
fn random_schedules_keep_the_promise_for_deletes_that_wait() {
    random_runs(late_deletes::setting);
}

/// Rule 2: a tag that was learned beside another write labels nothing.
#[test]
fn random_schedules_keep_the_promise_for_appends_beside_writes() {
    random_runs(appends::setting);
}

/// Rule 2: a tag that was told of what was sent fits no other state.
#[test]
fn random_schedules_keep_the_promise_before_a_backend_that_changes_some_bodies() {
    random_runs(changed_bodies::setting);
}

/// Rule 10: a write of another client takes a lease that has run out from its holder.
#[test]
fn random_schedules_keep_the_promise_for_leases_that_have_ended() {
    random_runs(ended_leases::setting);
}

/// Rule 15 and section 8: a stream renews, breaks off, and reports each loss in time.
#[test]
fn random_schedules_keep_the_promise_for_leases_that_streams_hold() {
    random_runs(streams::setting);
}

/// Rules 1 and 3: a message is given to one client at a time, and lost to none.
#[test]
fn random_schedules_keep_the_promise_for_queues_of_azure() {
    random_runs(azure_queues::setting);
}

/// Section 8: a client that watches gets each state in order, and the last one within a second.
#[test]
fn random_schedules_keep_the_promise_for_clients_that_watch() {
    random_runs(watchers::setting);
}

/// Rule 20: what is held beside documents survives chains of restarts too.
#[test]
fn random_schedules_keep_the_promise_for_all_services_over_chains_of_restarts() {
    random_runs(combined::restarted);
}

/// A reload changes nothing of what a request under way was promised.
#[test]
fn random_schedules_keep_the_promise_for_all_services_over_reloads() {
    random_runs(combined::reloaded);
}

/// Section 8: a client that watches a resource learns of the writes of the collections around it.
#[test]
fn random_schedules_keep_the_promise_for_watched_trees() {
    random_runs(combined::watched_trees);
}

/// Rule 1: a lease that a stream holds and the lock of a collection around its resource exclude each other.
#[test]
fn random_schedules_keep_the_promise_for_streams_in_trees() {
    random_runs(combined::streams_in_trees);
}

/// Rule 7: clocks decide liveness alone. A wall clock that is set back lets nothing end early, and nothing last for ever.
#[test]
fn random_schedules_keep_the_promise_while_the_clock_of_the_store_is_set_back() {
    random_runs(clocks::setting);
}

/// Rule 7: an owner looks at its clock directly before the first byte.
#[test]
fn random_schedules_keep_the_promise_for_owners_that_were_stopped() {
    random_runs(slow_owners::setting);
}

/// Without this, a seed that breaks the promise may not break it again.
#[test]
fn a_seed_repeats_its_run() {
    let kinds: [fn(&mut Rng) -> Setting; 24] = [
        generate::setting,
        generate::setting_with_metadata,
        reloads::setting,
        dates::setting,
        dates::setting_with_untrue_tags,
        keys::setting,
        heads::setting,
        restarts::setting,
        transfers::setting,
        trees::setting,
        next_member::setting,
        late_deletes::setting,
        appends::setting,
        changed_bodies::setting,
        ended_leases::setting,
        slow_owners::setting,
        streams::setting,
        azure_queues::setting,
        watchers::setting,
        combined::restarted,
        combined::reloaded,
        combined::watched_trees,
        combined::streams_in_trees,
        clocks::setting,
    ];
    let runs: Vec<_> = kinds.into_iter().flat_map(|kind| (1..=REPEATED_RUNS).map(move |seed| (kind, seed))).collect();
    on_all_cores(runs.len() as u64, |number| {
        let (generate, seed) = runs[usize::try_from(number).unwrap()];
        let [first, again] = [(), ()].map(|()| random_run(generate, seed, false).events);
        assert_eq!(first, again, "the events of run {number}, of seed {seed}");
    });
}

/// Rules 1 and 15: a member of a collection is taken by one client at most.
#[test]
fn random_schedules_keep_the_promise_for_next_members() {
    random_runs(next_member::setting);
}

/// The third condition of the promise, for which no rule makes up.
#[test]
fn a_backend_that_applies_writes_later_than_it_says_loses_updates() {
    let late = |random: &mut Rng| {
        let mut setting = Setting { has_slow_owners: false, ..slow_owners::setting(random) };
        setting.style.later_by = Duration::from_secs(3600);
        setting
    };
    let broken = on_all_cores(LATE_RUNS, |number| random_run(late, number + 1, false).broken);
    let lost = broken.into_iter().flatten().filter(|how| how.contains("an update is lost")).count();
    println!("{lost} of {LATE_RUNS} runs lose an update");
    assert_ne!(lost, 0, "the simulation would not see a lost update");
}

fn random_runs(generate: fn(&mut Rng) -> Setting) {
    let again = number("IFMATCH_SEED");
    // The short test is the same each time, so that only a change of the code changes its result.
    let is_short = env::var("SIMULATE").is_err();
    let first = again.unwrap_or_else(|| if is_short { 1 } else { fastrand::u64(..1 << 48) });
    let count = number("SIMULATE_RUNS").unwrap_or(if again.is_some() { 1 } else { extent().random_runs });
    println!("IFMATCH_SEED={first}, {count} runs");
    let begun = Instant::now();
    let all_broken = AtomicU64::new(0);
    let outcomes = on_all_cores(count, |number| {
        if all_broken.load(Ordering::Relaxed) >= BROKEN_MAX {
            return (0, false);
        }
        let outcome = random_run(generate, first + number, count == 1);
        if let Some(how) = &outcome.broken {
            all_broken.fetch_add(1, Ordering::Relaxed);
            println!("IFMATCH_SEED={}: {how}", first + number);
        }
        if let Some(story) = &outcome.story {
            println!("{}", story.join("\n"));
        }
        (outcome.events, outcome.broken.is_some())
    });
    let events: usize = outcomes.iter().map(|(events, _)| events).sum();
    let broken = outcomes.iter().filter(|(_, broken)| *broken).count();
    println!("{count} runs, {events} events, {broken} broken, {} s", begun.elapsed().as_secs());
    assert_eq!(broken, 0, "the promise is broken");
    assert!(count < SHORT.random_runs || events as u64 > count * 10, "a run has a dozen of events and more");
}

impl AddAssign for Size {
    fn add_assign(&mut self, other: Self) {
        (self.runs, self.states, self.events) =
            (self.runs + other.runs, self.states + other.states, self.events + other.events);
    }
}

/// Explores a scenario; if the promise is broken, tells the story of the way there.
fn holds(scenario: Scenario, runs_max: usize) -> Option<Size> {
    let setting = scenario.setting();
    match explore(&setting, runs_max, Reduction::SeenAndOwn) {
        Ok((size, _)) => {
            // Hours pass before the table: what is done by then is not lost.
            if env::var("SIMULATE").is_ok() {
                println!("{scenario}: {} states, {} runs, {} events", size.states, size.runs, size.events);
            }
            Some(size)
        }
        Err((broken, way)) => {
            let again = run(&setting, &mut Again(&way, 0), true);
            println!("{scenario}: {broken}");
            if env::var("SIMULATE_ONLY").is_ok() {
                println!("{}", again.story.unwrap_or_default().join("\n"));
            }
            None
        }
    }
}

#[test]
fn every_schedule_of_two_requests_keeps_the_promise() {
    let Extent { faults, runs_max, one_of, .. } = extent();
    let faults = number("SIMULATE_FAULTS").map_or(faults, |faults| u32::try_from(faults).unwrap());
    let wanted = env::var("SIMULATE_ONLY");
    let scenarios = scenarios::all(faults);
    let is_wanted = |(place, scenario): &(usize, &Scenario)| match &wanted {
        Ok(wanted) => scenario.to_string().contains(wanted.as_str()),
        Err(_) => place % one_of == 0,
    };
    let scenarios: Vec<_> = scenarios.iter().enumerate().filter(is_wanted).map(|(_, scenario)| scenario).collect();
    let begun = Instant::now();
    let sizes = on_all_cores(scenarios.len() as u64, |number| {
        let scenario = scenarios[usize::try_from(number).unwrap()];
        (scenario.meeting, holds(*scenario, runs_max))
    });
    let broken = sizes.iter().filter(|(_, size)| size.is_none()).count();
    let mut whole: BTreeMap<String, (usize, Size)> = BTreeMap::new();
    for (meeting, size) in sizes {
        let (scenarios, sum) = whole.entry(format!("{meeting:?}")).or_default();
        *scenarios += 1;
        *sum += size.unwrap_or_default();
    }
    for (meeting, (scenarios, Size { runs, states, events })) in whole {
        println!("| {meeting} | {scenarios} | {faults} | {states} | {runs} | {events} |");
    }
    println!("{} scenarios, {broken} broken, {} s", scenarios.len(), begun.elapsed().as_secs());
    assert_eq!(broken, 0, "the promise is broken");
}

/// Exploring fewer orders must not hide an end that clients can meet.
#[test]
fn the_reduction_loses_no_end() {
    let scenarios = scenarios::all(number("SIMULATE_FAULTS").map_or(0, |faults| u32::try_from(faults).unwrap()));
    let by_touch: Vec<_> = scenarios.iter().filter(|scenario| scenario.meeting.is_by_touch()).collect();
    let (mut all, mut fewer) = (Size::default(), Size::default());
    for scenario in by_touch.iter().step_by(83) {
        let setting = scenario.setting();
        let [(whole, ends), (part, same_ends)] = [Reduction::Seen, Reduction::SeenAndOwn]
            .map(|reduction| explore(&setting, usize::MAX, reduction).unwrap_or_else(|(broken, _)| panic!("{broken}")));
        assert_eq!(ends, same_ends, "{scenario}");
        all += whole;
        fewer += part;
    }
    println!("{all:?} without the reduction, {fewer:?} with it");
    assert!(fewer.states < all.states, "the reduction leaves nothing out");
}
