//! A store elsewhere that does not answer is not asked by every request (DESIGN, section 3, rule 12).
//!
//! # Design
//!
//! *Why?* A read goes on without the store, and a write is refused. Without a breaker each of them would first wait for
//! as long as the store is given.
//!
//! *When does it open?* When a read, or the question for the time, has failed and taken its time for it. What fails at
//! once, as a record that cannot be read does, makes nobody wait. A swap says nothing of reads: a store that is full
//! answers them.
//!
//! *When does it close?* A trial asks for a record again and again, one at a time, so that recovery waits for no request
//! and no request waits for the trial.
//!
//! *Why are reads of records alone held back?* Each request begins with one. A swap, and the question for the time, are
//! parts of what has begun before: a write that is to be settled tries it whatever happened to others.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use tokio::{
    runtime::Handle,
    time::{Instant, sleep},
};

use super::{Counts, Incarnation, Store, StoreError, Swapped};
use crate::core::{
    record::{Record, Revision, Snapshot},
    resource::ResourceKey,
    time::StoreTime,
};

/// The pause between two trials: what recovery costs at most beside the trial itself, and a load that no store feels.
const TRIAL_PAUSE: Duration = Duration::from_millis(250);

/// The key of no resource, which trials ask for.
const TRIAL_KEY: &str = "answers?";

/// A store that is left alone while it does not answer.
pub(super) struct Breaker {
    inner: Arc<dyn Store>,
    /// A failure that took this long kept somebody waiting.
    slow: Duration,
    is_open: Arc<AtomicBool>,
}

/// The task that closes a breaker, however it ends.
struct Trial(Arc<AtomicBool>);

impl Breaker {
    /// In front of a store that has so long to answer.
    pub(super) fn new(inner: Arc<dyn Store>, timeout: Duration) -> Self {
        Self { inner, slow: timeout / 2, is_open: Arc::default() }
    }

    /// Does an operation, and opens the breaker where it failed after a long wait.
    async fn watched<T>(&self, operation: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        let begun = Instant::now();
        let result = operation.await;
        if matches!(result, Err(StoreError::Unavailable)) && begun.elapsed() >= self.slow {
            self.open();
        }
        result
    }

