//! The response of an exchange.

use std::{ops::Range, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use pingora::http::ResponseHeader;
use tokio::time::Instant;

use super::{Failure, Wire};
use crate::{
    body::{BodyBudget, MemoryUse, Share, content_length},
    patience::within,
};

/// How much of an unwanted body is read: about as much as arrives in one piece with the head.
const UNWANTED_BODY_BYTES: usize = 64 * 1024;
/// How long an unwanted body may take to arrive.
const UNWANTED_BODY_WAIT: Duration = Duration::from_millis(50);

/// An exchange whose response has begun. Dropping it closes the connection; [`Exchange::finish`] keeps it.
pub struct Exchange {
    wire: Box<dyn Wire>,
    head: Box<ResponseHeader>,
    /// The length of the body as declared in the head.
    declared: Option<u64>,
    /// The bytes of the body that have arrived.
    arrived: u64,
    is_stream: bool,
    server: usize,
    /// The first failure of the body. A body that failed once never reaches an orderly end.
    failure: Option<Failure>,
}

impl Exchange {
    /// Creates an exchange with the server at this index. The head of the response is here, and its content comes over
    /// `wire`.
    pub fn of(wire: Box<dyn Wire>, head: Box<ResponseHeader>, server: usize) -> Self {
        let declared = content_length(&head.headers);
        let is_stream = is_stream(&head.headers);
        let mut exchange = Self { wire, head, declared, arrived: 0, is_stream, server, failure: None };
        exchange.leave_slot_at_end();
        exchange
    }

    /// Leaves the server to the next request once the last byte of the body is here, even before the protocol has ended
    /// the response. A client that has read an answer to its end never meets the slot of its own last request.
    fn leave_slot_at_end(&mut self) {
        if self.declared == Some(self.arrived) || self.wire.is_complete() {
            self.wire.leave_slot();
        }
    }

    /// Returns the head of the final response as it came, or without fields once it has been taken.
    pub fn head(&self) -> &ResponseHeader {
        &self.head
    }

    /// Takes the head out, to be changed and sent on. [`Exchange::head`] keeps its status.
    pub fn take_head(&mut self) -> Box<ResponseHeader> {
        let (mut left, ()) = http::Response::new(()).into_parts();
        left.status = self.head.status;
        std::mem::replace(&mut self.head, Box::new(left.into()))
    }

    /// True if the body is meant to be read as it arrives. It may never end, so the proxy never waits for it.
    pub fn is_stream(&self) -> bool {
        self.is_stream
    }

    /// Returns the index of the server that answered, in [`Upstream::servers`](crate::config::Upstream::servers).
    pub fn server(&self) -> usize {
        self.server
    }

    /// Returns the next bytes of the body, never empty, or `None` at its end. For a response without a body (to HEAD,
    /// 204, 304), `None` comes at once. Waits no longer than the upstream's `read_timeout`. May be dropped and called
    /// again: no byte is lost.
    pub async fn next_chunk(&mut self) -> Result<Option<Bytes>, Failure> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let chunk = self.wire.next_chunk().await;
        match &chunk {
            Ok(Some(bytes)) => {
                self.arrived += bytes.len() as u64;
                self.leave_slot_at_end();
            }
            Ok(None) => self.wire.leave_slot(),
            Err(failure) => self.failure = Some(*failure),
        }
        chunk
    }

    /// True if the client's next bytes are to be sent on.
    pub(crate) fn is_open(&self) -> bool {
        self.wire.is_open()
    }

    /// Sends the next bytes of the request or, with `None`, its end. Nothing more is sent after a failure.
    pub(crate) async fn send(&mut self, piece: Option<Bytes>) -> Result<(), Failure> {
        self.wire.send(piece).await
    }

    /// Returns the trailers after the end of the body.
    pub(crate) async fn trailers(&mut self) -> Option<HeaderMap> {
        self.wire.trailers().await
    }

    /// Ends the exchange. If the body was read to its end, the connection may carry another exchange.
    pub async fn finish(self) {
        if self.failure.is_none() {
            self.wire.release().await;
        }
    }

    /// Ends the exchange if its body is not wanted. Reads a small body, so that the connection may carry another
    /// exchange.
    pub async fn discard(mut self) {
        let end = gather(&mut self, UNWANTED_BODY_BYTES, UNWANTED_BODY_WAIT, |_| true).await;
        if matches!(end, Ok(Gathered::Complete)) {
            self.finish().await;
        }
    }

    /// True if the response's body has been read to its end, or is absent.
    pub(crate) fn is_complete(&mut self) -> bool {
        self.failure.is_none() && self.wire.is_complete()
    }
}

