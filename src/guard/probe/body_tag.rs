//! Tags that are made from the body of a response (`etag = "content"` and `"json:/pointer"`).

use std::time::Duration;

use super::Probes;
use crate::{
    body::MemoryUse,
    core::{
        policy::{GuardRules, TagSource},
        tags::entity_tag::EntityTag,
    },
    guard::knowledge::derived_tag::{digest_of, tag_of, tag_of_bytes},
    upstream::{BufferedBody, Exchange, Failure, Hashed, hash_whole, read_whole},
};

/// The result of reading the body of a response.
pub(crate) enum Tagged {
    /// The body was read to its end.
    Whole {
        /// The tag of the body, if the route's tags are made from bodies.
        tag: Option<EntityTag>,
        /// The hash of the bytes of the body.
        digest: blake3::Hash,
    },
    /// The body is larger than `max_hash_size`.
    TooLarge,
    /// The body did not arrive in time.
    TooSlow,
}

impl Probes {
    /// Reads the body of a response for its hash, and for its tag as a tag of this variant. The body is held in
    /// memory only if its text is inspected.
    pub(crate) async fn tag_body(
        &self,
        rules: &GuardRules,
        exchange: &mut Exchange,
        variant: Option<u32>,
        wait: Duration,
    ) -> Result<Tagged, Failure> {
        let max_bytes = rules.max_hash_size_bytes;
        if matches!(rules.etag, TagSource::Json(_)) || !rules.ignored_json.is_empty() {
            return Ok(match read_whole(exchange, max_bytes, wait, (&self.budget, MemoryUse::Probe)).await? {
                BufferedBody::Complete(body) => {
                    Tagged::Whole { tag: tag_of(rules, &body, variant), digest: digest_of(&body) }
                }
                BufferedBody::TooLarge(_) => Tagged::TooLarge,
                BufferedBody::TooSlow(_) => Tagged::TooSlow,
            });
        }
        Ok(match hash_whole(exchange, max_bytes, wait).await? {
            Hashed::Hash(digest) => {
                let tag = if rules.etag == TagSource::Content { tag_of_bytes(&digest, variant) } else { None };
                Tagged::Whole { tag, digest }
            }
            Hashed::TooLarge => Tagged::TooLarge,
            Hashed::TooSlow => Tagged::TooSlow,
        })
    }
}
