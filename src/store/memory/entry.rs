//! A record in its place.

use std::sync::Arc;

use super::room::RecordPlaces;
use crate::core::{
    records::record::{Record, Revision, Snapshot},
    time::StoreTime,
};

/// A record in its place.
#[derive(Clone)]
pub(super) struct MemoryEntry {
    pub(super) revision: Revision,
    pub(super) record: Arc<Record>,
    /// The time when the record was last written or became idle.
    pub(super) since: StoreTime,
    /// The weight of the record and its key, in bytes.
    pub(super) bytes: u64,
}

impl MemoryEntry {
    /// The place that the record takes.
    pub(super) const fn places(&self) -> RecordPlaces {
        RecordPlaces::one(self.bytes)
    }

    /// The record as it is read at this time.
    pub(super) fn snapshot(&self, now: StoreTime) -> Snapshot {
        Snapshot::new(self.revision, Arc::clone(&self.record), now)
    }
}
