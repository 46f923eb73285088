//! An exchange on a connection: the bytes that are written and read there.

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::{HeaderMap, StatusCode, header};
use pingora::{
    ErrorType,
    http::{RequestHeader, ResponseHeader},
};
use pingora_timeout::timeout;

use super::{
    Exchange, Failure, Wire, dial::ServerConnection, http1::Unwritable, http2::to_http2, lost::Lost, terms::Terms,
};
use crate::{
    body::{Body, BoxFuture},
    box_future::box_future,
};

/// The number of interim responses (1xx) accepted before the final one.
const INTERIM_RESPONSES_MAX: u8 = 16;

/// The content of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Following {
    /// The request has none.
    Nothing,
    /// Some of it is here, and is sent together with the head.
    AtOnce,
    /// Some of it may come much later.
    Later,
}

/// An exchange on a connection, with the progress of its messages.
pub(super) struct Link {
    connection: ServerConnection,
    pub(super) terms: Terms,
    interim_responses: u8,
    /// The head of the final response, once it has arrived.
    pub(super) head: Option<Box<ResponseHeader>>,
    /// True if the client's next bytes are to be sent on, because the request has not ended or has opened a tunnel.
    pub(super) is_open: bool,
    /// True if the request is complete on the wire. Before that, the connection cannot be used again.
    pub(super) request_complete: bool,
}

impl Link {
    /// An exchange that has not begun.
    pub(super) fn on(connection: ServerConnection, terms: Terms) -> Self {
        Self { connection, terms, interim_responses: 0, head: None, is_open: false, request_complete: false }
    }

    pub(super) async fn converse(&mut self, head: &RequestHeader, body: &Body) -> Result<(), Lost> {
        let following = if body.is_empty() { Following::Nothing } else { Following::AtOnce };
        self.begin(head, following).await?;
        if !body.is_empty() {
            self.upload(body).await?;
        }
        if self.head.is_some() { Ok(()) } else { self.final_head().await }
    }

    /// True if the server speaks HTTP/2, whose library hides interim responses.
    pub(super) fn is_http2(&self) -> bool {
        matches!(self.connection, ServerConnection::Http2(..))
    }

    /// Returns the exchange with the server at this index, once its final response has begun.
    pub(super) fn into_exchange(mut self: Box<Self>, server: usize) -> Result<Exchange, Lost> {
        let head = self.head.take().ok_or(Lost::abandoned())?;
        Ok(Exchange::of(self, head, server))
    }

    /// Sends the head of the request, or holds it until the content that follows at once.
    pub(super) async fn begin(&mut self, head: &RequestHeader, following: Following) -> Result<(), Lost> {
        match &mut self.connection {
            ServerConnection::Http1(session, _) => {
                session.begin(head).map_err(|Unwritable| Lost::not_sent(false))?;
                match following {
                    Following::Nothing => session.send(None).await?,
                    Following::Later => session.flush().await?,
                    Following::AtOnce => {}
                }
            }
            ServerConnection::Http2(session, pooled) => {
                let mut head = Box::new(head.clone());
                let begun = to_http2(&mut head, pooled.is_tls())
                    .and_then(|()| session.write_request_header(head, following == Following::Nothing));
                // A stream that fails to begin has sent nothing.
                begun.map_err(|error| Lost::not_sent(*error.etype() != ErrorType::InvalidHTTPHeader))?;
            }
        }
        self.request_complete = following == Following::Nothing;
        Ok(())
    }

    /// Writes the body, and stops early if the upstream has answered with an error.
    async fn upload(&mut self, body: &Body) -> Result<(), Lost> {
        let (mut reader, mut sent) = (body.reader(), false);
        while let Some(chunk) = reader.next_chunk().await? {
            if sent && self.head.is_none() {
                self.final_head().now_or_never().unwrap_or(Ok(()))?;
            }
            if self.refused() {
                return Ok(());
            }
            match timeout(self.terms.upstream.write_timeout, self.write(Some(chunk))).await {
                Ok(Ok(())) => {}
                Ok(Err(lost)) => return self.answer_despite(lost).await,
                Err(_) => return self.refusal_so_far(),
            }
            sent = true;
        }
        if let Err(lost) = self.write(None).await {
            return self.answer_despite(lost).await;
        }
        self.request_complete = true;
        Ok(())
    }

    /// Writes the next bytes of the request or, with `None`, its end.
    async fn write(&mut self, piece: Option<Bytes>) -> Result<(), Lost> {
        match (&mut self.connection, piece) {
            (ServerConnection::Http1(session, _), piece) => session.send(piece).await,
            (ServerConnection::Http2(session, _), Some(piece)) => Ok(session.write_request_body(piece, false).await?),
            (ServerConnection::Http2(session, _), None) => Ok(session.finish_request_body()?),
        }
    }

    /// Reads the answer although writing failed: an upstream that answers early may close the connection at once.
    async fn answer_despite(&mut self, lost: Lost) -> Result<(), Lost> {
        if self.head.is_some() {
            return Ok(());
        }
        // A server that refuses a stream reports this in place of its answer.
        let or_not_sent = |why: Lost| if why.is_untouched() { why } else { lost };
        self.final_head().await.map_err(or_not_sent)
    }

