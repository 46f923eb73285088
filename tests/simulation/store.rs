//! The store's seam: each operation waits until the schedule lets it happen, and then happens in a real store.

use std::{
    future::Future,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
};

use async_trait::async_trait;
use ifmatch::{
    clock::Clock,
    core::{
        records::{
            owed::Owed,
            record::{Record, Revision, Snapshot},
        },
        resource::ResourceKey,
        time::StoreTime,
    },
    store::{Incarnation, Store, StoreError, Swapped},
};
use tokio::time::Instant;

use crate::world::{What, World};

/// The clock of the simulated machine, or the wall clock of a store.
pub struct VirtualClock {
    pub begun: Instant,
    /// How far the clock was set back, in milliseconds.
    pub set_back: Arc<AtomicU64>,
}

impl Clock for VirtualClock {
    fn now(&self) -> StoreTime {
        let milliseconds = u64::try_from(self.begun.elapsed().as_millis()).unwrap();
        StoreTime::from_milliseconds(1_000_000 + milliseconds - self.set_back.load(Ordering::Relaxed))
    }
}

/// The store as one process sees it.
pub struct SeamStore {
    pub world: World,
    pub process: usize,
    pub store: Arc<dyn Store>,
    pub is_shared: bool,
    /// True if the store has a wall clock, which is set back at times.
    pub has_wall_clock: bool,
}

#[async_trait]
impl Store for SeamStore {
    fn incarnation(&self) -> Incarnation {
        self.store.incarnation()
    }

    fn is_shared(&self) -> bool {
        self.is_shared
    }

    fn has_own_time(&self) -> bool {
        self.is_shared && !self.has_wall_clock
    }

    async fn now(&self) -> Result<StoreTime, StoreError> {
        self.store.now().await
    }

    async fn read(&self, key: &ResourceKey) -> Result<Snapshot, StoreError> {
        self.world.ask(self.process, |reply| What::Read { key: key.clone(), reply }).await
    }

    async fn swap(&self, key: &ResourceKey, expected: Revision, next: Record) -> Result<Swapped, StoreError> {
        let next = Box::new(next);
        self.world.ask(self.process, |reply| What::Swap { key: key.clone(), expected, next, reply }).await
    }

    async fn scan(
        &self,
        after: Option<&ResourceKey>,
        limit: usize,
    ) -> Result<Vec<(ResourceKey, Snapshot)>, StoreError> {
        self.store.scan(after, limit).await
    }

    async fn changed(&self, key: &ResourceKey, seen: Revision) {
        let is_lost = {
            let mut inner = self.world.lock();
            inner.notices += 1;
            inner.loses_notices && inner.notices.is_multiple_of(2)
        };
        if is_lost {
            std::future::pending::<()>().await;
        }
        self.store.changed(key, seen).await;
    }

    async fn owe(&self, owed: Owed) -> Result<(), StoreError> {
        complete(self.store.owe(owed))
    }

    async fn raise_floors(&self) -> Result<(), StoreError> {
        self.store.raise_floors().await
    }
}

/// Wakes a thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs an operation of a real store to its end. The disk store waits for its own thread.
pub fn complete<F: Future>(operation: F) -> F::Output {
    let mut operation = pin!(operation);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match operation.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}
