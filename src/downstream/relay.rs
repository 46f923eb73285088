//! Sending the answer to a request.

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::{HeaderValue, Version, header};
use pingora::{
    Error, ErrorType,
    http::{RequestHeader, ResponseHeader},
};

use super::{local_answer::LocalAnswer, respond, session::ClientSession, stream::stream, unread, upload::ClientUpload};
use crate::{
    body::content_length,
    core::{policy::Dialect, records::idempotency::REPLAYED, refusal::Refusal},
    guard::{Answer, Pieces, Relayed, UntoldGrant},
    telemetry::{Decision, access::AccessEntry},
    upstream::{
        Exchange, Failure,
        fields::{accepts_trailers, end_hop, frame_response, is_bodiless},
    },
};

/// An answer whose verdict is recorded, before a byte of it is written.
pub(crate) enum Outgoing {
    /// One that this proxy makes.
    Local(LocalAnswer),
    /// One that this proxy makes piece by piece.
    Lasting(Box<ResponseHeader>, Box<dyn Pieces>),
    /// One of the upstream.
    Relayed(Box<Relayed>),
    /// One of the upstream to an unguarded request, of which the rest may still come.
    Forwarded(Box<Relayed>),
}

impl Outgoing {
    /// Prepares the answer to a request, and records the verdict for the access log.
    pub(crate) fn new(
        request: &RequestHeader,
        answer: Result<Answer, Refusal>,
        dialect: Dialect,
        entry: &mut AccessEntry,
    ) -> pingora::Result<Self> {
        let local = match answer {
            Ok(Answer::Current(refusal, relayed)) => {
                return LocalAnswer::with_current_state(request, *refusal, relayed, entry).map(Self::Relayed);
            }
            Err(refusal) => LocalAnswer::refusal(request, refusal, dialect, entry)?,
            Ok(Answer::Told(refusal, head, body)) => LocalAnswer::told(request, *refusal, (head, body), entry)?,
            Ok(Answer::Local(head, body)) => {
                entry.verdict = Some(Decision::Answered);
                LocalAnswer::new(request, head, body)?
            }
            Ok(Answer::Lasting(head, pieces)) => {
                entry.verdict = Some(Decision::Answered);
                return Ok(Self::Lasting(head, pieces));
            }
            Ok(Answer::NotModified(head)) => {
                entry.verdict = Some(Decision::NotModified);
                LocalAnswer::new(request, head, None)?
            }
            Ok(Answer::Relayed(relayed)) => {
                let is_replayed = relayed.head.headers.contains_key(&REPLAYED);
                entry.verdict = Some(if is_replayed { Decision::Replayed } else { Decision::Passed });
                return Ok(Self::Relayed(relayed));
            }
        };
        Ok(Self::Local(local))
    }

    /// Adds a line of a field to the head of the answer.
    pub(crate) fn add_field(&mut self, name: &'static str, value: HeaderValue) -> pingora::Result<()> {
        match self {
            Self::Local(answer) => return answer.add_field(name, value),
            Self::Lasting(head, _) => head.append_header(name, value)?,
            Self::Relayed(relayed) | Self::Forwarded(relayed) => relayed.head.append_header(name, value)?,
        };
        Ok(())
    }

    /// Sends the answer to its end.
    pub(crate) async fn send(self, session: &mut ClientSession) -> pingora::Result<()> {
        match self {
            Self::Local(answer) => respond::respond(session, answer).await,
            Self::Lasting(head, pieces) => stream(session, head, pieces).await,
            Self::Relayed(relayed) => relay(session, *relayed, false).await,
            Self::Forwarded(relayed) => relay(session, *relayed, true).await,
        }
    }
}

/// Forwards an interim response, which a client of HTTP/1.0 would take for the final one (RFC 9110 section 15.2).
pub(crate) async fn relay_interim(session: &mut ClientSession, mut head: Box<ResponseHeader>) -> pingora::Result<()> {
    if session.request().version == Version::HTTP_10 {
        return Ok(());
    }
    end_hop(&mut head);
    session.write_interim(head).await
}

/// Forwards the upstream's response. If it breaks off there, it breaks off here too: the client must not take a part
/// for the whole. If `is_forwarded`, the rest of the request goes to the server meanwhile, and the exchange ends when the
/// client goes.
async fn relay(session: &mut ClientSession, relayed: Relayed, is_forwarded: bool) -> pingora::Result<()> {
    let Relayed { mut head, begun, rest } = relayed;
    let method = &session.request().method;
    let (is_head, is_bodiless) = (*method == http::Method::HEAD, is_bodiless(method, &head));
    let mut rest = match rest {
        // Released first, so that the client's next request finds the connection.
        Some(exchange) if is_head && !exchange.is_open() => {
            exchange.finish().await;
            None
        }
        rest => rest,
    };
    let mut left = if is_bodiless { Some(0) } else { content_length(&head.headers) };
    frame_response(&mut head, session.request());
    if left.is_none() && !head.headers.contains_key(header::TRANSFER_ENCODING) {
        // The end of the connection is the end of the body.
        session.end_connection();
    }
    let is_refused = head.status.is_client_error() || head.status.is_server_error();
    let is_over = |exchange: &mut Exchange| exchange.is_complete() && !exchange.is_open();
    // Over HTTP/2, a head that ends the response says so: trailers alone are such a head.
    if left.is_none() && begun.is_empty() && rest.as_mut().is_none_or(is_over) {
        left = Some(0);
    }
    if left == Some(0) {
        respond::write_whole(session, head, Bytes::new()).await?;
    } else {
        let untold = UntoldGrant::of(&mut head);
        session.begin(head, false)?;
        let _sending = unread::sending(begun.len());
        for chunk in begun.chunks() {
            send_piece(session, chunk.clone(), &mut left).await?;
        }
        if let Some(exchange) = rest.as_mut().filter(|_| begun.is_empty()) {
            relay_arrived(session, exchange, &mut left).await?;
        }
        session.flush().await?;
        if let Some(untold) = untold {
            untold.told();
        }
    }
    let Some(exchange) = rest else { return end(session, left).await };
    if !is_forwarded {
        return relay_rest(session, exchange, left).await;
    }
    TwoWayRelay { exchange, upload: ClientUpload::beside_response(session), left }.relay(session, is_refused).await
}

