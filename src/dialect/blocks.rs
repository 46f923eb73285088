//! Uploads in blocks, for dialects that have them.

use super::{Response, ShownDocument, copies::CopySource};
use crate::core::{
    objects::blocks::{BlockFault, BlockId},
    refusal::Refusal,
    tags::checksum::Checksum,
};

/// The meaning of the content of a request.
#[derive(Clone, Debug, Default)]
pub enum SentContent {
    /// The content that its method defines, such as the new representation of the resource.
    #[default]
    Representation,
    /// The whole new representation. The answer has its MD5, by which the client sees what has arrived.
    Whole,
    /// A block of an upload.
    Block(BlockId),
    /// The list that joins the blocks of an upload to the new representation.
    BlockList {
        /// The checksums that the new representation should have.
        checksums: Vec<Checksum>,
    },
    /// Nothing: the new representation is that of another resource.
    CopyOf(CopySource),
    /// The list of the resources that are removed. They are not the target.
    Removals,
}

/// The part of a grammar for uploads in blocks.
pub trait BlockGrammar: Sync {
    /// Reads a list of blocks.
    ///
    /// # Errors
    ///
    /// The list cannot be read, or names a block that cannot be among those uploaded.
    fn list(&self, content: &[u8]) -> Result<Vec<BlockId>, Refusal>;

    /// Returns the largest size of a list of this number of blocks, in bytes.
    fn max_list_bytes(&self, max_blocks: usize) -> usize;

    /// Returns the answer to a block that was kept, with its checksum.
    fn kept(&self, crc64: Checksum) -> Response;

    /// Returns the document that shows blocks with their lengths, for a request with this target.
    fn shown(&self, target: &[u8], blocks: &[(BlockId, u64)]) -> ShownDocument;

    /// Returns the refusal of a block or a list.
    fn refused(&self, fault: BlockFault) -> Refusal;
}
