//! The PostgreSQL store: shared by any number of processes, as durable as the database that is there already.
//!
//! # Design
//!
//! *What does it promise?* What this PostgreSQL acknowledges, it keeps: a connection is refused if `synchronous_commit`
//! or `fsync` is off, or if the server is a standby. With a synchronous standby the loss of a server loses nothing.
//! Without one, a failover may lose the last writes. The store detects that if it can: each answer carries the last
//! number of the sequence, and once that is smaller than a revision seen before, all operations fail (module `epoch`).
//!
//! *Why a sequence?* A rollback returns none of its numbers, and no lock is held until the end of a transaction. Two
//! swaps of different records may end in another order than their revisions have. No two revisions of one record do,
//! since each is drawn while the record is locked.
//!
//! *Why is a floor locked while a record is made?* A statement reads a floor as it was when the statement began. The
//! lock returns its last state, and keeps it until the record is there.
//!
//! *Why two statements for a swap?* Most swaps travel alone, and change a record that is there. A plain update does that
//! with half of the work. If it finds nothing to change, and for several swaps, there is the larger one.
//!
//! *Whose time is it?* It is the server's time, `clock_timestamp()`: one clock for all processes. It is a wall clock,
//! and a step of it moves every end.
//!
//! *Why is each change announced?* So that waiting callers need not poll. Notifications may be lost, so a wait ends
//! after a second, and the record is read again.

mod client;
mod rows;
mod session;
mod statements;

use std::{ops::RangeInclusive, sync::Arc, time::Duration};

use tokio_postgres::{Row, types::ToSql};

use self::{client::PostgresClient, rows::signed, statements::Ask};
use super::{
    batch::{Carrier, Swaps},
    engine::{Engine, EngineAnswer, KeptText, KeyRange, Swap, SwapOutcome, TextPage},
    store::SharedStore,
    waiters::Waiters,
};
use crate::{
    config,
    core::{records::record::Revision, resource::ResourceKey, time::StoreTime},
    entropy::random_u64,
    store::{Incarnation, OpenError, StoreError, encoding::milliseconds},
};

/// Records in PostgreSQL.
pub type PostgresStore = SharedStore<PostgresEngine>;

/// A PostgreSQL as an engine.
pub struct PostgresEngine {
    client: Arc<PostgresClient>,
    swaps: Swaps,
    waiters: Waiters,
}

impl PostgresStore {
    /// Connects to the store in this PostgreSQL, and makes its tables if they are missing. The first process to start
    /// draws the incarnation.
    ///
    /// # Errors
    ///
    /// The store cannot be reached, it may lose what it acknowledges, or a file that it requires cannot be read.
    pub async fn connect(settings: &config::Postgres, common: &config::StoreSettings) -> Result<Self, OpenError> {
        let drawn = Incarnation(random_u64()?);
        let (client, kept) = PostgresClient::connect(settings, common.timeout, &drawn.to_string()).await?;
        let client = Arc::new(client);
        let swaps = Swaps::start(&client, common.timeout);
        let engine = PostgresEngine { client, swaps, waiters: Waiters::default() };
        Self::start(engine, ("store.incarnation", Some(kept)), common).await
    }
}

impl Carrier for PostgresClient {
    async fn carry_out(&self, swaps: Vec<Swap>) -> Result<Vec<EngineAnswer<SwapOutcome>>, StoreError> {
        let mut was_repeated = false;
        // No record has the revision zero, so that is an absent one.
        if let [swap] = swaps.as_slice()
            && swap.expected != Revision::default()
        {
            let (digest, key, idle_from) = (swap.key.digest(), swap.key.as_str(), swap.idle_from.map(time));
            let values: [&(dyn ToSql + Sync); 6] =
                [&digest.as_slice(), &key, &signed(swap.expected.0), &swap.text, &idle_from, &self.channel];
            let reply = self.ask(Ask::Update, &values).await?;
            if let Some(row) = reply.rows.first() {
                return Ok(vec![rows::swapped(row, swap, reply.is_repeated)?]);
            }
            was_repeated = reply.is_repeated;
        }
        let digests: Vec<_> = swaps.iter().map(|swap| swap.key.digest()).collect();
        let digests: Vec<&[u8]> = digests.iter().map(<[u8; 16]>::as_slice).collect();
        let keys: Vec<&str> = swaps.iter().map(|swap| swap.key.as_str()).collect();
        let buckets: Vec<i32> = swaps.iter().map(|swap| i32::from(swap.key.bucket())).collect();
        let expected: Vec<i64> = swaps.iter().map(|swap| signed(swap.expected.0)).collect();
        let records: Vec<&str> = swaps.iter().map(|swap| swap.text.as_str()).collect();
        let idle: Vec<Option<i64>> = swaps.iter().map(|swap| swap.idle_from.map(time)).collect();
        let may_create: Vec<bool> = swaps.iter().map(|swap| swap.may_create).collect();
        let values: [&(dyn ToSql + Sync); 8] =
            [&digests, &keys, &buckets, &expected, &records, &idle, &may_create, &self.channel];
        let reply = self.ask(Ask::Swap, &values).await?;
        let answer = |(row, swap)| rows::swapped(row, swap, reply.is_repeated || was_repeated);
        reply.rows.iter().zip(&swaps).map(answer).collect()
    }
}

