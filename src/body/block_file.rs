//! The spool file of an upload in blocks.
//!
//! # Design
//!
//! *Why one file for all blocks?* Each open file takes a descriptor, and an upload can have thousands of blocks.
//!
//! *What becomes of a block that is replaced?* Its bytes stay in the file, and count, as long as the file. A body that
//! was joined before may still be sent from them.

use std::{fs::File, io, os::unix::fs::FileExt, path::Path, sync::Arc};

use parking_lot::Mutex;
use tokio::task::spawn_blocking;

use super::{
    Body, ReceiveError,
    budget::{BodyBudget, MemoryUse, Share},
    spool::create_file,
};
use crate::core::objects::blocks::Extent;

/// A file for the blocks of one upload. Its room is given back on drop.
#[derive(Debug)]
pub(super) struct BlockFile {
    file: Arc<File>,
    room: Mutex<FileRoom>,
}

/// The part of a file that blocks have taken.
#[derive(Debug)]
struct FileRoom {
    share: Share,
    len: u64,
}

impl BlockFile {
    /// Creates an empty file in a directory.
    pub(super) async fn create(dir: &Path, budget: &Arc<BodyBudget>) -> io::Result<Self> {
        let room = FileRoom { share: Share::none_of(budget, MemoryUse::Body), len: 0 };
        Ok(Self { file: Arc::new(create_file(dir).await?), room: Mutex::new(room) })
    }

    /// The number of bytes that blocks have taken.
    pub(super) fn len(&self) -> u64 {
        self.room.lock().len
    }

    /// The file.
    pub(super) fn file(&self) -> &Arc<File> {
        &self.file
    }

    /// Takes room for a block at the end of the file.
    pub(super) fn reserve(&self, len: u64) -> Result<Extent, ReceiveError> {
        let mut room = self.room.lock();
        let offset = room.len;
        let end = offset.saturating_add(len);
        if !room.share.hold_spool(end) {
            return Err(ReceiveError::Full);
        }
        room.len = end;
        Ok(Extent { offset, len })
    }

    /// Writes a block to its place.
    pub(super) async fn write(&self, place: Extent, block: &Body) -> io::Result<()> {
        let (mut reader, mut offset) = (block.reader(), place.offset);
        while let Some(chunk) = reader.next_chunk().await? {
            let (file, len) = (Arc::clone(&self.file), chunk.len() as u64);
            spawn_blocking(move || file.write_all_at(&chunk, offset)).await??;
            offset += len;
        }
        Ok(())
    }
}
