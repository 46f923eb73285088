//! A store that fails when it is told to, for tests.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU64, Ordering},
};

use async_trait::async_trait;

use crate::{
    clock::Clock,
    core::{
        record::{Record, Revision, Snapshot},
        resource::ResourceKey,
        time::StoreTime,
    },
    store::{Incarnation, Store, StoreError, Swapped, memory::MemoryStore},
};

/// A clock that stands still until it is told otherwise.
#[derive(Default)]
struct StillClock(AtomicU64);

impl Clock for StillClock {
    fn now(&self) -> StoreTime {
        StoreTime::from_milliseconds(self.0.load(Ordering::Relaxed))
    }
}

/// What an operation of the store comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It says that it is not available.
    Unavailable,
    /// It never answers.
    Hangs,
    /// It does what it was asked for, and the answer is lost.
    AnswerLost,
}

/// Which operations fail, counted from 0 at the moment when this was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    Never,
    /// This one alone.
    Once(u64),
    /// This one and all after it.
    From(u64),
}

/// A memory store that fails when it is told to, with a clock that the test turns.
pub(super) struct FaultyStore {
    inner: MemoryStore,
    clock: Arc<StillClock>,
    plan: Mutex<(Fault, When)>,
    operations: AtomicU64,
}

impl FaultyStore {
    pub(super) fn new() -> Self {
        let clock = Arc::new(StillClock::default());
        let day_seconds = std::time::Duration::from_secs(24 * 3600);
        let inner = MemoryStore::new(Arc::<StillClock>::clone(&clock), Incarnation(7), 1000, day_seconds);
        let plan = Mutex::new((Fault::Unavailable, When::Never));
        Self { inner, clock, plan, operations: AtomicU64::new(0) }
    }

    /// Fails like this from now on.
    pub(super) fn fail(&self, fault: Fault, when: When) {
        *self.plan.lock().unwrap() = (fault, when);
        self.operations.store(0, Ordering::Relaxed);
    }

    /// How many operations were asked for since then.
    pub(super) fn operations(&self) -> u64 {
        self.operations.load(Ordering::Relaxed)
    }

    /// Lets time pass.
    pub(super) fn pass(&self, milliseconds: u64) {
        self.clock.0.fetch_add(milliseconds, Ordering::Relaxed);
    }

    /// The record, whatever else fails.
    pub(super) async fn look(&self, key: &ResourceKey) -> Snapshot {
        self.inner.read(key).await.unwrap()
    }

    async fn carry_out<T>(&self, operation: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        let number = self.operations.fetch_add(1, Ordering::Relaxed);
        let (fault, when) = *self.plan.lock().unwrap();
        let fails = match when {
            When::Never => false,
            When::Once(which) => number == which,
            When::From(first) => number >= first,
        };
        match fault {
            _ if !fails => operation.await,
            Fault::Unavailable => Err(StoreError::Unavailable),
            Fault::Hangs => std::future::pending().await,
            Fault::AnswerLost => operation.await.and(Err(StoreError::Unavailable)),
        }
    }
}

#[async_trait]
impl Store for FaultyStore {
    fn incarnation(&self) -> Incarnation {
        self.inner.incarnation()
    }

    async fn now(&self) -> Result<StoreTime, StoreError> {
        self.carry_out(self.inner.now()).await
    }

    async fn read(&self, key: &ResourceKey) -> Result<Snapshot, StoreError> {
        self.carry_out(self.inner.read(key)).await
    }

    async fn swap(&self, key: &ResourceKey, expected: Revision, next: Record) -> Result<Swapped, StoreError> {
        self.carry_out(self.inner.swap(key, expected, next)).await
    }

    async fn scan(
        &self,
        after: Option<&ResourceKey>,
        limit: usize,
    ) -> Result<Vec<(ResourceKey, Snapshot)>, StoreError> {
        self.carry_out(self.inner.scan(after, limit)).await
    }

    async fn changed(&self, key: &ResourceKey, seen: Revision) {
        self.inner.changed(key, seen).await;
    }
}
