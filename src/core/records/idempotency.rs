//! Recognising the retry of a write by its key (draft-ietf-httpapi-idempotency-key-header-06).
//!
//! # Design
//!
//! *Why is not every retry carried out or replayed?* A write in doubt has no answer yet: its retry gets a refusal that
//! reports the doubt. When the doubt is over, it stays unknown whether the write was applied, so no retry is carried
//! out. A client that accepts a second write says so with a new key.
//!
//! *Why do so few fields tell one write from another?* Any other field may differ between two attempts: clients, and
//! proxies on the way, number and trace them, and tokens are renewed. A retry that was taken for another write would
//! be refused, and a list of such fields is never complete.
//!
//! *Why do the preconditions count as payload?* A replayed success tells the client that its write was applied to the
//! version that it names. For any other version that would be false.
//!
//! *Why is a key looked up by its resource alone?* The key names one write, no matter who sends it. A client may look
//! like another one, with a renewed token or another cookie. So the identity decides only who gets the answer.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Method, StatusCode, header};
use thiserror::Error;

use super::first_attempt::{Fingerprint, KeptAnswer, SentWrite};
use crate::core::{
    http::readings::destination::{DEPTH, DESTINATION, OVERWRITE},
    policy::{GuardRules, Idempotency},
    refusal::{Code, Refusal},
    tags::parts_hash::PartsHasher,
};

/// The field that names a write (draft-ietf-httpapi-idempotency-key-header).
pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The field that marks a replayed response. The draft has none; this is the one that most services use.
pub const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// The longest key, in bytes. A UUID has 36.
const KEY_BYTES_MAX: usize = 255;

/// The time after which a client should retry for the answer to a write in flight. Most writes take less.
const RETRY_SOON: Duration = Duration::from_secs(1);

/// The start of the fields that describe the content (RFC 9110 section 8.3 and later).
const OF_CONTENT: &str = "content-";

/// The start of the preconditions, and the whole name of the one of `WebDAV` (RFC 4918 section 10.4).
const OF_CONDITIONS: &str = "if-";
const IF: &str = "if";

/// Response fields that a replay carries too: those that describe the resource, and not one exchange.
const REPLAYED_FIELDS: [HeaderName; 11] = [
    header::ETAG,
    header::LOCATION,
    header::CONTENT_LOCATION,
    header::LINK,
    header::CACHE_CONTROL,
    header::VARY,
    HeaderName::from_static("preference-applied"),
    header::CONTENT_TYPE,
    header::CONTENT_ENCODING,
    header::CONTENT_LANGUAGE,
    header::CONTENT_DISPOSITION,
];

/// The prefixes of further replayed fields: those that a browser needs to show the replay to its page, and those in
/// which object stores describe the object.
const REPLAYED_PREFIXES: [&str; 3] = ["access-control-", "x-amz-", "x-ms-"];

/// An idempotency key that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the idempotency key cannot be read: send it once, as a quoted string of 1 to 255 visible ASCII characters")]
pub struct MalformedKey;

/// Reads the key of a write from the first of these fields that is present: the string within the quotes of a
/// structured field (RFC 9651 section 3.3.3). A value without quotes is accepted too, as services older than the draft
/// do. A field that an SDK also sends for other purposes gives neither a key nor an error if it cannot be read.
fn key_of(headers: &HeaderMap, fields: &[HeaderName]) -> Result<Option<Vec<u8>>, MalformedKey> {
    let Some(name) = fields.iter().find(|name| headers.contains_key(*name)) else { return Ok(None) };
    let mut lines = headers.get_all(name).iter();
    let key = match (lines.next(), lines.next()) {
        (Some(line), None) => key(line.as_bytes().trim_ascii()),
        _ => None,
    };
    if key.is_none() && *name == IDEMPOTENCY_KEY { Err(MalformedKey) } else { Ok(key) }
}

/// Returns the key of a write on a route with these rules, if the route heeds keys.
///
/// # Errors
///
/// The key cannot be read, or is required and missing.
pub fn heeded_key(headers: &HeaderMap, rules: &GuardRules) -> Result<Option<Vec<u8>>, Refusal> {
    match key_of(headers, rules.quirks.idempotency_fields) {
        _ if rules.idempotency == Idempotency::Off => Ok(None),
        Ok(None) if rules.idempotency == Idempotency::Required => Err(missing()),
        read => read.map_err(|malformed| Refusal::new(Code::MalformedRequest, malformed.to_string())),
    }
}

/// The key that a field value holds.
fn key(value: &[u8]) -> Option<Vec<u8>> {
    let (key, is_bare) = match value.strip_prefix(b"\"") {
        Some(rest) => (quoted(rest)?, false),
        None => (value.to_vec(), true),
    };
    let is_character = |octet: &u8| match octet {
        b' ' | b'"' | b'\\' | b',' | b';' => !is_bare,
        _ => octet.is_ascii_graphic(),
    };
    ((1..=KEY_BYTES_MAX).contains(&key.len()) && key.iter().all(is_character)).then_some(key)
}

/// The text before the closing quote, which must end the value.
fn quoted(rest: &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::with_capacity(rest.len());
    let mut octets = rest.iter();
    loop {
        match octets.next()? {
            b'"' => return octets.next().is_none().then_some(text),
            b'\\' => text.push(*octets.next().filter(|octet| matches!(octet, b'"' | b'\\'))?),
            octet => text.push(*octet),
        }
    }
}

