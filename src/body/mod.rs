//! A complete request body, in memory or in a spool file.

use std::{
    fs::File,
    io::{self, BufReader},
    sync::Arc,
};

use bytes::Bytes;
use tokio::task::spawn_blocking;

mod block_file;
mod bodies;
mod budget;
mod client;
mod receive;
mod spool;
mod staged;
mod uploads;

pub use crate::box_future::BoxFuture;
pub use bodies::Bodies;
pub use budget::{BodyBudget, MemoryUse, Share};
pub use client::Client;
pub(crate) use receive::content_length;
pub use receive::{BodyLimits, ReceiveError, receive};
pub use staged::StageError;
pub use uploads::{UploadName, UploadOf, UploadOwner};

use crate::core::objects::blocks::Extent;
use block_file::BlockFile;
use spool::SpoolCursor;

/// The largest chunk that a reader yields, in bytes. Between two chunks the sender checks whether the upstream has
/// already answered.
pub(super) const CHUNK_MAX_BYTES: usize = 64 * 1024;

/// A complete request body. Its share of the totals is given back on drop.
#[derive(Debug)]
pub struct Body {
    content: Content,
    len: u64,
    /// `None` for the empty body, whose digest is rarely needed.
    digest: Option<blake3::Hash>,
    _share: Option<Share>,
    /// The file of the blocks that the body was joined from, with its share of the totals.
    _blocks: Option<Arc<BlockFile>>,
}

/// The place of the bytes.
#[derive(Debug)]
pub(crate) enum Content {
    Memory(Bytes),
    /// The parts of a file, in this order.
    Spool(Arc<File>, Arc<[Extent]>),
}

impl Body {
    /// The body of a request that has none.
    pub fn empty() -> Self {
        Self { content: Content::Memory(Bytes::new()), len: 0, digest: None, _share: None, _blocks: None }
    }

    /// A short body that the proxy has made itself. It counts in no total.
    pub(crate) fn made(content: Vec<u8>) -> Self {
        let (len, digest) = (content.len() as u64, Some(blake3::hash(&content)));
        Self { content: Content::Memory(content.into()), len, digest, _share: None, _blocks: None }
    }

    /// This body with other content, which is no longer.
    pub(crate) fn edited(self, content: Vec<u8>) -> Self {
        let (len, digest) = (content.len() as u64, Some(blake3::hash(&content)));
        Self { content: Content::Memory(content.into()), len, digest, ..self }
    }

    pub(super) fn received(content: Content, len: u64, digest: blake3::Hash, share: Share) -> Self {
        Self { content, len, digest: Some(digest), _share: Some(share), _blocks: None }
    }

    /// Joins blocks of one file. Their bytes are read once, for the hash.
    async fn of_blocks(file: Arc<BlockFile>, extents: Vec<Extent>) -> io::Result<Self> {
        let len = extents.iter().map(|extent| extent.len).sum();
        let content = Content::Spool(Arc::clone(file.file()), extents.into());
        let mut body = Self { content, len, digest: None, _share: None, _blocks: Some(file) };
        let mut hasher = Box::new(blake3::Hasher::new());
        body.each_chunk(|chunk| _ = hasher.update(chunk)).await?;
        body.digest = Some(hasher.finalize());
        Ok(body)
    }

    /// The length in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// True if the body has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The hash of the bytes, computed while they were received.
    pub fn digest(&self) -> blake3::Hash {
        self.digest.unwrap_or_else(|| blake3::hash(b""))
    }

    /// Shows each chunk to `visit`, in order.
    ///
    /// # Errors
    ///
    /// The spool file cannot be read.
    pub(crate) async fn each_chunk(&self, mut visit: impl FnMut(&[u8])) -> io::Result<()> {
        let mut reader = self.reader();
        while let Some(chunk) = reader.next_chunk().await? {
            visit(&chunk);
        }
        Ok(())
    }

    /// Runs `read` over the whole body. A body in a spool file is read on the blocking pool.
    ///
    /// # Errors
    ///
    /// The blocking pool has ended.
    pub async fn read_with<T: Send + 'static>(
        &self,
        read: impl FnOnce(&mut dyn io::Read) -> T + Send + 'static,
    ) -> io::Result<T> {
        match &self.content {
            Content::Memory(bytes) => Ok(read(&mut &bytes[..])),
            Content::Spool(file, parts) => {
                let file = SpoolCursor::start_of(file, parts);
                Ok(spawn_blocking(move || read(&mut BufReader::new(file))).await?)
            }
        }
    }

    /// Reads the body from its beginning. Any number of readers may exist.
    pub fn reader(&self) -> BodyReader {
        match &self.content {
            Content::Memory(bytes) => BodyReader { block: bytes.clone(), spool: None },
            Content::Spool(file, parts) => {
                BodyReader { block: Bytes::new(), spool: Some(SpoolCursor::start_of(file, parts)) }
            }
        }
    }
}

/// Reads a [`Body`] chunk by chunk.
#[derive(Debug)]
pub struct BodyReader {
    block: Bytes,
    spool: Option<SpoolCursor>,
}

impl BodyReader {
    /// The next chunk of at most 64 KiB, never empty; `None` at the end. The error is one of the spool file.
    pub async fn next_chunk(&mut self) -> io::Result<Option<Bytes>> {
        if self.block.is_empty()
            && let Some(spool) = &mut self.spool
        {
            self.block = spool.next_block().await?;
        }
        if self.block.is_empty() {
            return Ok(None);
        }
        let size = self.block.len().min(CHUNK_MAX_BYTES);
        Ok(Some(self.block.split_to(size)))
    }
}
