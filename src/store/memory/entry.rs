//! A record in its place.

use std::sync::Arc;

use crate::core::{
    record::{Record, Revision, Snapshot},
    time::StoreTime,
};

/// A record in its place.
pub(super) struct MemoryEntry {
    pub(super) revision: Revision,
    pub(super) record: Arc<Record>,
    /// The time when the record was last written or became idle.
    pub(super) since: StoreTime,
}

impl MemoryEntry {
    /// The record as it is read at this time.
    pub(super) fn snapshot(&self, now: StoreTime) -> Snapshot {
        Snapshot::new(self.revision, Arc::clone(&self.record), now)
    }
}
