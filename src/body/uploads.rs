//! The uploads in blocks that this process has, with the room that they take.

use std::{collections::HashMap, sync::Arc};

use tokio::time::Instant;

use super::{BodyLimits, StageError, block_file::BlockFile};
use crate::core::{
    http::client_address::ClientAddress,
    lease::PrincipalName,
    objects::blocks::{BlockId, Blocks, Extent},
    records::revision::Revision,
    resource::KeyDigest,
    shares::upload_room::{TakenRoom, UploadRoom, has_room},
    tags::parts_hash::PartsHasher,
};

/// The most blocks in all uploads, unless a few of the largest uploads have more. Each takes about 150 bytes of memory.
const BLOCKS_MAX: u64 = 100_000;
/// The number of the largest uploads for which there are enough blocks in any case. A client that has not been seen to
/// write may have an eighth of all blocks.
const LARGEST_UPLOADS: u64 = 10;

/// The client that uploads belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UploadOwner {
    /// The principal of the client.
    pub client: PrincipalName,
    /// The address of the client, if others can name the principal too.
    pub address: Option<ClientAddress>,
}

/// The name of an upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UploadName {
    /// The resource that the upload replaces.
    pub resource: KeyDigest,
    /// The owner of the upload.
    pub owner: UploadOwner,
}

impl UploadName {
    /// A hash of the name, which tells uploads apart in any process.
    pub fn digest(&self) -> KeyDigest {
        let mut hasher = PartsHasher::default();
        hasher.add(&self.resource).add(&self.owner.client);
        match self.owner.address {
            None => {}
            Some(ClientAddress::V4(address)) => _ = hasher.add(&address),
            Some(ClientAddress::V6(network)) => _ = hasher.add(&network),
            Some(ClientAddress::Local) => _ = hasher.add(b""),
        }
        hasher.half()
    }
}

/// An upload as one of its blocks finds it.
#[derive(Clone, Copy, Debug)]
pub struct UploadOf {
    /// The name of the upload.
    pub name: UploadName,
    /// The address of the client.
    pub address: ClientAddress,
    /// The turn of this process at the upload.
    pub turn: Revision,
}

/// The uploads whose blocks no list has joined yet.
#[derive(Debug, Default)]
pub(super) struct Uploads {
    by_name: HashMap<UploadName, Upload>,
    /// True if a task drops the uploads that expire.
    pub(super) is_swept: bool,
}

/// An upload.
#[derive(Debug)]
pub(super) struct Upload {
    file: Arc<BlockFile>,
    blocks: Blocks,
    address: ClientAddress,
    turn: Revision,
    /// True if its owner has been seen to write.
    has_written: bool,
    expires: Instant,
}

/// The file of an upload, and the places of listed blocks in it.
pub(super) type ListedExtents = (Arc<BlockFile>, Vec<Extent>);

/// The limits on all uploads together.
pub(super) fn total_room(limits: &BodyLimits, max_bytes: u64) -> UploadRoom {
    let largest = LARGEST_UPLOADS.saturating_mul(limits.max_blocks as u64);
    UploadRoom { uploads: limits.max_uploads as u64, blocks: BLOCKS_MAX.max(largest), bytes: max_bytes }
}

impl Upload {
    fn room(&self) -> UploadRoom {
        UploadRoom { uploads: 1, blocks: self.blocks.count() as u64, bytes: self.file.len() }
    }
}

impl Uploads {
    /// The turn at which the process got the blocks that it has of an upload.
    pub(super) fn turn_of(&self, name: &UploadName) -> Option<Revision> {
        self.by_name.get(name).map(|upload| upload.turn)
    }

    /// True if there is room for a block of this length.
    pub(super) fn has_room(&self, upload: UploadOf, len: u64, total: UploadRoom, has_written: bool) -> bool {
        let mut taken = TakenRoom::default();
        for (name, other) in &self.by_name {
            let room = other.room();
            let counts = [
                (true, &mut taken.all),
                (!other.has_written, &mut taken.newcomers),
                (name.owner == upload.name.owner, &mut taken.principal),
                (other.address == upload.address, &mut taken.address),
            ];
            for (_, sum) in counts.into_iter().filter(|(is_counted, _)| *is_counted) {
                *sum = sum.and(room);
            }
        }
        let is_new = !self.by_name.contains_key(&upload.name);
        let wanted = UploadRoom { uploads: u64::from(is_new), blocks: 1, bytes: len };
        has_room(total, &taken, wanted, has_written)
    }

