//! The writer of all local responses.
//!
//! # Design
//!
//! *Why not `respond_error`?* It names pingora as the server and closes every connection.
//!
//! *What if the request's body was not read?* The answer is sent at once, and the rest depends on the body:
//!
//! | body | HTTP/1.1 | HTTP/2 |
//! |---|---|---|
//! | none, or read | the connection stays | the stream ends |
//! | at most [`SMALL_BODY_BYTES`] | the connection stays; pingora drains the body | [`linger`] |
//! | larger, or of unknown length | `Connection: close`, then [`linger`] | [`linger`] |
//! | withheld by `Expect: 100-continue` | the same; 100 is never sent | [`linger`] |
//!
//! *Why linger?* Closing a socket with unread data in it sends a reset, and the client's system may then discard the
//! answer before the client has read it. Dropping an HTTP/2 stream whose body has not ended sends
//! `RST_STREAM(NO_ERROR)` (RFC 9113 section 8.1), which common clients report as an error without any status. So the
//! whole answer goes out first, then the proxy reads and discards the body within bounds. A client that reads while it
//! sends stops at once, and one that reads last finds the answer waiting.
//!
//! *What if an HTTP/2 client stops by ending its body before the declared length?* curl 7.88 does this when it gets
//! the head of an error. Its request is then malformed (RFC 9113 section 8.1.1), and the library below pingora resets
//! it in another thread. That seldom happens before the body of the answer is on its way. The head, with
//! `Proxy-Status`, is out by then.

use std::time::Duration;

use bytes::Bytes;
use http::header;
use pingora::{
    http::ResponseHeader,
    protocols::{Stream, http::ServerSession},
};
use pingora_timeout::timeout;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    time::{Instant, timeout_at},
};

use super::local_answer::LocalAnswer;
use crate::{
    core::{expectation::expects_continue, policy::Dialect, refusal::Refusal},
    guard::UntoldGrant,
    telemetry::access::AccessEntry,
};

/// The largest unread request body for which the proxy keeps the connection.
pub const SMALL_BODY_BYTES: u64 = 64 * 1024;
/// How long a kept connection waits for the rest of a small body.
const SMALL_BODY_WAIT: Duration = Duration::from_secs(2);
/// How much of an unwanted body is read so that its sender sees the answer. Enough for most documents and photographs.
const DRAIN_BYTES: usize = 32 * 1024 * 1024;
/// How long an unwanted body is read: long enough for a slow sender of a few megabytes.
const DRAIN_TOTAL: Duration = Duration::from_secs(30);
/// How long the sender of an unwanted body may pause.
const DRAIN_IDLE: Duration = Duration::from_secs(5);
/// How long a client may take to receive the answer to an unread request. The answer fits into the buffers of its
/// system.
const UNREAD_WRITE: Duration = Duration::from_secs(2);
/// How long the client of an unread request may go on sending before its connection is closed.
const UNREAD_LINGER: Duration = Duration::from_secs(2);
/// The number of bytes that it may send in that time.
const UNREAD_BYTES: usize = 256 * 1024;
/// How long a client may take to receive a piece of its response.
pub(crate) const WRITE_TIMEOUT: Duration = Duration::from_secs(60);

/// Answers with a refusal.
pub async fn refuse(
    session: &mut ServerSession,
    refusal: Refusal,
    dialect: Dialect,
    entry: &mut AccessEntry,
) -> pingora::Result<()> {
    let answer = LocalAnswer::refusal(session.req_header(), refusal, dialect, entry)?;
    respond(session, answer).await
}

/// Answers a connection of HTTP/1.1 whose request was refused before it was read, and ends the connection. A client that
/// is still sending sees the answer and no reset.
pub(crate) async fn respond_unread(mut stream: Stream, answer: LocalAnswer) {
    let bytes = answer.into_bytes(false);
    let write = async {
        stream.write_all(&bytes).await?;
        stream.flush().await?;
        stream.shutdown().await
    };
    if matches!(timeout(UNREAD_WRITE, write).await, Ok(Ok(()))) {
        let _ = timeout(UNREAD_LINGER, forget(&mut stream)).await;
    }
}

