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
//! *Whose time is it?* It is the server's time, `clock_timestamp()`: one clock for all processes. It is a wall clock,
//! and a step of it moves every end.
//!
//! *Why is each change announced?* So that waiting callers need not poll. Notifications may be lost, so a wait ends
//! after a second, and the record is read again.

mod client;
mod collect;
mod rows;
mod session;
mod statements;
mod swaps;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use tokio::task::JoinSet;

use self::{
    client::PostgresClient,
    rows::{FoundRow, Moment, PageRow, moment, signed},
    session::unusable,
    statements::Ask,
    swaps::Swap,
};
use super::{
    batch::Swaps,
    collect::{CollectLimits, Collects as _},
    decoded,
    epoch::Epoch,
    labels::Labels,
    waiters::Waiters,
};
use crate::{
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

/// Records in PostgreSQL.
pub struct PostgresStore {
    shared: Arc<PostgresShared>,
    swaps: Swaps<PostgresClient>,
    incarnation: Incarnation,
    labels: Labels,
    /// The tasks that use what is shared. They end with the store.
    _background: JoinSet<()>,
}

struct PostgresShared {
    engine: Arc<PostgresClient>,
    limits: CollectLimits,
    epoch: Epoch,
    waiters: Waiters,
    /// The number of records at the last count, updated by those that this process has created and forgotten since.
    records: AtomicUsize,
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
        let (engine, kept) = PostgresClient::connect(settings, common.timeout, &drawn.to_string()).await?;
        let incarnation = u64::from_str_radix(&kept, 16).map(Incarnation);
        let shared = Arc::new(PostgresShared {
            engine: Arc::new(engine),
            limits: CollectLimits::of(common),
            epoch: Epoch::default(),
            waiters: Waiters::default(),
            records: AtomicUsize::new(0),
        });
        shared.count().await.map_err(unusable)?;
        let (mut background, listener) = (JoinSet::new(), Arc::clone(&shared));
        background.spawn(super::collect::run(Arc::clone(&shared)));
        background.spawn(async move { listener.waiters.listen_to(&*listener.engine).await });
        Ok(Self {
            swaps: Swaps::start(&shared.engine, common.timeout),
            shared,
            incarnation: incarnation.map_err(|_foreign| OpenError::Damaged("store.incarnation".to_owned()))?,
            labels: Labels::new()?,
            _background: background,
        })
    }

    /// Forgets the records that have been idle for `idle_ttl`, and returns their number.
    pub async fn collect(&self, idle_ttl: Duration) -> Result<usize, StoreError> {
        self.shared.collect(idle_ttl, usize::MAX).await
    }
}

impl PostgresShared {
    /// Notes the time of an answer. Fails if the store has lost a revision that was seen before.
    fn accept(&self, reached: Revision, at: Moment, seen: Revision) -> Result<StoreTime, StoreError> {
        self.epoch.accept_seen(reached, at.last, seen)?;
        Ok(at.now)
    }

    async fn look(&self, key: &ResourceKey) -> Result<(Snapshot, Option<Label>), StoreError> {
        let reached = self.epoch.reached()?;
        let (digest, bucket) = (key.digest(), i32::from(key.bucket()));
        let reply = self.engine.ask(Ask::Read, &[&digest.as_slice(), &bucket]).await?;
        let row = reply.rows.first().ok_or(StoreError::Unavailable)?;
        let FoundRow { record, floor, at } = FoundRow::read(row).ok_or(StoreError::Unavailable)?;
        let now = self.accept(reached, at, record.map_or(floor, |(revision, _)| revision))?;
        match record {
            Some((revision, text)) => decoded(key, revision, text.as_bytes(), StoreTime::default(), now),
            None => Ok((Snapshot::new(floor, Record::absent(floor), now), None)),
        }
    }
}

#[async_trait]
impl Store for PostgresStore {
    fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    async fn now(&self) -> Result<StoreTime, StoreError> {
        let reached = self.shared.epoch.reached()?;
        let reply = self.shared.engine.ask(Ask::Clock, &[]).await?;
        let at = reply.rows.first().and_then(|row| moment(row, 0)).ok_or(StoreError::Unavailable)?;
        self.shared.accept(reached, at, Revision::default())
    }

