//! The records of an engine as this process sees them: decoded, and only as long as the engine loses none.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use tokio::sync::Notify;

use super::{
    decoded,
    engine::{Engine, EngineAnswer, KeptText, KeyRange, TextPage},
    epoch::Epoch,
    first_seen::FirstSeen,
};
use crate::{
    config::StoreSettings,
    core::{
        records::record::{Record, Revision, Snapshot},
        resource::ResourceKey,
        time::StoreTime,
    },
    store::{StoreError, encoding::Label},
};

/// The records of an engine.
pub(super) struct EngineRecords<E> {
    pub(super) engine: E,
    pub(super) capacity: usize,
    pub(super) idle_ttl: Duration,
    /// Notified when a swap was refused for lack of room.
    pub(super) is_full: Notify,
    epoch: Epoch,
    /// The times that moments count from, if each process keeps the store's time itself.
    sights: Option<FirstSeen>,
    /// The number of records at the last count, updated by those that this process has created and forgotten since.
    counted: AtomicUsize,
}

/// A record that was read, with the label of its writer.
pub(super) type Labelled = (Snapshot, Option<Label>);

impl<E: Engine> EngineRecords<E> {
    pub(super) fn new(engine: E, settings: &StoreSettings) -> Self {
        Self {
            engine,
            capacity: settings.capacity,
            idle_ttl: settings.idle_ttl,
            is_full: Notify::new(),
            epoch: Epoch::default(),
            sights: E::HAS_OWN_TIME.then(|| FirstSeen::new(settings.capacity)),
            counted: AtomicUsize::new(0),
        }
    }

    /// Returns the revision that the engine has reached, for [`Self::accept`]. Fails if it is known to have lost one.
    pub(super) fn reached(&self) -> Result<Revision, StoreError> {
        self.epoch.reached()
    }

    /// Returns what an answer holds, and the store's time. Fails if the engine has lost a revision that it had `reached`
    /// before it was asked.
    pub(super) fn accept<T>(&self, reached: Revision, answer: EngineAnswer<T>) -> Result<(T, StoreTime), StoreError> {
        let EngineAnswer { found, now, told } = answer;
        if let Some(told) = told {
            self.epoch.accept(reached, told)?;
        }
        Ok((found, now))
    }

    /// Returns the revision that a record has reached, for [`Self::accept_record`].
    pub(super) fn record_reached(&self, key: &ResourceKey) -> Revision {
        self.epoch.record_reached(key)
    }

    /// Notes the revision of a record from an answer. Fails if the engine has lost what the record had `reached` before it
    /// was asked.
    pub(super) fn accept_record(
        &self,
        key: &ResourceKey,
        reached: Revision,
        found: Revision,
    ) -> Result<(), StoreError> {
        self.epoch.accept_record(key, reached, found)
    }

    pub(super) async fn now(&self) -> Result<StoreTime, StoreError> {
        let reached = self.reached()?;
        self.accept(reached, self.engine.now().await?).map(|((), now)| now)
    }

    pub(super) async fn read(&self, key: &ResourceKey) -> Result<Labelled, StoreError> {
        let (reached, record) = (self.reached()?, self.record_reached(key));
        let (kept, now) = self.accept(reached, self.engine.read(key).await?)?;
        self.accept_record(key, record, kept.revision)?;
        self.decoded(key, kept, now)
    }

    /// Returns the records of a page, and its last resource, if there may be more after it. Damaged records are left out,
    /// and logged.
    pub(super) async fn page(
        &self,
        selection: KeyRange<'_>,
        limit: usize,
    ) -> Result<(Vec<(ResourceKey, Labelled)>, Option<ResourceKey>), StoreError> {
        let reached = self.reached()?;
        let (TextPage { records, last }, now) = self.accept(reached, self.engine.page(selection, limit).await?)?;
        let record = |(key, kept): (ResourceKey, KeptText)| {
            let labelled = self.decoded(&key, kept, now).ok()?;
            Some((key, labelled))
        };
        Ok((records.into_iter().filter_map(record).collect(), last))
    }

    /// Returns the time that the moments of a record count from when it is written.
    pub(super) async fn base(&self) -> Result<StoreTime, StoreError> {
        if E::HAS_OWN_TIME { self.now().await } else { Ok(StoreTime::default()) }
    }

    /// Reads the kept text of a resource. A damaged record is logged.
    pub(super) fn decoded(&self, key: &ResourceKey, kept: KeptText, now: StoreTime) -> Result<Labelled, StoreError> {
        let KeptText { revision, text } = kept;
        let Some(text) = text else {
            self.forget_sight(key);
            return Ok((Snapshot::new(revision, Record::absent(revision), now), None));
        };
        let base = self.sights.as_ref().map_or(StoreTime::default(), |sights| sights.base(key, revision, now));
        let (record, label) = decoded(key, &text, base)?;
        Ok((self.snapshot(key, revision, record, (base, now)), label))
    }

    /// Returns a record with this revision, whose moments were counted from `base`.
    pub(super) fn snapshot(
        &self,
        key: &ResourceKey,
        revision: Revision,
        record: Record,
        (base, now): (StoreTime, StoreTime),
    ) -> Snapshot {
        if let Some(sights) = &self.sights {
            sights.note(key, revision, base, &record);
        }
        Snapshot::new(revision, record.resolved(revision), now)
    }

    fn forget_sight(&self, key: &ResourceKey) {
        if let Some(sights) = &self.sights {
            sights.forget(key);
        }
    }

    /// True if there is room for another record.
    pub(super) fn has_room(&self) -> bool {
        self.counted.load(Ordering::Relaxed) < self.capacity
    }

    /// Counts the records, unless the engine itself refuses what has no room.
    pub(super) async fn count(&self) -> Result<Option<usize>, StoreError> {
        let counted = self.engine.count().await?;
        self.counted.store(counted.unwrap_or_default(), Ordering::Relaxed);
        Ok(counted)
    }

    /// Counts a record that was created.
    pub(super) fn created(&self) {
        self.counted.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that a record was forgotten.
    pub(super) fn forgotten(&self, key: &ResourceKey) {
        self.forget_sight(key);
        let _ = self.counted.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |counted| counted.checked_sub(1));
    }
}
