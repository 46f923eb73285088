//! The checksum of a part that a client reads.

use http::HeaderName;

use crate::core::{refusal::Refusal, tags::checksum::ChecksumKind};

/// A checksum that a client wants with a part.
#[derive(Clone, Debug)]
pub struct PartChecksum {
    /// Its kind.
    pub kind: ChecksumKind,
    /// The field that tells it, in Base64.
    pub field: HeaderName,
    /// The largest part that has one, in bytes. It is held in memory.
    pub max_bytes: usize,
    /// The refusal of a larger part.
    pub too_large: fn() -> Refusal,
}
