//! The writer of all local responses: refusals, and answers like a local 304 (RFC 9110, RFC 9457; DESIGN, section 8).
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
use http::{Method, StatusCode, Version, header};
use pingora::{http::ResponseHeader, protocols::http::ServerSession, proxy::Session};
use tokio::time::{Instant, timeout, timeout_at};

use crate::{
    core::{
        policy::Dialect,
        refusal::{Code, Refusal},
    },
    dialect::{ErrorDocument, Incoming, native::problem},
    telemetry::{self, access::AccessEntry},
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

/// The methods that a 405 lists: all that a guarded route accepts by default (RFC 9110 section 15.5.6).
const ALLOW: &str = "GET, HEAD, OPTIONS, PUT, POST, PATCH, DELETE";

/// Answers with a refusal: a document in the shape that the route's clients read, with `Proxy-Status` (RFC 9209). No
/// cache stores it. The refusal is recorded before the client can ask about it.
pub async fn refuse(
    session: &mut Session,
    mut refusal: Refusal,
    dialect: Dialect,
    entry: &mut AccessEntry,
) -> pingora::Result<()> {
    let request = session.req_header();
    telemetry::refused(entry, &mut refusal, &request.method, request.raw_path());
    let incoming = Incoming { method: &request.method, target: request.raw_path(), headers: &request.headers };
    let (mut head, document) = head_of(dialect.grammar().refusal(incoming, &refusal))?;
    describe(&mut head, &refusal)?;
    for (name, value) in refusal.fields.iter().flat_map(|fields| fields.iter()) {
        head.insert_header(name.clone(), value.clone())?;
    }
    if refusal.code == Code::MethodNotAllowed {
        head.insert_header("Allow", ALLOW)?;
    }
    if request_is_head(session) && !dialect.quirks().head_errors_have_content {
        head.remove_header(&header::CONTENT_TYPE);
        return session.write_response_header(Box::new(head), true).await;
    }
    respond(session, head, Some(document.into())).await
}

/// Answers a connection whose request was refused before it was read, and ends the connection. The route is not known
/// that early, so the answer is a problem document.
pub(crate) async fn refuse_unread(session: &mut ServerSession, refusal: &Refusal) -> pingora::Result<()> {
    let (mut head, document) = head_of(problem(refusal))?;
    describe(&mut head, refusal)?;
    head.insert_header(header::CONTENT_LENGTH, document.len())?;
    session.set_keepalive(None);
    session.set_write_timeout(Some(UNREAD_WRITE));
    session.write_response_header(Box::new(head)).await?;
    session.write_response_body(document.into(), true).await
}

/// Adds the fields of every refusal, whatever its shape.
fn describe(head: &mut ResponseHeader, refusal: &Refusal) -> pingora::Result<()> {
    head.insert_header(header::CACHE_CONTROL, "no-store")?;
    head.insert_header("Proxy-Status", refusal.proxy_status())?;
    if let Some(seconds) = refusal.retry_after_seconds() {
        head.insert_header(header::RETRY_AFTER, seconds)?;
    }
    Ok(())
}

/// Returns the head that goes with an error document, and its body.
fn head_of(document: ErrorDocument) -> pingora::Result<(ResponseHeader, String)> {
    let mut head = ResponseHeader::build(document.status, Some(8 + document.fields.len()))?;
    head.insert_header(header::CONTENT_TYPE, document.content_type)?;
    for (name, value) in document.fields {
        head.insert_header(name, value)?;
    }
    Ok((head, document.body))
}

/// Answers with a head and a complete body.
///
/// This function sets `Content-Length`, even if the method or the status keeps the body from being sent. If there
/// could be a body, `None` means that there is none. Otherwise it leaves the field unchanged.
pub async fn respond(session: &mut Session, mut head: ResponseHeader, body: Option<Bytes>) -> pingora::Result<()> {
    let status = head.status;
    let bodiless = status == StatusCode::NO_CONTENT || status == StatusCode::NOT_MODIFIED;
    if !bodiless {
        head.insert_header(header::CONTENT_LENGTH, body.as_ref().map_or(0, Bytes::len))?;
    }
    let sent = body.filter(|_| !bodiless && !request_is_head(session));
    keep_for_small_body(session);
    session.write_response_header(Box::new(head), sent.is_none()).await?;
    session.write_response_body(sent, true).await
}

fn request_is_head(session: &Session) -> bool {
    session.req_header().method == Method::HEAD
}

/// Continues to read after an answer that came before the end of the request's body, so that the client sees the
/// answer and no reset.
///
/// Called once, when all other work on the request is done. Without an unread body it does nothing.
pub async fn linger(session: &mut Session) {
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
fn keep_for_small_body(session: &mut Session) {
    if session.is_body_done() || withholds_body(session) {
        return;
    }
    if content_length(session).is_some_and(|length| length <= SMALL_BODY_BYTES) {
        session.set_close_on_response_before_downstream_finish(false);
        session.set_total_drain_timeout(Some(SMALL_BODY_WAIT));
    }
}

/// Reads and discards the request body within bounds. Errors in it affect only the connection.
async fn drain(session: &mut Session) {
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
fn withholds_body(session: &Session) -> bool {
    let request = session.req_header();
    session.response_written().is_none()
        && request.version >= Version::HTTP_11
        && request
            .headers
            .get_all(header::EXPECT)
            .iter()
            .any(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"))
}

fn content_length(session: &Session) -> Option<u64> {
    session.get_header(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
