//! For tests: a store that fails on demand and has a clock under the test's control, and a guard on it.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use async_trait::async_trait;
use tokio::task::yield_now;

mod backend;
mod fixture;
mod listing;
mod message;
mod streams;
mod transport;

pub(crate) use fixture::{Fixture, OWNER, Response};
pub(crate) use streams::EventClient;

use crate::{
    clock::Clock,
    core::{
        policy::Dialect,
        records::record::{Record, Revision, Snapshot},
        resource::ResourceKey,
        time::StoreTime,
    },
    patience::within,
    store::{
        Incarnation, Scanned, Store, StoreError, Swapped,
        memory::{MemoryStore, Room},
    },
};

/// Waits until other tasks have made the condition true.
pub(crate) async fn until(what: &str, condition: impl AsyncFn() -> bool) {
    let met = async {
        while !condition().await {
            yield_now().await;
        }
    };
    within(Duration::from_secs(10), met).await.unwrap_or_else(|_| panic!("waited too long for {what}"));
}

/// The status of a response, and the code of a refusal.
pub(crate) fn code(response: &Response) -> (u16, &str) {
    let code = response.body.split("\"code\":\"").nth(1).and_then(|rest| rest.split('"').next());
    (response.status, code.unwrap_or_default())
}

/// The dialect of this name.
pub(crate) fn dialect(name: &str) -> Dialect {
    Dialect::NAMES.iter().find(|(known, _)| *known == name).expect("the dialect has a name").1
}

/// A clock that stands still until a test moves it.
pub(crate) struct TestClock(Mutex<Course>);

/// The course of a clock from some moment on.
struct Course {
    from: StoreTime,
    since: Instant,
    /// The speed of the clock, in percent of the real time.
    percent: u64,
}

impl Course {
    fn now(&self) -> StoreTime {
        let real_milliseconds = u64::try_from(self.since.elapsed().as_millis()).expect("a short test");
        self.from.plus(Duration::from_millis(real_milliseconds * self.percent / 100))
    }
}

impl TestClock {
    fn new() -> Self {
        let from = StoreTime::from_milliseconds(1_000_000);
        Self(Mutex::new(Course { from, since: Instant::now(), percent: 0 }))
    }

    fn turn(&self, to: impl FnOnce(StoreTime) -> StoreTime, percent: Option<u64>) {
        let mut course = self.0.lock().unwrap();
        let (from, percent) = (to(course.now()), percent.unwrap_or(course.percent));
        *course = Course { from, since: Instant::now(), percent };
    }
}

impl Clock for TestClock {
    fn now(&self) -> StoreTime {
        self.0.lock().unwrap().now()
    }
}

/// The way in which an operation of the store fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The store returns that it is not available.
    Unavailable,
    /// The store returns that it has lost acknowledged writes.
    LostWrites,
    /// The store never answers.
    Hangs,
    /// The store carries out the operation, but its answer is lost.
    AnswerLost,
    /// The store carries out the operation a moment later.
    Late,
}

/// The operations that fail, counted from 0 since [`FaultyStore::fail`] was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    Never,
    /// Only the operation with this number.
    Once(u64),
    /// The operation with this number and all after it.
    From(u64),
}

/// The number of operations by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) reads: u64,
    pub(crate) swaps: u64,
    pub(crate) times: u64,
}

/// A memory store that fails on demand, with a clock under the test's control.
pub(crate) struct FaultyStore {
    inner: MemoryStore,
    clock: Arc<TestClock>,
    plan: Mutex<(Fault, When)>,
    operations: AtomicU64,
    asked: Mutex<Asked>,
    is_shared: bool,
    has_own_time: bool,
}

impl FaultyStore {
    pub(crate) fn new() -> Self {
        let clock = Arc::new(TestClock::new());
        let day_seconds = Duration::from_secs(24 * 3600);
        let room = Room { records: 1000, bytes: 1 << 30 };
        let inner = MemoryStore::new(Arc::<TestClock>::clone(&clock), Incarnation(7), room, day_seconds);
        let plan = Mutex::new((Fault::Unavailable, When::Never));
        let (operations, asked) = (AtomicU64::new(0), Mutex::default());
        Self { inner, clock, plan, operations, asked, is_shared: false, has_own_time: false }
    }