impl Fingerprint {
    /// The fingerprint of a write by this method to this target (with its query), with these fields and a body with
    /// this hash. Fields with one of the prefixes count as content.
    pub fn of(
        (method, target): (&Method, &[u8]),
        headers: &HeaderMap,
        body: &blake3::Hash,
        content_prefixes: &[&str],
    ) -> Self {
        let mut hasher = PartsHasher::default();
        hasher.add(method.as_str().as_bytes()).add(target).add(body.as_bytes());
        let mut names: Vec<&HeaderName> = headers.keys().filter(|name| counts(name, content_prefixes)).collect();
        names.sort_unstable_by_key(|name| name.as_str());
        for name in names {
            for value in headers.get_all(name) {
                hasher.add(name.as_str().as_bytes());
                hasher.add(value.as_bytes());
            }
        }
        Self(hasher.hash())
    }
}

/// True if a field tells one write from another: it describes the content, is a precondition, or tells where a COPY or
/// MOVE leads. The length of the content only frames it.
fn counts(name: &HeaderName, content_prefixes: &[&str]) -> bool {
    let text = name.as_str();
    let is_of_content = text.starts_with(OF_CONTENT) && name != header::CONTENT_LENGTH;
    let is_condition = text == IF || text.starts_with(OF_CONDITIONS);
    let is_of_destination = [&DESTINATION, &OVERWRITE, &DEPTH].contains(&name);
    is_of_content || is_condition || is_of_destination || content_prefixes.iter().any(|prefix| text.starts_with(prefix))
}

impl KeptAnswer {
    /// The part of an answer that is kept.
    pub fn of(status: StatusCode, answer: &HeaderMap, body: Option<Bytes>) -> Self {
        let describes_body =
            |name: &HeaderName| name.as_str().starts_with("content-") && name != header::CONTENT_LOCATION;
        let is_kept = |name: &HeaderName| {
            let is_replayed = REPLAYED_FIELDS.contains(name)
                || REPLAYED_PREFIXES.iter().any(|prefix| name.as_str().starts_with(prefix));
            is_replayed && (body.is_some() || !describes_body(name))
        };
        let kept = answer.iter().filter(|(name, _)| is_kept(name));
        let fields = kept.map(|(name, value)| (name.to_string(), value.as_bytes().to_vec())).collect();
        Self { status: status.as_u16(), fields, body }
    }
}

/// How far the first write with a key has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The write has not ended.
    InFlight,
    /// The write was sent and no answer came. It may still be applied for this long.
    InDoubt(Duration),
    /// The write was sent and not confirmed. It can no longer be applied, but it may have been, wholly or in part.
    Unknown,
    /// The write was applied, or may have been, and this was the answer.
    Answered(KeptAnswer),
}

/// The answer of the first write, for a further write with its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    /// The answer.
    pub answer: KeptAnswer,
    /// True if the backend has to let the sender read first: the credentials are not those of the first write.
    pub needs_permission: bool,
}

/// Returns the answer of the first write to a further write with its key, or a refusal.
pub fn recognise((sent, progress): (SentWrite, Progress), further: SentWrite) -> Result<Replay, Refusal> {
    if sent.sender.owner != further.sender.owner {
        return Err(in_use("it came with another identity"));
    }
    if sent.fingerprint != further.fingerprint {
        let detail = "this idempotency key was used for another write: send a retry with the method, target, body, \
                      Content fields and preconditions of its first attempt, and any other write with a new key";
        return Err(Refusal::new(Code::IdempotencyMismatch, detail));
    }
    let needs_permission = sent.sender.credentials != further.sender.credentials;
    match progress {
        Progress::Answered(answer) => Ok(Replay { answer, needs_permission }),
        Progress::InFlight => {
            let detail = "the first attempt of this write has not ended: send it again later to get its answer";
            Err(Refusal::new(Code::IdempotencyInFlight, detail).retry_after(RETRY_SOON))
        }
        Progress::InDoubt(remaining) => {
            let detail = "the first attempt of this write was sent and no answer came: whether it is applied cannot \
                          be known yet. Read the resource when the time is over";
            Err(Refusal::new(Code::IdempotencyInFlight, detail).retry_after(remaining).in_doubt())
        }
        Progress::Unknown => {
            let detail = "the first attempt of this write was sent and not confirmed: it may have been applied. Read \
                          the resource, and if the write may be repeated, send it with a new key";
            Err(Refusal::new(Code::IdempotencyOutcomeUnknown, detail))
        }
    }
}

/// The refusal of a write whose key belongs to another write that it may not know, for this reason.
pub fn in_use(reason: &str) -> Refusal {
    let detail = format!(
        "a write with this idempotency key was sent to this resource before, and {reason}; nothing was written. Read \
         the resource, and send another write with a new key"
    );
    Refusal::new(Code::IdempotencyKeyInUse, detail)
}

/// The refusal of a write without a key on a route that requires one.
fn missing() -> Refusal {
    let detail = "send an Idempotency-Key, a new one for each write and the same one for its retries";
    Refusal::new(Code::IdempotencyKeyMissing, detail)
}

#[cfg(test)]
#[path = "idempotency_tests.rs"]
mod tests;
