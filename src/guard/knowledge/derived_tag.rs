//! The tag of a response's representation, taken from the source that the route names (`etag`). A version tag is not
//! derived from a response: [`Knowledge::version_tag`](super::Knowledge::version_tag) makes it from the record.

use http::HeaderMap;

use crate::{
    core::{
        policy::{GuardRules, TagSource},
        tags::{
            entity_tag::EntityTag,
            issued_tag::{content_tag, variant_content_tag},
            json::{json_without, tag_from_json},
            tag_member::without_tag,
            validators::{Validators, tag_from_field},
        },
    },
    guard::request::Request,
    upstream::BodyPrefix,
};

/// The tag that the head of a response states, as the backend spells it. `None` if the route's tags do not come from
/// heads.
pub(crate) fn stated_tag(request: &Request, headers: &HeaderMap) -> Option<EntityTag> {
    match &request.rules().etag {
        TagSource::Upstream | TagSource::Delegate => {
            let (validators, unusable) = Validators::from_headers(headers);
            if let Some(reason) = unusable {
                tracing::warn!(route = %request.route().name, %reason, "the proxy cannot use the upstream's tag");
            }
            validators.tag
        }
        TagSource::Header(field) => tag_from_field(headers, field),
        TagSource::Content | TagSource::Json(_) | TagSource::Version => None,
    }
}

/// The tag of a whole body. `None` if the route's tags are not made from bodies.
pub(crate) fn tag_of(rules: &GuardRules, body: &BodyPrefix, variant: Option<u32>) -> Option<EntityTag> {
    match &rules.etag {
        TagSource::Content => tag_of_bytes(&digest_of_state(rules, body), variant),
        TagSource::Json(pointer) => tag_from_json(&body.chunks().concat(), pointer),
        _ => None,
    }
}

/// The hash of what a content tag covers.
fn digest_of_state(rules: &GuardRules, body: &BodyPrefix) -> blake3::Hash {
    if !rules.hashes_parts() {
        return digest_of(body);
    }
    let mut text = body.chunks().concat();
    if let Some(taken) = rules.tag_member.as_ref().and_then(|place| without_tag(&text, place)) {
        text = taken.rest;
    }
    let ignores = !rules.ignored_json.is_empty();
    let form = ignores.then(|| json_without(&text, &rules.ignored_json)).flatten();
    blake3::hash(&form.unwrap_or(text))
}

/// The tag of bytes with this hash. If the bytes are one of several variants, the tag names the variant.
pub(crate) fn tag_of_bytes(digest: &blake3::Hash, variant: Option<u32>) -> Option<EntityTag> {
    variant.map_or_else(|| content_tag(digest), |variant| variant_content_tag(digest, variant))
}

/// The hash of the bytes of a whole body.
pub(crate) fn digest_of(body: &BodyPrefix) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    for chunk in body.chunks() {
        hasher.update(chunk);
    }
    hasher.finalize()
}
