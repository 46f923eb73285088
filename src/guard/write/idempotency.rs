//! Recognises the retries of a client's own successful write (draft-ietf-httpapi-idempotency-key-header-06;
//! `idempotency`).
//!
//! The answers are remembered in this process, for a limited time and within bounds. Safety does not depend on them: a
//! retry that is not recognised is judged by its preconditions like any other write.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use moka::{Expiry, policy::EvictionPolicy, sync::Cache};
use parking_lot::Mutex;
use pingora::http::{RequestHeader, ResponseHeader};

use super::Writes;
use crate::{
    body::Body,
    core::{
        idempotency::{End, Fingerprint, Progress, REPLAYED, Success, key_of, missing, recognise},
        parts_hash::PartsHasher,
        policy::Idempotency,
        refusal::{Code, Refusal},
    },
    guard::{
        answer::{Answer, Relayed},
        request::Request,
    },
    upstream::BodyPrefix,
};

/// The approximate bytes of all remembered answers: a hundred thousand without a body.
const MEMORY_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// The approximate bytes of a remembered answer besides its fields and its body.
const ENTRY_BYTES: usize = 300;
/// The largest body of an answer that is remembered: answers to writes are short. A replay without it still carries the
/// status and the tag.
pub(crate) const BODY_BYTES_MAX: usize = 64 * 1024;

/// One write of one client: a hash of the client's identity, the method, the resource, and the client's key.
pub(crate) type KeyName = [u8; 32];

/// The writes that came with a key.
pub(crate) struct Replays {
    /// The writes that have not ended: at most the number of requests in flight.
    in_flight: Mutex<HashMap<KeyName, Fingerprint>>,
    ended: Cache<KeyName, Arc<EndedWrite>>,
}

/// A write whose outcome a retry is answered with.
struct EndedWrite {
    fingerprint: Fingerprint,
    /// `None` while it is in doubt.
    success: Option<Success>,
    until: Instant,
}

/// Drops each ended write when its time is over.
struct AtItsEnd;

impl Expiry<KeyName, Arc<EndedWrite>> for AtItsEnd {
    fn expire_after_create(&self, _name: &KeyName, ended: &Arc<EndedWrite>, now: Instant) -> Option<Duration> {
        Some(ended.until.saturating_duration_since(now))
    }

    fn expire_after_update(
        &self,
        name: &KeyName,
        ended: &Arc<EndedWrite>,
        now: Instant,
        _left: Option<Duration>,
    ) -> Option<Duration> {
        self.expire_after_create(name, ended, now)
    }
}

/// A write that will be remembered under its key, if it came with one. Dropping it without an end makes it a doubt.
pub(crate) struct KeyedWrite(Option<Named>);

struct Named {
    replays: Arc<Replays>,
    name: KeyName,
    fingerprint: Fingerprint,
    answered: Option<StatusCode>,
    has_ended: bool,
    replay_for: Duration,
    late_write_window: Duration,
}

/// Returns the name of a write that came with a key, on a route that heeds keys.
pub(crate) fn name_of(received: &RequestHeader, request: &Request) -> Result<Option<KeyName>, Refusal> {
    if request.rules.idempotency == Idempotency::Off {
        return Ok(None);
    }
    let key = key_of(&received.headers, request.rules.quirks.idempotency_fields)
        .map_err(|malformed| Refusal::new(Code::MalformedRequest, malformed.to_string()))?;
    match key {
        Some(key) => Ok(Some(hashed(request, &key))),
        None if request.rules.idempotency == Idempotency::Required => Err(missing()),
        None => Ok(None),
    }
}

impl Writes {
    /// Whether a write may be a retry. If so, no precondition is judged until this is certain.
    pub(crate) fn may_be_retry(&self, name: Option<&KeyName>) -> bool {
        name.is_some_and(|name| self.replays.first(name, &self.replays.in_flight.lock()).is_some())
    }

    /// Begins a write whose body has arrived. A retry gets its answer instead, or is refused.
    pub(crate) fn begin(
        &self,
        name: Option<KeyName>,
        received: &RequestHeader,
        request: &Request,
        body: &Body,
    ) -> Result<KeyedWrite, Answer> {
        let Some(name) = name else { return Ok(KeyedWrite(None)) };
        let fingerprint = Fingerprint::of(received.raw_path(), &received.headers, &body.digest());
        let mut in_flight = self.replays.in_flight.lock();
        if let Some(first) = self.replays.first(&name, &in_flight) {
            drop(in_flight);
            return Err(replay(recognise(first, fingerprint)?)?);
        }
        in_flight.insert(name, fingerprint);
        Ok(KeyedWrite(Some(Named {
            replays: Arc::clone(&self.replays),
            name,
            fingerprint,
            answered: None,
            has_ended: false,
            replay_for: request.rules.idempotency_ttl,
            late_write_window: request.upstream().late_write_window,
        })))
    }
}

