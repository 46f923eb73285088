//! The store's client: each operation has a time limit and is measured, and a change is repeated while others interfere.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::{Incarnation, Store, StoreError, Swapped};
use crate::{
    core::{
        record::{Record, Revision, Snapshot},
        resource::ResourceKey,
        time::StoreTime,
    },
    patience::within,
    telemetry::metrics::{self, StoreOperation},
};

/// How often a change is tried again because another one came between. Each time that other change got on, so this many
/// losses in a row mean that something else is wrong.
const UPDATE_ATTEMPTS_MAX: usize = 1_000;

/// The longest time in which a store gives all absent records a later revision: an engine scans its keys for it.
const RAISE_FLOORS_MAX: Duration = Duration::from_secs(60);

/// A store with the time limit of its operations.
#[derive(Clone)]
pub struct Records {
    store: Arc<dyn Store>,
    timeout: Duration,
}

/// A record after [`Records::update`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Updated {
    /// The record as it is now.
    pub snapshot: Snapshot,
    /// Whether the step has changed it.
    pub is_changed: bool,
}

impl Records {
    /// The records of a store whose operations take at most `timeout`.
    pub fn new(store: Arc<dyn Store>, timeout: Duration) -> Self {
        Self { store, timeout }
    }

    /// What tells the versions of this store from those of any other.
    pub fn incarnation(&self) -> Incarnation {
        self.store.incarnation()
    }

    /// The record of a resource.
    pub async fn read(&self, key: &ResourceKey) -> Result<Snapshot, StoreError> {
        self.measured(StoreOperation::Read, self.store.read(key)).await
    }

    /// The store's time.
    pub async fn now(&self) -> Result<StoreTime, StoreError> {
        self.measured(StoreOperation::Now, self.store.now()).await
    }

    /// Puts `next` in the place of the record that has the revision `expected`.
    pub async fn swap(&self, key: &ResourceKey, expected: Revision, next: Record) -> Result<Swapped, StoreError> {
        self.measured(StoreOperation::Swap, self.store.swap(key, expected, next)).await
    }

    /// Changes the record of a resource by `step`. If another change comes between, `step` is asked again about the record
    /// as it is then; if it gives `None`, the record stays as it is. A caller that has read the record already passes it as
    /// `known`.
    pub async fn update(
        &self,
        key: &ResourceKey,
        known: Option<Snapshot>,
        mut step: impl FnMut(&Snapshot) -> Option<Record>,
    ) -> Result<Updated, StoreError> {
        let mut snapshot = match known {
            Some(known) => known,
            None => self.read(key).await?,
        };
        for _ in 0..UPDATE_ATTEMPTS_MAX {
            let Some(next) = step(&snapshot) else { return Ok(Updated { snapshot, is_changed: false }) };
            match self.swap(key, snapshot.revision, next).await? {
                Swapped::Done(snapshot) => return Ok(Updated { snapshot, is_changed: true }),
                Swapped::Conflict(current) => snapshot = current,
            }
        }
        Err(StoreError::Unavailable)
    }

    /// The next records, in the store's own order ([`Store::scan`]).
    pub async fn scan(
        &self,
        after: Option<&ResourceKey>,
        limit: usize,
    ) -> Result<Vec<(ResourceKey, Snapshot)>, StoreError> {
        in_time(self.timeout, self.store.scan(after, limit)).await
    }

    /// Waits until the record has another revision than `seen`; may return early ([`Store::changed`]).
    pub async fn changed(&self, key: &ResourceKey, seen: Revision) {
        self.store.changed(key, seen).await;
    }

    /// Whether a change would last in the store now.
    pub async fn try_out(&self) -> Result<(), StoreError> {
        in_time(self.timeout, self.store.try_out()).await
    }

    /// Gives every absent record a later revision ([`Store::raise_floors`]).
    pub async fn raise_floors(&self) -> Result<(), StoreError> {
        in_time(RAISE_FLOORS_MAX, self.store.raise_floors()).await
    }

    async fn measured<T>(
        &self,
        operation: StoreOperation,
        answer: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let Some(metrics) = metrics::get() else { return in_time(self.timeout, answer).await };
        let started = Instant::now();
        let outcome = in_time(self.timeout, answer).await;
        metrics.store_answered(operation, started.elapsed());
        if let Err(error) = &outcome {
            metrics.store_failed(operation, error.word());
        }
        outcome
    }
}

async fn in_time<T>(limit: Duration, answer: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    within(limit, answer).await.map_err(|_elapsed| StoreError::Unavailable)?
}
