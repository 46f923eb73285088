//! Telling of changes, for a store that writes some of them down.

use std::convert::Infallible;

use crate::core::{
    record::{Record, Snapshot},
    resource::ResourceKey,
    time::StoreTime,
};

/// Who is told of every change, under the lock of its record, so that the order of the telling is that of the changes.
pub trait Journal: Send + Sync {
    /// What a change waits for before it is in force.
    type Entry: Clone + Send + Sync;

    /// A record is about to take the place of another, which was put in at that moment, or of none. What it has to wait
    /// for, if for anything.
    fn swaps(&self, key: &ResourceKey, before: Option<(&Record, StoreTime)>, after: &Snapshot) -> Option<Self::Entry>;

    /// Whether the change is written down, as soon as that is known. Where it is not, it has not happened.
    fn outcome(entry: &Self::Entry) -> Option<bool>;

    /// Waits until that is known.
    fn ended(entry: &Self::Entry) -> impl Future<Output = ()> + Send;

    /// An idle record was forgotten.
    fn forgotten(&self, key: &ResourceKey, record: &Record);
}

/// Nobody.
pub struct NoJournal;

impl Journal for NoJournal {
    type Entry = Infallible;

    fn swaps(
        &self,
        _key: &ResourceKey,
        _before: Option<(&Record, StoreTime)>,
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

    fn forgotten(&self, _key: &ResourceKey, _record: &Record) {}
}