/// Sends what has arrived of a body together with its head.
async fn relay_arrived(
    session: &mut ClientSession,
    exchange: &mut Exchange,
    left: &mut Option<u64>,
) -> pingora::Result<()> {
    match exchange.next_chunk().now_or_never() {
        Some(Ok(Some(chunk))) => send_piece(session, chunk, left).await,
        Some(Err(failure)) => {
            session.flush().await?;
            relayed(Err(failure))
        }
        Some(Ok(None)) | None => Ok(()),
    }
}

/// Ends a response whose length is not known.
async fn end(session: &mut ClientSession, left: Option<u64>) -> pingora::Result<()> {
    if left == Some(0) { Ok(()) } else { session.write_piece(Bytes::new(), true).await }
}

/// Forwards the rest of a response to a request that is complete.
async fn relay_rest(session: &mut ClientSession, mut exchange: Exchange, mut left: Option<u64>) -> pingora::Result<()> {
    while left != Some(0)
        && let Some(chunk) = relayed(exchange.next_chunk().await)?
    {
        let _sending = unread::sending(chunk.len());
        send_piece(session, chunk, &mut left).await?;
    }
    finish(exchange, left).await;
    end(session, left).await
}

/// Ends an exchange whose response the client has, and who may be gone. Over HTTP/2, the server may still have to end its
/// stream.
async fn finish(mut exchange: Exchange, left: Option<u64>) {
    if left != Some(0) || matches!(exchange.next_chunk().await, Ok(None)) {
        exchange.finish().await;
    }
}

/// Sends a piece of a body. If `left` tells how many bytes are left, the last of them ends the response
/// ([`respond::write_whole`]).
async fn send_piece(session: &mut ClientSession, piece: Bytes, left: &mut Option<u64>) -> pingora::Result<()> {
    *left = left.map(|left| left.saturating_sub(piece.len() as u64));
    session.write_piece(piece, *left == Some(0)).await
}

/// Fails as a relay does whose upstream has failed.
fn relayed<T>(outcome: Result<T, Failure>) -> pingora::Result<T> {
    outcome.map_err(|failure| Error::because(ErrorType::ReadError, "relaying the upstream's response", failure))
}

/// An exchange both of whose bodies are on their way.
struct TwoWayRelay {
    exchange: Exchange,
    upload: ClientUpload,
    /// The remaining bytes of the response, if its head stated its length.
    left: Option<u64>,
}

impl TwoWayRelay {
    async fn relay(mut self, session: &mut ClientSession, is_refused: bool) -> pingora::Result<()> {
        let is_tunnel = session.is_tunnel();
        while self.left != Some(0) {
            let is_wanted = self.exchange.is_open();
            tokio::select! {
                biased;
                chunk = self.exchange.next_chunk() => {
                    let Some(chunk) = relayed(chunk)? else { break };
                    let _sending = unread::sending(chunk.len());
                    send_piece(session, chunk, &mut self.left).await?;
                }
                piece = self.upload.next(session, is_wanted) => {
                    let is_end = self.send(piece?).await;
                    if is_end && is_tunnel {
                        // One side that closes ends the tunnel.
                        return end(session, None).await;
                    }
                }
            }
        }
        self.end_response(session).await?;
        // A server that has refused a request does not want its rest (RFC 9112 section 9.5).
        self.upload.after_response();
        while self.exchange.is_open() && !is_refused && !is_tunnel {
            let piece = self.upload.next(session, true).await?;
            self.send(piece).await;
        }
        if !is_tunnel {
            finish(self.exchange, self.left).await;
        }
        Ok(())
    }

    /// Forwards a piece of the request, and returns whether it was the end. A server that takes no further piece may
    /// still answer.
    async fn send(&mut self, piece: Option<Bytes>) -> bool {
        let is_end = piece.is_none();
        let _ = self.exchange.send(piece).await;
        is_end
    }

    /// Ends the response. A client of HTTP/1.1 gets the trailers that it asks for.
    async fn end_response(&mut self, session: &mut ClientSession) -> pingora::Result<()> {
        if self.left == Some(0) {
            return Ok(());
        }
        let may_have_trailers = session.is_http2() || accepts_trailers(session.request());
        match self.exchange.trailers().await.filter(|_| may_have_trailers) {
            Some(trailers) => session.write_trailers(trailers).await,
            None => end(session, self.left).await,
        }
    }
}
