//! Removals of containers. Each one removes all blobs in the container, but the records of the blobs do not show it.
//!
//! So the store keeps one more record for each upstream, and its revision grows with each removal. Memory counts for
//! a blob only if the blob was touched after the last removal. All containers share that record, because a blob's
//! name does not show which part of it names the container. After a removal the proxy asks the backend once for each
//! blob that is written.

use crate::{
    core::{policy::Require, record::Snapshot, refusal::Refusal, resource::ResourceKey},
    guard::{
        answer::{Answer, Halt},
        knowledge::Knowledge,
        refusals::of_store,
        request::Request,
    },
};

impl Knowledge {
    /// Notes that blobs may be gone, both before a container is removed and after it may have been removed.
    pub(crate) async fn note_removal(&self, request: &Request) -> Result<(), Refusal> {
        let key = ResourceKey::of_collections(&request.upstream().identity);
        let note = |seen: &Snapshot| Some(seen.draft());
        self.records.update(&key, None, note).await.map(drop).map_err(|error| of_store(&error))
    }

    /// Whether the memory of a resource may be older than the removal of its container.
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

/// Whether an answer proves that the removal has not begun.
pub(crate) fn has_removed_nothing(answer: &Result<Answer, Halt>) -> bool {
    match answer {
        Ok(Answer::Relayed(relayed)) | Err(Halt::Denied(relayed)) => relayed.head.status.is_client_error(),
        Err(Halt::Refused(refusal)) => !refusal.in_doubt,
        _ => false,
    }
}
