//! Tags that are made of the body of a response (`etag = "content"` and `"json:/pointer"`).

use std::time::Duration;

use crate::{
    body::MemoryUse,
    core::{
        entity_tag::EntityTag,
        issued_tag::{content_tag, variant_content_tag},
        json::{json_without, tag_from_json},
        policy::{GuardRules, TagSource},
    },
    guard::Guard,
    upstream::{BodyPrefix, BufferedBody, Exchange, Failure, Hashed, hash_whole, read_whole},
};

/// What the body of a response came to.
pub(crate) enum Tagged {
    /// It was read to its end.
    Whole {
        /// Its tag, where tags are made of bodies.
        tag: Option<EntityTag>,
        /// The hash of its bytes.
        digest: blake3::Hash,
    },
    /// It is larger than `hash_max`.
    TooLarge,
    /// It did not arrive in time.
    TooSlow,
}

impl Guard {
    /// Reads the body of a response, for its tag as that of this variant, and its hash. It is held in memory only where its text is looked at.
    pub(crate) async fn tag_body(
        &self,
        rules: &GuardRules,
        exchange: &mut Exchange,
        variant: Option<u32>,
        wait: Duration,
    ) -> Result<Tagged, Failure> {
        let max_bytes = rules.hash_max_bytes;
        if matches!(rules.etag, TagSource::Json(_)) || !rules.ignored_json.is_empty() {
            return Ok(match read_whole(exchange, max_bytes, wait, self.budget_for(MemoryUse::Probe)).await? {
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

/// The tag of a whole body, where tags are made of bodies.
pub(crate) fn tag_of(rules: &GuardRules, body: &BodyPrefix, variant: Option<u32>) -> Option<EntityTag> {
    match &rules.etag {
        TagSource::Content => {
            let looks = !rules.ignored_json.is_empty();
            let rest = looks.then(|| json_without(&body.chunks().concat(), &rules.ignored_json)).flatten();
            tag_of_bytes(&rest.map_or_else(|| digest_of(body), |rest| blake3::hash(&rest)), variant)
        }
        TagSource::Json(pointer) => tag_from_json(&body.chunks().concat(), pointer),
        _ => None,
    }
}

fn tag_of_bytes(digest: &blake3::Hash, variant: Option<u32>) -> Option<EntityTag> {
    variant.map_or_else(|| content_tag(digest), |variant| variant_content_tag(digest, variant))
}

fn digest_of(body: &BodyPrefix) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    for chunk in body.chunks() {
        hasher.update(chunk);
    }
    hasher.finalize()
}
