//! Receiving a request body completely before any request goes to the upstream (DESIGN, rule 5).

use std::{io, path::PathBuf, sync::Arc, time::Duration};

use bytes::Bytes;
use http::HeaderMap;
use pingora::ErrorType;
use thiserror::Error;

use super::{
    Body, Client, Content,
    budget::{BodyBudget, MemoryUse, SMALL_BODY_BYTES, Share},
    spool::SpoolWriter,
};
use crate::{
    box_future::box_future,
    config::Server,
    core::{
        http::expectation::expects_continue,
        objects::blocks::{Extent, UploadLimits},
        wire::received_body::declared_length,
    },
    patience::within,
};

/// The limits of one request body.
#[derive(Clone, Debug)]
pub struct BodyLimits {
    /// The largest body that is kept in memory, in bytes.
    pub memory_bytes: usize,
    /// The largest body, in bytes.
    pub max_bytes: u64,
    /// How long the whole body may take to arrive.
    pub timeout: Duration,
    /// The directory of the spool files.
    pub spool_dir: PathBuf,
    /// The largest number of uploads in blocks.
    pub max_uploads: usize,
    /// The largest number of blocks that an upload has.
    pub max_blocks: usize,
    /// The time for which blocks wait for their list.
    pub block_ttl: Duration,
}

impl BodyLimits {
    /// Returns the limits that the configuration names.
    pub fn of(server: &Server) -> Self {
        Self {
            memory_bytes: server.max_body_memory_bytes,
            max_bytes: server.max_body_size_bytes,
            timeout: server.body_timeout,
            spool_dir: server.spool_dir.clone(),
            max_uploads: server.max_staged_uploads,
            max_blocks: server.max_staged_blocks,
            block_ttl: server.staged_block_ttl,
        }
    }

    /// Returns the limits of an upload in blocks, which becomes one body.
    pub(super) const fn of_upload(&self) -> UploadLimits {
        UploadLimits { max_blocks: self.max_blocks, max_bytes: self.max_bytes }
    }
}

/// The reason why a request body was not received.
#[derive(Debug, Error)]
pub enum ReceiveError {
    /// The body, or its declared length, is larger than [`BodyLimits::max_bytes`].
    #[error("the body is too large")]
    TooLarge,
    /// The body did not arrive within [`BodyLimits::timeout`].
    #[error("the body took too long to arrive")]
    TimedOut,
    /// The body does not fit into what other bodies leave of the totals, in memory or spool files.
    #[error("no room is left for the body")]
    Full,
    /// The client has gone, or its message is malformed.
    #[error("the client did not send its body")]
    Client(#[source] Box<pingora::Error>),
    /// The spool file failed.
    #[error("the spool file failed")]
    Spool(#[from] io::Error),
}

/// Receives the body of a request into memory. The body goes to a spool file if it is larger than
/// [`BodyLimits::memory_bytes`], or if the total of memory is used up.
///
/// A body that is too large by its own `Content-Length` is refused before the proxy requests a byte of it. A client
/// that waits for `100 Continue` (RFC 9110 section 10.1.1) gets it directly before reading begins.
pub async fn receive(
    client: &mut dyn Client,
    limits: &BodyLimits,
    budget: &Arc<BodyBudget>,
) -> Result<Body, ReceiveError> {
    if let Some(body) = client.received() {
        return Ok(body);
    }
    if !client.has_content() {
        return Ok(Body::empty());
    }
    let head = client.head();
    let (declared, expects_continue) = (content_length(&head.headers), expects_continue(head.version, &head.headers));
    if declared.is_some_and(|declared| declared > limits.max_bytes) {
        return Err(ReceiveError::TooLarge);
    }
    if expects_continue {
        client.invite_content().await.map_err(ReceiveError::Client)?;
    }
    // Boxed, so that the futures of requests without a body stay small.
    let gathered = box_future(|| gather(client, declared, limits, budget));
    within(limits.timeout, gathered).await.unwrap_or(Err(ReceiveError::TimedOut))
}

/// The declared length. Contradictory values have been refused already.
pub(crate) fn content_length(fields: &HeaderMap) -> Option<u64> {
    declared_length(fields).ok().flatten()
}

async fn gather(
    client: &mut dyn Client,
    declared: Option<u64>,
    limits: &BodyLimits,
    budget: &Arc<BodyBudget>,
) -> Result<Body, ReceiveError> {
    let mut gathering = Gathering::new(declared, limits, budget);
    while let Some(chunk) = client.next_chunk().await.map_err(client_error)? {
        if !chunk.is_empty() {
            gathering.push(chunk).await?;
        }
    }
    gathering.finish().await
}

fn client_error(error: Box<pingora::Error>) -> ReceiveError {
    match error.etype() {
        ErrorType::ReadTimedout => ReceiveError::TimedOut,
        _ => ReceiveError::Client(error),
    }
}

/// A body that is arriving.
struct Gathering<'a> {
    limits: &'a BodyLimits,
    declared: Option<u64>,
    share: Share,
    hasher: Box<blake3::Hasher>,
    len: u64,
    held: HeldBody,
}

enum HeldBody {
    /// At most one chunk, as received: most bodies are complete with it.
    Chunk(Bytes),
    /// More than one chunk, joined, so that a body of tiny chunks costs no more than its bytes.
    Joined(Vec<u8>),
    Spooled(SpoolWriter),
}

impl<'a> Gathering<'a> {
    fn new(declared: Option<u64>, limits: &'a BodyLimits, budget: &Arc<BodyBudget>) -> Self {
        let (share, hasher) = (Share::none_of(budget, MemoryUse::Body), Box::new(blake3::Hasher::new()));
        Self { limits, declared, share, hasher, len: 0, held: HeldBody::Chunk(Bytes::new()) }
    }

