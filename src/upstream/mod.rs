//! One exchange with an upstream: connect, send, receive, and give the connection back.
//!
//! This module handles HTTP, TLS and pingora's connection pool. It has no notion of stores, policies or preconditions.
//! The guard builds on three guarantees. A failure reports whether a byte may have been sent ([`Failure`]). Only reads
//! are ever sent twice. A connection returns to the pool only when both messages on it are complete.
//!
//! Every future here may be dropped at any time. Dropping it closes the connection, unless its method says otherwise.

use std::sync::Arc;

use pingora::http::RequestHeader;
use thiserror::Error;

use crate::{
    body::{Body, BoxFuture},
    box_future::box_future,
    config::Upstream,
};

pub mod balance;
mod connection;
pub(crate) mod dial;
pub mod fields;
mod http1;
mod http2;
pub(crate) mod idle;
mod link;
mod lost;
mod own_credentials;
pub(crate) mod peer;
pub mod references;
mod response;
mod signing;
mod streamed;
mod terms;
#[cfg(test)]
mod testing;
mod transport;
pub(crate) mod via;

pub use balance::{Choice, Upstreams, WantedPlace};
pub use connection::Connected;
pub(crate) use link::Following;
pub(crate) use lost::Lost;
pub use own_credentials::{NoCredentials, OwnCredentials};
pub use response::{BodyPrefix, BufferedBody, Exchange, Hashed, SharedBody, hash_and_keep, hash_whole, read_whole};
pub(crate) use streamed::{Streamed, StreamedHead};
pub use transport::{Connection, Transport, Wire};

pub(crate) use balance::Occupant;
use balance::{Full, UpstreamServers};
use dial::Dialler;
use peer::Resolver;

/// Each peer names its own authorities. By default, pingora would read the system's authorities for each pool, and
/// would panic at one that it cannot read.
pub(crate) const NO_AUTHORITIES: &str = "/dev/null";
/// The reason why an exchange has no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Failure {
    /// The upstream has not seen a byte of the request.
    #[error("no connection to the upstream")]
    NotSent {
        /// True if the connection attempt timed out, rather than failed.
        timed_out: bool,
    },
    /// No secure connection could be made, mostly because of the upstream's certificate. The upstream has not seen a
    /// byte.
    #[error("no secure connection to the upstream")]
    Insecure,
    /// All of the upstream's connections are in use. The upstream has not seen a byte of the request.
    #[error("all connections to the upstream are in use")]
    Full,
    /// A byte of the request may have been sent, so the proxy cannot know whether the upstream acts on it.
    #[error("no complete response from the upstream")]
    Abandoned {
        /// True if the upstream timed out, rather than failed.
        timed_out: bool,
    },
}

/// The purpose that a connection serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A request that may be sent again if a pooled connection turns out to be dead.
    Read,
    /// A request that is sent at most once.
    Write,
}

/// The demands of a request on its connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    /// The server.
    pub(crate) choice: Choice<'a>,
    /// The purpose of the request, which decides whether it may be sent again.
    pub(crate) purpose: Purpose,
    /// Whose place at the server it takes.
    pub(crate) occupant: Occupant,
    /// True if the request may open a tunnel. WebSocket begins with HTTP/1.1 (RFC 6455 section 4.1); over HTTP/2 it would
    /// need another handshake.
    pub(crate) opens_tunnel: bool,
}

/// Connects to upstreams. Reads and writes have separate pools, because a write uses only a connection that has been
/// idle for less than [`Upstream::reuse_idle_writes`].
pub struct Exchanger {
    reads: Dialler,
    writes: Dialler,
    resolver: Resolver,
    upstreams: Arc<Upstreams>,
}

impl Default for Exchanger {
    fn default() -> Self {
        Self::to(Arc::default())
    }
}

impl Exchanger {
    /// Creates two empty pools for these upstreams.
    pub fn to(upstreams: Arc<Upstreams>) -> Self {
        let (reads, writes) = (Dialler::new(Purpose::Read), Dialler::new(Purpose::Write));
        Self { reads, writes, resolver: Resolver::new(), upstreams }
    }

    /// Returns the upstreams with the state of their servers.
    pub fn upstreams(&self) -> &Arc<Upstreams> {
        &self.upstreams
    }

    /// Opens a connection to the first reachable server that is wanted. The upstream's connect timeout bounds each
    /// attempt, and its queue bounds the wait for a slot. The failure is [`Failure::NotSent`], [`Failure::Insecure`]
    /// or [`Failure::Full`].
    pub async fn connect(
        &self,
        upstream: &Arc<Upstream>,
        wanted: WantedPlace<'_>,
        purpose: Purpose,
    ) -> Result<Box<Connected>, Failure> {
        self.connect_for(upstream, self.guarded(wanted, purpose)).await
    }

