//! A shared store that did not answer when the process started. Until it does, reads pass and guarded writes are refused
//! (DESIGN, section 3, rule 12), as at any other time without the store.
//!
//! # Design
//!
//! *Why does the process not end?* A proxy and its store often start at once, and a proxy that starts during an outage of
//! its store is better than none: reads and unguarded routes need no store.
//!
//! *What is known before?* Nothing, and no question has an answer. The incarnation of that time is one that no tag names.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use async_trait::async_trait;
use tokio::{task::AbortHandle, time::sleep};

use super::{Counts, Incarnation, OpenError, Scanned, Store, StoreError, Swapped};
use crate::{
    core::{
        records::{
            record::{Record, Revision, Snapshot},
            trees::TreeRoot,
        },
        resource::ResourceKey,
        time::StoreTime,
    },
    error_causes::with_causes,
};

/// The pause between two attempts: a negligible load, and a short outage beyond that of the store.
const ATTEMPT_PAUSE: Duration = Duration::from_secs(1);

/// A store that is opened in the background.
pub(super) struct LateStore {
    opened: Arc<OnceLock<Arc<dyn Store>>>,
    /// The incarnation of the time before the store answers.
    incarnation: Incarnation,
    attempts: AbortHandle,
}

impl LateStore {
    /// Makes attempts until the store is open. `grace` passes after that, before the store is used.
    pub(super) fn new<A>(incarnation: Incarnation, grace: Duration, attempt: impl Fn() -> A + Send + 'static) -> Self
    where
        A: Future<Output = Result<Arc<dyn Store>, OpenError>> + Send,
    {
        let opened = Arc::<OnceLock<_>>::default();
        let place = Arc::clone(&opened);
        let attempts = tokio::spawn(async move {
            let mut told = String::new();
            let store = loop {
                sleep(ATTEMPT_PAUSE).await;
                match attempt().await {
                    Ok(store) => break store,
                    Err(error) => {
                        let why = with_causes(&error);
                        if why != told {
                            tracing::error!("guarded writes are refused: {why}");
                            told = why;
                        }
                    }
                }
            };
            sleep(grace).await;
            tracing::info!("the store answers");
            let _ = place.set(store);
        });
        Self { opened, incarnation, attempts: attempts.abort_handle() }
    }

    fn store(&self) -> Result<&Arc<dyn Store>, StoreError> {
        self.opened.get().ok_or(StoreError::Unavailable)
    }
}

impl Drop for LateStore {
    fn drop(&mut self) {
        self.attempts.abort();
    }
}

#[async_trait]
impl Store for LateStore {
    fn incarnation(&self) -> Incarnation {
        self.opened.get().map_or(self.incarnation, |store| store.incarnation())
    }

    async fn now(&self) -> Result<StoreTime, StoreError> {
        self.store()?.now().await
    }

    async fn read(&self, key: &ResourceKey) -> Result<Snapshot, StoreError> {
        self.store()?.read(key).await
    }

    async fn swap(&self, key: &ResourceKey, expected: Revision, next: Record) -> Result<Swapped, StoreError> {
        self.store()?.swap(key, expected, next).await
    }

    async fn scan(&self, after: Option<&ResourceKey>, limit: usize) -> Result<Scanned, StoreError> {
        self.store()?.scan(after, limit).await
    }

    async fn pinned_below(&self, roots: &[TreeRoot], limit: usize) -> Result<Scanned, StoreError> {
        self.store()?.pinned_below(roots, limit).await
    }

    async fn changed(&self, key: &ResourceKey, seen: Revision) {
        match self.store() {
            Ok(store) => store.changed(key, seen).await,
            Err(_) => sleep(ATTEMPT_PAUSE).await,
        }
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn has_own_time(&self) -> bool {
        self.opened.get().is_some_and(|store| store.has_own_time())
    }

    fn count(&self) -> Option<Counts> {
        self.opened.get()?.count()
    }

    async fn raise_floors(&self) -> Result<(), StoreError> {
        self.store()?.raise_floors().await
    }

    async fn close(&self) {
        if let Some(store) = self.opened.get() {
            store.close().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use tokio::time::advance;

    use super::*;
    use crate::{
        clock::BootClock,
        core::records::owed::Owed,
        store::memory::{MemoryStore, Room},
    };

    const GRACE: Duration = Duration::from_secs(10);

    /// Lets tasks run that can.
    async fn settle() {
        for _ in 0..8 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn it_has_nothing_to_say_until_the_grace_after_its_first_answer_is_over() {
        let answers = Arc::new(AtomicBool::new(false));
        let (seen, key) = (Arc::clone(&answers), ResourceKey::from_text("docs:/a"));
        let late = LateStore::new(Incarnation(1), GRACE, move || {
            let answer = if seen.load(Ordering::Relaxed) {
                let room = Room { records: 10, bytes: 10_000 };
                let store = MemoryStore::new(Arc::new(BootClock), Incarnation(2), room, GRACE);
                Ok(Arc::new(store) as Arc<dyn Store>)
            } else {
                Err(OpenError::Silent)
            };
            async { answer }
        });
        for _ in 0..3 {
            advance(ATTEMPT_PAUSE).await;
            settle().await;
            assert_eq!(late.read(&key).await.err(), Some(StoreError::Unavailable));
        }
        let owed = Owed::by_writes(GRACE, GRACE);
        assert_eq!(late.owe(owed).await, Ok(()), "such a store keeps all marks, and a reload needs no answer");
        answers.store(true, Ordering::Relaxed);
        advance(ATTEMPT_PAUSE).await;
        settle().await;
        assert_eq!((late.now().await.err(), late.incarnation()), (Some(StoreError::Unavailable), Incarnation(1)));
        advance(GRACE).await;
        settle().await;
        assert!(late.read(&key).await.is_ok());
        assert_eq!((late.incarnation(), late.is_shared()), (Incarnation(2), true));
    }
}
