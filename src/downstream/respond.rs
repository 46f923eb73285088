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
//! | at most [`SMALL_BODY_BYTES`] | the connection stays; the body is drained | `linger` |
//! | larger, or of unknown length | `Connection: close`, then `linger` | `linger` |
//! | withheld by `Expect: 100-continue` | the same; 100 is never sent | `linger` |
//!
//! *Why linger?* Closing a socket with unread data in it sends a reset. The client's system may then discard the answer
//! before the client has read it. Dropping an HTTP/2 stream whose body has not ended sends `RST_STREAM(NO_ERROR)` (RFC
//! 9113 section 8.1), which common clients report as an error without any status. So the whole answer goes out first,
//! then the proxy reads and discards the body within bounds. A client that reads while it sends stops at once, and one
//! that reads last finds the answer waiting.
//!
//! *What if an HTTP/2 client stops by ending its body before the declared length?* curl 7.88 does this when it gets
//! the head of an error. Its request is then malformed (RFC 9113 section 8.1.1), and the library resets
//! it in another thread. That seldom happens before the body of the answer is on its way. The head, with
//! `Proxy-Status`, is out by then.

use std::time::Duration;

use bytes::Bytes;
use pingora::{http::ResponseHeader, protocols::Stream};
use pingora_timeout::timeout;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{local_answer::LocalAnswer, session::ClientSession};
use crate::{
    core::{
        http::expectation::expects_continue, policy::Dialect, refusal::Refusal, wire::received_body::declared_length,
    },
    guard::UntoldGrant,
    telemetry::access::AccessEntry,
};

/// The largest unread request body for which the proxy keeps the connection.
pub const SMALL_BODY_BYTES: u64 = 64 * 1024;
/// The longest body of an answer that is copied behind its head.
pub(crate) const SMALL_ANSWER_BYTES: usize = 16 * 1024;
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

/// Answers with a refusal.
pub(crate) async fn refuse(
    session: &mut ClientSession,
    refusal: Refusal,
    dialect: Dialect,
    entry: &mut AccessEntry,
) -> pingora::Result<()> {
    let answer = LocalAnswer::refusal(session.request(), refusal, dialect, entry)?;
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

/// Writes an answer to a session. Over HTTP/1.1 a small one is one piece.
pub(crate) async fn respond(session: &mut ClientSession, mut answer: LocalAnswer) -> pingora::Result<()> {
    keep_for_small_body(session);
    if session.is_http2() || answer.sent_bytes() > SMALL_ANSWER_BYTES {
        let (head, body) = answer.into_parts(session.is_http2())?;
        return write_whole(session, head, body).await;
    }
    let untold = answer.untold();
    let told = (answer.status(), answer.sent_bytes());
    session.write_at_once(told, |stays| answer.into_bytes(stays)).await?;
    if let Some(untold) = untold {
        untold.told();
    }
    Ok(())
}

/// Writes a response to its end.
///
/// Over HTTP/2, the frame with its last byte ends the stream, and without a body the head does. Some clients are done
/// with that byte (curl before its version 8): they reset a stream that an empty frame would end later, and the proxy
/// would take many such resets for a flood.
pub(super) async fn write_whole(
    session: &mut ClientSession,
    mut head: Box<ResponseHeader>,
    body: Bytes,
) -> pingora::Result<()> {
    let untold = UntoldGrant::of(&mut head);
    session.begin(head, body.is_empty())?;
    session.write_piece(body, true).await?;
    if let Some(untold) = untold {
        untold.told();
    }
    Ok(())
}

/// Continues to read after an answer that came before the end of the request's body, so that the client sees the
/// answer and no reset.
///
/// Called once, when all other work on the request is done. Without an unread body it does nothing.
pub(crate) async fn linger(session: &mut ClientSession) {
    if session.answered().is_none() || session.is_read() || session.is_tunnel() || session.stays() {
        return;
    }
    // The proxy sends nothing more: a client that reads to the end of the connection need not wait for the drain.
    session.close().await;
    drain(session).await;
}

/// Keeps the connection if its unread body is small: the body is drained after the answer.
fn keep_for_small_body(session: &mut ClientSession) {
    if session.is_read() || withholds_body(session) {
        return;
    }
    let declared = declared_length(&session.request().headers);
    if matches!(declared, Ok(Some(length)) if length <= SMALL_BODY_BYTES) {
        session.drain_after_answer();
    }
}

/// Reads and discards the request body within bounds. Errors in it affect only the connection.
async fn drain(session: &mut ClientSession) {
    let drained = async {
        let mut left = DRAIN_BYTES;
        while left > 0 {
            let Ok(Ok(Some(chunk))) = timeout(DRAIN_IDLE, session.next_piece()).await else { return };
            left = left.saturating_sub(chunk.len());
        }
    };
    let _ = timeout(DRAIN_TOTAL, drained).await;
}

/// True if the client still waits for permission to send its body, which it has not received (RFC 9110 section
/// 10.1.1).
fn withholds_body(session: &ClientSession) -> bool {
    let request = session.request();
    session.is_untold() && expects_continue(request.version, &request.headers)
}