impl PostgresEngine {
    /// Returns the only row that a statement returns.
    async fn row(&self, ask: Ask, values: &[&(dyn ToSql + Sync)]) -> Result<Row, StoreError> {
        self.client.ask(ask, values).await?.rows.pop().ok_or(StoreError::Unavailable)
    }
}

impl Engine for PostgresEngine {
    /// A statement takes some milliseconds for these.
    const RAISED_AT_ONCE: u16 = 1_024;

    async fn now(&self) -> Result<EngineAnswer<()>, StoreError> {
        rows::clock(&self.row(Ask::Clock, &[]).await?)
    }

    async fn read(&self, key: &ResourceKey) -> Result<EngineAnswer<KeptText>, StoreError> {
        let (digest, bucket) = (key.digest(), i32::from(key.bucket()));
        rows::kept(&self.row(Ask::Read, &[&digest.as_slice(), &bucket]).await?)
    }

    async fn swap(&self, swap: Swap) -> Result<EngineAnswer<SwapOutcome>, StoreError> {
        self.swaps.carry_out(swap).await
    }

    async fn page(&self, selection: KeyRange<'_>, limit: usize) -> Result<EngineAnswer<TextPage>, StoreError> {
        let (KeyRange { prefix, after }, most) = (selection, signed(limit as u64));
        let reply = if prefix.is_empty() {
            let after = after.map(|key| key.digest().to_vec()).unwrap_or_default();
            self.client.ask(Ask::Page, &[&after, &most]).await?
        } else {
            self.client.ask(Ask::Below, &[&prefix, &after.map_or(prefix, ResourceKey::as_str), &most]).await?
        };
        rows::page(&reply.rows, limit)
    }

    async fn aged(
        &self,
        after: Option<&ResourceKey>,
        limit: usize,
        idle_ttl: Duration,
    ) -> Result<Option<Vec<ResourceKey>>, StoreError> {
        let after = after.map(|key| key.digest().to_vec()).unwrap_or_default();
        let values: [&(dyn ToSql + Sync); 3] = [&after, &signed(milliseconds(idle_ttl)), &signed(limit as u64)];
        let aged = self.client.ask(Ask::Aged, &values).await?;
        aged.rows.iter().map(rows::key).collect::<Result<_, _>>().map(Some)
    }

    async fn forget(&self, key: &ResourceKey, _revision: Revision, idle_ttl: Duration) -> Result<bool, StoreError> {
        let (digest, bucket) = (key.digest(), i32::from(key.bucket()));
        let values: [&(dyn ToSql + Sync); 3] = [&digest.as_slice(), &bucket, &signed(milliseconds(idle_ttl))];
        Ok(!self.client.ask(Ask::Forget, &values).await?.rows.is_empty())
    }

    async fn count(&self) -> Result<Option<usize>, StoreError> {
        let count: i64 = rows::column(&self.row(Ask::Count, &[]).await?, 0)?;
        Ok(Some(usize::try_from(count).unwrap_or_default()))
    }

    async fn raise(&self, buckets: RangeInclusive<u16>) -> Result<(), StoreError> {
        let (first, last) = (i32::from(*buckets.start()), i32::from(*buckets.end()));
        self.client.ask(Ask::Raise, &[&first, &last]).await.map(drop)
    }

    async fn changed(&self, key: &ResourceKey, seen: Revision) {
        self.waiters.wait(self, key, seen).await;
    }

    async fn listen(&self) {
        self.waiters.listen_to(&*self.client).await;
    }
}

/// A time as the tables hold it.
fn time(time: StoreTime) -> i64 {
    signed(time.milliseconds())
}
