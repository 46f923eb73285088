//! Removing a container removes all blobs in it, which their records do not tell.
//!
//! So the store has one record more for each upstream, whose revision grows with each removal: what memory says of a blob
//! counts only if the blob was touched since. It is one for all containers, because a blob's name does not tell which
//! part of it is that of a container; after a removal the backend is asked once for each blob that is written.

use crate::{
    core::{
        policy::{Require, Writers},
        record::Snapshot,
        refusal::Refusal,
        resource::ResourceKey,
    },
    guard::{answer::Answer, knowledge::Knowledge, refusals::of_store, request::Request},
};

impl Knowledge {
    /// Notes that blobs may be gone: before a container is removed, and after it may have been.
    pub(crate) async fn note_removal(&self, request: &Request) -> Result<(), Refusal> {
        let key = ResourceKey::of_collections(&request.upstream().identity);
        let note = |seen: &Snapshot| Some(seen.record.clone().resolved(seen.revision));
        self.records.update(&key, None, note).await.map(drop).map_err(|error| of_store(&error))
    }

    /// Whether what memory says of a resource may be older than the removal of the container that it was in.
    pub(crate) async fn may_be_removed(&self, request: &Request, snapshot: &Snapshot) -> bool {
        let conditions = &request.conditions;
        let asks_memory = !conditions.is_empty() || request.rules().require != Require::Never;
        if !request.rules().quirks.removes_trees || request.rules().writers == Writers::Shared || !asks_memory {
            return false;
        }
        let key = ResourceKey::of_collections(&request.upstream().identity);
        // Where the store does not say, the backend does.
        self.snapshot(&key).await.map_or(true, |noted| snapshot.touched() < noted.revision)
    }
}

/// Whether a removal has certainly not begun.
pub(crate) fn has_removed_nothing(answer: &Result<Answer, Answer>) -> bool {
    match answer {
        Ok(Answer::Relayed(relayed)) | Err(Answer::Relayed(relayed)) => relayed.head.status.is_client_error(),
        Ok(Answer::Refused(refusal)) | Err(Answer::Refused(refusal)) => !refusal.in_doubt,
        _ => false,
    }
}
