//! Histories of clients of two proxies that share an engine, while proxies and engine are killed and stopped: each is
//! checked against the promise (DESIGN, sections 1 and 3). `docs/histories.md` says what was found so far.
//!
//! ```text
//! options      configurations by chance; generated: runs of them, one after another
//! workload     what clients do, and what they were told          -> history::History
//! documents    the same for documents with two routes, leases and items
//! disturbance  kills and stops, one after another; members: of an etcd of three
//! standstill   stops that outlast marks
//! backend      what was applied, in which order                  -> history::Seen
//! register     a history is that of a register with compare-and-set, or it is not
//! promise      no two writes on one version; fences, holders, releases
//! fairness     who gets how many turns, and waits how long
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
mod workload;

use self::{
    fairness::Turns,
    generated::Total,
    plan::Plan,
    run::{Verdict, run},
};
use support::{
    engines::{Engine, Etcd, Redis, cluster::EtcdCluster},
    random::Random,
};

/// Kills and stops in one run, where `IFMATCH_DISTURBANCES` says nothing; in `make histories` they are many more.
const DISTURBANCES: usize = 8;

/// Operations of each generated configuration, and how many there are of those, where `IFMATCH_OPERATIONS` and
/// `IFMATCH_CONFIGURATIONS` say nothing: one on each kind of store.
const OPERATIONS: usize = 300;
const CONFIGURATIONS: usize = 3;

/// Writers of one resource at each of two proxies; in `make histories` they are 16 at each of 4.
const WRITERS: usize = 4;

/// Writes of each of them, on average.
const TURNS: usize = 20;

/// A number that a variable of the environment may give.
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
async fn histories_over_redis_keep_the_promise() {
    assert_no_anomalies(Plan::guarded(Engine::Redis(Redis::start().await), disturbances())).await;
}

/// Without its leader or any other member etcd goes on; without two of three it refuses; it is never wrong.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn histories_over_three_members_of_etcd_keep_the_promise() {
    assert_no_anomalies(Plan::members(EtcdCluster::start().await, disturbances().div_ceil(DISTURBANCES))).await;
}

/// Configurations by chance: tags that repeat, two routes of one document, items that touch it, leases that must outlive
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

/// Turns come in the order of arrival within a process; between processes nobody is left out.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writers_of_one_resource_at_several_proxies_all_get_their_turns() {
    let (proxies, writers) = (number("IFMATCH_PROXIES").unwrap_or(2), number("IFMATCH_WRITERS").unwrap_or(WRITERS));
    for engine in Engine::all().await {
        let turns = Turns::of(&engine, proxies, writers, proxies * writers * TURNS).await;
        println!("{}: {}", engine.name(), turns.summary());
        turns.assert_fair();
    }
}

/// What the same clients do to a backend that nobody guards is found, by both checks.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn lost_updates_without_a_guard_are_found() {
    let Verdict { anomalies, summary, .. } = run(Plan::unguarded()).await;
    println!("{summary}");
    let has = |what: &str| anomalies.iter().any(|anomaly| anomaly.contains(what));
    assert!(has("not linearizable") && has("was applied on"), "{anomalies:?}\n{summary}");
}

/// Two proxies that do not know of each other guard nothing (DESIGN, section 7): that is found too.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn lost_updates_behind_proxies_without_a_common_store_are_found() {
    let Verdict { anomalies, summary, .. } = run(Plan::apart()).await;
    println!("{summary}");
    let has = |what: &str| anomalies.iter().any(|anomaly| anomaly.contains(what));
    assert!(has("not linearizable") && has("was applied on"), "{anomalies:?}\n{summary}");
}

/// Tags that repeat lose updates where the configuration says that they do not: the clients of generated configurations
/// find that.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn lost_updates_by_tags_that_repeat_are_found() {
    let Verdict { anomalies, summary, .. } = run(Plan::misled(Random::new("tags that repeat"))).await;
    println!("{summary}");
    assert!(anomalies.iter().any(|anomaly| anomaly.contains("was applied on")), "{anomalies:?}\n{summary}");
}
