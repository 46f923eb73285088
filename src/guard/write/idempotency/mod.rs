//! Recognises the retries of a client's own write (draft-ietf-httpapi-idempotency-key-header-06;
//! `idempotency`).
//!
//! A store that proxies share also remembers the writes that came with a key, each in a record of its own
//! ([`attempt_steps`](crate::core::records::attempt_steps)). With any other store this process remembers them (`in_process`).

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, header};
use pingora::http::{RequestHeader, ResponseHeader};
use tokio::time::Instant;

use super::Writes;
use crate::{
    body::{Body, Client},
    core::{
        http::request_target::split_query,
        records::{
            attempt_end::{AttemptEnd, End, Reached},
            attempt_steps::progress,
            first_attempt::{AttemptSender, Fingerprint, KeptAnswer, SentWrite},
            idempotency::{Progress, REPLAYED, Replay, heeded_key, in_use, recognise},
            steps::take_over,
        },
        refusal::Refusal,
        resource::ResourceKey,
        rights::Obstacle,
        tags::parts_hash::PartsHasher,
    },
    guard::{
        Answer, Halt, Relayed,
        claim::{Claim, Held, Marked},
        knowledge::principal::Presented,
        probe::permission::Permission,
        refusals,
        request::Request,
    },
    store::{Sighting, StoreError},
    upstream::BodyPrefix,
};
use in_process::{Begun, InProcess, ProcessAttempt};

mod in_process;

/// The largest body of an answer that is remembered: answers to writes are short. A replay without it still carries the
/// status and the tag.
pub(crate) const BODY_BYTES_MAX: usize = 64 * 1024;

/// The name of a write: a hash of its resource and its key.
type KeyName = [u8; 32];

/// The place where the writes that came with a key are remembered.
#[derive(Clone)]
pub(crate) enum Replays {
    /// The memory of this process.
    InProcess(Arc<InProcess>),
    /// The store, which other processes use too.
    InStore,
}

/// The name of a write that came with a key.
pub(crate) struct WriteKey {
    name: KeyName,
    sender: AttemptSender,
    /// The record of the write, if it was read in the store.
    seen: Option<Sighting>,
}

/// A write that will be remembered under its key, if it came with one. Dropping it without an end makes it a doubt.
pub(crate) struct KeyedWrite(Option<Named>);

struct Named {
    attempt: Attempt,
    reached: Reached,
    remembered_for: Duration,
}

/// The first attempt at a write.
enum Attempt {
    InProcess(ProcessAttempt),
    InStore(Claim),
}

/// The result of the beginning of a write.
pub(crate) enum Beginning {
    /// The write is the first one with its key, or has none.
    First(KeyedWrite),
    /// The write is a retry, and gets the answer of the first one.
    Replayed(Answer),
}

/// Returns the name of a write that came with a key, on a route that heeds keys.
pub(crate) fn key_of_write(client: &dyn Client, request: &Request) -> Result<Option<WriteKey>, Refusal> {
    let headers = &client.head().headers;
    let Some(key) = heeded_key(headers, request.rules())? else { return Ok(None) };
    let (_, query) = split_query(client.head().raw_path());
    let presented = Presented { headers, query, certificate: client.certificate() };
    let sender = request.sender.principal.of_attempt(presented, request.rules());
    Ok(Some(WriteKey { name: name_of(request, &key), sender, seen: None }))
}

impl Replays {
    /// Creates an empty memory for a store that is shared or not.
    pub(crate) fn new(is_shared: bool) -> Self {
        if is_shared { Self::InStore } else { Self::InProcess(Arc::new(InProcess::new())) }
    }
}

impl Writes {
    /// True if a write may be a retry. If so, no precondition is judged until this is certain.
    pub(crate) async fn may_be_retry(&self, key: Option<&mut WriteKey>) -> Result<bool, Refusal> {
        let Some(key) = key else { return Ok(false) };
        match &self.replays {
            Replays::InProcess(writes) => Ok(writes.has(&key.name)),
            Replays::InStore => {
                let read = Box::pin(self.read_attempt(&ResourceKey::of_keyed_write(key.name))).await?;
                let seen = key.seen.insert(read);
                Ok(progress(&seen.snapshot).is_some())
            }
        }
    }

