//! A connection with one request and response on it.

use std::{io, sync::Arc};

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::{StatusCode, header};
use pingora::{
    ErrorType,
    http::{RequestHeader, ResponseHeader},
    protocols::http::client::HttpSession,
};
use pingora_timeout::timeout;

use super::{
    Connection, Exchange, Failure, Wire,
    balance::Slot,
    dial::{OpenedConnection, Origin, Traffic},
    http2::{is_unprocessed, to_http2},
    idle::Destination,
};
use crate::{
    body::{Body, BoxFuture},
    box_future::box_future,
    config::Upstream,
    telemetry::{
        exchange::ExchangeWatch,
        traces::{TRACEPARENT, TRACESTATE},
    },
};

/// The number of interim responses (1xx) accepted before the final one.
const INTERIM_RESPONSES_MAX: u8 = 16;

/// An exchange on a connection, with the progress of its messages.
pub(super) struct Link {
    pub(super) session: HttpSession,
    origin: Origin,
    /// The address stands in for Host if the client sent none.
    destination: Destination,
    pub(super) upstream: Arc<Upstream>,
    traffic: Traffic,
    /// The slot that this exchange occupies on its server.
    slot: Option<Slot>,
    interim_responses: u8,
    /// Whether the head of the final response has arrived.
    answered: bool,
    /// Whether the request's body is being written.
    uploading: bool,
    /// Whether the request is complete on the wire. Before that, the connection cannot be used again.
    pub(super) request_complete: bool,
}

/// An exchange that failed after it began.
pub(crate) struct Lost {
    pub(crate) failure: Failure,
    /// Whether the connection broke before the response's head was complete.
    pub(crate) connection_died: bool,
}

impl Lost {
    const fn abandoned() -> Self {
        Self { failure: Failure::Abandoned { timed_out: false }, connection_died: false }
    }

    pub(super) const fn timed_out() -> Self {
        Self { failure: Failure::Abandoned { timed_out: true }, connection_died: false }
    }

    /// Returns the failure's name in metrics.
    pub(crate) const fn word(&self) -> &'static str {
        match self.failure {
            Failure::NotSent { .. } => "not_sent",
            Failure::Insecure => "tls",
            Failure::Full => "overloaded",
            Failure::Abandoned { timed_out: true } => "timeout",
            Failure::Abandoned { timed_out: false } => "broken",
        }
    }
}

/// Adds the fields of the trace that the request belongs to.
pub(crate) fn trace(head: &mut RequestHeader, fields: Option<(String, Option<String>)>) -> pingora::Result<()> {
    let Some((parent, state)) = fields else { return Ok(()) };
    head.insert_header(TRACEPARENT, parent)?;
    if let Some(state) = state {
        return head.insert_header(TRACESTATE, state);
    }
    head.remove_header(TRACESTATE);
    Ok(())
}

impl From<Box<pingora::Error>> for Lost {
    fn from(error: Box<pingora::Error>) -> Self {
        tracing::debug!(error = error.etype().as_str(), "an exchange with an upstream failed");
        if is_unprocessed(&error) {
            return Self { failure: Failure::NotSent { timed_out: false }, connection_died: true };
        }
        let died = matches!(error.etype(), ErrorType::ConnectionClosed | ErrorType::ReadError | ErrorType::WriteError);
        Self { connection_died: died, ..Self::abandoned() }
    }
}

impl From<io::Error> for Lost {
    fn from(error: io::Error) -> Self {
        tracing::error!(%error, "a spool file cannot be read");
        Self::abandoned()
    }
}

/// A connection to a server, ready for one exchange.
pub struct Connected {
    pub(super) opened: OpenedConnection,
    pub(super) destination: Destination,
    pub(super) upstream: Arc<Upstream>,
    pub(super) server: usize,
    pub(super) traffic: Traffic,
    pub(super) reused: bool,
    /// The slot that the exchange occupies on its server, if it takes one.
    pub(super) slot: Option<Slot>,
    pub(super) watch: ExchangeWatch,
}

impl Connected {
    /// The index of the server in [`Upstream::servers`](crate::config::Upstream::servers).
    pub fn server(&self) -> usize {
        self.server
    }

    /// Whether the connection has carried an exchange before.
    pub fn is_reused(&self) -> bool {
        self.reused
    }

    /// Sends a request, once, and reads the head of its final response. [`fields::request_head`] makes a head whose
    /// framing fits the body. The upstream's timeout bounds the whole exchange. Every failure is
    /// [`Failure::Abandoned`], with two exceptions: a head that cannot be written at all, and a request that an HTTP/2
    /// server reports as untouched.
    ///
    /// An upstream may answer before it has the whole body. If the answer is an error (RFC 9112 section 9.5), the rest
    /// is not sent. After any other answer the rest is sent, because the upstream may still be reading.
    ///
    /// [`fields::request_head`]: super::fields::request_head
    pub async fn send(self: Box<Self>, head: Box<RequestHeader>, body: &Body) -> Result<Exchange, Failure> {
        self.transmit(head, body).await.map_err(|lost| lost.failure)
    }

    pub(super) async fn transmit(
        mut self: Box<Self>,
        mut head: Box<RequestHeader>,
        body: &Body,
    ) -> Result<Exchange, Lost> {
        self.watch.asks(&head.method);
        trace(&mut head, self.watch.trace_fields())?;
        let (mut watch, outcome) =
            (std::mem::replace(&mut self.watch, ExchangeWatch::nothing()), self.exchange(head, body).await);
        match &outcome {
            Ok(exchange) => watch.answered(exchange.head().status.as_u16()),
            Err(lost) => watch.failed(lost.word()),
        }
        outcome
    }

