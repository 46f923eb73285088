//! The way of a request, over either protocol, to a guarded resource or not: the door, then the guard or the upstream, then
//! the answer.

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

/// The fate of a connection of HTTP/1.1 after a request.
pub(crate) enum Served {
    /// It may bring another request.
    Kept(Stream),
    /// It has ended.
    Ended,
    /// Its request cannot be read, and its client is to be told.
    Unreadable(Stream),
}

impl Gateway {
    /// Serves the request of HTTP/1.1 whose complete head is at the beginning of `received`. `is_last` ends the
    /// connection.
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
        let (mut context, outgoing) = self.answer(&mut session).await;
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

    /// Serves a request of HTTP/2.
    pub(crate) async fn serve_stream(&self, mut session: ServerSession) {
        let (context, outgoing) = self.answer(&mut session).await;
        self.send(session, context, outgoing).await;
    }

    /// Finds the answer to a request. By then, its verdict is recorded, and nothing of the answer is written.
    async fn answer(&self, session: &mut ServerSession) -> (Context, pingora::Result<Outgoing>) {
        let mut context = Context::new(self.live.in_flight().enter(), self.live.serving());
        entry::prepare(session, context.serving.config.server.keepalive_timeout);
        let arrival = Arrival::at(&context.serving, session);
        let outgoing = match entry::enter(&self.live, &self.observer, session, &mut context, arrival).await {
            Ok(Entered::Answered(outgoing)) => Ok(outgoing),
            // Boxed, so that a request with a local answer need not make room for it.
            Ok(Entered::Passed) => box_future(|| self.forward(session, &mut context)).await,
            Err(error) => Err(error),
        };
        (context, outgoing)
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

fn into_stream(session: ServerSession) -> Option<Stream> {
    match session {
        ServerSession::H1(session) => Some(session.into_inner()),
        _ => None,
    }
}
