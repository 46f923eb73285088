//! A connection to a server, and one exchange on it whose request is complete.

use http::header;
use pingora::http::RequestHeader;
use pingora_timeout::timeout;

use super::{
    Connection, Exchange, Failure, balance::Slot, dial::ServerConnection, link::Link, lost::Lost, terms::Terms,
};
use crate::{
    body::{Body, BoxFuture},
    box_future::box_future,
    core::address::Address,
    telemetry::{
        exchange::ExchangeWatch,
        traces::{TRACEPARENT, TRACESTATE},
    },
};

/// A connection to a server, ready for one exchange.
pub struct Connected {
    pub(super) opened: ServerConnection,
    pub(super) terms: Terms,
    pub(super) server: usize,
    pub(super) reused: bool,
    pub(super) watch: ExchangeWatch,
}

impl Connected {
    /// The index of the server in [`Upstream::servers`](crate::config::Upstream::servers).
    pub fn server(&self) -> usize {
        self.server
    }

    /// The address of the server.
    pub(crate) fn address(&self) -> &Address {
        &self.terms.destination.address
    }

    /// True if the connection has carried an exchange before.
    pub fn is_reused(&self) -> bool {
        self.reused
    }

    /// Makes the exchange hold this slot.
    pub(super) fn occupying(mut self: Box<Self>, slot: Slot) -> Box<Self> {
        self.terms.slot = Some(slot);
        self
    }

    /// Writes the fields that name the server, and the trace that the request belongs to.
    pub(super) fn address_to_server(&mut self, head: &mut RequestHeader) -> pingora::Result<()> {
        self.watch.asks(&head.method);
        trace(head, self.watch.trace_fields())?;
        let name = self.terms.upstream.servers.get(self.server);
        if let Some(host) = name.and_then(|name| self.terms.upstream.host_header.for_server(name)) {
            head.insert_header(header::HOST, host)?;
        }
        // An HTTP/1.0 request may lack Host, but the same request in HTTP/1.1 needs it (RFC 9112 section 3.2).
        if !head.headers.contains_key(header::HOST) {
            head.insert_header(header::HOST, self.terms.destination.address.host())?;
        }
        Ok(())
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
    pub async fn send(self: Box<Self>, mut head: Box<RequestHeader>, body: &Body) -> Result<Exchange, Failure> {
        self.transmit(&mut head, body).await.map_err(|lost| lost.failure)
    }

    pub(super) async fn transmit(mut self: Box<Self>, head: &mut RequestHeader, body: &Body) -> Result<Exchange, Lost> {
        self.address_to_server(head)?;
        let (mut watch, outcome) =
            (std::mem::replace(&mut self.watch, ExchangeWatch::nothing()), self.exchange(head, body).await);
        match &outcome {
            Ok(exchange) => watch.answered(exchange.head().status.as_u16()),
            Err(lost) => watch.failed(lost.word()),
        }
        outcome
    }

    async fn exchange(self: Box<Self>, head: &RequestHeader, body: &Body) -> Result<Exchange, Lost> {
        let server = self.server;
        let mut link = Box::new(Link::on(self.opened, self.terms));
        let conversed = timeout(link.terms.upstream.timeout, link.converse(head, body)).await;
        conversed.unwrap_or_else(|_elapsed| link.refusal_so_far())?;
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

/// Adds the fields of the trace that the request belongs to.
fn trace(head: &mut RequestHeader, fields: Option<(String, Option<String>)>) -> pingora::Result<()> {
    let Some((parent, state)) = fields else { return Ok(()) };
    head.insert_header(TRACEPARENT, parent)?;
    if let Some(state) = state {
        return head.insert_header(TRACESTATE, state);
    }
    head.remove_header(TRACESTATE);
    Ok(())
}

#[cfg(test)]
mod tests;
