//! The reporting of changes, for a store that writes some of them down.

use std::{convert::Infallible, sync::Arc};

use crate::core::{
    records::{
        owed::Owed,
        record::{Record, Snapshot},
    },
    resource::ResourceKey,
    time::StoreTime,
};

/// The receiver of all changes. It is called under the lock of the record, so calls come in the order of the changes.
pub trait Journal: Send + Sync {
    /// The entry that a change waits for before it is in force.
    type Entry: Clone + Send + Sync;

    /// Reports that a record is about to replace another one, with the time when that was put in, or none. Returns the
    /// entry that the change must wait for, if any.
    fn swaps(
        &self,
        key: &ResourceKey,
        before: Option<(&Arc<Record>, StoreTime)>,
        after: &Snapshot,
    ) -> Option<Self::Entry>;

    /// Returns whether the change is written down, as soon as that is known. If it is not, the change has not happened.
    fn outcome(entry: &Self::Entry) -> Option<bool>;

    /// Waits until the outcome is known.
    fn ended(entry: &Self::Entry) -> impl Future<Output = ()> + Send;

    /// Returns whether a change that must be written down could be, now.
    fn try_out(&self) -> impl Future<Output = bool> + Send;

    /// Notes what the writes of this process leave from now on, besides what its earlier ones do. Returns whether that
    /// is written down.
    fn owe(&self, owed: Owed, now: StoreTime) -> impl Future<Output = bool> + Send;

    /// Ends the journal, after the last change.
    fn close(&self, has_no_pending_writes: bool, now: StoreTime) -> impl Future<Output = ()> + Send;

    /// Reports that an idle record was forgotten.
    fn forgotten(&self, key: &ResourceKey, record: &Record);
}

/// A journal that ignores all changes.
pub struct NoJournal;

impl Journal for NoJournal {
    type Entry = Infallible;

    fn swaps(
        &self,
        _key: &ResourceKey,
        _before: Option<(&Arc<Record>, StoreTime)>,
        _after: &Snapshot,
    ) -> Option<Infallible> {
        None
    }

    fn outcome(entry: &Infallible) -> Option<bool> {
        match *entry {}
    }

    async fn ended(entry: &Infallible) {
        match *entry {}
    }

    /// Changes in memory cannot fail, and need not be durable.
    async fn try_out(&self) -> bool {
        true
    }

    /// Its records end with the process.
    async fn owe(&self, _owed: Owed, _now: StoreTime) -> bool {
        true
    }

    async fn close(&self, _has_no_pending_writes: bool, _now: StoreTime) {}

    fn forgotten(&self, _key: &ResourceKey, _record: &Record) {}
}