    /// The same, but other processes use the store too.
    pub(crate) fn shared() -> Self {
        Self { is_shared: true, ..Self::new() }
    }

    /// The same, but each of the processes keeps the time itself.
    pub(crate) fn shared_without_clock() -> Self {
        Self { has_own_time: true, ..Self::shared() }
    }

    /// Fails in this way from now on, and restarts the counts.
    pub(crate) fn fail(&self, fault: Fault, when: When) {
        *self.plan.lock().unwrap() = (fault, when);
        self.operations.store(0, Ordering::Relaxed);
        *self.asked.lock().unwrap() = Asked::default();
    }

    /// Returns the number of operations by kind since [`fail`](Self::fail) was called.
    pub(crate) fn asked(&self) -> Asked {
        *self.asked.lock().unwrap()
    }

    /// Returns the number of operations since [`fail`](Self::fail) was called.
    pub(crate) fn operations(&self) -> u64 {
        self.operations.load(Ordering::Relaxed)
    }

    /// Lets time pass.
    pub(crate) fn pass(&self, milliseconds: u64) {
        self.clock.turn(|now| now.plus(Duration::from_millis(milliseconds)), None);
    }

    /// Sets the clock back.
    pub(crate) fn go_back(&self, milliseconds: u64) {
        let back = |now: StoreTime| StoreTime::from_milliseconds(now.milliseconds() - milliseconds);
        self.clock.turn(back, None);
    }

    /// Lets the clock run from now on, at this percentage of the real time.
    pub(crate) fn run(&self, percent: u64) {
        self.clock.turn(|now| now, Some(percent));
    }

    /// Returns the time, even while all else fails.
    pub(crate) fn time(&self) -> StoreTime {
        self.clock.now()
    }

    /// Returns the record, even while all else fails.
    pub(crate) async fn look(&self, key: &ResourceKey) -> Snapshot {
        self.inner.read(key).await.unwrap()
    }

    /// Returns the record of the only write with an idempotency key, even while all else fails.
    pub(crate) async fn attempt(&self) -> (ResourceKey, Snapshot) {
        let records = self.inner.scan(None, 1_000).await.unwrap();
        let mut attempts = records.into_iter().filter(|(key, _)| key.is_of_keyed_write());
        let first = attempts.next().expect("a write with a key");
        assert!(attempts.next().is_none());
        first
    }

    /// Replaces the record like another process, even while all else fails.
    pub(crate) async fn put(&self, key: &ResourceKey, next: Record) {
        let revision = self.look(key).await.revision;
        assert!(matches!(self.inner.swap(key, revision, next).await, Ok(Swapped::Done(_))));
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
            Fault::LostWrites => Err(StoreError::LostWrites),
            Fault::Hangs => std::future::pending().await,
            Fault::Late => {
                tokio::time::sleep(Duration::from_millis(1)).await;
                operation.await
            }
            Fault::AnswerLost => operation.await.and(Err(StoreError::Unavailable)),
        }
    }
}

#[async_trait]
impl Store for FaultyStore {
    fn incarnation(&self) -> Incarnation {
        self.inner.incarnation()
    }

    fn is_shared(&self) -> bool {
        self.is_shared
    }

    fn has_own_time(&self) -> bool {
        self.has_own_time
    }

    async fn now(&self) -> Result<StoreTime, StoreError> {
        if self.has_own_time {
            return Ok(self.time());
        }
        self.asked.lock().unwrap().times += 1;
        self.carry_out(self.inner.now()).await
    }

    async fn read(&self, key: &ResourceKey) -> Result<Snapshot, StoreError> {
        self.asked.lock().unwrap().reads += 1;
        self.carry_out(self.inner.read(key)).await
    }

    async fn swap(&self, key: &ResourceKey, expected: Revision, next: Record) -> Result<Swapped, StoreError> {
        self.asked.lock().unwrap().swaps += 1;
        self.carry_out(self.inner.swap(key, expected, next)).await
    }

    async fn scan(&self, after: Option<&ResourceKey>, limit: usize) -> Result<Scanned, StoreError> {
        self.carry_out(self.inner.scan(after, limit)).await
    }

    async fn changed(&self, key: &ResourceKey, seen: Revision) {
        self.inner.changed(key, seen).await;
    }

    async fn raise_floors(&self) -> Result<(), StoreError> {
        self.carry_out(self.inner.raise_floors()).await
    }
}
