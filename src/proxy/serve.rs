//! The way of a request, over either protocol, to a guarded resource or not: the door, then the guard or the upstream, then
//! the answer.

use bytes::BytesMut;
use pingora::protocols::Stream;

use super::{
    Gateway,
    arrival::Arrival,
    context::Context,
    entry::{self, Entered},
};
use crate::{
    box_future::box_future,
    downstream::{
        relay::Outgoing,
        respond::{SMALL_ANSWER_BYTES, respond},
        session::ClientSession,
    },
};

impl Gateway {
    /// Serves a request of HTTP/1.1. `is_last` ends the connection. Returns the connection, and what has arrived of its
    /// next request, if it may carry one.
    pub(crate) async fn serve(&self, mut session: ClientSession, is_last: bool) -> Option<(Stream, BytesMut)> {
        if is_last {
            session.end_connection();
        }
        let (mut context, outgoing) = self.answer(&mut session).await;
        match outgoing {
            Ok(Outgoing::Local(answer)) if session.is_read() && answer.sent_bytes() <= SMALL_ANSWER_BYTES => {
                self.tell(&session, &mut context, answer.status().as_u16(), answer.sent_bytes());
                respond(&mut session, answer).await.ok()?;
                session.finish().await
            }
            // Boxed, so that a request that waits for its upstream need not make room for it.
            outgoing => box_future(|| self.send(session, context, outgoing)).await,
        }
    }

    /// Serves a request of HTTP/2.
    pub(crate) async fn serve_stream(&self, mut session: ClientSession) {
        let (context, outgoing) = self.answer(&mut session).await;
        self.send(session, context, outgoing).await;
    }

    /// Finds the answer to a request. By then, its verdict is recorded, and nothing of the answer is written.
    async fn answer(&self, session: &mut ClientSession) -> (Context, pingora::Result<Outgoing>) {
        let mut context = Context::new(self.live.in_flight().enter(), self.live.serving());
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
        mut session: ClientSession,
        mut context: Context,
        outgoing: pingora::Result<Outgoing>,
    ) -> Option<(Stream, BytesMut)> {
        let sent = match outgoing {
            Ok(outgoing) => entry::send(&mut session, &context, outgoing).await,
            Err(error) => Err(error),
        };
        let error = sent.err();
        if let Some(error) = &error {
            Box::pin(entry::fail(&mut session, error, &mut context)).await;
        }
        self.leave(&mut session, error.as_deref(), &mut context).await;
        if error.is_some() { None } else { session.finish().await }
    }
}
