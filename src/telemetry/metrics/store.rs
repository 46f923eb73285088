//! What is measured of the store: how long it takes, what it does not do, and how much it holds.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use opentelemetry::KeyValue;

use super::{Metrics, definitions as define, get};
use crate::store::{Counts, Store, StoreError};

/// A count in this process is made when somebody asks, and is good for so long.
const GOOD_FOR: Duration = Duration::from_secs(1);
/// A store elsewhere is counted this often: the scan costs it work, for each proxy.
const SCANNED_EVERY: Duration = Duration::from_secs(60);
/// Records of one page of a scan.
const PAGE: usize = 500;
/// With more records than this a store elsewhere is not counted: its own metrics tell its size.
const SCANNED_MAX: u64 = 100_000;

/// What the errors of a store are called.
const UNAVAILABLE: &str = "unavailable";
const FULL: &str = "full";

/// What a store is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Its time.
    Now,
    /// A record.
    Read,
    /// A change of one.
    Swap,
}

impl Operation {
    /// All of them, each at the place of its number.
    pub(super) const ALL: [Self; 3] = [Self::Now, Self::Read, Self::Swap];

    /// Its name in metrics.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Now => "now",
            Self::Read => "read",
            Self::Swap => "swap",
        }
    }
}

/// Does an operation of the store, and measures it.
pub async fn measured<T>(
    operation: Operation,
    work: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let Some(metrics) = get() else { return work.await };
    let started = Instant::now();
    let outcome = work.await;
    if let Some(duration) = metrics.store_durations.get(operation as usize) {
        duration.record(started.elapsed().as_secs_f64());
    }
    if let Err(error) = &outcome {
        metrics.store_failed(operation, error);
    }
    outcome
}

impl Metrics {
    fn store_failed(&self, operation: Operation, error: &StoreError) {
        let word = if *error == StoreError::Full { FULL } else { UNAVAILABLE };
        self.store_errors.add(1, &failure(operation, word));
    }
}

fn failure(operation: Operation, word: &'static str) -> [KeyValue; 2] {
    [KeyValue::new(define::STORE_OPERATION, operation.word()), KeyValue::new(define::ERROR, word)]
}

/// The attributes of everything that can go wrong.
pub(super) fn failures() -> impl Iterator<Item = [KeyValue; 2]> {
    let unavailable = Operation::ALL.map(|operation| failure(operation, UNAVAILABLE));
    unavailable.into_iter().chain([failure(Operation::Swap, FULL)])
}

/// The store that is counted, and the last count.
struct Counted {
    store: Arc<dyn Store>,
    last: Option<(Instant, Counts)>,
}

static COUNTED: Mutex<Option<Counted>> = Mutex::new(None);

/// What the store holds, as far as it is known.
pub(super) fn counted() -> Option<Counts> {
    let mut guard = COUNTED.lock().unwrap_or_else(PoisonError::into_inner);
    let counted = guard.as_mut()?;
    if counted.last.is_none_or(|(at, _)| at.elapsed() >= GOOD_FOR)
        && let Some(counts) = counted.store.count()
    {
        counted.last = Some((Instant::now(), counts));
    }
    counted.last.map(|(_, counts)| counts)
}

/// Counts what this store holds: when somebody asks, where it is in this process; else now and then, for as long as this
/// future is polled.
pub async fn count_records(store: Arc<dyn Store>) {
    let is_here = store.count().is_some();
    *COUNTED.lock().unwrap_or_else(PoisonError::into_inner) = Some(Counted { store: Arc::clone(&store), last: None });
    if is_here {
        return;
    }
    loop {
        let counts = scan(&*store).await;
        if let Some(counted) = COUNTED.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            counted.last = counts.map(|counts| (Instant::now(), counts));
        }
        tokio::time::sleep(SCANNED_EVERY).await;
    }
}

/// Counts by looking at every record; `None` where there are too many, or the store fails.
async fn scan(store: &dyn Store) -> Option<Counts> {
    let (mut counts, mut after) = (Counts::default(), None);
    loop {
        let page = store.scan(after.as_ref(), PAGE).await.ok()?;
        for (_, snapshot) in &page {
            counts.add(&snapshot.record, snapshot.now);
        }
        if page.len() < PAGE {
            return Some(counts);
        }
        if counts.records > SCANNED_MAX {
            return None;
        }
        after = page.into_iter().next_back().map(|(key, _)| key);
    }
}