impl Replays {
    /// Creates an empty memory.
    pub(crate) fn new() -> Self {
        let weight = |_: &KeyName, ended: &Arc<EndedWrite>| {
            u32::try_from(ENTRY_BYTES + ended.success.as_ref().map_or(0, Success::bytes)).unwrap_or(u32::MAX)
        };
        // The oldest answer is evicted first: its client is the least likely to retry.
        let ended = Cache::builder().max_capacity(MEMORY_BYTES_MAX).weigher(weight);
        let ended = ended.eviction_policy(EvictionPolicy::lru()).expire_after(AtItsEnd).build();
        Self { in_flight: Mutex::default(), ended }
    }

    /// Returns the first write of this name, and its progress.
    fn first(&self, name: &KeyName, in_flight: &HashMap<KeyName, Fingerprint>) -> Option<(Fingerprint, Progress)> {
        if let Some(fingerprint) = in_flight.get(name) {
            return Some((*fingerprint, Progress::InFlight));
        }
        let ended = self.ended.get(name)?;
        let in_doubt = || Progress::InDoubt(ended.until.saturating_duration_since(Instant::now()));
        Some((ended.fingerprint, ended.success.clone().map_or_else(in_doubt, Progress::Succeeded)))
    }
}

impl KeyedWrite {
    /// Whether the write came with a key.
    pub(crate) fn is_named(&self) -> bool {
        self.0.is_some()
    }

    /// Notes that the upstream has answered the write with this status.
    pub(crate) fn answered(&mut self, status: StatusCode) {
        if let Self(Some(named)) = self {
            named.answered = Some(status);
        }
    }

    /// Remembers the end of the write, before its client gets the answer.
    pub(crate) fn end(mut self, answer: &Result<Answer, Answer>) {
        let Some(named) = &mut self.0 else { return };
        let (Ok(answer) | Err(answer)) = answer;
        let in_doubt = matches!(answer, Answer::Refused(refusal) if refusal.in_doubt);
        named.end(
            End::of(named.answered, in_doubt),
            match answer {
                Answer::Relayed(relayed) => Some(relayed),
                _ => None,
            },
        );
    }
}

impl Named {
    fn end(&mut self, end: End, relayed: Option<&Relayed>) {
        let ended = match (end, relayed) {
            (End::Nothing, _) => None,
            (End::Doubt, _) => Some((None, self.late_write_window)),
            (End::Success(status), Some(relayed)) => {
                let success = Success::of(status, &relayed.head.headers, whole_body(relayed));
                Some((Some(success), self.replay_for))
            }
            // All of its answer was lost, except for its status.
            (End::Success(status), None) => Some((Some(Success::of(status, &HeaderMap::new(), None)), self.replay_for)),
        };
        let mut in_flight = self.replays.in_flight.lock();
        if let Some((success, ttl)) = ended {
            let ended = EndedWrite { fingerprint: self.fingerprint, success, until: Instant::now() + ttl };
            self.replays.ended.insert(self.name, Arc::new(ended));
        }
        in_flight.remove(&self.name);
        self.has_ended = true;
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        if !self.has_ended {
            self.end(End::Doubt, None);
        }
    }
}

/// Returns the body of an answer if it has arrived completely and is short.
fn whole_body(relayed: &Relayed) -> Option<Bytes> {
    let is_whole = relayed.rest.is_none() && relayed.begun.len() <= BODY_BYTES_MAX;
    is_whole.then(|| relayed.begun.chunks().concat().into())
}

fn replay(success: Success) -> pingora::Result<Answer> {
    let mut head = Box::new(ResponseHeader::build(success.status, Some(success.fields.len() + 1))?);
    for (name, value) in &success.fields {
        head.append_header(name.clone(), value.clone())?;
    }
    head.insert_header(REPLAYED, "true")?;
    head.insert_header(header::CONTENT_LENGTH, success.body.as_ref().map_or(0, Bytes::len))?;
    let begun = success.body.map_or_else(BodyPrefix::default, BodyPrefix::of);
    Ok(Answer::Relayed(Box::new(Relayed { head, begun, rest: None })))
}

/// Returns the name of a client's write. It depends on all credentials of the client, so another signer under the same
/// identity counts as another client.
fn hashed(request: &Request, key: &[u8]) -> KeyName {
    let client = request.sender.principal.name();
    let mut hasher = PartsHasher::default();
    hasher.add(&client).add(request.method.as_str().as_bytes()).add(request.key.as_str().as_bytes()).add(key).hash()
}

#[cfg(test)]
#[path = "idempotency_tests.rs"]
mod tests;
