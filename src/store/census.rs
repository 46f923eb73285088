//! The count of a store's records, for the metrics.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use super::Store;
use crate::{
    core::records::counts::Counts,
    telemetry::metrics::{Gauged, watch},
};

/// How long the count of a store in this process stays valid. It is made when the metrics are read.
const GOOD_FOR: Duration = Duration::from_secs(1);
/// The pause between two counts of an external store. It is long because each proxy's scan costs the store work.
const SCANNED_EVERY: Duration = Duration::from_secs(60);
/// The number of records per page of a scan.
const PAGE: usize = 500;
/// The largest external store that is counted, in records. The metrics of the store itself show larger sizes.
const SCANNED_MAX: u64 = 100_000;

/// A store, and the last count of its records.
struct Census {
    store: Arc<dyn Store>,
    last: Mutex<Option<(Instant, Counts)>>,
}

impl Gauged for Census {
    fn counts(&self) -> Option<Counts> {
        let mut last = self.last.lock();
        if last.is_none_or(|(at, _)| at.elapsed() >= GOOD_FOR)
            && let Some(counts) = self.store.count()
        {
            *last = Some((Instant::now(), counts));
        }
        last.map(|(_, counts)| counts)
    }
}

/// Shows the counts of this store in the metrics, as long as this future is polled. A store in this process is counted
/// when the metrics are read, an external store is scanned periodically.
pub async fn count_records(store: Arc<dyn Store>) {
    let census = Arc::new(Census { store, last: Mutex::default() });
    watch(&census);
    if census.store.count().is_some() {
        return std::future::pending().await;
    }
    loop {
        let counts = scan(&*census.store).await;
        *census.last.lock() = counts.map(|counts| (Instant::now(), counts));
        tokio::time::sleep(SCANNED_EVERY).await;
    }
}

/// Counts a store by reading every record. Returns `None` if there are too many, or the store fails.
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
