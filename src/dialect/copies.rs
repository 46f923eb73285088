//! Copies of resources that a request names as their source, for dialects that have them.

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::Random;
use crate::core::{refusal::Refusal, tags::checksum::Checksum};

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
