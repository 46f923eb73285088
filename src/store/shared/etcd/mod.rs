//! The etcd store: shared by any number of processes. It survives the loss of a minority of etcd's members.
//!
//! # Design
//!
//! *Why do records use etcd's revisions?* They grow with every change of any key, and none ever comes back. A record
//! that refers to its own revision is resolved when it is read, so one transaction is enough for a swap.
//!
//! *Why may a transaction be sent again if no answer came?* It compares the expected revision, so at most one of its
//! copies is carried out. If a copy comes too late, the label in the record shows that an earlier copy was carried out.
//! If others have changed the record since, neither can be determined, and the swap fails without a verdict.
//!
//! *Why do swaps travel together?* See the module `shared::batch`. All swaps that one transaction carries out share one
//! revision.
//!
//! *Why no keys with etcd's own leases?* They vanish without raising a floor, and take with them data that must be
//! remembered.
//!
//! *Why does each process measure time by its own clock?* See the module `first_seen`. A date in the record would end a
//! lease early on any machine whose clock is ahead.

mod client;
mod collect;
mod first_seen;
mod keys;
mod txn;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use etcd_client::{Txn, WatchOptions};
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{
    batch::{Carrier, Swaps},
    collect::CollectLimits,
    decoded,
    labels::Labels,
};
use crate::{
    clock::Clock,
    config,
    core::{
        records::record::{Record, Revision, Snapshot},
        resource::ResourceKey,
        time::StoreTime,
    },
    entropy::random_u64,
    store::{
        Incarnation, OpenError, Scanned, Store, StoreError, Swapped,
        encoding::{self, Label},
    },
};
use client::{EtcdClient, TransactionReply};
use collect::KeyPage;
use first_seen::FirstSeen;
use keys::EtcdKeys;
use txn::FoundKey;
use txn::SwapAnswer;

/// The longest wait before the record is read again. It bounds the cost of a watch that was lost unnoticed.
const WATCH_MAX: Duration = Duration::from_secs(5);

/// The pause after a wait that could not begin.
const WATCH_FAILED_PAUSE: Duration = Duration::from_millis(100);

/// Records in etcd.
pub struct EtcdStore {
    shared: Arc<EtcdShared>,
    swaps: Swaps<EtcdClient>,
    incarnation: Incarnation,
    labels: Labels,
    /// The task that uses what is shared. It ends with the store.
    _background: JoinSet<()>,
}

struct EtcdShared {
    engine: Arc<EtcdClient>,
    keys: EtcdKeys,
    clock: Arc<dyn Clock>,
    sights: FirstSeen,
    limits: CollectLimits,
    /// The number of records at the last count, updated by those that this process has created and forgotten since.
    records: AtomicUsize,
}

impl EtcdStore {
    /// Connects to the store in this etcd. The first process to start draws its incarnation.
    ///
    /// # Errors
    ///
    /// The store cannot be reached, or a file that it requires cannot be read.
    pub async fn connect(
        settings: &config::Etcd,
        common: &config::StoreSettings,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, OpenError> {
        let engine = Arc::new(EtcdClient::connect(settings, common.timeout).await?);
        let keys = EtcdKeys::new(&settings.prefix);
        let incarnation = incarnation(&engine, &keys).await?;
        let shared = Arc::new(EtcdShared {
            engine: Arc::clone(&engine),
            keys,
            clock,
            sights: FirstSeen::new(common.capacity),
            limits: CollectLimits::of(common),
            records: AtomicUsize::new(0),
        });
        shared.count().await.map_err(|_unavailable| OpenError::Silent)?;
        let mut background = JoinSet::new();
        background.spawn(collect::run(Arc::clone(&shared)));
        let (swaps, labels) = (Swaps::start(&engine, common.timeout), Labels::new()?);
        Ok(Self { shared, swaps, incarnation, labels, _background: background })
    }

    /// Forgets the idle records that were not written for `idle_ttl`, and returns their number.
    pub async fn collect(&self, idle_ttl: Duration) -> Result<usize, StoreError> {
        self.shared.collect(idle_ttl, usize::MAX).await
    }
}

/// Returns the incarnation of this store. The first process draws it.
async fn incarnation(engine: &EtcdClient, keys: &EtcdKeys) -> Result<Incarnation, OpenError> {
    let drawn = Incarnation(random_u64()?);
    let answer = engine.ask(txn::put_first(&keys.incarnation(), &drawn.to_string())).await;
    let answer = answer.map_err(|_unavailable| OpenError::Silent)?;
    let kept = txn::last_get(&answer.response);
    let text = kept.and_then(|got| got.kvs().first().and_then(|pair| pair.value_str().ok().map(str::to_owned)));
    let number = text.and_then(|text| u64::from_str_radix(&text, 16).ok());
    number.map(Incarnation).ok_or_else(|| OpenError::Damaged(keys.incarnation()))
}

#[async_trait]
impl Carrier for EtcdClient {
    type Swap = Txn;
    type Answer = TransactionReply;

    async fn carry_out(&self, mut swaps: Vec<Txn>) -> Result<Vec<TransactionReply>, StoreError> {
        if swaps.len() == 1 {
            return Ok(vec![self.ask(swaps.pop().unwrap_or_default()).await?]);
        }
        let TransactionReply { response, at, is_repeated } = self.ask(txn::together(swaps)).await?;
        let of_swap = |response| TransactionReply { response, at, is_repeated };
        Ok(txn::each(&response).into_iter().map(of_swap).collect())
    }
}

impl EtcdShared {
    /// Decodes what was found. Its moments count from the time when this process first saw it.
    fn snapshot(&self, key: &ResourceKey, found: &FoundKey) -> Result<(Snapshot, Option<Label>), StoreError> {
        let now = self.clock.now();
        let Some((revision, text)) = &found.record else {
            self.sights.forget(key);
            return Ok((Snapshot::new(found.floor, Record::absent(found.floor), now), None));
        };
        self.decoded(key, *revision, text, now)
    }

