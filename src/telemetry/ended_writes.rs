//! The last writes and lease operations on guarded resources, for an operator who looks at one resource.
//!
//! # Design
//!
//! *What does it cost a request?* Each thread has a list of its own, under the lock that it takes to count the request. A
//! write is added to that list, and a read is not.
//!
//! *Why are refusals left out?* The [log of refusals](super::refusal_log) has them, with their reasons.

use std::{collections::VecDeque, time::SystemTime};

use http::Method;

use super::{access::AccessEntry, decision::Decision, stream_info::RequestClient};
use crate::core::resource::ResourceKey;

/// The number of writes in the list of one thread.
const WRITES_MAX: usize = 256;

/// The longest key that is kept, in bytes, so that the lists of all threads take at most 5 MiB.
const KEY_BYTES_MAX: usize = 1024;

/// A write or a lease operation that was not refused.
#[derive(Clone, Debug)]
pub struct EndedWrite {
    /// The resource.
    pub key: ResourceKey,
    /// The time at which the request ended.
    pub at: SystemTime,
    /// The method of the request.
    pub method: Method,
    /// The status of the answer, 0 if there was none.
    pub status: u16,
    /// The decision about the request.
    pub verdict: Option<Decision>,
    /// The version that the write made, if it was applied.
    pub version: Option<u64>,
    /// The client that sent the request.
    pub client: RequestClient,
}

/// The last writes of one thread, the oldest first.
#[derive(Debug, Default)]
pub(super) struct EndedWrites(VecDeque<EndedWrite>);

impl EndedWrites {
    /// Keeps a request if it is a write on a guarded resource and was not refused. The oldest one makes room for it.
    pub(super) fn note(&mut self, entry: &AccessEntry, method: &Method, status: u16) {
        let Some(key) = entry.key.as_ref().filter(|key| key.as_str().len() <= KEY_BYTES_MAX) else { return };
        if entry.refused.is_some() || method.is_safe() {
            return;
        }
        if self.0.len() >= WRITES_MAX {
            self.0.pop_front();
        }
        self.0.push_back(EndedWrite {
            key: key.clone(),
            at: SystemTime::now(),
            method: method.clone(),
            status,
            verdict: entry.verdict,
            version: entry.info.as_ref().and_then(|info| info.version()),
            client: entry.client(),
        });
    }

    /// Returns the writes of a resource.
    pub(super) fn of(&self, key: &ResourceKey) -> impl Iterator<Item = EndedWrite> {
        self.0.iter().filter(move |write| write.key == *key).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::refusal::Code;

    fn entry(key: &str) -> AccessEntry {
        AccessEntry {
            key: Some(ResourceKey::from_text(key)),
            verdict: Some(Decision::Passed),
            ..AccessEntry::default()
        }
    }

    fn statuses(writes: &EndedWrites, key: &str) -> Vec<u16> {
        writes.of(&ResourceKey::from_text(key)).map(|write| write.status).collect()
    }

    #[test]
    fn writes_that_were_not_refused_are_kept() {
        let mut writes = EndedWrites::default();
        writes.note(&entry("a"), &Method::PUT, 204);
        writes.note(&entry("b"), &Method::PUT, 201);
        writes.note(&entry("a"), &Method::GET, 200);
        writes.note(&AccessEntry { refused: Some(Code::PreconditionFailed), ..entry("a") }, &Method::PUT, 412);
        writes.note(&AccessEntry::default(), &Method::PUT, 200);
        writes.note(&entry("a"), &Method::DELETE, 0);
        assert_eq!(statuses(&writes, "a"), [204, 0]);
        assert_eq!(statuses(&writes, "b"), [201]);
    }

    #[test]
    fn the_oldest_write_makes_room() {
        let mut writes = EndedWrites::default();
        writes.note(&entry("a"), &Method::PUT, 201);
        for _ in 0..WRITES_MAX {
            writes.note(&entry("b"), &Method::PUT, 204);
        }
        assert_eq!((statuses(&writes, "a").len(), statuses(&writes, "b").len()), (0, WRITES_MAX));
    }

    #[test]
    fn a_long_key_is_not_kept() {
        let mut writes = EndedWrites::default();
        let key = "x".repeat(KEY_BYTES_MAX + 1);
        writes.note(&entry(&key), &Method::PUT, 201);
        assert_eq!(statuses(&writes, &key), [0; 0]);
    }
}