    /// Begins an upload with an empty file.
    pub(super) fn begin(&mut self, upload: UploadOf, file: BlockFile, has_written: bool, expires: Instant) {
        let UploadOf { name, address, turn } = upload;
        let new = Upload { file: Arc::new(file), blocks: Blocks::default(), address, turn, has_written, expires };
        self.by_name.insert(name, new);
    }

    /// Takes room in the file of an upload for a block.
    pub(super) fn reserve(
        &self,
        upload: UploadOf,
        id: &BlockId,
        len: u64,
        limits: &BodyLimits,
    ) -> Result<(Arc<BlockFile>, Extent), StageError> {
        // The upload may have ended, or begun at another turn, since the block arrived.
        let upload = self.at_turn(&upload.name, upload.turn).ok_or(StageError::Full)?;
        upload.blocks.check(id, len, limits.of_upload()).map_err(StageError::Fault)?;
        Ok((Arc::clone(&upload.file), upload.file.reserve(len)?))
    }

    /// Adds a block that was written to its place in this file.
    pub(super) fn add(
        &mut self,
        name: &UploadName,
        file: &Arc<BlockFile>,
        (id, place): (BlockId, Extent),
        limits: &BodyLimits,
    ) -> Result<(), StageError> {
        // An upload that was joined or dropped meanwhile takes no more blocks.
        let upload = self.by_name.get_mut(name).filter(|upload| Arc::ptr_eq(&upload.file, file));
        let upload = upload.ok_or(StageError::Full)?;
        upload.blocks.check(&id, place.len, limits.of_upload()).map_err(StageError::Fault)?;
        upload.blocks.add(id, place);
        upload.expires = Instant::now() + limits.block_ttl;
        Ok(())
    }

    /// Returns the file of an upload, and the places of the listed blocks in it. An upload without blocks has none.
    pub(super) fn listed(
        &self,
        (name, turn): (&UploadName, Revision),
        list: &[BlockId],
        limits: &BodyLimits,
    ) -> Result<Option<ListedExtents>, StageError> {
        let nothing = Blocks::default();
        let upload = self.at_turn(name, turn);
        let blocks = upload.map_or(&nothing, |upload| &upload.blocks);
        let extents = blocks.listed(list, limits.of_upload()).map_err(StageError::Fault)?;
        Ok(upload.map(|upload| (Arc::clone(&upload.file), extents)))
    }

    /// Returns the id and the length of each block of an upload, ordered by id.
    pub(super) fn lengths(&self, name: &UploadName, turn: Revision) -> Vec<(BlockId, u64)> {
        self.at_turn(name, turn).map(|upload| upload.blocks.lengths()).unwrap_or_default()
    }

    /// Takes out an upload.
    pub(super) fn remove(&mut self, name: &UploadName) -> Option<Upload> {
        self.by_name.remove(name)
    }

    /// Takes out an upload of an earlier turn.
    pub(super) fn remove_before(&mut self, name: &UploadName, turn: Revision) -> Option<Upload> {
        if self.turn_of(name)? < turn { self.remove(name) } else { None }
    }

    /// Notes that an owner has been seen to write.
    pub(super) fn has_written(&mut self, owner: UploadOwner) {
        let own = self.by_name.iter_mut().filter(|(name, _)| name.owner == owner);
        own.for_each(|(_, upload)| upload.has_written = true);
    }

    /// Takes out the uploads that have expired. Returns the time at which the next one expires, if any are left.
    pub(super) fn expired(&mut self, now: Instant) -> (Vec<Upload>, Option<Instant>) {
        let expired = self.by_name.extract_if(|_, upload| upload.expires <= now).map(|(_, upload)| upload).collect();
        let next = self.by_name.values().map(|upload| upload.expires).min();
        self.is_swept = next.is_some();
        (expired, next)
    }

    /// An upload, if its blocks are those of this turn. All others may have been replaced in another process.
    fn at_turn(&self, name: &UploadName, turn: Revision) -> Option<&Upload> {
        self.by_name.get(name).filter(|upload| upload.turn == turn)
    }
}
