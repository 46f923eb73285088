//! The etcd store: shared by any number of processes. It survives the loss of a minority of etcd's members.
//!
//! # Design
//!
//! *Why do records use etcd's revisions?* They grow with every change of any key, and none ever comes back. A record
//! that refers to its own revision is resolved when it is read, so one transaction is enough for a swap.
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
mod keys;
mod txn;

use std::{ops::RangeInclusive, sync::Arc, time::Duration};

use etcd_client::{KeyValue, WatchOptions};
use tokio::{
    sync::Mutex,
    time::{Instant, sleep, timeout},
};

use self::client::{EtcdClient, TransactionReply};
use super::{
    batch::{Carrier, Swaps},
    engine::{Engine, EngineAnswer, KeptText, KeyRange, Swap, SwapOutcome, TextPage},
    epoch::ToldRevisions,
    store::SharedStore,
};
use crate::{
    clock::Clock,
    config,
    core::{records::record::Revision, resource::ResourceKey, time::StoreTime},
    entropy::random_u64,
    store::{Incarnation, OpenError, StoreError},
};

/// The longest wait before the record is read again. It bounds the cost of a watch that was lost unnoticed.
const WATCH_MAX: Duration = Duration::from_secs(5);

/// The pause after a wait that could not begin.
const WATCH_FAILED_PAUSE: Duration = Duration::from_millis(100);

/// Records in etcd.
pub type EtcdStore = SharedStore<EtcdEngine>;

/// An etcd as an engine.
pub struct EtcdEngine {
    client: Arc<EtcdClient>,
    swaps: Swaps,
    clock: Arc<dyn Clock>,
    last_turn: Mutex<LastTurn>,
}

/// The last pass of any process that looked for idle records, if this one knows it.
struct LastTurn {
    /// The revision of its mark.
    revision: Revision,
    /// When this process last tried to take its turn.
    tried: Instant,
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
        let client = Arc::new(EtcdClient::connect(settings, common.timeout).await?);
        let (place, drawn) = (client.keys.incarnation(), Incarnation(random_u64()?));
        let answer = client.ask(txn::put_first(&place, &drawn.to_string())).await;
        let kept = txn::last_get(&answer.map_err(|_unavailable| OpenError::Silent)?.response);
        let kept = kept.and_then(|got| got.kvs().first().and_then(|pair| pair.value_str().ok().map(str::to_owned)));
        let swaps = Swaps::start(&client, common.timeout);
        let last_turn = Mutex::new(LastTurn { revision: Revision::default(), tried: Instant::now() });
        Self::start(EtcdEngine { client, swaps, clock, last_turn }, (&place, kept), common).await
    }
}

impl Carrier for EtcdClient {
    async fn carry_out(&self, swaps: Vec<Swap>) -> Result<Vec<EngineAnswer<SwapOutcome>>, StoreError> {
        let TransactionReply { response, at, is_repeated } = self.ask(txn::together(&self.keys, &swaps)).await?;
        let outcome = |(swap, response): (&Swap, _)| {
            let found = txn::swap_outcome(&response, at, swap.may_create, is_repeated)?;
            Some(EngineAnswer { found, now: StoreTime::default(), told: Some(ToldRevisions::committed(at)) })
        };
        let answers = swaps.iter().zip(txn::each(response, swaps.len())).map(outcome);
        answers.collect::<Option<_>>().ok_or(StoreError::Unavailable)
    }
}

impl EtcdEngine {
    fn answer<T>(&self, found: Option<T>, at: Revision) -> Result<EngineAnswer<T>, StoreError> {
        let found = found.ok_or(StoreError::Unavailable)?;
        Ok(EngineAnswer { found, now: self.clock.now(), told: Some(ToldRevisions::committed(at)) })
    }

    /// Waits for an event on the key of the record, if the record has this revision.
    async fn event(&self, key: &ResourceKey, seen: Revision) -> Option<()> {
        let EngineAnswer { found, told, .. } = self.read(key).await.ok()?;
        if found.revision != seen {
            return Some(());
        }
        // The watch does not start at the record's own revision, because etcd may have compacted it since.
        let Revision(at) = told?.current;
        let from = WatchOptions::new().with_start_revision(i64::try_from(at).ok()?.checked_add(1)?);
        let mut events = self.client.watch().watch(self.client.keys.record(key), Some(from)).await.ok()?;
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

impl Engine for EtcdEngine {
    /// The number of operations in one transaction: etcd's default limit.
    const RAISED_AT_ONCE: u16 = 128;

    const HAS_OWN_TIME: bool = true;

    async fn now(&self) -> Result<EngineAnswer<()>, StoreError> {
        Ok(EngineAnswer { found: (), now: self.clock.now(), told: None })
    }

    async fn read(&self, key: &ResourceKey) -> Result<EngineAnswer<KeptText>, StoreError> {
        let TransactionReply { response, at, .. } = self.client.ask(txn::look(&self.client.keys, key)).await?;
        self.answer(txn::found(&response), at)
    }

    async fn swap(&self, swap: Swap) -> Result<EngineAnswer<SwapOutcome>, StoreError> {
        let answer = self.swaps.carry_out(swap).await?;
        Ok(EngineAnswer { now: self.clock.now(), ..answer })
    }

    async fn page(&self, selection: KeyRange<'_>, limit: usize) -> Result<EngineAnswer<TextPage>, StoreError> {
        let keys = &self.client.keys;
        let TransactionReply { response, at, .. } = self.client.ask(txn::page(keys, selection, limit)).await?;
        let page = txn::last_get(&response).map(|page| {
            let record = |pair: &KeyValue| Some((keys.resource(pair.key())?, txn::kept(pair)));
            let last = page.kvs().last().filter(|_| page.more()).and_then(|pair| keys.resource(pair.key()));
            TextPage { records: page.kvs().iter().filter_map(record).collect(), last }
        });
        self.answer(page, at)
    }

    async fn forget(&self, key: &ResourceKey, revision: Revision, _idle_ttl: Duration) -> Result<bool, StoreError> {
        let answer = self.client.ask(txn::forget(&self.client.keys, key, revision)).await?;
        Ok(answer.response.succeeded())
    }

    async fn count(&self) -> Result<Option<usize>, StoreError> {
        let answer = self.client.ask(txn::count(&self.client.keys)).await?;
        let count = txn::last_get(&answer.response).ok_or(StoreError::Unavailable)?.count();
        Ok(Some(usize::try_from(count).unwrap_or_default()))
    }

    /// Takes the turn to read all records, unless another process has since the last one that was seen.
    async fn takes_turn(&self, interval: Duration) -> bool {
        let mut last = self.last_turn.lock().await;
        if last.tried.elapsed() < interval {
            return false;
        }
        last.tried = Instant::now();
        let next = txn::put_next(&self.client.keys.collected(), last.revision, "");
        let Ok(answer) = self.client.ask(next).await else { return false };
        let is_ours = answer.response.succeeded();
        let others = txn::last_get(&answer.response);
        let others = others.and_then(|got| got.kvs().first().map(|pair| txn::revision(pair.mod_revision())));
        last.revision = if is_ours { answer.at } else { others.unwrap_or_default() };
        is_ours
    }

    async fn raise(&self, buckets: RangeInclusive<u16>) -> Result<(), StoreError> {
        self.client.ask(txn::raise(&self.client.keys, buckets)).await.map(drop)
    }

    async fn changed(&self, key: &ResourceKey, seen: Revision) {
        if let Ok(None) = timeout(WATCH_MAX, self.event(key, seen)).await {
            sleep(WATCH_FAILED_PAUSE).await;
        }
    }
}
