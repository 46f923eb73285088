//! The client of a store. It limits and measures the time of each operation, and repeats a change while others
//! interfere.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use tokio::time::Instant;

use super::{
    Incarnation, Scanned, Store, StoreError, Swapped,
    followed::FollowedRecords,
    recent::{Recent, Sighting},
};
use crate::{
    core::{
        records::{
            record::{Availability, Record, Revision, Snapshot},
            tree_leases::{LeaseAround, lease_around, listed_around},
            trees::TreeRoot,
            under_trees::under_trees,
        },
        resource::ResourceKey,
        time::StoreTime,
    },
    patience::within,
    telemetry::{
        TimedPart, measuring,
        metrics::{self, StoreOperation},
        timing,
    },
};

/// The most attempts at a change that other changes interrupt. Each interruption means that another change succeeded,
/// so this many in a row show that something else is wrong.
const UPDATE_ATTEMPTS_MAX: usize = 1_000;

/// The time limit of [`Records::raise_floors`]. It is long because an engine scans its keys for it.
const RAISE_FLOORS_MAX: Duration = Duration::from_secs(60);

/// The time limit of [`Records::pinned_below`]. It is long because a collection may hold all records of an engine.
const SEARCH_MAX: Duration = Duration::from_secs(20);

/// A store with a time limit for its operations. A clone is the same client.
#[derive(Clone)]
pub struct Records(Arc<StoreClient>);

struct StoreClient {
    store: Arc<dyn Store>,
    timeout: Duration,
    /// The records that were seen last, if a read costs a call of an engine.
    recent: Option<Recent>,
    /// The upstreams whose resources have trees around them.
    trees: ArcSwap<Vec<UpstreamTrees>>,
    /// The greatest revision that was seen. Revisions grow through the whole store.
    newest: AtomicU64,
    /// The records that callers follow.
    followed: Arc<FollowedRecords>,
}

/// An upstream whose collections can be changed with all below them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct UpstreamTrees {
    identity: String,
    /// The key of the record of its trees.
    key: ResourceKey,
}

impl UpstreamTrees {
    /// True if this is the key of a resource of the upstream.
    fn contain(&self, key: &ResourceKey) -> bool {
        let rest = key.as_str().strip_prefix(self.identity.as_str());
        rest.is_some_and(|rest| rest.starts_with(":/"))
    }
}

/// The result of [`Records::update`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Updated {
    /// The current record.
    pub snapshot: Snapshot,
    /// True if the step changed the record.
    pub is_changed: bool,
}

impl Records {
    /// Creates a client of a store whose operations take at most `timeout`.
    pub fn new(store: Arc<dyn Store>, timeout: Duration) -> Self {
        let recent = store.is_shared().then(Recent::new);
        let (trees, newest, followed) = (ArcSwap::default(), AtomicU64::default(), Arc::default());
        Self(Arc::new(StoreClient { store, timeout, recent, trees, newest, followed }))
    }

    /// The records that callers follow.
    pub(super) fn followed(&self) -> &Arc<FollowedRecords> {
        &self.0.followed
    }

    /// Returns the number that distinguishes the versions of this store from those of any other.
    pub fn incarnation(&self) -> Incarnation {
        self.0.store.incarnation()
    }

    /// True if other processes use the records too ([`Store::is_shared`]).
    pub fn are_shared(&self) -> bool {
        self.0.store.is_shared()
    }