/// The result of [`read_whole`]. If it is not complete, the rest can still be read from the exchange.
#[derive(Debug)]
pub enum BufferedBody {
    /// The whole body.
    Complete(BodyPrefix),
    /// The body exceeds the limit, declares that it does, or is a stream. Holds its beginning, which may be empty.
    TooLarge(BodyPrefix),
    /// The body did not arrive in time. Holds its beginning, which may be empty.
    TooSlow(BodyPrefix),
}

impl BufferedBody {
    /// Returns the beginning of a body that has not been read.
    pub fn unread() -> Self {
        Self::TooLarge(BodyPrefix::default())
    }
}

/// A part of a body that is held in memory, with its share of the total. Dropping it gives the share back.
#[derive(Debug, Default)]
pub struct BodyPrefix {
    chunks: Vec<Bytes>,
    len: usize,
    share: Option<Share>,
}

impl BodyPrefix {
    /// Returns the bytes, in order.
    pub fn chunks(&self) -> &[Bytes] {
        &self.chunks
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Wraps a body that the proxy made.
    pub fn of(bytes: Bytes) -> Self {
        Self { len: bytes.len(), chunks: vec![bytes], share: None }
    }

    /// Puts these bytes in place of all others. They are few more at most, so the share of the total stays.
    pub(crate) fn replace(&mut self, bytes: Bytes) {
        (self.len, self.chunks) = (bytes.len(), vec![bytes]);
    }

    /// Returns the bytes of this range, up to the end of the body.
    #[must_use]
    pub fn part(mut self, part: Range<u64>) -> Self {
        let mut start = 0_u64;
        for chunk in &mut self.chunks {
            let len = chunk.len();
            let within = |place: u64| usize::try_from(place.saturating_sub(start)).map_or(len, |place| place.min(len));
            *chunk = chunk.slice(within(part.start)..within(part.end).max(within(part.start)));
            start += len as u64;
        }
        self.chunks.retain(|chunk| !chunk.is_empty());
        self.len = self.chunks.iter().map(Bytes::len).sum();
        self
    }

    /// Adds a chunk, and returns whether the total had room for it.
    fn push(&mut self, chunk: Bytes, (budget, purpose): (&Arc<BodyBudget>, MemoryUse)) -> bool {
        let share = self.share.get_or_insert_with(|| Share::none_of(budget, purpose));
        self.len += chunk.len();
        self.chunks.push(chunk);
        share.hold_memory(self.len)
    }
}

/// A body that several answers get. Its share of the total is given back with the last of them.
#[derive(Debug)]
pub struct SharedBody(Vec<Bytes>);

/// One chunk of a body that others hold too.
struct SharedChunk {
    whole: Arc<BodyPrefix>,
    number: usize,
}

impl AsRef<[u8]> for SharedChunk {
    fn as_ref(&self) -> &[u8] {
        self.whole.chunks.get(self.number).map_or(&[], Bytes::as_ref)
    }
}

impl From<BodyPrefix> for SharedBody {
    fn from(body: BodyPrefix) -> Self {
        let whole = Arc::new(body);
        let chunk = |number| Bytes::from_owner(SharedChunk { whole: Arc::clone(&whole), number });
        Self((0..whole.chunks.len()).map(chunk).collect())
    }
}

impl SharedBody {
    /// Returns the body for one more answer.
    pub fn for_answer(&self) -> BodyPrefix {
        BodyPrefix { chunks: self.0.clone(), len: self.0.iter().map(Bytes::len).sum(), share: None }
    }
}

/// Reads the body of a response if it has at most `max_bytes`, for which the budget has room, and arrives within
/// `wait`. No byte is dropped, so that the caller can stream any other body.
pub async fn read_whole(
    exchange: &mut Exchange,
    max_bytes: usize,
    wait: Duration,
    budget: (&Arc<BodyBudget>, MemoryUse),
) -> Result<BufferedBody, Failure> {
    let mut begun = BodyPrefix::default();
    Ok(match gather(exchange, max_bytes, wait, |chunk| begun.push(chunk, budget)).await? {
        Gathered::Complete => BufferedBody::Complete(begun),
        Gathered::TooLarge => BufferedBody::TooLarge(begun),
        Gathered::TooSlow => BufferedBody::TooSlow(begun),
    })
}

/// The result of [`hash_whole`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hashed {
    /// The hash of the whole body.
    Hash(blake3::Hash),
    /// The body exceeds the limit, declares that it does, or is a stream.
    TooLarge,
    /// The body did not arrive in time.
    TooSlow,
}

