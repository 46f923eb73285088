//! Blocks that wait in this process for the list that joins them.
//!
//! # Design
//!
//! *Why is one client limited to half of all room?* Blocks stay after their request. Without the limit, a client that
//! never sends its list could keep all others from uploading in blocks.
//!
//! *Why may all blocks together take only half of the spool?* Bodies in flight need the rest.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::Mutex;
use thiserror::Error;
use tokio::time::{Instant, sleep_until};

use super::{Body, BodyBudget, BodyLimits, ReceiveError, block_file::BlockFile};
use crate::core::{
    blocks::{BlockFault, BlockId, Blocks, Extent},
    client_address::ClientAddress,
    lease::PrincipalName,
    resource::KeyDigest,
};

/// The largest number of uploads: each has an open file.
const UPLOADS_MAX: usize = 256;
/// The largest number of blocks in all uploads. Each takes about 150 bytes of memory.
const BLOCKS_MAX: usize = 100_000;
/// The part of the spool that all blocks together can take.
const SPOOL_PART: u64 = 2;
/// The part of all room that one client can take.
const CLIENT_PART: u64 = 2;

/// The name of an upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UploadName {
    /// The resource that the upload replaces.
    pub resource: KeyDigest,
    /// The principal of the client.
    pub client: PrincipalName,
    /// The address of the client, if the principal alone does not tell it apart.
    pub address: Option<ClientAddress>,
}

/// An upload and the address of its client.
#[derive(Clone, Copy, Debug)]
pub struct UploadOf {
    /// The name of the upload.
    pub name: UploadName,
    /// The address of the client.
    pub client: ClientAddress,
}

/// Why a block was not kept, or blocks were not joined.
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

/// The uploads whose blocks no list has joined yet.
#[derive(Debug)]
pub(super) struct StagedBlocks {
    uploads: Mutex<Uploads>,
    budget: Arc<BodyBudget>,
}

#[derive(Debug, Default)]
struct Uploads {
    by_name: HashMap<UploadName, Upload>,
    /// Whether a task drops the uploads that expire.
    is_swept: bool,
}

#[derive(Debug)]
struct Upload {
    file: Arc<BlockFile>,
    blocks: Blocks,
    client: ClientAddress,
    expires: Instant,
}

/// The file of an upload, and the places of listed blocks in it.
type ListedExtents = (Arc<BlockFile>, Vec<Extent>);

/// The room that uploads take.
#[derive(Clone, Copy)]
struct Taken {
    uploads: usize,
    blocks: usize,
    bytes: u64,
}

impl StagedBlocks {
    /// Keeps no blocks yet. Their room counts in this budget.
    pub(super) fn new(budget: Arc<BodyBudget>) -> Self {
        Self { uploads: Mutex::default(), budget }
    }

    /// Keeps a block for an upload. It replaces the block with the same id.
    pub(super) async fn stage(
        self: &Arc<Self>,
        upload: UploadOf,
        id: BlockId,
        block: &Body,
        limits: &BodyLimits,
    ) -> Result<(), StageError> {
        let is_new = !self.uploads.lock().by_name.contains_key(&upload.name);
        let file = if is_new { Some(BlockFile::create(&limits.spool_dir, &self.budget).await?) } else { None };
        let (file, place) = self.reserve(upload, &id, block.len(), file, limits)?;
        file.write(place, block).await?;
        self.uploads.lock().add(upload.name, &file, (id, place), limits)
    }

    /// Joins the blocks of an upload in the order of a list.
    pub(super) async fn join(
        &self,
        name: &UploadName,
        list: &[BlockId],
        limits: &BodyLimits,
    ) -> Result<Body, StageError> {
        let found = self.uploads.lock().listed(name, list, limits)?;
        match found {
            Some((file, extents)) => Ok(Body::of_blocks(file, extents).await?),
            None => Ok(Body::empty()),
        }
    }

    /// Returns the id and the length of each block of an upload, ordered by id.
    pub(super) fn lengths(&self, name: &UploadName) -> Vec<(BlockId, u64)> {
        self.uploads.lock().by_name.get(name).map(|upload| upload.blocks.lengths()).unwrap_or_default()
    }