async fn forget(stream: &mut Stream) {
    let mut left = UNREAD_BYTES;
    let mut bytes = [0; 4 * 1024];
    while let Ok(count @ 1..) = stream.read(&mut bytes).await
        && left > count
    {
        left -= count;
    }
}

/// Writes an answer to a session.
pub(crate) async fn respond(session: &mut ServerSession, answer: LocalAnswer) -> pingora::Result<()> {
    let (head, body) = answer.into_parts()?;
    keep_for_small_body(session);
    write_whole(session, head, body).await
}

/// Writes a response to its end.
///
/// Over HTTP/2, the frame with its last byte ends the stream, and without a body the head does. Some clients are done
/// with that byte (curl before its version 8): they reset a stream that an empty frame would end later, and the proxy
/// would take many such resets for a flood.
pub(super) async fn write_whole(
    session: &mut ServerSession,
    mut head: Box<ResponseHeader>,
    body: Bytes,
) -> pingora::Result<()> {
    let untold = UntoldGrant::of(&mut head);
    if let (ServerSession::H2(stream), true) = (&mut *session, body.is_empty()) {
        stream.write_response_header(head, true)?;
    } else {
        session.write_response_header(head).await?;
        session.write_response_body(body, true).await?;
    }
    if let Some(untold) = untold {
        untold.told();
    }
    Ok(())
}

/// Writes a small answer to a connection of HTTP/1.1, from which all of the request was read. Returns the connection if
/// it stays. This costs a fifth of what a session does, which is made for answers of any length.
pub(crate) async fn respond_at_once(mut stream: Stream, mut answer: LocalAnswer, stays: bool) -> Option<Stream> {
    let untold = answer.untold();
    let bytes = answer.into_bytes(stays);
    let write = async {
        stream.write_all(&bytes).await?;
        stream.flush().await
    };
    timeout(WRITE_TIMEOUT, write).await.ok()?.ok()?;
    if let Some(untold) = untold {
        untold.told();
    }
    if !stays {
        let _ = stream.shutdown().await;
    }
    Some(stream).filter(|_| stays)
}

/// Continues to read after an answer that came before the end of the request's body, so that the client sees the
/// answer and no reset.
///
/// Called once, when all other work on the request is done. Without an unread body it does nothing.
pub async fn linger(session: &mut ServerSession) {
    let answered = session.response_written().is_some_and(|head| !head.status.is_informational());
    if !answered || session.is_body_done() || session.was_upgraded() || session.get_keepalive().is_some() {
        return;
    }
    if !session.is_http2() {
        // The proxy sends nothing more: a client that reads to the end of the connection need not wait for the drain.
        session.shutdown().await;
    }
    drain(session).await;
}

/// Keeps the connection if its unread body is small: pingora drains the body after the answer.
fn keep_for_small_body(session: &mut ServerSession) {
    if session.is_body_done() || withholds_body(session) {
        return;
    }
    if content_length(session).is_some_and(|length| length <= SMALL_BODY_BYTES) {
        session.set_close_on_response_before_downstream_finish(false);
        session.set_total_drain_timeout(Some(SMALL_BODY_WAIT));
    }
}

/// Reads and discards the request body within bounds. Errors in it affect only the connection.
async fn drain(session: &mut ServerSession) {
    let end = Instant::now() + DRAIN_TOTAL;
    let mut left = DRAIN_BYTES;
    while left > 0 {
        let next = timeout_at(end, timeout(DRAIN_IDLE, session.read_request_body())).await;
        let Ok(Ok(Ok(Some(chunk)))) = next else { return };
        left = left.saturating_sub(chunk.len());
    }
}

/// Whether the client still waits for permission to send its body, which it has not received (RFC 9110 section
/// 10.1.1).
fn withholds_body(session: &ServerSession) -> bool {
    let request = session.req_header();
    session.response_written().is_none() && expects_continue(request.version, &request.headers)
}

fn content_length(session: &ServerSession) -> Option<u64> {
    session.get_header(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
