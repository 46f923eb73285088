//! Telling of changes, for a store that writes some of them down.

use crate::core::{
    record::{Record, Snapshot},
    resource::ResourceKey,
};

/// Who is told of every change, under the lock of its record, so that the order of the telling is that of the changes.
pub trait Journal: Send + Sync {
    /// What whoever swapped has to wait for.
    type Entry: Send;

    /// A record took the place of another, or of none.
    fn swapped(&self, key: &ResourceKey, before: Option<&Record>, after: &Snapshot) -> Self::Entry;

    /// An idle record was forgotten.
    fn forgotten(&self, key: &ResourceKey, record: &Record);
}

/// Nobody.
pub struct NoJournal;

impl Journal for NoJournal {
    type Entry = ();

    fn swapped(&self, _key: &ResourceKey, _before: Option<&Record>, _after: &Snapshot) {}

    fn forgotten(&self, _key: &ResourceKey, _record: &Record) {}
}