    /// Drops the blocks of an upload.
    pub(super) fn discard(&self, name: &UploadName) {
        let dropped = self.uploads.lock().by_name.remove(name);
        // Closing a large file takes a while, in which nobody waits for the lock.
        drop(dropped);
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
        let is_new = !uploads.by_name.contains_key(&upload.name);
        let wanted = Taken { uploads: usize::from(is_new), blocks: 1, bytes: len };
        if !uploads.has_room(upload.client, wanted, self.budget.max_spool_bytes() / SPOOL_PART) {
            return Err(StageError::Full);
        }
        if let (true, Some(file)) = (is_new, new_file) {
            let (file, expires) = (Arc::new(file), Instant::now() + limits.block_ttl);
            let new = Upload { file, blocks: Blocks::default(), client: upload.client, expires };
            uploads.by_name.insert(upload.name, new);
            if !std::mem::replace(&mut uploads.is_swept, true) {
                tokio::spawn(sweep(Arc::downgrade(self)));
            }
        }
        // The upload may have ended since its file was looked for.
        let upload = uploads.by_name.get(&upload.name).ok_or(StageError::Full)?;
        upload.blocks.check(id, len, limits.of_upload()).map_err(StageError::Fault)?;
        Ok((Arc::clone(&upload.file), upload.file.reserve(len)?))
    }
}

impl Uploads {
    /// Whether all uploads, and those of one client, leave room for what the client wants.
    fn has_room(&self, client: ClientAddress, wanted: Taken, max_bytes: u64) -> bool {
        let sum = |own_alone: bool| {
            let counted = self.by_name.values().filter(|upload| !own_alone || upload.client == client);
            counted.fold(wanted, |sum, upload| Taken {
                uploads: sum.uploads + 1,
                blocks: sum.blocks + upload.blocks.count(),
                bytes: sum.bytes.saturating_add(upload.file.len()),
            })
        };
        let fits = |taken: Taken, part: u64| {
            let count = |count: usize| (count as u64).saturating_mul(part);
            count(taken.uploads) <= UPLOADS_MAX as u64
                && count(taken.blocks) <= BLOCKS_MAX as u64
                && taken.bytes.saturating_mul(part) <= max_bytes
        };
        fits(sum(false), 1) && fits(sum(true), CLIENT_PART)
    }

    /// Adds a block that was written to its place in this file.
    fn add(
        &mut self,
        name: UploadName,
        file: &Arc<BlockFile>,
        (id, place): (BlockId, Extent),
        limits: &BodyLimits,
    ) -> Result<(), StageError> {
        // An upload that was joined or dropped meanwhile takes no more blocks.
        let upload = self.by_name.get_mut(&name).filter(|upload| Arc::ptr_eq(&upload.file, file));
        let upload = upload.ok_or(StageError::Full)?;
        upload.blocks.check(&id, place.len, limits.of_upload()).map_err(StageError::Fault)?;
        upload.blocks.add(id, place);
        upload.expires = Instant::now() + limits.block_ttl;
        Ok(())
    }

    /// Returns the file of an upload, and the places of the listed blocks in it. An upload without blocks has none.
    fn listed(
        &self,
        name: &UploadName,
        list: &[BlockId],
        limits: &BodyLimits,
    ) -> Result<Option<ListedExtents>, StageError> {
        let nothing = Blocks::default();
        let upload = self.by_name.get(name);
        let blocks = upload.map_or(&nothing, |upload| &upload.blocks);
        let extents = blocks.listed(list, limits.of_upload()).map_err(StageError::Fault)?;
        Ok(upload.map(|upload| (Arc::clone(&upload.file), extents)))
    }

    /// Takes out the uploads that have expired. Returns the time at which the next one expires, if any are left.
    fn expired(&mut self, now: Instant) -> (Vec<Upload>, Option<Instant>) {
        let expired = self.by_name.extract_if(|_, upload| upload.expires <= now).map(|(_, upload)| upload).collect();
        let next = self.by_name.values().map(|upload| upload.expires).min();
        self.is_swept = next.is_some();
        (expired, next)
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