    /// Begins a write whose body has arrived. A retry gets its answer instead, or is refused.
    pub(crate) async fn begin(
        &self,
        key: Option<WriteKey>,
        received: &RequestHeader,
        request: &Request,
        body: &Body,
    ) -> Result<Beginning, Halt> {
        let Some(WriteKey { name, sender, seen }) = key else { return Ok(Beginning::First(KeyedWrite(None))) };
        let what = (&request.method, received.raw_path());
        let prefixes = request.rules().quirks.content_prefixes;
        let fingerprint = Fingerprint::of(what, &received.headers, &body.digest(), prefixes);
        let sent = SentWrite { fingerprint, sender };
        let (remembered_for, late_write_window) =
            (request.rules().idempotency_ttl, request.upstream().late_write_window);
        let begun = match &self.replays {
            Replays::InProcess(writes) => match writes.begin(name, sent, remembered_for, late_write_window) {
                Begun::First(attempt) => Ok(Attempt::InProcess(attempt)),
                Begun::Known(first, progress) => Err((first, progress)),
                Begun::Full => return Err(refusals::of_store(&StoreError::Full).into()),
            },
            Replays::InStore => {
                let key = ResourceKey::of_keyed_write(name);
                Box::pin(self.begin_in_store(request, &key, seen, sent)).await?.map(Attempt::InStore)
            }
        };
        match begun {
            Ok(attempt) => {
                Ok(Beginning::First(KeyedWrite(Some(Named { attempt, reached: Reached::Nothing, remembered_for }))))
            }
            Err(first) => Box::pin(self.replay(request, first, sent)).await.map(Beginning::Replayed),
        }
    }

    /// Gives a retry the answer of its first attempt. Other credentials may belong to a client that has lost the right
    /// to read, or does not have it yet: then the backend answers first. Without rights no client learns that there was
    /// a first attempt.
    async fn replay(
        &self,
        request: &Request,
        first: (SentWrite, Progress),
        further: SentWrite,
    ) -> Result<Answer, Halt> {
        let (one, other) = (first.0.sender, further.sender);
        let mut permission = Permission::Granted;
        if one != other {
            let snapshot = self.knowledge.record(request).await?;
            if one.owner == other.owner {
                // One credential of this identity may have been let read, and the others not.
                permission = self.probes.ask_permission(request, &snapshot, Obstacle::OwnAttempt).await?;
            } else {
                self.probes.must_know(request, &snapshot, Obstacle::Attempt).await?;
            }
        }
        let Replay { answer, needs_permission } = recognise(first, further)?;
        if needs_permission && permission == Permission::Unknown {
            return Err(
                in_use("it came with other credentials, and the backend does not tell whether yours may read").into()
            );
        }
        Ok(replayed(answer)?)
    }

    /// Begins the first attempt at a write in the store. If there is one already, returns it instead.
    async fn begin_in_store(
        &self,
        request: &Request,
        key: &ResourceKey,
        seen: Option<Sighting>,
        sent: SentWrite,
    ) -> Result<Result<Claim, (SentWrite, Progress)>, Refusal> {
        let seen = match self.as_of_now(seen).await? {
            Some(seen) => seen,
            None => self.read_attempt(key).await?,
        };
        if let Some(first) = progress(&seen.snapshot) {
            return Ok(Err(first));
        }
        let marked = self.claims.mark_attempt(request, key, &seen, sent).await;
        Ok(match marked.map_err(|error| refusals::of_store(&error))? {
            Marked::Done(claim) => Ok(claim),
            // Another attempt has come first, and may have left no trace by now.
            Marked::Conflict(current) => Err(progress(&current).unwrap_or((sent, Progress::InFlight))),
            Marked::Full => Err((sent, Progress::InFlight)),
        })
    }

