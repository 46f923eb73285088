//! Many writers of one resource through several proxies: every writer gets a turn.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{sync::Barrier, task::JoinSet};

use super::support::{backend::Backend, engines::Engine, proxy::Proxy, raw::Connection};

/// The wait of a writer for one of its writes.
#[derive(Clone)]
struct Wait {
    /// The duration.
    took: Duration,
    /// The number of writes of all writers that were answered meanwhile, including its own.
    turns: usize,
}

/// The result of a race: by proxy, the waits of each of its writers.
pub struct Turns(Vec<Vec<Vec<Wait>>>);

impl Turns {
    /// Lets writers write again and again without a condition, until there are `total` writes in all, and at least one
    /// of each writer.
    ///
    /// # Panics
    ///
    /// Panics if a write is refused.
    pub async fn of(engine: &Engine, proxies: usize, writers: usize, total: usize) -> Self {
        let backend = Backend::start().await;
        let setup = Proxy::to(backend.addr()).store(&engine.store()).store("timeout = \"10s\"");
        let setup = setup.route("require = \"never\"\netag = \"version\"\nother_writers = false");
        let mut running = Vec::new();
        for _ in 0..proxies {
            running.push(setup.clone().start().await);
        }
        let (done, start) = (Arc::new(AtomicUsize::new(0)), Arc::new(Barrier::new(proxies * writers)));
        let mut tasks = JoinSet::new();
        for (number, proxy) in running.iter().enumerate() {
            for _ in 0..writers {
                let mut connection = Connection::open(proxy.addr()).await;
                // A proxy takes connections before it has its store: the race begins when all have theirs.
                write(&mut connection, "/cold").await;
                let (done, start) = (Arc::clone(&done), Arc::clone(&start));
                tasks.spawn(async move {
                    let mut waits = Vec::new();
                    start.wait().await;
                    while waits.is_empty() || done.load(Ordering::Relaxed) < total {
                        let (began, before) = (Instant::now(), done.load(Ordering::Relaxed));
                        write(&mut connection, "/hot").await;
                        let turns = done.fetch_add(1, Ordering::Relaxed) + 1 - before;
                        waits.push(Wait { took: began.elapsed(), turns });
                    }
                    (number, waits)
                });
            }
        }
        let mut turns = vec![Vec::new(); proxies];
        for (number, waits) in tasks.join_all().await {
            turns[number].push(waits);
        }
        Self(turns)
    }

    /// Returns the number of writes that each proxy carried.
    fn carried(&self) -> Vec<usize> {
        self.0.iter().map(|writers| writers.iter().map(Vec::len).sum()).collect()
    }

    /// Returns the largest number of writes that were answered while one writer waited.
    fn most_turns(&self) -> usize {
        self.0.iter().flatten().flatten().map(|wait| wait.turns).max().unwrap()
    }

    /// Checks that no writer waited for more than a bounded number of turns, and that no proxy had more than its share.
    #[track_caller]
    pub fn assert_fair(&self) {
        let writers: usize = self.0.iter().map(Vec::len).sum();
        let most = self.most_turns();
        // In order of arrival each of the others has one turn. A few more begin before the sign of a process is in the
        // record.
        assert!(most <= 4 * writers, "one of {writers} writers waited for {most} turns: {}", self.summary());
        let carried = self.carried();
        let (most, fewest) = (carried.iter().copied().max().unwrap(), carried.iter().copied().min().unwrap());
        assert!(most <= 3 * fewest, "{}", self.summary());
    }

    /// Returns the number of writes that each proxy carried, and the waits of the writers.
    pub fn summary(&self) -> String {
        let carried = self.carried();
        let writers = || self.0.iter().flatten();
        let counts = || writers().map(Vec::len);
        let mut waits: Vec<Duration> = writers().flatten().map(|wait| wait.took).collect();
        waits.sort_unstable();
        let ratio = |most: usize, fewest: usize| (most * 100).div_ceil(fewest);
        format!(
            "{} proxies x {} writers: {} writes, by proxy {carried:?} (the most are {} % of the fewest), by writer {} to {}; \
             wait: half {} ms, longest {} ms, at most {} turns",
            carried.len(),
            self.0[0].len(),
            waits.len(),
            ratio(carried.iter().copied().max().unwrap(), carried.iter().copied().min().unwrap()),
            counts().min().unwrap(),
            counts().max().unwrap(),
            waits[waits.len() / 2].as_millis(),
            waits[waits.len() - 1].as_millis(),
            self.most_turns(),
        )
    }
}

/// Writes without a condition.
async fn write(connection: &mut Connection, target: &str) {
    let began = Instant::now();
    let response = connection.exchange("PUT", target, &[], "content").await;
    assert!(matches!(response.status, 201 | 204), "after {:?}: {response:?}", began.elapsed());
}
