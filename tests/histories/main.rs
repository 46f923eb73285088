//! Histories of clients of two proxies that share an engine, while proxies and engine are killed and stopped. Each
//! history is checked against the promise (DESIGN, sections 1 and 3). `docs/histories.md` reports the findings so far.
//!
//! ```text
//! options      random configurations; generated: runs of them, one after another
//! workload     what clients do, and their answers                 -> history::History
//! documents    the same for documents with two routes, leases and items
//! disturbance  kills and stops, one after another; members: of an etcd of three
//! standstill   stops that outlast marks
//! untrue       configurations that say something untrue: faults for the checks to find
//! backend      the applied writes, in their order                 -> history::Seen
//! register     whether a history is that of a register with compare-and-set
//! promise      no two writes on one version; fences, holders, releases
//! fairness     how many turns each writer gets, and how long it waits
//! ```

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    missing_docs,
    unreachable_pub,
    reason = "a test stops at the first surprise, and nothing outside this binary can name its parts"
)]

mod board;
mod disturbance;
mod documents;
mod fairness;
mod generated;
mod history;
mod members;
mod options;
mod plan;
mod promise;
mod register;
mod run;
mod standstill;
#[path = "../proxy/support/mod.rs"]
mod support;
mod tally;
mod untrue;
mod workload;

use tokio::task::JoinSet;

use self::{
    fairness::Turns,
    generated::Total,
    plan::Plan,
    run::{Verdict, run},
};
use support::engines::{Engine, Etcd, Redis, cluster::EtcdCluster, postgres::Postgres};
use support::random::Random;

/// The default number of kills and stops in one run (`IFMATCH_DISTURBANCES`); `make histories` makes many more.
const DISTURBANCES: usize = 8;

/// The default number of operations of each generated configuration (`IFMATCH_OPERATIONS`), and the default number of
/// configurations (`IFMATCH_CONFIGURATIONS`): one for each kind of store.
const OPERATIONS: usize = 300;
const CONFIGURATIONS: usize = 4;

/// The number of writers of one resource at each of two proxies; `make histories` has 16 at each of 4.
const WRITERS: usize = 4;

/// The average number of writes of each writer.
const TURNS: usize = 20;

/// Returns a number from an environment variable, if it is set.
fn number(variable: &str) -> Option<usize> {
    std::env::var(variable).ok().map(|number| number.parse().expect("a number"))
}

fn disturbances() -> usize {
    number("IFMATCH_DISTURBANCES").unwrap_or(DISTURBANCES)
}

async fn assert_no_anomalies(plan: Plan) {
    let Verdict { anomalies, summary, .. } = run(plan).await;
    println!("{summary}");
    assert!(anomalies.is_empty(), "{}\n{summary}", anomalies.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn histories_over_etcd_keep_the_promise() {
    assert_no_anomalies(Plan::guarded(Engine::Etcd(Etcd::start().await), disturbances())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn histories_over_postgresql_keep_the_promise() {
    assert_no_anomalies(Plan::guarded(Engine::Postgres(Postgres::start().await), disturbances())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn histories_over_redis_keep_the_promise() {
    assert_no_anomalies(Plan::guarded(Engine::Redis(Redis::start().await), disturbances())).await;
}

/// Etcd goes on without its leader or any other member, and refuses without two of three; it is never wrong.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn histories_over_three_members_of_etcd_keep_the_promise() {
    assert_no_anomalies(Plan::members(EtcdCluster::start().await, disturbances().div_ceil(DISTURBANCES))).await;
}

/// Random configurations: tags that repeat, two routes to one document, items that touch it, leases that must outlive
/// their proxy, and stops that outlast marks.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn histories_of_generated_configurations_keep_the_promise() {
    let configurations = number("IFMATCH_CONFIGURATIONS").unwrap_or(CONFIGURATIONS);
    let operations = number("IFMATCH_OPERATIONS").unwrap_or(OPERATIONS);
    let Total { anomalies, summary, operations: done } = generated::run_all(configurations, operations).await;
    println!("{summary}");
    assert!(anomalies.is_empty(), "{}\n{summary}", anomalies.join("\n"));
    assert!(done >= configurations * operations, "too little happened: {summary}");
}

/// The clients of the generated configurations find each fault that a configuration can plant, with every seed.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn faults_that_untrue_configurations_plant_are_found() {
    let seeds = number("IFMATCH_FAULT_SEEDS").unwrap_or(1);
    let mut random = Random::new("untrue configurations");
    let mut faults = JoinSet::new();
    for fault in untrue::ALL {
        faults.spawn(fault.is_found(seeds, random.fork()));
    }
    while let Some(summary) = faults.join_next().await {
        println!("{}", summary.expect("the fault is found"));
    }
}

/// Turns come in the order of arrival within a process; between processes no writer is left out.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writers_of_one_resource_at_several_proxies_all_get_their_turns() {
    let (proxies, writers) = (number("IFMATCH_PROXIES").unwrap_or(2), number("IFMATCH_WRITERS").unwrap_or(WRITERS));
    for engine in Engine::all().await {
        let turns = Turns::of(&engine, proxies, writers, proxies * writers * TURNS).await;
        println!("{}: {}", engine.name(), turns.summary());
        turns.assert_fair();
    }
}

/// Both checks find the damage that the same clients do to an unguarded backend.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn lost_updates_without_a_guard_are_found() {
    let Verdict { anomalies, summary, .. } = run(Plan::unguarded()).await;
    println!("{summary}");
    let has = |what: &str| anomalies.iter().any(|anomaly| anomaly.contains(what));
    assert!(has("not linearizable") && has("was applied on"), "{anomalies:?}\n{summary}");
}

/// Two proxies that do not know each other guard nothing (DESIGN, section 7): the checks find that too.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn lost_updates_behind_proxies_without_a_common_store_are_found() {
    let Verdict { anomalies, summary, .. } = run(Plan::apart()).await;
    println!("{summary}");
    let has = |what: &str| anomalies.iter().any(|anomaly| anomaly.contains(what));
    assert!(has("not linearizable") && has("was applied on"), "{anomalies:?}\n{summary}");
}