    /// Reads the refusal of an upstream that has stopped reading, if one is on the connection. An upstream that has told of
    /// success may still act on what it has.
    pub(super) fn refusal_so_far(&mut self) -> Result<(), Lost> {
        // All bytes behind a final head are its content.
        if self.head.is_none() && !self.request_complete {
            self.final_head().now_or_never().unwrap_or(Ok(()))?;
        }
        if self.refused() { Ok(()) } else { Err(Lost::timed_out()) }
    }

    /// Reads up to the head of the final response. May be dropped and called again: what has arrived is kept.
    pub(super) async fn final_head(&mut self) -> Result<(), Lost> {
        while self.next_head().await?.is_some() {}
        Ok(())
    }

    /// Reads the head of the next response, and returns it if it is an interim one. May be dropped and called again: what
    /// has arrived is kept.
    pub(super) async fn next_head(&mut self) -> Result<Option<Box<ResponseHeader>>, Lost> {
        let (head, is_tunnel) = match &mut self.connection {
            ServerConnection::Http1(session, _) => (session.read_head().await?, session.is_tunnel()),
            ServerConnection::Http2(session, _) => {
                session.read_response_header().await?;
                (Box::new(session.response_header().cloned().ok_or(Lost::abandoned())?), false)
            }
        };
        if is_tunnel {
            (self.is_open, self.request_complete) = (true, false);
        } else if head.status.is_informational() {
            self.interim_responses += 1;
            if head.status == StatusCode::SWITCHING_PROTOCOLS || self.interim_responses > INTERIM_RESPONSES_MAX {
                return Err(Lost::abandoned());
            }
            return Ok(Some(head));
        } else if !is_framed(&head) {
            return Err(Lost::abandoned());
        }
        self.head = Some(head);
        Ok(None)
    }

    /// Sends the next bytes of the request or, with `None`, its end.
    pub(super) async fn send_on(&mut self, piece: Option<Bytes>) -> Result<(), Lost> {
        let is_end = piece.is_none();
        let written = timeout(self.terms.upstream.write_timeout, self.write(piece)).await;
        // Bytes that could not be sent leave a gap.
        self.is_open &= matches!(written, Ok(Ok(()))) && !is_end;
        written.map_err(|_elapsed| Lost::timed_out())??;
        self.request_complete = is_end;
        Ok(())
    }

    /// True if the upstream has answered with an error.
    fn refused(&self) -> bool {
        self.head.as_ref().is_some_and(|head| head.status.is_client_error() || head.status.is_server_error())
    }

    /// Returns the next bytes of the response's body.
    async fn read_body(&mut self) -> Result<Option<Bytes>, Failure> {
        let read = async {
            match &mut self.connection {
                ServerConnection::Http1(session, _) => session.next_piece().await,
                ServerConnection::Http2(session, _) => loop {
                    match session.read_response_body().await? {
                        Some(chunk) if chunk.is_empty() => {}
                        chunk => break Ok(chunk),
                    }
                },
            }
        };
        match timeout(self.terms.body_wait, read).await {
            Ok(read) => read.map_err(|_lost| Failure::Abandoned { timed_out: false }),
            Err(_elapsed) => Err(Failure::Abandoned { timed_out: true }),
        }
    }

    async fn put_back(self: Box<Self>) {
        let Self { connection, terms, request_complete, .. } = *self;
        let idle_max = terms.purpose.idle_max(&terms.upstream);
        if request_complete && !idle_max.is_zero() {
            connection.keep(terms.destination, idle_max).await;
        }
    }
}

impl Wire for Link {
    fn is_open(&self) -> bool {
        self.is_open
    }

    fn send(&mut self, piece: Option<Bytes>) -> BoxFuture<'_, Result<(), Failure>> {
        box_future(|| async { self.send_on(piece).await.map_err(|lost| lost.failure) })
    }

    fn trailers(&mut self) -> BoxFuture<'_, Option<HeaderMap>> {
        box_future(|| async {
            let ServerConnection::Http2(session, _) = &mut self.connection else { return None };
            timeout(self.terms.body_wait, session.read_trailers()).await.ok()?.ok()?
        })
    }

    fn next_chunk(&mut self) -> BoxFuture<'_, Result<Option<Bytes>, Failure>> {
        box_future(|| self.read_body())
    }

    fn is_complete(&mut self) -> bool {
        match &self.connection {
            ServerConnection::Http1(session, _) => session.is_done(),
            ServerConnection::Http2(session, _) => session.response_finished(),
        }
    }

    fn leave_slot(&mut self) {
        self.terms.slot = None;
    }

    fn release(self: Box<Self>) -> BoxFuture<'static, ()> {
        box_future(|| self.put_back())
    }
}

/// True if no transfer coding would reach the client undecoded: the proxy offers none but `chunked`.
pub(super) fn is_framed(head: &ResponseHeader) -> bool {
    let mut codings = head.headers.get_all(header::TRANSFER_ENCODING).iter();
    match (codings.next(), codings.next()) {
        (None, _) => true,
        (Some(coding), None) => coding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked"),
        (Some(_), Some(_)) => false,
    }
}
