//! Blocks that wait in this process for the list that joins them.
//!
//! # Design
//!
//! *Who may have how much?* [`upload_room`](crate::core::shares::upload_room) decides.
//!
//! *Why may all blocks together take only half of the spool?* Bodies in flight need the rest.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use moka::sync::Cache;
use parking_lot::Mutex;
use thiserror::Error;
use tokio::time::{Instant, sleep_until};

use super::{
    Body, BodyBudget, BodyLimits, ReceiveError,
    block_file::BlockFile,
    uploads::{UploadName, UploadOf, UploadOwner, Uploads, total_room},
};
use crate::core::{
    objects::blocks::{BlockFault, BlockId, Extent},
    records::revision::Revision,
};

/// The part of the spool that all blocks together can take.
const SPOOL_PART: u64 = 2;
/// The number of clients that are remembered as writers. Each takes about 100 bytes.
const WRITERS_MAX: u64 = 10_000;
/// How long a client counts as a writer after its last write.
const WRITER_TTL: Duration = Duration::from_secs(3600);

/// The reason why a block was not kept, or blocks were not joined.
#[derive(Debug, Error)]
pub enum StageError {
    /// The block or the list cannot be accepted.
    #[error("the block or the list of blocks cannot be accepted: {0:?}")]
    Fault(BlockFault),
    /// Other blocks leave no room.
    #[error("no room is left for the block")]
    Full,
    /// The block cannot be kept.
    #[error(transparent)]
    Body(#[from] ReceiveError),
}

impl From<std::io::Error> for StageError {
    fn from(error: std::io::Error) -> Self {
        Self::Body(ReceiveError::Spool(error))
    }
}

/// The uploads whose blocks no list has joined yet, and the clients that have been seen to write.
#[derive(Debug)]
pub(super) struct StagedBlocks {
    uploads: Mutex<Uploads>,
    writers: Cache<UploadOwner, ()>,
    budget: Arc<BodyBudget>,
}

impl StagedBlocks {
    /// Keeps no blocks yet. Their room counts in this budget.
    pub(super) fn new(budget: Arc<BodyBudget>) -> Self {
        let writers = Cache::builder().max_capacity(WRITERS_MAX).time_to_live(WRITER_TTL).build();
        Self { uploads: Mutex::default(), writers, budget }
    }

    /// Keeps a block for an upload. It replaces the block with the same id. An upload of an earlier turn ends.
    pub(super) async fn stage(
        self: &Arc<Self>,
        upload: UploadOf,
        id: BlockId,
        block: &Body,
        limits: &BodyLimits,
    ) -> Result<(), StageError> {
        let ended = self.uploads.lock().remove_before(&upload.name, upload.turn);
        drop(ended);
        if !self.has_room(upload, block.len(), limits) {
            return Err(StageError::Full);
        }
        let is_new = self.turn_of(&upload.name).is_none();
        let file = if is_new { Some(BlockFile::create(&limits.spool_dir, &self.budget).await?) } else { None };
        let (file, place) = self.reserve(upload, &id, block.len(), file, limits)?;
        file.write(place, block).await?;
        self.uploads.lock().add(&upload.name, &file, (id, place), limits)
    }

    /// Joins the blocks that an upload has at this turn, in the order of a list.
    pub(super) async fn join(
        &self,
        upload: (&UploadName, Revision),
        list: &[BlockId],
        limits: &BodyLimits,
    ) -> Result<Body, StageError> {
        let found = self.uploads.lock().listed(upload, list, limits)?;
        match found {
            Some((file, extents)) => Ok(Body::of_blocks(file, extents).await?),
            None => Ok(Body::empty()),
        }
    }

    /// Returns the id and the length of each block that an upload has at this turn, ordered by id.
    pub(super) fn lengths(&self, name: &UploadName, turn: Revision) -> Vec<(BlockId, u64)> {
        self.uploads.lock().lengths(name, turn)
    }

    /// The turn at which the process got the blocks that it has of an upload.
    pub(super) fn turn_of(&self, name: &UploadName) -> Option<Revision> {
        self.uploads.lock().turn_of(name)
    }

    /// Drops the blocks of an upload.
    pub(super) fn discard(&self, name: &UploadName) {
        let dropped = self.uploads.lock().remove(name);
        // Closing a large file takes a while, in which no request waits for the lock.
        drop(dropped);
    }

    /// Notes that the upstream has let a client write.
    pub(super) fn has_written(&self, owner: UploadOwner) {
        self.writers.insert(owner, ());
        self.uploads.lock().has_written(owner);
    }

    fn has_room(&self, upload: UploadOf, len: u64, limits: &BodyLimits) -> bool {
        self.has_room_in(&self.uploads.lock(), upload, len, limits)
    }

    fn has_room_in(&self, uploads: &Uploads, upload: UploadOf, len: u64, limits: &BodyLimits) -> bool {
        let total = total_room(limits, self.budget.max_spool_bytes() / SPOOL_PART);
        uploads.has_room(upload, len, total, self.writers.contains_key(&upload.name.owner))
    }

    /// Takes room for a block. `new_file` is the file of the upload if it has none.
    fn reserve(
        self: &Arc<Self>,
        upload: UploadOf,
        id: &BlockId,
        len: u64,
        new_file: Option<BlockFile>,
        limits: &BodyLimits,
    ) -> Result<(Arc<BlockFile>, Extent), StageError> {
        let mut uploads = self.uploads.lock();
        // Others may have come while the file was made.
        if !self.has_room_in(&uploads, upload, len, limits) {
            return Err(StageError::Full);
        }
        if let (None, Some(file)) = (uploads.turn_of(&upload.name), new_file) {
            let has_written = self.writers.contains_key(&upload.name.owner);
            uploads.begin(upload, file, has_written, Instant::now() + limits.block_ttl);
            if !std::mem::replace(&mut uploads.is_swept, true) {
                tokio::spawn(sweep(Arc::downgrade(self)));
            }
        }
        uploads.reserve(upload, id, len, limits)
    }
}

/// Drops each upload that expires, until none are left.
async fn sweep(staged: Weak<StagedBlocks>) {
    while let Some(staged) = staged.upgrade() {
        let (expired, next) = staged.uploads.lock().expired(Instant::now());
        drop((expired, staged));
        match next {
            // Rounded up, so that uploads that expire together are dropped together.
            Some(next) => sleep_until(next + Duration::from_secs(1)).await,
            None => return,
        }
    }
}

#[cfg(test)]
#[path = "staged_tests.rs"]
mod tests;
