//! The memory store.

use std::{sync::Arc, time::Duration};

use ifmatch::store::{
    Incarnation, Store,
    memory::{MemoryStore, Room},
};

use crate::{
    clock::StillClock,
    contract::{Fixture, fill},
};

const IDLE_TTL: Duration = Duration::from_secs(1);

struct Memory {
    clock: Arc<StillClock>,
    store: Arc<MemoryStore>,
}

impl Fixture for Memory {
    async fn start(capacity: usize) -> Self {
        let clock = Arc::new(StillClock::default());
        let room = Room { records: capacity, bytes: 1 << 30 };
        let store = MemoryStore::new(Arc::<StillClock>::clone(&clock), Incarnation(1), room, IDLE_TTL);
        Self { clock, store: Arc::new(store) }
    }

    fn store(&self) -> Arc<dyn Store> {
        Arc::<MemoryStore>::clone(&self.store)
    }

    async fn other(&self) -> Arc<dyn Store> {
        self.store()
    }

    async fn pass(&self, time: Duration) {
        self.clock.pass(time);
    }

    async fn collect(&self) {
        self.pass(IDLE_TTL).await;
        fill(&*self.store).await;
    }
}

crate::contract!(Memory);
