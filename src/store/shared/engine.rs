//! The operations that each kind of engine does in its own way. All others are in
//! [`SharedStore`](super::store::SharedStore).

use std::{future::ready, ops::RangeInclusive, time::Duration};

use super::epoch::ToldRevisions;
use crate::{
    core::{records::record::Revision, resource::ResourceKey, time::StoreTime},
    store::StoreError,
};

/// An engine that keeps the records of several processes. What it is asked may be carried out twice, if no answer came.
pub trait Engine: Send + Sync + 'static {
    /// The number of buckets whose floors are raised by one request, which takes the engine some milliseconds at most.
    const RAISED_AT_ONCE: u16;

    /// True if this process keeps the store's time itself, because the engine has none.
    const HAS_OWN_TIME: bool = false;

    /// Returns the store's time.
    fn now(&self) -> impl Future<Output = Result<EngineAnswer<()>, StoreError>> + Send;

    /// Reads the record of a resource.
    fn read(&self, key: &ResourceKey) -> impl Future<Output = Result<EngineAnswer<KeptText>, StoreError>> + Send;

    /// Replaces a record if it has the expected revision.
    fn swap(&self, swap: Swap) -> impl Future<Output = Result<EngineAnswer<SwapOutcome>, StoreError>> + Send;

    /// Reads at most `limit` records of a selection.
    fn page(
        &self,
        selection: KeyRange<'_>,
        limit: usize,
    ) -> impl Future<Output = Result<EngineAnswer<TextPage>, StoreError>> + Send;

    /// Finds at most `limit` records after that of `after` that have been idle for `idle_ttl`. Fewer mean the end. `None`
    /// if the engine does not know which records are idle: then all of them are read.
    fn aged(
        &self,
        _after: Option<&ResourceKey>,
        _limit: usize,
        _idle_ttl: Duration,
    ) -> impl Future<Output = Result<Option<Vec<ResourceKey>>, StoreError>> + Send {
        ready(Ok(None))
    }

    /// Forgets a record, and raises its floor in the same step, if it is still as it was found. An engine that knows which
    /// records are idle checks that it has been for `idle_ttl`, and any other that it has this revision. Returns whether
    /// the record was forgotten.
    fn forget(
        &self,
        key: &ResourceKey,
        revision: Revision,
        idle_ttl: Duration,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Counts the records. `None` if the engine itself refuses a new one when there is no room.
    fn count(&self) -> impl Future<Output = Result<Option<usize>, StoreError>> + Send {
        ready(Ok(None))
    }

    /// True if it is this process's turn to look for idle records. If that is costly, only one of all processes looks in
    /// each `interval`.
    fn takes_turn(&self, _interval: Duration) -> impl Future<Output = bool> + Send {
        ready(true)
    }

    /// Raises the floors of these buckets.
    fn raise(&self, buckets: RangeInclusive<u16>) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Waits until the record has another revision than `seen`. May return early.
    fn changed(&self, key: &ResourceKey, seen: Revision) -> impl Future<Output = ()> + Send;

    /// Listens forever for the changes that other processes announce, if the engine announces any.
    fn listen(&self) -> impl Future<Output = ()> + Send {
        ready(())
    }
}

/// An answer of an engine.
pub struct EngineAnswer<T> {
    /// The answer to the question.
    pub found: T,
    /// The store's time.
    pub now: StoreTime,
    /// The revisions that came with the answer, if any did.
    pub told: Option<ToldRevisions>,
}

/// The part of a resource that an engine keeps.
pub struct KeptText {
    /// The revision of the record or, if it is absent, of its floor.
    pub revision: Revision,
    /// The text of the record, unless it is absent.
    pub text: Option<Vec<u8>>,
}

/// A range of records to read.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeyRange<'a> {
    /// The beginning of their keys; empty for all.
    pub prefix: &'a str,
    /// The record after which they come, in the order of the engine; else from the first one on.
    pub after: Option<&'a ResourceKey>,
}

/// Some of the records.
pub struct TextPage {
    /// The records, in the order of the engine.
    pub records: Vec<(ResourceKey, KeptText)>,
    /// The last resource of the page, if there may be more after it.
    pub last: Option<ResourceKey>,
}

/// A swap of one record.
pub struct Swap {
    /// The resource.
    pub key: ResourceKey,
    /// The revision that the record must have.
    pub expected: Revision,
    /// The text of the next record.
    pub text: String,
    /// The time from which the next record is idle if it stays unchanged.
    pub idle_from: Option<StoreTime>,
    /// True if there is room for a record that is absent now, by the count of this process.
    pub may_create: bool,
}

/// The outcome of a swap.
pub enum SwapOutcome {
    /// The record was put.
    Made {
        /// The revision of the record.
        revision: Revision,
        /// True if there is one more record to be counted.
        is_new: bool,
    },
    /// The record would be new, and there is no room.
    NoRoom,
    /// The record had another revision.
    Other {
        /// The record that is there instead. `None` if the engine's answer does not have it: then it is read.
        kept: Option<KeptText>,
        /// True if an earlier attempt got no answer. It may have been carried out before this one or after it.
        is_repeated: bool,
    },
}

/// Returns the first text, in the order of bytes, that does not begin with this one any more. This one is visible ASCII.
pub(super) fn first_beyond(prefix: &str) -> Vec<u8> {
    let mut beyond = prefix.as_bytes().to_vec();
    if let Some(last) = beyond.last_mut() {
        *last += 1;
    }
    beyond
}
