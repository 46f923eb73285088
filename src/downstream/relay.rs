//! Sending the answer to a guarded request, or to an unguarded read.

use bytes::Bytes;
use pingora::{
    Error, ErrorType,
    http::{RequestHeader, ResponseHeader},
    protocols::http::ServerSession,
};

use super::{local_answer::LocalAnswer, respond, session::gone, unread};
use crate::{
    body::content_length,
    core::{idempotency::REPLAYED, policy::Dialect},
    guard::{Answer, Relayed, UntoldGrant},
    telemetry::access::AccessEntry,
    upstream::{
        Exchange,
        fields::{frame_response, is_bodiless},
    },
};

/// An answer whose verdict is recorded, before a byte of it is written.
pub(crate) enum Outgoing {
    /// One that this proxy makes.
    Local(LocalAnswer),
    /// One of the upstream.
    Relayed(Box<Relayed>),
    /// One of the upstream to an unguarded request, sent as long as the client is there.
    Forwarded(Box<Relayed>),
}

impl Outgoing {
    /// Prepares the answer to a request, and records the verdict for the access log.
    pub(crate) fn new(
        request: &RequestHeader,
        answer: Answer,
        dialect: Dialect,
        entry: &mut AccessEntry,
    ) -> pingora::Result<Self> {
        let local = match answer {
            Answer::Refused(refusal) => LocalAnswer::refusal(request, refusal, dialect, entry)?,
            Answer::Local(head, body) => {
                entry.verdict = Some("answered");
                LocalAnswer::new(request, head, body)?
            }
            Answer::NotModified(head) => {
                entry.verdict = Some("not-modified");
                LocalAnswer::new(request, head, None)?
            }
            Answer::Relayed(relayed) => {
                let is_replayed = relayed.head.headers.contains_key(&REPLAYED);
                entry.verdict = Some(if is_replayed { "replayed" } else { "passed" });
                return Ok(Self::Relayed(relayed));
            }
            Answer::Broken(error) => return Err(error),
        };
        Ok(Self::Local(local))
    }

    /// Sends the answer to its end.
    pub(crate) async fn send(self, session: &mut ServerSession) -> pingora::Result<()> {
        match self {
            Self::Local(answer) => respond::respond(session, answer).await,
            Self::Relayed(relayed) => relay(session, *relayed, false).await,
            Self::Forwarded(relayed) => relay(session, *relayed, true).await,
        }
    }
}

/// Forwards an interim response.
pub(crate) async fn relay_interim(session: &mut ServerSession, head: Box<ResponseHeader>) -> pingora::Result<()> {
    session.write_response_header(head).await
}

/// Forwards the upstream's response. If it breaks off there, it breaks off here too: the client must not take a part
/// for the whole. `watches_client` ends the exchange when the client goes while the server is silent.
async fn relay(session: &mut ServerSession, relayed: Relayed, watches_client: bool) -> pingora::Result<()> {
    let Relayed { mut head, begun, rest } = relayed;
    let method = &session.req_header().method;
    let (is_head, is_bodiless) = (*method == http::Method::HEAD, is_bodiless(method, &head));
    let rest = match rest {
        // Released first, so that the client's next request finds the connection.
        Some(exchange) if is_head => {
            exchange.finish().await;
            None
        }
        rest => rest,
    };
    let mut left = if is_bodiless { Some(0) } else { content_length(&head.headers) };
    frame_response(&mut head, session.req_header());
    if left == Some(0) {
        respond::write_whole(session, head, Bytes::new()).await?;
    } else {
        let untold = UntoldGrant::of(&mut head);
        session.write_response_header(head).await?;
        if let Some(untold) = untold {
            untold.told();
        }
        let _sending = unread::sending(begun.len());
        for chunk in begun.chunks() {
            send_piece(session, chunk.clone(), &mut left).await?;
        }
    }
    if let Some(mut exchange) = rest {
        while left != Some(0)
            && let Some(chunk) = next_chunk(session, &mut exchange, watches_client).await?
        {
            let _sending = unread::sending(chunk.len());
            send_piece(session, chunk, &mut left).await?;
        }
        // The client may have the whole response, and be gone. Over HTTP/2, the server may still have to end its stream.
        if left != Some(0) || matches!(exchange.next_chunk().await, Ok(None)) {
            exchange.finish().await;
        }
    }
    if left == Some(0) { Ok(()) } else { session.write_response_body(Bytes::new(), true).await }
}

/// Sends a piece of a body. If `left` tells how many bytes are left, the last of them ends the response
/// ([`respond::write_whole`]).
async fn send_piece(session: &mut ServerSession, piece: Bytes, left: &mut Option<u64>) -> pingora::Result<()> {
    *left = left.map(|left| left.saturating_sub(piece.len() as u64));
    session.write_response_body(piece, *left == Some(0)).await
}

async fn next_chunk(
    session: &mut ServerSession,
    exchange: &mut Exchange,
    watches_client: bool,
) -> pingora::Result<Option<Bytes>> {
    let chunk = tokio::select! {
        biased;
        chunk = exchange.next_chunk() => chunk,
        gone = gone(session), if watches_client => return Err(gone),
    };
    chunk.map_err(|failure| Error::because(ErrorType::ReadError, "relaying the upstream's response", failure))
}
