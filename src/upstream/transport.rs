//! The seam of an exchange: the way to the upstream that a request goes to.
//!
//! # Design
//!
//! *Why traits?* The guard decides what may be lost, and must be right in every order of events. Over these seams a
//! simulation drives the very futures that serve requests, with clients, upstreams and a clock of its own.
//!
//! *Why are they so narrow?* Each method is one thing that can be awaited, or one fact. Everything else about a request,
//! its framing, its budget, its retries, is code on this side of the seam, and simulated with it.

use std::sync::Arc;

use bytes::Bytes;
use pingora::http::RequestHeader;

use super::{Choice, Exchange, Failure, Purpose};
use crate::{
    body::{Body, BoxFuture},
    config::Upstream,
};

/// The way to upstreams.
pub trait Transport: Send + Sync {
    /// A connection to one server of an upstream: the first one of this choice that can be reached. The failure is
    /// [`Failure::NotSent`], [`Failure::Insecure`] or [`Failure::Full`].
    fn connect<'a>(
        &'a self,
        upstream: &'a Arc<Upstream>,
        choice: Choice<'a>,
        purpose: Purpose,
    ) -> BoxFuture<'a, Result<Box<dyn Connection>, Failure>>;

    /// Connects and sends a request that changes nothing, and that may therefore be sent once more.
    fn read<'a>(
        &'a self,
        upstream: &'a Arc<Upstream>,
        choice: Choice<'a>,
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

/// The content of a response on its way, and the connection that carries it. Dropping it closes the connection.
pub trait Wire: Send {
    /// The next bytes, never empty; `None` at the end. May be dropped and called again: no byte is lost.
    fn next_chunk(&mut self) -> BoxFuture<'_, Result<Option<Bytes>, Failure>>;

    /// Whether the content was read to its end, or there is none.
    fn is_complete(&mut self) -> bool;

    /// Lets another exchange with the server begin: this one has come to its end.
    fn leave_slot(&mut self);

    /// Keeps the connection for another exchange where both messages on it are complete; else closes it.
    fn release(self: Box<Self>) -> BoxFuture<'static, ()>;
}
