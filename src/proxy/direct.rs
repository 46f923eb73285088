//! The direct path: a request of HTTP/1.1 that is answered here, or is an unguarded read, is served by one function, from
//! its head to the end of its answer.
//!
//! # Design
//!
//! *Why not pingora's phases?* Pingora boxes its whole proxying for each request, and each hook once more. A local
//! answer needs none of that, and the guard's exchanges are its own.
//!
//! *How is the path of a request chosen?* Each connection begins on the direct path. What that path cannot serve goes to
//! pingora as it came. From then on the connection guesses from the first bytes of each head, before they are parsed,
//! until the direct path serves a request again. A wrong guess costs time and nothing else: either path asks the door.

use bytes::BytesMut;
use http::header;
use pingora::{
    ErrorType,
    http::RequestHeader,
    protocols::{Stream, http::ServerSession},
};

use super::{
    Gateway,
    arrival::Arrival,
    context::Context,
    entry::{self, Entered},
};
use crate::{
    box_future::box_future,
    downstream::{relay::Outgoing, respond::respond_at_once},
};

/// The longest body that is written at once.
const SMALL_BYTES: usize = 16 * 1024;

/// The fate of a request on the direct path.
pub(crate) enum Served {
    /// It was answered. The connection may bring another request.
    Kept(Stream),
    /// The connection has ended.
    Ended,
    /// It needs pingora's own proxying. Nothing was done with it, and nothing after its head was read.
    Declined(Stream),
    /// It cannot be read, and its client is to be told.
    Unreadable(Stream),
}

impl Gateway {
    /// Guesses from the bytes of a head whether this path serves the request.
    pub(crate) fn may_serve(&self, head: &[u8]) -> bool {
        self.live.serving().table.may_serve_directly(head)
    }

    /// Serves the request whose complete head is at the beginning of `received`. `is_last` ends the connection.
    pub(crate) async fn serve(&self, stream: Stream, received: BytesMut, is_last: bool) -> Served {
        let received_bytes = received.len();
        let mut session = match read(stream, received).await {
            Ok(session) => session,
            Err(served) => return served,
        };
        let after_head = received_bytes.saturating_sub(session.to_h1_raw().len());
        let declared = declared_bytes(session.req_header());
        let is_complete = declared == Some(after_head);
        // What follows the request would be lost with this session.
        if is_last || declared.is_some_and(|declared| declared < after_head) {
            session.set_keepalive(None);
        }
        let mut context = Context::new(self.live.in_flight().enter(), self.live.serving());
        entry::prepare(&mut session, context.serving.config.server.keepalive_timeout);
        let arrival = Arrival::at(&context.serving, &mut session);
        let is_forwarded = arrival.is_forwarded_here(&context.serving, session.req_header());
        if !is_forwarded && !arrival.is_answered_here() {
            return declined(session);
        }
        let outgoing = match entry::enter(&self.live, &self.observer, &mut session, &mut context, arrival).await {
            Ok(Entered::Answered(outgoing)) => Ok(outgoing),
            Ok(Entered::Passed) if is_forwarded && !context.needs_pingora() => {
                self.forward(&mut session, &mut context).await
            }
            // A reload came between the two looks at the door.
            Ok(Entered::Passed) => {
                context.end_write();
                return declined(session);
            }
            Err(error) => Err(error),
        };
        match outgoing {
            Ok(Outgoing::Local(answer)) if is_complete && answer.sent_bytes() <= SMALL_BYTES => {
                self.tell(&session, &mut context, answer.status().as_u16(), answer.sent_bytes());
                let stays = session.get_keepalive().is_some();
                match into_stream(session) {
                    Some(stream) => respond_at_once(stream, answer, stays).await.map_or(Served::Ended, Served::Kept),
                    None => Served::Ended,
                }
            }
            // Boxed, so that a request that waits for its upstream need not make room for it.
            outgoing => box_future(|| self.send(session, context, outgoing)).await,
        }
    }

    /// Sends an answer through a session, and ends the request.
    async fn send(
        &self,
        mut session: ServerSession,
        mut context: Context,
        outgoing: pingora::Result<Outgoing>,
    ) -> Served {
        let sent = match outgoing {
            Ok(outgoing) => entry::send(&mut session, &context, outgoing).await,
            Err(error) => Err(error),
        };
        let error = sent.err();
        if let Some(error) = &error {
            Box::pin(entry::fail(&mut session, error, &mut context)).await;
        }
        self.leave(&mut session, error.as_deref(), &mut context).await;
        if error.is_some() {
            return Served::Ended;
        }
        match session.finish().await {
            Ok(Some(reusable)) => Served::Kept(reusable.into_parts().0),
            Ok(None) | Err(_) => Served::Ended,
        }
    }
}

/// Looks whether a request that the direct path does not serve can be read. If so, it is declined.
pub(crate) async fn look_at(stream: Stream, received: BytesMut) -> Served {
    read(stream, received).await.map_or_else(|served| served, declined)
}

/// Reads the request whose complete head is at the beginning of `received`.
async fn read(stream: Stream, received: BytesMut) -> Result<ServerSession, Served> {
    let mut session = ServerSession::new_http1(stream);
    session.set_pipelined_prefix(received);
    match session.read_request().await {
        Ok(true) => Ok(session),
        Err(error) if *error.etype() == ErrorType::InvalidHTTPHeader => {
            Err(into_stream(session).map_or(Served::Ended, Served::Unreadable))
        }
        Ok(false) | Err(_) => Err(Served::Ended),
    }
}

/// The number of bytes that follow the head of a request, if the head tells.
fn declared_bytes(request: &RequestHeader) -> Option<usize> {
    if request.headers.contains_key(header::TRANSFER_ENCODING) {
        return None;
    }
    match request.headers.get(header::CONTENT_LENGTH) {
        Some(length) => length.to_str().ok()?.parse().ok(),
        None => Some(0),
    }
}

fn declined(session: ServerSession) -> Served {
    into_stream(session).map_or(Served::Ended, Served::Declined)
}

fn into_stream(session: ServerSession) -> Option<Stream> {
    match session {
        ServerSession::H1(session) => Some(session.into_inner()),
        _ => None,
    }
}
