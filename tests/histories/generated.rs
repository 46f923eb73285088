//! Runs of generated configurations, a few at a time.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use tokio::task::JoinSet;

use super::{
    disturbance::Counts,
    options::KEEPINGS,
    plan::Plan,
    run::{Verdict, run},
    support::random::Random,
    tally::Tally,
};

/// The number of runs at a time: most of a run is waiting, for late writes and the marks of dead proxies.
const LANES: usize = 3;

/// The number of operations for each disturbance, and the least number of disturbances. The stop that outlasts marks is
/// not counted.
const OPERATIONS_OF_A_DISTURBANCE: usize = 350;
const DISTURBANCES_MIN: usize = 3;

/// The result of all runs.
pub struct Total {
    pub anomalies: Vec<String>,
    pub operations: usize,
    pub summary: String,
}

/// Runs this number of configurations, with each kind of store in turn. Each run ends after this number of operations.
pub async fn run_all(configurations: usize, operations: usize) -> Total {
    let mut random = Random::new("generated configurations");
    let randoms: Vec<Mutex<Random>> = (0..configurations).map(|_| Mutex::new(random.fork())).collect();
    let disturbances = DISTURBANCES_MIN.max(operations / OPERATIONS_OF_A_DISTURBANCE);
    let (randoms, next) = (Arc::new(randoms), Arc::new(AtomicUsize::new(0)));
    let mut lanes = JoinSet::new();
    for _ in 0..LANES {
        let (randoms, next) = (Arc::clone(&randoms), Arc::clone(&next));
        lanes.spawn(async move {
            let mut verdicts = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(random) = randoms.get(number) else { return verdicts };
                let random = random.lock().expect("nobody panics with it").fork();
                let keeping = KEEPINGS[number % KEEPINGS.len()];
                let verdict = run(Plan::generated(keeping, random, disturbances, operations).await).await;
                println!("{number}: {}", verdict.summary);
                let anomalies = verdict.anomalies.iter().map(|anomaly| format!("{number}: {anomaly}")).collect();
                verdicts.push(Verdict { anomalies, ..verdict });
            }
        });
    }
    total(lanes.join_all().await.into_iter().flatten().collect())
}

fn total(verdicts: Vec<Verdict>) -> Total {
    let (mut tally, mut counts, mut anomalies) = (Tally::default(), Counts::default(), Vec::new());
    let configurations = verdicts.len();
    for verdict in verdicts {
        tally = tally.plus(verdict.tally);
        counts = counts.plus(verdict.counts);
        anomalies.extend(verdict.anomalies);
    }
    let operations = tally.total();
    let summary = format!(
        "{configurations} configurations: {operations} operations, {tally:?}, {} disturbances, {counts:?}, {} anomalies",
        counts.total(),
        anomalies.len()
    );
    Total { anomalies, operations, summary }
}
