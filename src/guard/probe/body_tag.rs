//! Tags that are made from the body of a response (`etag = "content"` and `"json:/pointer"`).

use std::time::Duration;

use tokio::time::Instant;

use super::{
    Probes,
    unreadable::{timed_out, unreadable},
};
use crate::{
    body::MemoryUse,
    core::{
        policy::{GuardRules, TagSource},
        refusal::Refusal,
        tags::entity_tag::EntityTag,
    },
    guard::knowledge::derived_tag::{digest_of, tag_of, tag_of_bytes},
    upstream::{BodyPrefix, BufferedBody, Exchange, Failure, Hashed, hash_and_keep, hash_whole, read_whole},
};

/// The use of a body that was read for its tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    /// Only the tag is wanted.
    Nothing,
    /// The body is wanted too, and is kept.
    Body,
}

/// The result of reading the body of a response.
pub(crate) enum Tagged {
    /// The body was read to its end.
    Whole {
        /// The tag of the body, if the route's tags are made from bodies.
        tag: Option<EntityTag>,
        /// The hash of the bytes of the body.
        digest: blake3::Hash,
        /// The body, if it is kept and there is room for it.
        body: Option<BodyPrefix>,
    },
    /// The body is larger than `max_hash_size`.
    TooLarge,
    /// The body did not arrive in time.
    TooSlow,
}

impl Probes {
    /// The tag of a response's body, which is read until `end`, and the body if it is kept. The outer `None` means that
    /// the body is too large for a tag.
    pub(super) async fn tag_of_probed(
        &self,
        rules: &GuardRules,
        exchange: &mut Exchange,
        wanted: (Option<u32>, Keep),
        end: Instant,
    ) -> Result<Option<(Option<EntityTag>, Option<BodyPrefix>)>, Refusal> {
        match self.tag_body(rules, exchange, wanted, end.saturating_duration_since(Instant::now())).await {
            Ok(Tagged::Whole { tag, body, .. }) => Ok(Some((tag, body))),
            Ok(Tagged::TooLarge) => Ok(None),
            Ok(Tagged::TooSlow) | Err(Failure::Abandoned { timed_out: true }) => Err(timed_out()),
            Err(_) => Err(unreadable("its answer broke off")),
        }
    }

    /// Reads the body of a response that is only to be kept. One that cannot be decides nothing.
    pub(super) async fn body_to_keep(
        &self,
        rules: &GuardRules,
        exchange: &mut Exchange,
        end: Instant,
    ) -> Option<BodyPrefix> {
        let read = self.tag_of_probed(rules, exchange, (None, Keep::Body), end).await;
        read.ok().flatten().and_then(|(_, body)| body)
    }

    /// Reads the body of a response for its hash, and for its tag as a tag of this variant. The body is held in
    /// memory only if its text is inspected, or if it is kept.
    pub(crate) async fn tag_body(
        &self,
        rules: &GuardRules,
        exchange: &mut Exchange,
        (variant, keep): (Option<u32>, Keep),
        wait: Duration,
    ) -> Result<Tagged, Failure> {
        let (max_bytes, budget) = (rules.max_hash_size_bytes, (&self.budget, MemoryUse::Probe));
        if matches!(rules.etag, TagSource::Json(_)) || rules.hashes_parts() {
            return Ok(match read_whole(exchange, max_bytes, wait, budget).await? {
                BufferedBody::Complete(body) => {
                    let (tag, digest) = (tag_of(rules, &body, variant), digest_of(&body));
                    Tagged::Whole { tag, digest, body: Some(body).filter(|_| keep == Keep::Body) }
                }
                BufferedBody::TooLarge(_) => Tagged::TooLarge,
                BufferedBody::TooSlow(_) => Tagged::TooSlow,
            });
        }
        let (hashed, body) = match keep {
            Keep::Nothing => (hash_whole(exchange, max_bytes, wait).await?, None),
            Keep::Body => hash_and_keep(exchange, max_bytes, wait, budget).await?,
        };
        Ok(match hashed {
            Hashed::Hash(digest) => {
                let tag = if rules.etag == TagSource::Content { tag_of_bytes(&digest, variant) } else { None };
                Tagged::Whole { tag, digest, body }
            }
            Hashed::TooLarge => Tagged::TooLarge,
            Hashed::TooSlow => Tagged::TooSlow,
        })
    }
}