    /// Reads the record of a write. If the owner of an attempt is dead, makes it a doubt.
    async fn read_attempt(&self, key: &ResourceKey) -> Result<Sighting, Refusal> {
        let since = Instant::now();
        let read = self.knowledge.records.update(key, None, take_over).await;
        let snapshot = read.map_err(|error| refusals::of_store(&error))?.snapshot;
        Ok(Sighting { snapshot, since })
    }
}

impl KeyedWrite {
    /// True if the write came with a key.
    pub(crate) fn is_named(&self) -> bool {
        self.0.is_some()
    }

    /// Notes how far the write has come at the upstream.
    pub(crate) fn reached(&mut self, reached: Reached) {
        if let Self(Some(named)) = self {
            named.reached = reached;
        }
    }

    /// Notes that the upstream has answered the write with this head.
    pub(crate) fn answered(&mut self, head: &ResponseHeader) {
        self.reached(Reached::answer(head.status, &head.headers));
    }

    /// Notes that the write is about to be sent, and gives its claim no more time than its attempt has.
    pub(crate) fn bound(&mut self, claim: &mut Held) {
        match &mut self.0 {
            Some(Named { attempt: Attempt::InStore(attempt), .. }) => {
                attempt.may_be_sent();
                claim.bounded_by(attempt);
            }
            Some(Named { attempt: Attempt::InProcess(attempt), .. }) => attempt.may_be_sent(),
            None => {}
        }
    }

    /// Remembers the end of the write, before its client gets the answer.
    pub(crate) fn end(self, answer: &Result<Answer, Halt>) -> impl Future<Output = ()> + Send + use<> {
        let ended = self.0.map(|named| (end_of(named.reached, answer), named));
        async move {
            match ended {
                Some((end, Named { attempt: Attempt::InProcess(mut attempt), .. })) => attempt.end(end),
                Some((end, Named { attempt: Attempt::InStore(claim), remembered_for, .. })) => {
                    Box::pin(claim.end_attempt(end, remembered_for)).await;
                }
                None => {}
            }
        }
    }
}

/// Returns the end to remember of a write that got this answer.
fn end_of(reached: Reached, answer: &Result<Answer, Halt>) -> AttemptEnd {
    let in_doubt = matches!(answer, Err(Halt::Refused(refusal)) if refusal.in_doubt);
    match (End::of(reached, in_doubt), answer) {
        (End::Nothing, _) => AttemptEnd::Nothing,
        (End::Doubt, _) => AttemptEnd::Doubt,
        (End::Unknown, _) => AttemptEnd::Unknown,
        (End::Answered(status), Ok(Answer::Relayed(relayed)) | Err(Halt::Denied(relayed))) => {
            AttemptEnd::Answered(KeptAnswer::of(status, &relayed.head.headers, whole_body(relayed)))
        }
        // All of its answer was lost, except for its status.
        (End::Answered(status), _) => AttemptEnd::Answered(KeptAnswer::of(status, &HeaderMap::new(), None)),
    }
}

/// Returns the body of an answer if it has arrived completely and is short.
fn whole_body(relayed: &Relayed) -> Option<Bytes> {
    let is_whole = relayed.rest.is_none() && relayed.begun.len() <= BODY_BYTES_MAX;
    is_whole.then(|| relayed.begun.chunks().concat().into())
}

fn replayed(answer: KeptAnswer) -> pingora::Result<Answer> {
    let mut head = Box::new(ResponseHeader::build(answer.status, Some(answer.fields.len() + 1))?);
    for (name, value) in answer.fields {
        head.append_header(name, value)?;
    }
    head.insert_header(REPLAYED, "true")?;
    head.insert_header(header::CONTENT_LENGTH, answer.body.as_ref().map_or(0, Bytes::len))?;
    let begun = answer.body.map_or_else(BodyPrefix::default, BodyPrefix::of);
    Ok(Answer::Relayed(Box::new(Relayed { head, begun, rest: None })))
}

/// Returns the name of a write. No client is part of it: a client that sends the key again means the same write.
fn name_of(request: &Request, key: &[u8]) -> KeyName {
    let mut hasher = PartsHasher::default();
    hasher.add(request.key.as_str().as_bytes()).add(key).hash()
}
