//! Sending the answer to a guarded request.

use bytes::Bytes;
use pingora::{http::RequestHeader, protocols::http::ServerSession};

use super::{local_answer::LocalAnswer, respond, unread};
use crate::{
    core::{idempotency::REPLAYED, policy::Dialect},
    guard::{Answer, Relayed},
    telemetry::access::AccessEntry,
    upstream::fields::frame_response,
};

/// An answer whose verdict is recorded, before a byte of it is written.
pub(crate) enum Outgoing {
    /// One that this proxy makes.
    Local(LocalAnswer),
    /// One of the upstream.
    Relayed(Box<Relayed>),
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
            Self::Relayed(relayed) => relay(session, *relayed).await,
        }
    }
}

/// Forwards the upstream's response. If it breaks off there, it breaks off here too: the client must not take a part
/// for the whole.
async fn relay(session: &mut ServerSession, relayed: Relayed) -> pingora::Result<()> {
    let Relayed { mut head, begun, rest } = relayed;
    let is_head = session.req_header().method == http::Method::HEAD;
    let rest = match rest {
        // Released first, so that the client's next request finds the connection.
        Some(exchange) if is_head => {
            exchange.finish().await;
            None
        }
        rest => rest,
    };
    frame_response(&mut head, session.req_header());
    session.write_response_header(head).await?;
    if !is_head {
        let _sending = unread::sending(begun.len());
        for chunk in begun.chunks() {
            session.write_response_body(chunk.clone(), false).await?;
        }
        if let Some(mut exchange) = rest {
            loop {
                match exchange.next_chunk().await {
                    Ok(Some(chunk)) => {
                        let _sending = unread::sending(chunk.len());
                        session.write_response_body(chunk, false).await?;
                    }
                    Ok(None) => break,
                    Err(failure) => {
                        return Err(pingora::Error::because(
                            pingora::ErrorType::ReadError,
                            "relaying the upstream's response",
                            failure,
                        ));
                    }
                }
            }
            exchange.finish().await;
        }
    }
    session.write_response_body(Bytes::new(), true).await
}
