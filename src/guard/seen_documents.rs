//! Short documents about the states of resources, which services have seen or made.
//!
//! A document counts only for the version that it was taken from. So a record with another version outdates it, no
//! matter which process has made that version.

use bytes::Bytes;
use moka::sync::Cache;

use super::{Guard, Request};
use crate::core::{
    records::record::Snapshot,
    resource::KeyDigest,
    tags::{entity_tag::EntityTag, issued_tag::is_tag_of_version},
};

/// The size of all documents, in bytes. It has room for about 50,000 messages of queues. What has no room is read again.
const BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The size of an entry without its document, in bytes.
const ENTRY_BYTES: usize = 128;

/// The documents, with the tags of their states.
pub(super) struct SeenDocuments(Cache<KeyDigest, (EntityTag, Bytes)>);

impl Default for SeenDocuments {
    fn default() -> Self {
        let weight = |_key: &KeyDigest, (tag, document): &(EntityTag, Bytes)| {
            u32::try_from(ENTRY_BYTES + tag.opaque().len() + document.len()).unwrap_or(u32::MAX)
        };
        Self(Cache::builder().weigher(weight).max_capacity(BYTES_MAX).build())
    }
}

impl Guard {
    /// Remembers what a service has seen of the state with this tag.
    pub(crate) fn note_seen(&self, request: &Request, tag: EntityTag, document: Bytes) {
        self.progress.seen.0.insert(request.key.digest(), (tag, document));
    }

    /// Returns the document of the state that the record shows, with the tag of that state. `None` if it is not known,
    /// or while a write is in flight.
    pub(crate) fn seen(&self, request: &Request, snapshot: &Snapshot) -> Option<(EntityTag, Bytes)> {
        let incarnation = self.knowledge.records.incarnation().0;
        let is_current = |tag: &EntityTag| is_tag_of_version(incarnation, snapshot.version(), tag);
        let seen = self.progress.seen.0.get(&request.key.digest())?;
        (snapshot.has_no_pending_writes() && is_current(&seen.0)).then_some(seen)
    }
}
