//! Removals of collections. Each one removes all resources in the collection, but their records do not show it.
//!
//! So the store keeps one more record for each upstream, and its revision grows with each removal. Memory counts for
//! a resource only if it was touched after the last removal. All collections share that record, because a resource's
//! name does not show which part of it names the collection. After a removal the proxy asks the backend once for each
//! resource that is written.

use crate::{
    core::{policy::Require, records::record::Snapshot, refusal::Refusal, resource::ResourceKey},
    guard::{knowledge::Knowledge, refusals::of_store, request::Request},
};

impl Knowledge {
    /// Notes that resources may be gone, both before a collection is removed and after it may have been removed.
    pub(crate) async fn note_removal(&self, request: &Request) -> Result<(), Refusal> {
        let key = ResourceKey::of_collections(&request.upstream().identity);
        let note = |seen: &Snapshot| Some(seen.draft());
        self.records.update(&key, None, note).await.map(drop).map_err(|error| of_store(&error))
    }

    /// Whether the memory of a resource may be older than the removal of its collection.
    pub(crate) async fn may_be_removed(&self, request: &Request, snapshot: &Snapshot) -> bool {
        let conditions = &request.conditions;
        let asks_memory = !conditions.is_empty() || request.rules().require != Require::Never;
        if !request.rules().quirks.removes_trees || request.rules().other_writers || !asks_memory {
            return false;
        }
        let key = ResourceKey::of_collections(&request.upstream().identity);
        // If the store cannot be read, the backend decides.
        self.snapshot(&key).await.map_or(true, |noted| snapshot.touched() < noted.revision)
    }
}
