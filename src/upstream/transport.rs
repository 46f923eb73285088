//! The seam between the guard and the upstream: the path that a request takes.
//!
//! # Design
//!
//! *Why traits?* The guard decides which writes may be lost, and must be right in every order of events. With its own
//! clients, upstreams and clock, a simulation drives the very futures that serve requests over these seams.
//!
//! *Why are the traits so narrow?* Each method is one thing to await, or one fact. Everything else about a request
//! (framing, budget, retries) is code on this side of the seam, and the simulation runs it too.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use pingora::http::RequestHeader;

use super::{Exchange, Failure, Purpose, WantedPlace};
use crate::{
    body::{Body, BoxFuture},
    config::Upstream,
};

/// The path to the upstreams.
pub trait Transport: Send + Sync {
    /// Opens a connection to the first reachable server that is wanted. The failure is [`Failure::NotSent`],
    /// [`Failure::Insecure`] or [`Failure::Full`].
    fn connect<'a>(
        &'a self,
        upstream: &'a Arc<Upstream>,
        wanted: WantedPlace<'a>,
        purpose: Purpose,
    ) -> BoxFuture<'a, Result<Box<dyn Connection>, Failure>>;

    /// Connects and sends a request that changes nothing, and may therefore be sent once more.
    fn read<'a>(
        &'a self,
        upstream: &'a Arc<Upstream>,
        wanted: WantedPlace<'a>,
        head: Box<RequestHeader>,
        body: &'a Body,
    ) -> BoxFuture<'a, Result<Exchange, Failure>>;
}

/// An open connection on which nothing has been sent.
pub trait Connection: Send {
    /// The index of the server in [`Upstream::servers`].
    fn server(&self) -> usize;

    /// Sends a request, once, and reads the head of its final response.
    fn send(self: Box<Self>, head: Box<RequestHeader>, body: &Body) -> BoxFuture<'_, Result<Exchange, Failure>>;
}

/// The content of a response in transit, and the connection that carries it. Dropping it closes the connection.
pub trait Wire: Send {
    /// Returns the next bytes, never empty, or `None` at the end. May be dropped and called again: no byte is lost.
    fn next_chunk(&mut self) -> BoxFuture<'_, Result<Option<Bytes>, Failure>>;

    /// True if the content was read to its end, or is absent.
    fn is_complete(&mut self) -> bool;

    /// True if the client's next bytes are to be sent on, because its request has not ended or has opened a tunnel.
    fn is_open(&self) -> bool {
        false
    }

    /// Sends the next bytes of the request or, with `None`, its end.
    fn send(&mut self, _piece: Option<Bytes>) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Returns the trailers that follow the content.
    fn trailers(&mut self) -> BoxFuture<'_, Option<HeaderMap>> {
        Box::pin(std::future::ready(None))
    }

    /// Lets another exchange with the server begin, because this one is over.
    fn leave_slot(&mut self);

    /// Keeps the connection for another exchange if both messages on it are complete. Otherwise closes it.
    fn release(self: Box<Self>) -> BoxFuture<'static, ()>;
}