    fn open(&self) {
        // Without a runtime the process is ending.
        let Ok(runtime) = Handle::try_current() else { return };
        if self.is_open.swap(true, Ordering::AcqRel) {
            return;
        }
        tracing::warn!("the store does not answer in time: until it does, requests do not wait for it");
        let (inner, trial) = (Arc::downgrade(&self.inner), Trial(Arc::clone(&self.is_open)));
        runtime.spawn(async move {
            let key = ResourceKey::from_text(TRIAL_KEY);
            loop {
                sleep(TRIAL_PAUSE).await;
                let Some(inner) = inner.upgrade() else { return };
                if inner.read(&key).await.is_ok() {
                    break;
                }
            }
            tracing::info!("the store answers again");
            drop(trial);
        });
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

#[async_trait]
impl Store for Breaker {
    fn incarnation(&self) -> Incarnation {
        self.inner.incarnation()
    }

    async fn now(&self) -> Result<StoreTime, StoreError> {
        self.watched(self.inner.now()).await
    }

    async fn read(&self, key: &ResourceKey) -> Result<Snapshot, StoreError> {
        if self.is_open.load(Ordering::Acquire) {
            return Err(StoreError::Unavailable);
        }
        self.watched(self.inner.read(key)).await
    }

    async fn swap(&self, key: &ResourceKey, expected: Revision, next: Record) -> Result<Swapped, StoreError> {
        self.inner.swap(key, expected, next).await
    }

    async fn scan(
        &self,
        after: Option<&ResourceKey>,
        limit: usize,
    ) -> Result<Vec<(ResourceKey, Snapshot)>, StoreError> {
        self.inner.scan(after, limit).await
    }

    async fn changed(&self, key: &ResourceKey, seen: Revision) {
        self.inner.changed(key, seen).await;
    }

    fn count(&self) -> Option<Counts> {
        self.inner.count()
    }

    async fn raise_floors(&self) -> Result<(), StoreError> {
        self.inner.raise_floors().await
    }

    async fn close(&self) {
        self.inner.close().await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;
    use crate::{
        clock::BootClock,
        store::memory::{MemoryStore, Room},
    };

    const LIMIT: Duration = Duration::from_secs(2);

    /// A store that can be told to fail, after a while or at once.
    struct Failing {
        inner: MemoryStore,
        fails_after: std::sync::Mutex<Option<Duration>>,
        asked: AtomicUsize,
    }

    impl Failing {
        fn new() -> Arc<Self> {
            let inner =
                MemoryStore::new(Arc::new(BootClock), Incarnation(7), Room { records: 10, bytes: 1 << 20 }, LIMIT);
            Arc::new(Self { inner, fails_after: std::sync::Mutex::default(), asked: AtomicUsize::new(0) })
        }

        fn fail(&self, after: Option<Duration>) {
            *self.fails_after.lock().unwrap() = after;
        }

        fn asked(&self) -> usize {
            self.asked.load(Ordering::Relaxed)
        }

        async fn answer<T>(&self, answer: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            let fails_after = *self.fails_after.lock().unwrap();
            let Some(after) = fails_after else { return answer.await };
            sleep(after).await;
            Err(StoreError::Unavailable)
        }
    }

    #[async_trait]
    impl Store for Failing {
        fn incarnation(&self) -> Incarnation {
            self.inner.incarnation()
        }

        async fn now(&self) -> Result<StoreTime, StoreError> {
            self.answer(self.inner.now()).await
        }

        async fn read(&self, key: &ResourceKey) -> Result<Snapshot, StoreError> {
            self.answer(self.inner.read(key)).await
        }

        async fn swap(&self, key: &ResourceKey, expected: Revision, next: Record) -> Result<Swapped, StoreError> {
            self.answer(self.inner.swap(key, expected, next)).await
        }

        async fn scan(
            &self,
            after: Option<&ResourceKey>,
            limit: usize,
        ) -> Result<Vec<(ResourceKey, Snapshot)>, StoreError> {
            self.inner.scan(after, limit).await
        }

        async fn changed(&self, key: &ResourceKey, seen: Revision) {
            self.inner.changed(key, seen).await;
        }

        async fn raise_floors(&self) -> Result<(), StoreError> {
            self.inner.raise_floors().await
        }
    }

    fn key() -> ResourceKey {
        ResourceKey::from_text("a")
    }

    #[tokio::test(start_paused = true)]
    async fn after_the_first_failure_no_read_waits_until_the_store_answers() {
        let store = Failing::new();
        let breaker = Breaker::new(Arc::<Failing>::clone(&store), LIMIT);
        store.fail(Some(LIMIT * 9 / 10));
        let begun = Instant::now();
        assert_eq!(breaker.read(&key()).await, Err(StoreError::Unavailable));
        assert_eq!(begun.elapsed(), LIMIT * 9 / 10, "the first one has found out");
        let begun = Instant::now();
        for _ in 0..100 {
            assert_eq!(breaker.read(&key()).await, Err(StoreError::Unavailable));
        }
        assert_eq!((begun.elapsed(), store.asked()), (Duration::ZERO, 1));
        store.fail(None);
        sleep(TRIAL_PAUSE * 2).await;
        assert!(breaker.read(&key()).await.is_ok());
        let asked = store.asked();
        sleep(LIMIT * 10).await;
        assert_eq!(store.asked(), asked, "the trials are over");
    }

    #[tokio::test(start_paused = true)]
    async fn trials_come_one_at_a_time() {
        let store = Failing::new();
        let breaker = Breaker::new(Arc::<Failing>::clone(&store), LIMIT);
        store.fail(Some(LIMIT));
        let key = key();
        let _ = tokio::join!(breaker.read(&key), breaker.read(&key));
        let asked = store.asked();
        sleep((TRIAL_PAUSE + LIMIT) * 10).await;
        assert_eq!(store.asked() - asked, 10);
    }

    /// What is under way is to be settled: its swap, and the time that it needs for that, are asked for all the same.
    #[tokio::test(start_paused = true)]
    async fn a_swap_is_tried_whatever_became_of_reads() {
        let store = Failing::new();
        let breaker = Breaker::new(Arc::<Failing>::clone(&store), LIMIT);
        store.fail(Some(LIMIT));
        let _ = breaker.read(&key()).await;
        store.fail(None);
        assert!(breaker.now().await.is_ok());
        let absent = Record { touched: crate::core::record::Stamp::Itself, ..Record::absent(Revision(0)) };
        let found = store.inner.read(&key()).await.unwrap();
        assert!(matches!(breaker.swap(&key(), found.revision, absent).await, Ok(Swapped::Done(_))));
    }

    #[tokio::test(start_paused = true)]
    async fn what_fails_at_once_keeps_nobody_waiting() {
        let store = Failing::new();
        let breaker = Breaker::new(Arc::<Failing>::clone(&store), LIMIT);
        store.fail(Some(Duration::ZERO));
        assert!(breaker.read(&key()).await.is_err());
        store.fail(None);
        assert!(breaker.read(&key()).await.is_ok());
    }
}