    fn decoded(
        &self,
        key: &ResourceKey,
        revision: Revision,
        text: &[u8],
        now: StoreTime,
    ) -> Result<(Snapshot, Option<Label>), StoreError> {
        let base = self.sights.base(key, revision, now);
        let (snapshot, label) = decoded(key, revision, text, base, now)?;
        self.sights.note(key, revision, base, &snapshot.record);
        Ok((snapshot, label))
    }

    async fn look(&self, key: &ResourceKey) -> Result<FoundKey, StoreError> {
        let answer = self.engine.ask(txn::look(&self.keys, key)).await?;
        txn::found(&answer.response).ok_or(StoreError::Unavailable)
    }

    /// Returns the record that this process has put. Its moments stay unchanged, because the time of the swap is known
    /// here.
    fn put(&self, key: &ResourceKey, revision: Revision, record: Record, base: StoreTime) -> Snapshot {
        self.sights.note(key, revision, base, &record);
        Snapshot::new(revision, record.resolved(revision), self.clock.now())
    }

    /// Waits for an event on the key of the record, if the record has this revision.
    async fn changed(&self, key: &ResourceKey, seen: Revision) -> Option<()> {
        let found = self.look(key).await.ok()?;
        if found.record.as_ref().map_or(found.floor, |(revision, _)| *revision) != seen {
            return Some(());
        }
        // The watch does not start at the record's own revision, because etcd may have compacted it since.
        let Revision(at) = found.at;
        let from = WatchOptions::new().with_start_revision(i64::try_from(at).ok()?.checked_add(1)?);
        let mut events = self.engine.watch().watch(self.keys.record(key), Some(from)).await.ok()?;
        loop {
            let message = events.message().await.ok()??;
            if message.canceled() {
                return None;
            }
            if !message.events().is_empty() {
                return Some(());
            }
        }
    }
}

#[async_trait]
impl Store for EtcdStore {
    fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    async fn now(&self) -> Result<StoreTime, StoreError> {
        Ok(self.shared.clock.now())
    }

    fn has_own_time(&self) -> bool {
        true
    }

    async fn read(&self, key: &ResourceKey) -> Result<Snapshot, StoreError> {
        let found = self.shared.look(key).await?;
        self.shared.snapshot(key, &found).map(|(snapshot, _)| snapshot)
    }

    async fn swap(&self, key: &ResourceKey, expected: Revision, next: Record) -> Result<Swapped, StoreError> {
        // Taken before the swap is sent, so that no reader counts from an earlier time.
        let (shared, base) = (&self.shared, self.shared.clock.now());
        let label = self.labels.next();
        let text = encoding::encode_labelled(&next, base, Some(label.clone()));
        let may_create = shared.records.load(Ordering::Relaxed) < shared.limits.capacity;
        let swap = txn::swap(&shared.keys, key, expected, &text, may_create);
        let TransactionReply { response, at, is_repeated } = self.swaps.carry_out(key, swap, text.len()).await?;
        match txn::swap_answer(&response, at, may_create).ok_or(StoreError::Unavailable)? {
            SwapAnswer::Put { revision, is_new } => {
                shared.records.fetch_add(usize::from(is_new), Ordering::Relaxed);
                Ok(Swapped::Done(shared.put(key, revision, next, base)))
            }
            SwapAnswer::NoRoom => {
                shared.limits.is_full.notify_one();
                Err(StoreError::Full)
            }
            SwapAnswer::Other(found) => {
                let (snapshot, written) = shared.snapshot(key, &found)?;
                match written {
                    Some(written) if written == label => {
                        Ok(Swapped::Done(shared.put(key, snapshot.revision, next, base)))
                    }
                    _ if is_repeated => Err(StoreError::Unavailable),
                    _ => Ok(Swapped::Conflict(snapshot)),
                }
            }
        }
    }

    async fn scan(&self, after: Option<&ResourceKey>, limit: usize) -> Result<Scanned, StoreError> {
        let (mut found, mut after) = (Vec::new(), after.cloned());
        loop {
            let KeyPage { records, last } = self.shared.page(after.as_ref(), limit - found.len()).await?;
            found.extend(records.into_iter().map(|(key, snapshot, _)| (key, snapshot)));
            if found.len() == limit || last.is_none() {
                return Ok(found);
            }
            after = last;
        }
    }

    async fn changed(&self, key: &ResourceKey, seen: Revision) {
        if let Ok(None) = timeout(WATCH_MAX, self.shared.changed(key, seen)).await {
            sleep(WATCH_FAILED_PAUSE).await;
        }
    }

    async fn raise_floors(&self) -> Result<(), StoreError> {
        /// The number of operations in one transaction. It is etcd's default limit.
        const OPERATIONS: usize = 128;
        let buckets = (0..=u16::MAX).collect::<Vec<_>>();
        for range in buckets.chunks(OPERATIONS) {
            // This may be sent again: another put only raises the floors further.
            self.shared.engine.ask(txn::raise(&self.shared.keys, range)).await?;
        }
        Ok(())
    }
}
