//! The way of a request, over either protocol, to a guarded resource or not: the door, then the guard or the upstream, then
//! the answer.

use bytes::BytesMut;
use pingora::{http::ResponseHeader, protocols::Stream};

use super::{
    Gateway,
    arrival::Arrival,
    context::Context,
    entry::{self, Entered},
};
use crate::{
    box_future::{BoxFuture, box_future},
    downstream::{
        relay::Outgoing,
        respond::{SMALL_ANSWER_BYTES, respond},
        session::ClientSession,
        stream::stream,
    },
    guard::Pieces,
    telemetry::stream_info,
};

/// The connection after a request, and what has arrived of its next one, if it may carry one.
type KeptConnection = Option<(Stream, BytesMut)>;

/// How far a request of HTTP/1.1 has come when its answer is found.
pub(crate) enum Served<'a> {
    /// The answer is written.
    Done(KeptConnection),
    /// This writes the answer, for as long as that takes.
    Sending(BoxFuture<'a, KeptConnection>),
}

impl Gateway {
    /// Finds the answer to a request of HTTP/1.1. `is_last` ends the connection.
    pub(crate) async fn serve(&self, mut session: ClientSession, is_last: bool) -> Served<'_> {
        if is_last {
            session.end_connection();
        }
        let (mut context, outgoing) = self.answer(&mut session).await;
        match outgoing {
            Ok(Outgoing::Local(answer)) if session.is_read() && answer.sent_bytes() <= SMALL_ANSWER_BYTES => {
                self.tell(&session, &mut context, answer.status().as_u16(), answer.sent_bytes());
                Served::Done(match respond(&mut session, answer).await {
                    Ok(()) => session.finish().await,
                    Err(_) => None,
                })
            }
            outgoing => Served::Sending(self.sending(session, context, outgoing)),
        }
    }

    /// Serves a request of HTTP/2.
    pub(crate) async fn serve_stream(&self, session: ClientSession) {
        // The room for finding the answer is given back before it is sent.
        let (session, context, outgoing) = box_future(|| self.answer_stream(session)).await;
        self.sending(session, context, outgoing).await;
    }

    async fn answer_stream(&self, mut session: ClientSession) -> (ClientSession, Context, pingora::Result<Outgoing>) {
        let (context, outgoing) = self.answer(&mut session).await;
        (session, context, outgoing)
    }

    /// Boxed, so that a request that waits for its upstream need not make room for it.
    fn sending(
        &self,
        session: ClientSession,
        context: Context,
        outgoing: pingora::Result<Outgoing>,
    ) -> BoxFuture<'_, KeptConnection> {
        match outgoing {
            Ok(Outgoing::Lasting(head, pieces)) => box_future(|| self.send_lasting(session, context, (head, pieces))),
            outgoing => box_future(|| self.send(session, context, outgoing)),
        }
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
        context: Context,
        outgoing: pingora::Result<Outgoing>,
    ) -> KeptConnection {
        let sent = match outgoing {
            Ok(outgoing) => entry::send(&mut session, &context, outgoing).await,
            Err(error) => Err(error),
        };
        self.end(session, context, sent).await
    }

    /// Sends an answer that lasts. Its future is small, because there may be many that wait for hours.
    #[expect(clippy::manual_async_fn, reason = "the future of an async function holds its arguments twice")]
    fn send_lasting(
        &self,
        mut session: ClientSession,
        context: Context,
        (head, pieces): (Box<ResponseHeader>, Box<dyn Pieces>),
    ) -> impl Future<Output = KeptConnection> {
        async move {
            let sent = stream_info::along(context.entry.info.as_ref(), stream(&mut session, head, pieces)).await;
            Box::pin(self.end(session, context, sent)).await
        }
    }

    /// Ends a request whose answer was sent like this.
    async fn end(&self, mut session: ClientSession, mut context: Context, sent: pingora::Result<()>) -> KeptConnection {
        let error = sent.err();
        if let Some(error) = &error {
            Box::pin(entry::fail(&mut session, error, &mut context)).await;
        }
        self.leave(&mut session, error.as_deref(), &mut context).await;
        if error.is_some() { None } else { session.finish().await }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::size_of_future;

    /// The memory of an answer that lasts, without its content: thousands of clients may wait for events.
    #[test]
    fn an_answer_that_lasts_takes_little_memory() {
        type Parts = (&'static Gateway, ClientSession, Context, (Box<ResponseHeader>, Box<dyn Pieces>));
        let bytes =
            size_of_future(|(gateway, session, context, parts): Parts| gateway.send_lasting(session, context, parts));
        assert!(bytes <= 1_792, "{bytes}");
    }
}
