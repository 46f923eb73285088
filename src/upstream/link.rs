//! An exchange on a connection: the bytes that are written and read there.

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::{HeaderMap, StatusCode, header};
use pingora::{
    ErrorType,
    http::{RequestHeader, ResponseHeader},
    protocols::http::{client::HttpSession, v1::client::HttpSession as Http1Session},
};
use pingora_timeout::timeout;

use super::{
    Exchange, Failure, Wire,
    dial::{OpenedConnection, Origin},
    http2::to_http2,
    lost::Lost,
    terms::Terms,
};
use crate::{
    body::{Body, BoxFuture},
    box_future::box_future,
};

/// The number of interim responses (1xx) accepted before the final one.
const INTERIM_RESPONSES_MAX: u8 = 16;

/// An exchange on a connection, with the progress of its messages.
pub(super) struct Link {
    pub(super) session: HttpSession,
    origin: Origin,
    pub(super) terms: Terms,
    interim_responses: u8,
    /// True if the head of the final response has arrived.
    pub(super) answered: bool,
    /// True if the client's next bytes are to be sent on, because the request has not ended or has opened a tunnel.
    pub(super) is_open: bool,
    /// True if the request is complete on the wire. Before that, the connection cannot be used again.
    pub(super) request_complete: bool,
}

impl Link {
    /// Begins an exchange. With `holds_head`, its head is not sent before the beginning of its body.
    pub(super) fn begin_on(opened: OpenedConnection, terms: Terms, holds_head: bool) -> Self {
        let (session, origin) = opened.begin(holds_head);
        Self { session, origin, terms, interim_responses: 0, answered: false, is_open: false, request_complete: false }
    }

    pub(super) async fn converse(&mut self, head: Box<RequestHeader>, body: &Body) -> Result<(), Lost> {
        self.begin(head, body.is_empty()).await?;
        if self.request_complete {
            return self.final_head().await;
        }
        self.upload(body).await?;
        if self.answered { Ok(()) } else { self.final_head().await }
    }

    /// Returns the exchange with the server at this index, once its final response has begun.
    pub(super) fn into_exchange(self: Box<Self>, server: usize) -> Result<Exchange, Lost> {
        let head = self.session.response_header().cloned().ok_or(Lost::abandoned())?;
        Ok(Exchange::of(self, Box::new(head), server))
    }

    /// Sends the head of the request, which is all of it if `is_all`.
    pub(super) async fn begin(&mut self, head: Box<RequestHeader>, is_all: bool) -> Result<(), Lost> {
        let Err(error) = self.write_head(head, is_all).await else { return Ok(()) };
        // Over HTTP/2, a stream that fails to begin has sent nothing.
        let unwritable = *error.etype() == ErrorType::InvalidHTTPHeader;
        let (lost, not_sent) = (Lost::from(error), Failure::NotSent { timed_out: false });
        Err(match (unwritable, self.session.as_http2()) {
            (true, _) => Lost { failure: not_sent, connection_died: false },
            (false, Some(_)) => Lost { failure: not_sent, connection_died: true },
            (false, None) => lost,
        })
    }

    async fn write_head(&mut self, mut head: Box<RequestHeader>, is_all: bool) -> pingora::Result<()> {
        let HttpSession::H2(session) = &mut self.session else {
            return self.session.write_request_header(head).await;
        };
        to_http2(&mut head, self.origin.is_tls())?;
        self.request_complete = is_all;
        session.write_request_header(head, is_all)
    }

    /// Writes the body, and stops early if the upstream has answered with an error.
    async fn upload(&mut self, body: &Body) -> Result<(), Lost> {
        let (mut reader, mut sent) = (body.reader(), false);
        while let Some(chunk) = reader.next_chunk().await? {
            if sent && !self.answered {
                self.final_head().now_or_never().unwrap_or(Ok(()))?;
            }
            if self.refused() {
                return Ok(());
            }
            match timeout(self.terms.upstream.write_timeout, self.session.write_request_body(chunk, false)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return self.answer_despite(error).await,
                // The upstream's answer, if one is on the connection, may tell why it stopped reading.
                Err(_) => return self.final_head().now_or_never().unwrap_or(Err(Lost::timed_out())),
            }
            sent = true;
        }
        if let Err(error) = self.session.finish_request_body().await {
            return self.answer_despite(error).await;
        }
        self.request_complete = true;
        Ok(())
    }

