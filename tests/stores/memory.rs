//! The memory store.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use ifmatch::{
    clock::Clock,
    core::time::StoreTime,
    store::{Incarnation, Store, memory::MemoryStore},
};

use crate::contract::{Fixture, idle, key};

const IDLE_TTL: Duration = Duration::from_secs(1);

/// A clock that stands still until it is told otherwise.
#[derive(Default)]
struct StillClock(AtomicU64);

impl Clock for StillClock {
    fn now(&self) -> StoreTime {
        StoreTime::from_milliseconds(self.0.load(Ordering::Relaxed))
    }
}

struct Memory {
    clock: Arc<StillClock>,
    store: Arc<MemoryStore>,
}

impl Fixture for Memory {
    async fn start(capacity: usize) -> Self {
        let clock = Arc::new(StillClock::default());
        let store = MemoryStore::new(Arc::<StillClock>::clone(&clock), Incarnation(1), capacity, IDLE_TTL);
        Self { clock, store: Arc::new(store) }
    }

    fn store(&self) -> Arc<dyn Store> {
        Arc::<MemoryStore>::clone(&self.store)
    }

    async fn other(&self) -> Arc<dyn Store> {
        self.store()
    }

    async fn pass(&self, time: Duration) {
        let milliseconds = u64::try_from(time.as_millis()).expect("a short time");
        self.clock.0.fetch_add(milliseconds, Ordering::Relaxed);
    }

    async fn collect(&self) {
        self.pass(IDLE_TTL).await;
        // Each swap forgets what is old in its own part of the store.
        for number in 0..1_000 {
            let key = key(&format!("filler {number}"));
            let revision = self.store.read(&key).await.expect("memory does not fail").revision;
            let _ = self.store.swap(&key, revision, idle()).await;
        }
    }
}

crate::contract!(Memory);