    async fn read(&self, key: &ResourceKey) -> Result<Snapshot, StoreError> {
        Ok(self.shared.look(key).await?.0)
    }

    async fn swap(&self, key: &ResourceKey, expected: Revision, next: Record) -> Result<Swapped, StoreError> {
        let (shared, label) = (&self.shared, self.labels.next());
        let record = encoding::encode_labelled(&next, StoreTime::default(), Some(label.clone()));
        let (bytes, may_create) = (record.len(), shared.records.load(Ordering::Relaxed) < shared.limits.capacity);
        let swap = Swap {
            digest: key.digest(),
            key: key.as_str().to_owned(),
            bucket: key.bucket(),
            expected,
            record,
            idle_from: next.idle_from(),
            may_create,
        };
        let reached = shared.epoch.reached()?;
        let answer = self.swaps.carry_out(key, swap, bytes).await?;
        let now = shared.accept(reached, answer.at, answer.revision.unwrap_or_default())?;
        if let Some(revision) = answer.revision {
            shared.records.fetch_add(usize::from(answer.is_new), Ordering::Relaxed);
            return Ok(Swapped::Done(Snapshot::new(revision, next.resolved(revision), now)));
        }
        if answer.was_absent && !may_create {
            shared.limits.is_full.notify_one();
            return Err(StoreError::Full);
        }
        let found = match (answer.other, answer.other_text) {
            (Some(revision), Some(text)) => decoded(key, revision, text.as_bytes(), StoreTime::default(), now)?,
            (Some(floor), None) => (Snapshot::new(floor, Record::absent(floor), now), None),
            (None, _) => shared.look(key).await?,
        };
        match found {
            // An earlier attempt was carried out, and its answer was lost.
            (snapshot, Some(written)) if written == label => Ok(Swapped::Done(snapshot)),
            // An earlier attempt may have been carried out before others changed the record: that cannot be determined.
            _ if answer.is_repeated => Err(StoreError::Unavailable),
            (snapshot, _) => Ok(Swapped::Conflict(snapshot)),
        }
    }

    async fn scan(&self, after: Option<&ResourceKey>, limit: usize) -> Result<Scanned, StoreError> {
        let (mut scanned, mut after) = (Scanned::new(), after.map(|key| key.digest().to_vec()).unwrap_or_default());
        loop {
            let wanted = limit - scanned.len();
            let reached = self.shared.epoch.reached()?;
            let rows = self.shared.engine.ask(Ask::Page, &[&after, &signed(wanted as u64)]).await?.rows;
            for row in &rows {
                let PageRow { key, revision, text, at } = PageRow::read(row).ok_or(StoreError::Unavailable)?;
                let now = self.shared.accept(reached, at, revision)?;
                let read = decoded(&key, revision, text.as_bytes(), StoreTime::default(), now);
                scanned.extend(read.ok().map(|(snapshot, _)| (key, snapshot)));
            }
            let Some(last) = rows.last().filter(|_| scanned.len() < limit && rows.len() == wanted) else {
                return Ok(scanned);
            };
            after = last.try_get(0).map_err(|_damaged| StoreError::Unavailable)?;
        }
    }

    async fn changed(&self, key: &ResourceKey, seen: Revision) {
        let is_same = async { !self.shared.look(key).await.is_ok_and(|(current, _)| current.revision != seen) };
        self.shared.waiters.wait(key, is_same).await;
    }

    async fn raise_floors(&self) -> Result<(), StoreError> {
        /// The number of buckets in one statement, which takes some milliseconds.
        const RANGE: u16 = 1_024;
        for first in (0..=u16::MAX).step_by(usize::from(RANGE)) {
            self.shared.engine.ask(Ask::Raise, &[&i32::from(first), &i32::from(first + (RANGE - 1))]).await?;
        }
        Ok(())
    }
}