    /// Reads the answer although writing failed: an upstream that answers early may close the connection at once.
    async fn answer_despite(&mut self, error: Box<pingora::Error>) -> Result<(), Lost> {
        let lost = Lost::from(error);
        if self.answered {
            return Ok(());
        }
        // A server that refuses a stream reports this in place of its answer.
        let or_not_sent = |why: Lost| if why.is_untouched() { why } else { lost };
        self.final_head().await.map_err(or_not_sent)
    }

    /// Reads up to the head of the final response. May be dropped and called again: what has arrived is kept.
    pub(super) async fn final_head(&mut self) -> Result<(), Lost> {
        while self.next_head().await?.status.is_informational() {}
        Ok(())
    }

    /// Reads the head of the next response. May be dropped and called again: what has arrived is kept.
    pub(super) async fn next_head(&mut self) -> Result<&ResponseHeader, Lost> {
        self.session.read_response_header().await?;
        let is_tunnel = self.session.as_http1().is_some_and(Http1Session::was_upgraded);
        let head = self.session.response_header().ok_or(Lost::abandoned())?;
        if is_tunnel {
            (self.answered, self.is_open, self.request_complete) = (true, true, false);
        } else if head.status.is_informational() {
            self.interim_responses += 1;
            if head.status == StatusCode::SWITCHING_PROTOCOLS || self.interim_responses > INTERIM_RESPONSES_MAX {
                return Err(Lost::abandoned());
            }
        } else {
            self.answered = is_framed(head);
            if !self.answered {
                return Err(Lost::abandoned());
            }
        }
        Ok(head)
    }

    /// Sends the next bytes of the request or, with `None`, its end.
    pub(super) async fn send_on(&mut self, piece: Option<Bytes>) -> Result<(), Lost> {
        if let HttpSession::H1(session) = &mut self.session {
            // Has an effect in a tunnel alone.
            session.maybe_upgrade_body_writer();
        }
        let is_end = piece.is_none();
        let write = async {
            match piece {
                Some(piece) => self.session.write_request_body(piece, false).await,
                None => self.session.finish_request_body().await,
            }
        };
        let written = timeout(self.terms.upstream.write_timeout, write).await;
        // A piece that could not be sent leaves a gap.
        self.is_open &= matches!(written, Ok(Ok(()))) && !is_end;
        written.map_err(|_elapsed| Lost::timed_out())??;
        self.request_complete = is_end;
        Ok(())
    }

    /// True if the upstream has answered with an error.
    fn refused(&self) -> bool {
        let head = self.session.response_header().filter(|_| self.answered);
        head.is_some_and(|head| head.status.is_client_error() || head.status.is_server_error())
    }

    /// Returns the next bytes of the response's body.
    async fn read_body(&mut self) -> Result<Option<Bytes>, Failure> {
        loop {
            return match timeout(self.terms.body_wait, self.session.read_response_body()).await {
                Ok(Ok(Some(chunk))) if chunk.is_empty() => continue,
                Ok(Ok(chunk)) => Ok(chunk),
                Ok(Err(error)) => {
                    tracing::debug!(error = error.etype().as_str(), "the body of an upstream's response broke off");
                    Err(Failure::Abandoned { timed_out: false })
                }
                Err(_) => Err(Failure::Abandoned { timed_out: true }),
            };
        }
    }

    async fn put_back(mut self: Box<Self>) {
        if let HttpSession::H2(session) = &mut self.session {
            // The response is not over before its trailers, wanted or not.
            let _ = session.read_trailers().now_or_never();
        }
        let idle_max = self.terms.purpose.idle_max(&self.terms.upstream);
        if self.request_complete && !idle_max.is_zero() && self.session.response_done() {
            let Self { origin, session, terms, .. } = *self;
            origin.keep(session, terms.destination, idle_max).await;
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
            let HttpSession::H2(session) = &mut self.session else { return None };
            timeout(self.terms.body_wait, session.read_trailers()).await.ok()?.ok()?
        })
    }

    fn next_chunk(&mut self) -> BoxFuture<'_, Result<Option<Bytes>, Failure>> {
        box_future(|| self.read_body())
    }

    fn is_complete(&mut self) -> bool {
        self.session.response_done()
    }

    fn leave_slot(&mut self) {
        self.terms.slot = None;
    }

    fn release(self: Box<Self>) -> BoxFuture<'static, ()> {
        box_future(|| self.put_back())
    }
}

/// True if no transfer coding would reach the client undecoded: the proxy offers none but `chunked`.
fn is_framed(head: &ResponseHeader) -> bool {
    let mut codings = head.headers.get_all(header::TRANSFER_ENCODING).iter();
    match (codings.next(), codings.next()) {
        (None, _) => true,
        (Some(coding), None) => coding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked"),
        (Some(_), Some(_)) => false,
    }
}