    async fn push(&mut self, chunk: Bytes) -> Result<(), ReceiveError> {
        self.len += chunk.len() as u64;
        if self.len > self.limits.max_bytes {
            return Err(ReceiveError::TooLarge);
        }
        self.hasher.update(&chunk);
        match self.keep(chunk) {
            None => Ok(()),
            Some(chunk) => self.spool(&chunk).await,
        }
    }

    /// The number of bytes of this body that may be kept in memory: few, if the body is to go to a file anyway.
    fn memory_max(&self) -> usize {
        let memory_max = self.limits.memory_bytes;
        let is_large = self.declared.is_some_and(|declared| declared > memory_max as u64);
        if is_large { memory_max.min(SMALL_BODY_BYTES) } else { memory_max }
    }

    /// Returns room for what has arrived and as much again, so that a body is moved only a few times. The room is
    /// never more than the body declares. A declared length alone takes no memory.
    fn room(&self, len: usize) -> usize {
        let declared = self.declared.and_then(|declared| usize::try_from(declared).ok()).unwrap_or(usize::MAX);
        len.saturating_mul(2).min(self.memory_max()).min(declared).max(len)
    }

    /// Keeps a chunk in memory, or returns it if it must go to a spool file.
    fn keep(&mut self, chunk: Bytes) -> Option<Bytes> {
        let len = usize::try_from(self.len).ok().filter(|len| *len <= self.memory_max());
        let Some(len) = len else { return Some(chunk) };
        let room = self.room(len);
        match &mut self.held {
            HeldBody::Spooled(_) => return Some(chunk),
            HeldBody::Chunk(first) if first.is_empty() => {
                if !self.share.hold_memory(chunk.len()) {
                    return Some(chunk);
                }
                *first = chunk;
            }
            HeldBody::Chunk(first) => {
                if !self.share.hold_memory(room) {
                    return Some(chunk);
                }
                let mut joined = Vec::with_capacity(room);
                joined.extend_from_slice(first);
                joined.extend_from_slice(&chunk);
                self.held = HeldBody::Joined(joined);
            }
            HeldBody::Joined(joined) => {
                if len > joined.capacity() {
                    if !self.share.hold_memory(room) {
                        return Some(chunk);
                    }
                    joined.reserve_exact(room - joined.len());
                }
                joined.extend_from_slice(&chunk);
            }
        }
        None
    }

    async fn spool(&mut self, chunk: &[u8]) -> Result<(), ReceiveError> {
        if !self.share.hold_spool(self.len) {
            return Err(ReceiveError::Full);
        }
        if let HeldBody::Spooled(writer) = &mut self.held {
            return Ok(writer.write(chunk).await?);
        }
        let mut writer = SpoolWriter::create(&self.limits.spool_dir).await?;
        match &self.held {
            HeldBody::Chunk(bytes) => writer.write(bytes).await?,
            HeldBody::Joined(bytes) => writer.write(bytes).await?,
            HeldBody::Spooled(_) => {}
        }
        writer.write(chunk).await?;
        self.held = HeldBody::Spooled(writer);
        self.share.release_memory();
        Ok(())
    }

    async fn finish(self) -> Result<Body, ReceiveError> {
        let content = match self.held {
            HeldBody::Chunk(bytes) => Content::Memory(bytes),
            HeldBody::Joined(bytes) => Content::Memory(Bytes::from(bytes)),
            HeldBody::Spooled(writer) => {
                Content::Spool(writer.finish().await?, Arc::new([Extent { offset: 0, len: self.len }]))
            }
        };
        Ok(Body::received(content, self.len, self.hasher.finalize(), self.share))
    }
}

#[cfg(test)]
mod tests;