    /// Shows each resource of the upstreams with these identities as it is under the trees around it, from now on. The
    /// path of such a resource is its key.
    pub fn follow_trees<'a>(&self, identities: impl Iterator<Item = &'a str>) {
        let mut all = Vec::clone(&self.0.trees.load());
        for identity in identities.filter(|identity| !identity.is_empty()) {
            if all.iter().all(|one| one.identity != identity) {
                all.push(UpstreamTrees { identity: identity.to_owned(), key: ResourceKey::of_collections(identity) });
            }
        }
        self.0.trees.store(Arc::new(all));
    }

    /// Returns the key of the record of the trees around a resource, if there can be any.
    pub fn trees_around(&self, key: &ResourceKey) -> Option<ResourceKey> {
        self.0.trees.load().iter().find(|trees| trees.contain(key)).map(|trees| trees.key.clone())
    }

    /// Reads the record of a resource. The resource is shown as it is under the trees around it.
    pub async fn read(&self, key: &ResourceKey) -> Result<Snapshot, StoreError> {
        // The record of trees is read later, so that it is not older than that of the resource.
        let own = self.read_alone(key).await?;
        self.under_trees(key, own).await
    }

    async fn under_trees(&self, key: &ResourceKey, own: Snapshot) -> Result<Snapshot, StoreError> {
        let Some(around) = self.trees_around(key) else { return Ok(own) };
        let trees = self.read_alone(&around).await?;
        let leases_around = self.leases_around(key, &trees).await?;
        Ok(Snapshot { leases_around, ..under_trees(own, key.as_str(), &trees) })
    }

    /// Returns the held leases of the collections around a resource that reach it, by the record of trees. Those of the
    /// collections are read later, so that each tells whether the lease has ended.
    pub async fn leases_around(&self, key: &ResourceKey, trees: &Snapshot) -> Result<Vec<LeaseAround>, StoreError> {
        let mut leases = Vec::new();
        for listed in listed_around(trees, key.as_str()) {
            let root = ResourceKey::from_text(&listed.root);
            let found = self.read_alone(&root).await?;
            leases.extend(lease_around(listed, root, &found));
        }
        Ok(leases)
    }

    async fn read_alone(&self, key: &ResourceKey) -> Result<Snapshot, StoreError> {
        let look = self.look();
        let read = self.measured(StoreOperation::Read, self.0.store.read(key)).await;
        self.note(look, key, read.as_ref());
        read
    }

    /// Returns the greatest revision that this process has seen so far. Whatever ended at it or before has ended by now.
    pub fn newest_seen(&self) -> Revision {
        Revision(self.0.newest.load(Ordering::Acquire))
    }

    /// Returns the record as this process last saw it, if it is likely to be current and costs no call of an engine.
    /// Only a swap against its revision shows whether it is.
    pub async fn recall(&self, key: &ResourceKey) -> Option<Sighting> {
        let (recent, since) = self.look()?;
        let own_time = if self.0.store.has_own_time() { Some((self.0.store.now().await.ok()?, since)) } else { None };
        self.recall_by(key, |key| recent.recall(key, own_time))
    }

    /// Like [`recall`](Self::recall), with the time of then. By that time nothing ends early.
    pub fn recall_as_seen(&self, key: &ResourceKey) -> Option<Sighting> {
        let (recent, _) = self.look()?;
        self.recall_by(key, |key| recent.recall_as_seen(key))
    }

    fn recall_by(&self, key: &ResourceKey, recall: impl Fn(&ResourceKey) -> Option<Sighting>) -> Option<Sighting> {
        let own = recall(key)?;
        let Some(around) = self.trees_around(key) else { return Some(own) };
        let trees = recall(&around)?;
        let (mut since, mut leases_around) = (own.since.min(trees.since), Vec::new());
        for listed in listed_around(&trees.snapshot, key.as_str()) {
            let root = ResourceKey::from_text(&listed.root);
            let found = recall(&root)?;
            since = since.min(found.since);
            leases_around.extend(lease_around(listed, root, &found.snapshot));
        }
        let snapshot = Snapshot { leases_around, ..under_trees(own.snapshot, key.as_str(), &trees.snapshot) };
        Some(Sighting { snapshot, since })
    }

    /// Returns the store's time.
    pub async fn now(&self) -> Result<StoreTime, StoreError> {
        self.measured(StoreOperation::Now, self.0.store.now()).await
    }

    /// Replaces the record with `next` if it has the revision `expected`.
    pub async fn swap(&self, key: &ResourceKey, expected: Revision, next: Record) -> Result<Swapped, StoreError> {
        let look = self.look();
        let swapped = self.measured(StoreOperation::Swap, self.0.store.swap(key, expected, next)).await;
        self.note(look, key, swapped.as_ref().map(|(Swapped::Done(found) | Swapped::Conflict(found))| found));
        match swapped? {
            Swapped::Conflict(current) => self.under_trees(key, current).await.map(Swapped::Conflict),
            done @ Swapped::Done(_) => Ok(done),
        }
    }

    /// Changes the record of a resource by `step`. If another change comes first, `step` is called again with the new
    /// record. If `step` returns `None`, the record stays unchanged. A caller that has already read the record passes
    /// it as `known`.
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

    /// Returns the next records, in the store's own order ([`Store::scan`]).
    pub async fn scan(&self, after: Option<&ResourceKey>, limit: usize) -> Result<Scanned, StoreError> {
        in_time(self.0.timeout, self.0.store.scan(after, limit)).await
    }

    /// Returns the records of resources below these collections that must not be forgotten ([`Store::pinned_below`]).
    pub async fn pinned_below(&self, roots: &[TreeRoot], limit: usize) -> Result<Scanned, StoreError> {
        in_time(SEARCH_MAX, self.0.store.pinned_below(roots, limit)).await
    }

    /// Waits until a record that was read as `snapshot` has another revision than `seen`. If the write of a tree is in the
    /// way, waits for a change of that instead. May return early ([`Store::changed`]).
    pub async fn changed(&self, key: &ResourceKey, snapshot: &Snapshot, seen: Revision) {
        let above = snapshot.above.filter(|_| snapshot.availability_by_own() == Availability::Free);
        match above.and_then(|above| Some((self.trees_around(key)?, above.seen))) {
            Some((around, seen)) => self.0.store.changed(&around, seen).await,
            None => self.0.store.changed(key, seen).await,
        }
    }

    /// Checks whether a change in the store would be durable now.
    pub async fn try_out(&self) -> Result<(), StoreError> {
        in_time(self.0.timeout, self.0.store.try_out()).await
    }

    /// Gives every absent record a later revision ([`Store::raise_floors`]).
    pub async fn raise_floors(&self) -> Result<(), StoreError> {
        in_time(RAISE_FLOORS_MAX, self.0.store.raise_floors()).await
    }

    /// Begins a look at a record that is to be remembered, if any is.
    fn look(&self) -> Option<(&Recent, Instant)> {
        self.0.recent.as_ref().map(|recent| (recent, Instant::now()))
    }

    /// Remembers what a look at a record has found.
    fn note(&self, look: Option<(&Recent, Instant)>, key: &ResourceKey, found: Result<&Snapshot, &StoreError>) {
        if let Ok(snapshot) = found {
            self.0.newest.fetch_max(snapshot.revision.0, Ordering::AcqRel);
        }
        let Some((recent, since)) = look else { return };
        match found {
            Ok(snapshot) => recent.note(key, snapshot, since),
            Err(StoreError::Full) => {}
            Err(StoreError::Unavailable | StoreError::Damaged | StoreError::LostWrites) => recent.forget_all(),
        }
    }

    async fn measured<T>(
        &self,
        operation: StoreOperation,
        answer: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let metrics = metrics::get();
        let answering = if metrics.is_some() { measuring(TimedPart::Store) } else { timing(TimedPart::Store) };
        let outcome = in_time(self.0.timeout, answer).await;
        if let (Some(metrics), Some(took)) = (metrics, answering.end()) {
            metrics.store_answered(operation, took);
            if let Err(error) = &outcome {
                metrics.store_failed(operation, error.word());
            }
        }
        outcome
    }
}

async fn in_time<T>(limit: Duration, answer: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    within(limit, answer).await.map_err(|_elapsed| StoreError::Unavailable)?
}
