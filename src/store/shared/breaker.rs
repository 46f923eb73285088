//! A circuit breaker in front of an external store (DESIGN, section 3, rule 12). It keeps requests from waiting for a
//! store that does not answer.
//!
//! # Design
//!
//! *Why a breaker?* Without the store, a read passes without a tag and a write is refused. Without a breaker, each of
//! them would first wait for the whole store timeout.
//!
//! *When does it open?* When a read of a record or of the time has failed after a long wait. An operation that fails at
//! once, such as the read of a damaged record, makes no caller wait. A swap says nothing about reads: a full store
//! still answers them.
//!
//! *When does it close?* When a trial read gets an answer. Trials run one at a time, so recovery waits for no request, and no
//! request waits for a trial.
//!
//! *Why does it hold back only reads of records?* Each request begins with one. A swap or a read of the time belongs to
//! an operation that has already begun. A write that must be settled tries its swap, no matter what happened to others.

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

use crate::{
    core::{
        records::{
            record::{Record, Revision, Snapshot},
            trees::TreeRoot,
        },
        resource::ResourceKey,
        time::StoreTime,
    },
    store::{Counts, Incarnation, Scanned, Store, StoreError, Swapped},
};

/// The pause between two trials. It is the longest delay of recovery beyond the trial itself, and a negligible load.
const TRIAL_PAUSE: Duration = Duration::from_millis(250);

/// The key that trials read. No resource has it.
const TRIAL_KEY: &str = "answers?";

/// A store that receives no reads of records while it does not answer.
pub(super) struct Breaker {
    inner: Arc<dyn Store>,
    /// The duration from which a failure counts as a long wait.
    slow: Duration,
    is_open: Arc<AtomicBool>,
}

/// Closes a breaker when its trial task ends, for any reason.
struct Trial(Arc<AtomicBool>);

impl Breaker {
    /// Creates a breaker in front of a store that has `timeout` to answer.
    pub(super) fn new(inner: Arc<dyn Store>, timeout: Duration) -> Self {
        Self { inner, slow: timeout / 2, is_open: Arc::default() }
    }

    /// Runs an operation, and opens the breaker if it fails after a long wait.
    async fn watched<T>(&self, operation: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        let begun = Instant::now();
        let result = operation.await;
        if matches!(result, Err(StoreError::Unavailable)) && begun.elapsed() >= self.slow {
            self.open();
        }
        result
    }

    fn open(&self) {
        // There is no runtime when the process is ending.
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
                match inner.read(&key).await {
                    Err(StoreError::Unavailable) => {}
                    // A store that has lost writes answers at once. The requests get that answer themselves.
                    Err(StoreError::LostWrites | StoreError::Full | StoreError::Damaged) => break,
                    Ok(_) => {
                        tracing::info!("the store answers again");
                        break;
                    }
                }
            }
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

    async fn scan(&self, after: Option<&ResourceKey>, limit: usize) -> Result<Scanned, StoreError> {
        self.inner.scan(after, limit).await
    }

    async fn pinned_below(&self, roots: &[TreeRoot], limit: usize) -> Result<Scanned, StoreError> {
        self.inner.pinned_below(roots, limit).await
    }

    async fn changed(&self, key: &ResourceKey, seen: Revision) {
        self.inner.changed(key, seen).await;
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn has_own_time(&self) -> bool {
        self.inner.has_own_time()
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

    /// A store that fails on demand, after a delay or at once.
    struct Failing {
        inner: MemoryStore,
        fails_after: std::sync::Mutex<Option<(Duration, StoreError)>>,
        asked: AtomicUsize,
    }

    impl Failing {
        fn new() -> Arc<Self> {
            let inner =
                MemoryStore::new(Arc::new(BootClock), Incarnation(7), Room { records: 10, bytes: 1 << 20 }, LIMIT);
            Arc::new(Self { inner, fails_after: std::sync::Mutex::default(), asked: AtomicUsize::new(0) })
        }

        fn fail(&self, after: Option<Duration>) {
            *self.fails_after.lock().unwrap() = after.map(|after| (after, StoreError::Unavailable));
        }

        fn lose_writes(&self) {
            *self.fails_after.lock().unwrap() = Some((Duration::ZERO, StoreError::LostWrites));
        }

        fn asked(&self) -> usize {
            self.asked.load(Ordering::Relaxed)
        }

        async fn answer<T>(&self, answer: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            let fails_after = self.fails_after.lock().unwrap().clone();
            let Some((after, error)) = fails_after else { return answer.await };
            sleep(after).await;
            Err(error)
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

        async fn scan(&self, after: Option<&ResourceKey>, limit: usize) -> Result<Scanned, StoreError> {
            self.inner.scan(after, limit).await
        }

        async fn pinned_below(&self, roots: &[TreeRoot], limit: usize) -> Result<Scanned, StoreError> {
            self.answer(self.inner.pinned_below(roots, limit)).await
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
        assert_eq!(begun.elapsed(), LIMIT * 9 / 10, "the first read waits");
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

    /// Time does not repair a store that has lost writes, so no answer may ask clients to come back.
    #[tokio::test(start_paused = true)]
    async fn a_store_that_comes_back_without_its_writes_says_so_to_all() {
        let store = Failing::new();
        let breaker = Breaker::new(Arc::<Failing>::clone(&store), LIMIT);
        store.fail(Some(LIMIT));
        assert_eq!(breaker.read(&key()).await, Err(StoreError::Unavailable));
        store.lose_writes();
        sleep(TRIAL_PAUSE * 2).await;
        assert_eq!(breaker.read(&key()).await, Err(StoreError::LostWrites));
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

    /// A write in progress must be settled: its swap, and the read of the time that it needs, are tried regardless.
    #[tokio::test(start_paused = true)]
    async fn a_swap_is_tried_whatever_became_of_reads() {
        let store = Failing::new();
        let breaker = Breaker::new(Arc::<Failing>::clone(&store), LIMIT);
        store.fail(Some(LIMIT));
        let _ = breaker.read(&key()).await;
        store.fail(None);
        assert!(breaker.now().await.is_ok());
        let absent = Record { touched: crate::core::records::record::Stamp::Itself, ..Record::absent(Revision(0)) };
        let found = store.inner.read(&key()).await.unwrap();
        assert!(matches!(breaker.swap(&key(), found.revision, absent).await, Ok(Swapped::Done(_))));
    }

    /// A full store lets swaps wait in vain, and still answers reads.
    #[tokio::test(start_paused = true)]
    async fn a_swap_that_fails_keeps_no_read_away() {
        let store = Failing::new();
        let breaker = Breaker::new(Arc::<Failing>::clone(&store), LIMIT);
        store.fail(Some(LIMIT));
        let swapped = breaker.swap(&key(), Revision(0), Record::absent(Revision(0))).await;
        assert_eq!(swapped, Err(StoreError::Unavailable));
        store.fail(None);
        assert!(breaker.read(&key()).await.is_ok());
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

    /// An engine looks at the keys below a collection alone. A search through pages would read all records of the store.
    #[tokio::test]
    async fn a_search_below_a_collection_is_the_engines_own() {
        let store = Failing::new();
        let breaker = Breaker::new(Arc::<Failing>::clone(&store), LIMIT);
        let root = TreeRoot { key: "docs:/tree".into(), is_read: false };
        assert_eq!(breaker.pinned_below(&[root], 10).await, Ok(Vec::new()));
        assert_eq!(store.asked(), 1);
    }
}