/// Reads and hashes the body of a response if it has at most `max_bytes` and arrives within `wait`.
pub async fn hash_whole(exchange: &mut Exchange, max_bytes: usize, wait: Duration) -> Result<Hashed, Failure> {
    hash_each(exchange, max_bytes, wait, |_chunk| {}).await
}

/// Like [`hash_whole`], but also returns the body if the budget has room for it.
pub async fn hash_and_keep(
    exchange: &mut Exchange,
    max_bytes: usize,
    wait: Duration,
    budget: (&Arc<BodyBudget>, MemoryUse),
) -> Result<(Hashed, Option<BodyPrefix>), Failure> {
    let mut kept = Some(BodyPrefix::default());
    let keep = |chunk| kept = kept.take().and_then(|mut body| body.push(chunk, budget).then_some(body));
    let hashed = hash_each(exchange, max_bytes, wait, keep).await?;
    Ok((hashed, kept.filter(|_| matches!(hashed, Hashed::Hash(_)))))
}

/// Hashes a body, and hands each hashed chunk on.
async fn hash_each(
    exchange: &mut Exchange,
    max_bytes: usize,
    wait: Duration,
    mut hand_on: impl FnMut(Bytes),
) -> Result<Hashed, Failure> {
    let mut hasher = blake3::Hasher::new();
    let hash = |chunk: Bytes| {
        hasher.update(&chunk);
        hand_on(chunk);
        true
    };
    Ok(match gather(exchange, max_bytes, wait, hash).await? {
        Gathered::Complete => Hashed::Hash(hasher.finalize()),
        Gathered::TooLarge => Hashed::TooLarge,
        Gathered::TooSlow => Hashed::TooSlow,
    })
}

/// True if a body is a stream of events (the HTML standard, section 9.2) or of parts that replace each other, or has
/// trailers. Trailers come from servers that cannot state everything before the end of the body.
fn is_stream(fields: &HeaderMap) -> bool {
    let kind = fields.get(header::CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    let kind = kind.split(|octet| *octet == b';').next().unwrap_or_default().trim_ascii();
    let streams = [&b"text/event-stream"[..], b"multipart/x-mixed-replace"];
    fields.contains_key(header::TRAILER) || streams.iter().any(|stream| kind.eq_ignore_ascii_case(stream))
}

/// How far [`gather`] came.
enum Gathered {
    Complete,
    TooLarge,
    TooSlow,
}

/// Reads a body within bounds. `keep` takes each chunk, and returns whether it can take more.
async fn gather(
    exchange: &mut Exchange,
    max_bytes: usize,
    wait: Duration,
    mut keep: impl FnMut(Bytes) -> bool,
) -> Result<Gathered, Failure> {
    if exchange.is_complete() {
        exchange.wire.leave_slot();
        return Ok(Gathered::Complete);
    }
    if exchange.is_stream || exchange.declared.is_some_and(|declared| declared > max_bytes as u64) {
        return Ok(Gathered::TooLarge);
    }
    let (deadline, mut len) = (Instant::now() + wait, 0_usize);
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let Ok(chunk) = within(left, exchange.next_chunk()).await else { return Ok(Gathered::TooSlow) };
        let Some(chunk) = chunk? else { return Ok(Gathered::Complete) };
        len += chunk.len();
        if !keep(chunk) || len > max_bytes {
            return Ok(Gathered::TooLarge);
        }
    }
}

#[cfg(test)]
mod tests;
