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

/// A request under way. Boxed, because it goes from one step to the next.
struct OpenRequest {
    session: ClientSession,
    context: Context,
}

impl Gateway {
    /// Finds the answer to a request of HTTP/1.1. `is_last` ends the connection.
    pub(crate) async fn serve(&self, mut session: ClientSession, is_last: bool) -> Served<'_> {
        if is_last {
            session.end_connection();
        }
        let mut request = self.begin(session);
        match self.answer(&mut request).await {
            Ok(Outgoing::Local(answer)) if request.session.is_read() && answer.sent_bytes() <= SMALL_ANSWER_BYTES => {
                let OpenRequest { session, context } = &mut *request;
                self.tell(session, context, answer.status().as_u16(), answer.sent_bytes());
                Served::Done(match respond(session, answer).await {
                    Ok(()) => request.finish().await,
                    Err(_) => None,
                })
            }
            outgoing => Served::Sending(self.sending(request, outgoing)),
        }
    }

    /// Serves a request of HTTP/2.
    pub(crate) async fn serve_stream(&self, session: ClientSession) {
        let mut request = self.begin(session);
        // The room for finding the answer is given back before it is sent.
        let outgoing = box_future(|| self.answer(&mut request)).await;
        self.sending(request, outgoing).await;
    }

    fn begin(&self, session: ClientSession) -> Box<OpenRequest> {
        let context = Context::new(self.live.in_flight().enter(), self.live.serving());
        Box::new(OpenRequest { session, context })
    }

    /// Boxed, so that a request that waits for its upstream need not make room for it.
    fn sending(&self, request: Box<OpenRequest>, outgoing: pingora::Result<Outgoing>) -> BoxFuture<'_, KeptConnection> {
        match outgoing {
            Ok(Outgoing::Lasting(head, pieces)) => box_future(|| self.send_lasting(request, (head, pieces))),
            outgoing => box_future(|| self.send(request, outgoing)),
        }
    }

    /// Finds the answer to a request. By then, its verdict is recorded, and nothing of the answer is written.
    async fn answer(&self, OpenRequest { session, context }: &mut OpenRequest) -> pingora::Result<Outgoing> {
        let arrival = Arrival::at(&context.serving, session);
        match entry::enter(&self.live, &self.observer, session, context, arrival).await? {
            Entered::Answered(outgoing) => Ok(outgoing),
            // Boxed, so that a request with a local answer need not make room for it.
            Entered::Passed => box_future(|| self.forward(session, context)).await,
        }
    }

    /// Sends an answer through a session, and ends the request.
    async fn send(&self, mut request: Box<OpenRequest>, outgoing: pingora::Result<Outgoing>) -> KeptConnection {
        let sent = match outgoing {
            Ok(outgoing) => entry::send(&mut request.session, &request.context, outgoing).await,
            Err(error) => Err(error),
        };
        self.end(request, sent).await
    }

    /// Sends an answer that lasts. Its future is small, because there may be many that wait for hours.
    #[expect(clippy::manual_async_fn, reason = "the future of an async function holds its arguments twice")]
    fn send_lasting(
        &self,
        mut request: Box<OpenRequest>,
        (head, pieces): (Box<ResponseHeader>, Box<dyn Pieces>),
    ) -> impl Future<Output = KeptConnection> {
        async move {
            let OpenRequest { session, context } = &mut *request;
            let sent = stream_info::along(context.entry.info.as_ref(), stream(session, head, pieces)).await;
            Box::pin(self.end(request, sent)).await
        }
    }

    /// Ends a request whose answer was sent like this.
    async fn end(&self, mut request: Box<OpenRequest>, sent: pingora::Result<()>) -> KeptConnection {
        let OpenRequest { session, context } = &mut *request;
        let error = sent.err();
        if let Some(error) = &error {
            Box::pin(entry::fail(session, error, context)).await;
        }
        self.leave(session, error.as_deref(), context).await;
        if error.is_some() { None } else { request.finish().await }
    }
}

impl OpenRequest {
    /// Ends the request, and returns its connection if it may carry another one.
    async fn finish(mut self: Box<Self>) -> KeptConnection {
        if self.session.finish().await { self.session.into_connection() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::size_of_future;

    /// The memory of an answer that lasts, without its content: thousands of clients may wait for events.
    #[test]
    fn an_answer_that_lasts_takes_little_memory() {
        type Parts = (&'static Gateway, Box<OpenRequest>, (Box<ResponseHeader>, Box<dyn Pieces>));
        let future = size_of_future(|(gateway, request, parts): Parts| gateway.send_lasting(request, parts));
        let bytes = future + size_of::<OpenRequest>();
        assert!(bytes <= 1_792, "{bytes}");
    }
}
