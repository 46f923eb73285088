//! The tag in the body of a request (`tag_member`): ifmatch has put it there, and takes it out again before the body is
//! hashed or forwarded.
//!
//! # Design
//!
//! *Is it a condition?* No: a client that means one says so in `If-Match`, and the service that it knows ignores the
//! member. But a body that comes from another state than `If-Match` names is a mistake of the client.
//!
//! *Why are parts of resources not served?* A part shows bytes of the backend, and the rest of them has other places. An
//! answer with the whole is always right.

use std::convert::identity;

use http::{HeaderMap, HeaderName, header};
use pingora::http::RequestHeader;
use serde_json::Value;

use crate::{
    body::{Body, content_length},
    core::{
        http::readings::version::{malformed, version_of},
        policy::GuardRules,
        refusal::{Code, Refusal},
        tags::{
            json::JsonPointer,
            precondition::{Preconditions, TagCondition},
            tag_member::without_tag,
        },
    },
    guard::{Halt, ask_for_identity, refusals},
};

/// Fields that state a checksum of the content.
const CHECKSUMS: [HeaderName; 4] = [
    HeaderName::from_static("content-digest"),
    HeaderName::from_static("content-md5"),
    HeaderName::from_static("digest"),
    HeaderName::from_static("repr-digest"),
];

/// Requests what the tag can be put into: the whole, without compression.
pub(super) fn ask_for_whole(head: &mut RequestHeader) -> pingora::Result<()> {
    head.remove_header(&header::RANGE);
    head.remove_header(&header::IF_RANGE);
    ask_for_identity(head)
}

/// True if the content of a write may have a tag.
pub(super) fn may_have_tag(headers: &HeaderMap, rules: &GuardRules) -> bool {
    let is_short = content_length(headers).is_none_or(|length| length <= rules.max_hash_size_bytes as u64);
    rules.tag_member.is_some() && is_short && !headers.contains_key(header::CONTENT_ENCODING)
}

/// Takes the tag out of the content of a write.
pub(super) async fn take_tag(head: &RequestHeader, rules: &GuardRules, body: Body) -> Result<Body, Halt> {
    let Some(place) = rules.tag_member.as_ref().filter(|_| body.len() <= rules.max_hash_size_bytes as u64) else {
        return Ok(body);
    };
    let wanted = place.clone();
    let take = move |content: &mut dyn std::io::Read| {
        let mut text = Vec::new();
        content.read_to_end(&mut text).map(|_length| without_tag(&text, &wanted))
    };
    let taken = body.read_with(take).await.and_then(identity).map_err(|error| refusals::of_spool(&error))?;
    let Some(taken) = taken else { return Ok(body) };
    must_agree(head, rules, (place, taken.value.ok_or_else(|| ambiguous(place))?))?;
    if CHECKSUMS.iter().any(|name| head.headers.contains_key(name)) {
        return Err(checksummed(place).into());
    }
    Ok(body.edited(taken.rest))
}

/// Refuses a body whose tag is none of those in `If-Match`.
fn must_agree(head: &RequestHeader, rules: &GuardRules, (place, value): (&JsonPointer, Value)) -> Result<(), Refusal> {
    // Fields that cannot be read are refused when they are judged.
    let Ok(mut conditions) = Preconditions::parse(&head.headers) else { return Ok(()) };
    conditions.restore(&rules.etag_suffixes, rules.accept_weak_own);
    let Some(TagCondition::Tags(named)) = &conditions.if_match else { return Ok(()) };
    let tag = match value {
        Value::Null => return Ok(()),
        Value::String(text) => version_of(text.as_bytes())?,
        Value::Number(number) => version_of(number.to_string().as_bytes())?,
        Value::Bool(_) | Value::Array(_) | Value::Object(_) => return Err(ambiguous(place)),
    };
    if named.iter().any(|other| other.weak_matches(&tag)) {
        return Ok(());
    }
    Err(malformed(format!(
        "If-Match names another tag than the member {place} of the body: send the tag of the state that the body was made \
         from, or leave the member out"
    )))
}

fn ambiguous(place: &JsonPointer) -> Refusal {
    malformed(format!("the member {place} of the body has the tag: send it once, as a string, or leave it out"))
}

fn checksummed(place: &JsonPointer) -> Refusal {
    let detail = format!(
        "ifmatch takes the member {place} out of the body, so a checksum of the body could not be checked: leave the member \
         out, or the field with the checksum"
    );
    Refusal::new(Code::MalformedRequest, detail)
}
