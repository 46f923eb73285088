//! Histories of clients of two proxies that share an engine, while proxies and engine are killed and stopped: each is
//! checked against the promise (DESIGN, sections 1 and 3). `docs/histories.md` says what was found so far.
//!
//! ```text
//! workload     what clients do, and what they were told          -> history::History
//! disturbance  kills and stops, one after another
//! backend      what was applied, in which order                  -> history::Seen
//! register     a history is that of a register with compare-and-set, or it is not
//! promise      no two writes on one version; fences, holders, releases
//! ```

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    missing_docs,
    unreachable_pub,
    reason = "a test stops at the first surprise, and nothing outside this binary can name its parts"
)]

mod disturbance;
mod history;
mod promise;
mod register;
mod run;
#[path = "../proxy/support/mod.rs"]
mod support;
mod workload;

use self::run::{Plan, Verdict, run};
use support::engines::{Engine, Etcd, Redis};

/// Kills and stops in one run, where `IFMATCH_DISTURBANCES` says nothing; in `make histories` they are many more.
const DISTURBANCES: usize = 8;

async fn assert_no_anomalies(engine: Engine) {
    let disturbances = std::env::var("IFMATCH_DISTURBANCES");
    let disturbances = disturbances.map_or(DISTURBANCES, |count| count.parse().expect("a number"));
    let Verdict { anomalies, summary } = run(Plan::guarded(engine, disturbances)).await;
    println!("{summary}");
    assert!(anomalies.is_empty(), "{}\n{summary}", anomalies.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn histories_over_etcd_keep_the_promise() {
    assert_no_anomalies(Engine::Etcd(Etcd::start().await)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn histories_over_redis_keep_the_promise() {
    assert_no_anomalies(Engine::Redis(Redis::start().await)).await;
}

/// What the same clients do to a backend that nobody guards is found, by both checks.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn lost_updates_without_a_guard_are_found() {
    let Verdict { anomalies, summary } = run(Plan::unguarded()).await;
    println!("{summary}");
    let has = |what: &str| anomalies.iter().any(|anomaly| anomaly.contains(what));
    assert!(has("not linearizable") && has("was applied on"), "{anomalies:?}\n{summary}");
}

/// Two proxies that do not know of each other guard nothing (DESIGN, section 7): that is found too.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn lost_updates_behind_proxies_without_a_common_store_are_found() {
    let Verdict { anomalies, summary } = run(Plan::apart()).await;
    println!("{summary}");
    let has = |what: &str| anomalies.iter().any(|anomaly| anomaly.contains(what));
    assert!(has("not linearizable") && has("was applied on"), "{anomalies:?}\n{summary}");
}