    async fn exchange(self: Box<Self>, mut head: Box<RequestHeader>, body: &Body) -> Result<Exchange, Lost> {
        let name = self.upstream.servers.get(self.server);
        if let Some(host) = name.and_then(|name| self.upstream.host_header.for_server(name)) {
            head.insert_header(header::HOST, host)?;
        }
        let server = self.server;
        let mut link = Box::new(Link::of(*self, !body.is_empty()));
        match timeout(link.upstream.timeout, link.converse(head, body)).await {
            Ok(outcome) => outcome?,
            // An upstream that answered and then stopped reading has left its answer on the connection.
            Err(_) if link.uploading && !link.answered => {
                link.final_head().now_or_never().unwrap_or(Err(Lost::timed_out()))?;
            }
            Err(_) => return Err(Lost::timed_out()),
        }
        link.into_exchange(server)
    }
}

impl Connection for Connected {
    fn server(&self) -> usize {
        self.server
    }

    fn send(self: Box<Self>, head: Box<RequestHeader>, body: &Body) -> BoxFuture<'_, Result<Exchange, Failure>> {
        box_future(move || Self::send(self, head, body))
    }
}

impl Link {
    pub(super) fn of(connected: Connected, has_body: bool) -> Self {
        let Connected { opened, destination, upstream, traffic, slot, .. } = connected;
        let (session, origin) = opened.begin(has_body);
        Self {
            session,
            origin,
            destination,
            upstream,
            traffic,
            slot,
            interim_responses: 0,
            answered: false,
            uploading: false,
            request_complete: false,
        }
    }

    async fn converse(&mut self, mut head: Box<RequestHeader>, body: &Body) -> Result<(), Lost> {
        // An HTTP/1.0 request may lack Host, but the same request in HTTP/1.1 needs it (RFC 9112 section 3.2).
        if !head.headers.contains_key(header::HOST) {
            head.insert_header(header::HOST, self.destination.address.host())?;
        }
        if let Err(error) = self.write_head(head, body.is_empty()).await {
            // Over HTTP/2, a stream that fails to begin has sent nothing.
            let unwritable = *error.etype() == ErrorType::InvalidHTTPHeader;
            let (lost, not_sent) = (Lost::from(error), Failure::NotSent { timed_out: false });
            return Err(match (unwritable, self.session.as_http2()) {
                (true, _) => Lost { failure: not_sent, connection_died: false },
                (false, Some(_)) => Lost { failure: not_sent, connection_died: true },
                (false, None) => lost,
            });
        }
        if self.request_complete {
            return self.final_head().await;
        }
        self.uploading = true;
        self.upload(body).await?;
        self.uploading = false;
        if self.answered { Ok(()) } else { self.final_head().await }
    }

    /// Returns the exchange with the server at this index, once its final response has begun.
    pub(super) fn into_exchange(self: Box<Self>, server: usize) -> Result<Exchange, Lost> {
        let head = self.session.response_header().cloned().ok_or(Lost::abandoned())?;
        Ok(Exchange::of(self, Box::new(head), server))
    }

    pub(super) async fn write_head(&mut self, mut head: Box<RequestHeader>, is_all: bool) -> pingora::Result<()> {
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
            match timeout(self.upstream.write_timeout, self.session.write_request_body(chunk, false)).await {
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
        let or_not_sent = |why: Lost| if matches!(why.failure, Failure::NotSent { .. }) { why } else { lost };
        self.final_head().await.map_err(or_not_sent)
    }

    /// Reads up to the head of the final response. May be dropped and called again: what has arrived is kept.
    async fn final_head(&mut self) -> Result<(), Lost> {
        while self.next_head().await?.status.is_informational() {}
        Ok(())
    }

    /// Reads the head of the next response. May be dropped and called again: what has arrived is kept.
    pub(super) async fn next_head(&mut self) -> Result<&ResponseHeader, Lost> {
        self.session.read_response_header().await?;
        let head = self.session.response_header().ok_or(Lost::abandoned())?;
        if head.status.is_informational() {
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

    /// Whether the upstream has answered with an error.
    fn refused(&self) -> bool {
        let head = self.session.response_header().filter(|_| self.answered);
        head.is_some_and(|head| head.status.is_client_error() || head.status.is_server_error())
    }

    /// Returns the next bytes of the response's body.
    async fn read_body(&mut self) -> Result<Option<Bytes>, Failure> {
        loop {
            let wait = self.traffic.body_wait(&self.upstream);
            return match timeout(wait, self.session.read_response_body()).await {
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
            // Trailers are not forwarded, but the response is not over before them.
            let _ = session.read_trailers().now_or_never();
        }
        let idle_max = self.traffic.idle_max(&self.upstream);
        if self.request_complete && !idle_max.is_zero() && self.session.response_done() {
            let Self { origin, session, destination, .. } = *self;
            origin.keep(session, destination, idle_max).await;
        }
    }
}

impl Wire for Link {
    fn next_chunk(&mut self) -> BoxFuture<'_, Result<Option<Bytes>, Failure>> {
        box_future(|| self.read_body())
    }

    fn is_complete(&mut self) -> bool {
        self.session.response_done()
    }

    fn leave_slot(&mut self) {
        self.slot = None;
    }

    fn release(self: Box<Self>) -> BoxFuture<'static, ()> {
        box_future(|| self.put_back())
    }
}

/// Whether no transfer coding would reach the client undecoded: the proxy offers none but `chunked`.
fn is_framed(head: &ResponseHeader) -> bool {
    let mut codings = head.headers.get_all(header::TRANSFER_ENCODING).iter();
    match (codings.next(), codings.next()) {
        (None, _) => true,
        (Some(coding), None) => coding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked"),
        (Some(_), Some(_)) => false,
    }
}

#[cfg(test)]
mod tests;
