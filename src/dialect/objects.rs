//! Uploads in blocks, copies and lists, for dialects of stores of objects.

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::{Random, Response, ShownDocument};
use crate::core::{
    objects::{
        blocks::{BlockFault, BlockId},
        folders::Page,
    },
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

/// The source of a copy, as its request names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopySource {
    /// The URL of the source, as received.
    pub url: String,
    /// The fields of its read that stand for fields of the copy: conditions, and a lease.
    pub fields: Vec<(HeaderName, HeaderValue)>,
    /// The MD5 that its content should have. The answer to the copy has it too.
    pub md5: Option<Checksum>,
}

/// The part of a grammar for copies. A copy is a read of its source, and then a write of its target.
pub trait CopyGrammar: Sync {
    /// True if the read of the source has this field of the copy.
    fn is_of_read(&self, name: &HeaderName) -> bool;

    /// True if the write of the target has this field of the copy.
    fn is_of_write(&self, name: &HeaderName) -> bool;

    /// Returns the fields by which the write describes its content: `shown` are those of the source with their names as
    /// spelled, `copy` those of the request.
    fn described(&self, copy: &HeaderMap, shown: &[(&str, &HeaderValue)]) -> Vec<(String, HeaderValue)>;

    /// Returns the fields of the answer to a copy that was made.
    fn made(&self, random: Random) -> Vec<(HeaderName, HeaderValue)>;

    /// Returns the refusal of a source that cannot be copied here, for this reason.
    fn not_here(&self, reason: &'static str) -> Refusal;

    /// Returns the refusal of a copy whose source was answered with this status.
    fn not_read(&self, status: StatusCode) -> Refusal;

    /// Returns the refusal of a copy whose source does not meet its conditions.
    fn source_differs(&self) -> Refusal;
}

/// The part of a grammar for lists.
pub trait ListGrammar: Sync {
    /// Returns the document that shows a page, for a request with this target.
    fn page(&self, target: &[u8], page: &Page) -> ShownDocument;

    /// Returns the part of the query by which a read of a folder says that it means the folder.
    fn folder_query(&self) -> &'static [u8];
}