    fn guarded<'a>(&self, WantedPlace { choice, client }: WantedPlace<'a>, purpose: Purpose) -> Wanted<'a> {
        Wanted { choice, purpose, occupant: self.upstreams.guarded(client), opens_tunnel: false }
    }

    /// Like [`Exchanger::connect`], for any request.
    pub(crate) async fn connect_for(
        &self,
        upstream: &Arc<Upstream>,
        wanted: Wanted<'_>,
    ) -> Result<Box<Connected>, Failure> {
        let servers = self.upstreams.of(upstream);
        let untried = servers.order(wanted.choice);
        self.first_of(upstream, (&servers, untried), wanted, false).await
    }

    /// Opens a fresh connection for a request that is sent again, if possible to the same server.
    pub(crate) async fn connect_again(
        &self,
        upstream: &Arc<Upstream>,
        wanted: Wanted<'_>,
        server: usize,
    ) -> Result<Box<Connected>, Failure> {
        let servers = self.upstreams.of(upstream);
        let mut untried = servers.order(wanted.choice);
        untried.retain(|other| *other != server);
        untried.insert(0, server);
        self.first_of(upstream, (&servers, untried), wanted, true).await
    }

    async fn first_of(
        &self,
        upstream: &Arc<Upstream>,
        (servers, mut untried): (&UpstreamServers, Vec<usize>),
        wanted: Wanted<'_>,
        fresh: bool,
    ) -> Result<Box<Connected>, Failure> {
        let mut failure = Failure::NotSent { timed_out: false };
        while let Some(server) = next(&mut untried, servers, wanted) {
            match self.open(upstream, (servers, server), wanted, fresh).await {
                // A request that waited here in vain would wait in vain for the next server too, and its resource is
                // on this one.
                Err(Failure::Full) => return Err(Failure::Full),
                Err(refused) => failure = refused,
                Ok(connected) => return Ok(connected),
            }
        }
        Err(failure)
    }

    /// Connects and sends a request that changes nothing. If a pooled connection dies before the response's head, the
    /// request is sent once more, on a fresh connection.
    pub async fn read(
        &self,
        upstream: &Arc<Upstream>,
        wanted: WantedPlace<'_>,
        mut head: Box<RequestHeader>,
        body: &Body,
    ) -> Result<Exchange, Failure> {
        let wanted = self.guarded(wanted, Purpose::Read);
        let connected = self.connect_for(upstream, wanted).await?;
        if !connected.is_reused() {
            return connected.send(head, body).await;
        }
        let server = connected.server();
        match connected.transmit(&mut head, body).await {
            Err(lost) if lost.connection_died => {
                self.connect_again(upstream, wanted, server).await?.send(head, body).await
            }
            outcome => outcome.map_err(|lost| lost.failure),
        }
    }

    async fn open(
        &self,
        upstream: &Arc<Upstream>,
        (servers, server): (&UpstreamServers, usize),
        wanted: Wanted<'_>,
        fresh: bool,
    ) -> Result<Box<Connected>, Failure> {
        let slot = servers.slot(server, wanted.occupant, upstream).await.map_err(|Full| Failure::Full)?;
        let dialler = match wanted.purpose {
            Purpose::Read => &self.reads,
            Purpose::Write => &self.writes,
        };
        let http2 = upstream.http2 && !wanted.opens_tunnel;
        let connected = dialler.dial(&self.resolver, (upstream, server), http2, fresh).await;
        servers.connected(server, connected.is_ok());
        Ok(connected?.occupying(slot))
    }
}

/// Removes and returns the next server: the first, or, if they take turns, the first with room for another request if
/// any.
fn next(untried: &mut Vec<usize>, servers: &UpstreamServers, wanted: Wanted<'_>) -> Option<usize> {
    let takes_turns = matches!(wanted.choice, Choice::Turn);
    let has_room = |server: &usize| takes_turns && servers.has_place(*server, wanted.occupant);
    let place = untried.iter().position(has_room).unwrap_or(0);
    (place < untried.len()).then(|| untried.remove(place))
}

impl Transport for Exchanger {
    fn connect<'a>(
        &'a self,
        upstream: &'a Arc<Upstream>,
        wanted: WantedPlace<'a>,
        purpose: Purpose,
    ) -> BoxFuture<'a, Result<Box<dyn Connection>, Failure>> {
        box_future(move || async move {
            let connected = Self::connect(self, upstream, wanted, purpose).await?;
            Ok(connected as Box<dyn Connection>)
        })
    }

    fn read<'a>(
        &'a self,
        upstream: &'a Arc<Upstream>,
        wanted: WantedPlace<'a>,
        head: Box<RequestHeader>,
        body: &'a Body,
    ) -> BoxFuture<'a, Result<Exchange, Failure>> {
        box_future(move || Self::read(self, upstream, wanted, head, body))
    }
}

#[cfg(test)]
mod tests;
