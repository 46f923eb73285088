//! One exchange with an upstream: connect, send, receive, and give the connection back.
//!
//! This module handles HTTP, TLS and pingora's connection pool. It has no notion of stores, policies or preconditions.
//! The guard builds on three guarantees. A failure reports whether a byte may have been sent ([`Failure`]). Only reads
//! are ever sent twice. A connection returns to the pool only when both messages on it are complete.
//!
//! Every future here may be dropped at any time. Dropping it closes the connection, unless its method says otherwise.

use std::sync::Arc;

use pingora::{
    ErrorType,
    connectors::{ConnectorOptions, http::Connector},
    http::RequestHeader,
};
use thiserror::Error;

use crate::{
    body::{Body, BoxFuture},
    box_future::box_future,
    config::Upstream,
    telemetry::exchange::ExchangeWatch,
};

pub mod balance;
mod connection;
pub mod fields;
mod http2;
pub(crate) mod peer;
pub mod references;
mod response;
mod signing;
#[cfg(test)]
mod testing;
mod transport;

pub use balance::{Choice, Upstreams};
pub use connection::Connected;
pub(crate) use connection::trace;
pub use response::{BodyPrefix, BufferedBody, Exchange, Hashed, hash_whole, read_whole};
pub use signing::{NoCredentials, Signer};
pub use transport::{Connection, Transport, Wire};

use balance::Full;
use connection::{Dialled, Link};
use peer::{Resolver, peer};

/// The number of idle connections kept for each purpose, over all upstreams. The longest idle one is closed first.
const POOLED_CONNECTIONS: usize = 512;
/// Each peer names its own authorities. By default, pingora would read the system's authorities for each pool, and
/// would panic at one that it cannot read.
pub(crate) const NO_AUTHORITIES: &str = "/dev/null";
/// Marks a peer that must not use a pooled connection. Any value but the default works.
const FRESH: u64 = 1;

/// Why an exchange has no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Failure {
    /// The upstream has not seen a byte of the request.
    #[error("no connection to the upstream")]
    NotSent {
        /// Whether the connection attempt timed out, rather than failed.
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
        /// Whether the upstream timed out, rather than failed.
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

/// Connects to upstreams. Reads and writes have separate pools, because a write uses only a connection that has been
/// idle for less than [`Upstream::reuse_idle_writes`].
pub struct Exchanger {
    reads: Arc<Connector>,
    writes: Arc<Connector>,
    resolver: Resolver,
    upstreams: Arc<Upstreams>,
}

impl Exchanger {
    /// Creates two empty pools for these upstreams.
    pub fn to(upstreams: Arc<Upstreams>) -> Self {
        let (reads, writes) = (connector(POOLED_CONNECTIONS), connector(POOLED_CONNECTIONS));
        Self { reads, writes, resolver: Resolver::new(), upstreams }
    }

    /// Opens a connection to the first reachable server of this choice. The upstream's connect timeout bounds each
    /// attempt, and its queue bounds the wait for a slot. The failure is [`Failure::NotSent`], [`Failure::Insecure`]
    /// or [`Failure::Full`].
    pub async fn connect(
        &self,
        upstream: &Arc<Upstream>,
        choice: Choice<'_>,
        purpose: Purpose,
    ) -> Result<Connected, Failure> {
        let mut failure = Failure::NotSent { timed_out: false };
        let servers = self.upstreams.of(upstream);
        for server in servers.order(choice) {
            match self.open(upstream, (&servers, server), purpose, false).await {
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
    /// request is sent once more, on a fresh connection to the same server.
    pub async fn read(
        &self,
        upstream: &Arc<Upstream>,
        choice: Choice<'_>,
        head: Box<RequestHeader>,
        body: &Body,
    ) -> Result<Exchange, Failure> {
        let connected = self.connect(upstream, choice, Purpose::Read).await?;
        if !connected.is_reused() {
            return connected.send(head, body).await;
        }
        let server = connected.server();
        match connected.transmit(head.clone(), body).await {
            Err(lost) if lost.connection_died => {
                let servers = self.upstreams.of(upstream);
                self.open(upstream, (&servers, server), Purpose::Read, true).await?.send(head, body).await
            }
            outcome => outcome.map_err(|lost| lost.failure),
        }
    }

    async fn open(
        &self,
        upstream: &Arc<Upstream>,
        (servers, server): (&balance::UpstreamServers, usize),
        purpose: Purpose,
        fresh: bool,
    ) -> Result<Connected, Failure> {
        let name = upstream.servers.get(server).ok_or(Failure::NotSent { timed_out: false })?;
        let slot = servers.slot(server, upstream).await.map_err(|Full| Failure::Full)?;
        let connector = match purpose {
            Purpose::Read => &self.reads,
            Purpose::Write => &self.writes,
        };
        let dialled = dial((connector, purpose), &self.resolver, upstream, name, fresh).await;
        servers.connected(server, dialled.is_ok());
        Ok(Connected::new(dialled?, server, Some(slot)))
    }
}

impl Transport for Exchanger {
    fn connect<'a>(
        &'a self,
        upstream: &'a Arc<Upstream>,
        choice: Choice<'a>,
        purpose: Purpose,
    ) -> BoxFuture<'a, Result<Box<dyn Connection>, Failure>> {
        box_future(move || async move {
            let connected = Self::connect(self, upstream, choice, purpose).await?;
            Ok(Box::new(connected) as Box<dyn Connection>)
        })
    }

    fn read<'a>(
        &'a self,
        upstream: &'a Arc<Upstream>,
        choice: Choice<'a>,
        head: Box<RequestHeader>,
        body: &'a Body,
    ) -> BoxFuture<'a, Result<Exchange, Failure>> {
        box_future(move || Self::read(self, upstream, choice, head, body))
    }
}

/// Creates an empty pool.
fn connector(size: usize) -> Arc<Connector> {
    let mut options = ConnectorOptions::new(size);
    options.ca_file = Some(NO_AUTHORITIES.to_owned());
    Arc::new(Connector::new(Some(options)))
}

/// Connects to a server of this name, by a fresh connection or one from the connector's pool.
async fn dial(
    (connector, purpose): (&Arc<Connector>, Purpose),
    resolver: &Resolver,
    upstream: &Arc<Upstream>,
    name: &str,
    fresh: bool,
) -> Result<Dialled, Failure> {
    let addresses = resolver.addresses(name, upstream.connect_timeout).await.map_err(|error| {
        tracing::warn!(upstream = %upstream.name, server = %name, %error, "the server's name cannot be resolved");
        Failure::NotSent { timed_out: error.kind() == std::io::ErrorKind::TimedOut }
    })?;
    let reuse_idle = match purpose {
        Purpose::Read => upstream.connections.idle_timeout,
        Purpose::Write => upstream.reuse_idle_writes,
    };
    let mut failure = Failure::NotSent { timed_out: false };
    for address in addresses.as_slice() {
        let Ok(mut peer) = peer(upstream, name, address) else { continue };
        let mut watch = ExchangeWatch::begin(name, upstream.tls.is_some(), Some(address.clone()));
        let pooled = peer.group_key;
        peer.group_key ^= if fresh { FRESH } else { 0 };
        // Boxed, because the future has room for a handshake, while a pooled connection is available in most cases.
        match box_future(|| connector.get_http_session(&peer)).await {
            Ok((session, reused)) => {
                peer.group_key = pooled;
                let peer = (peer, address.clone());
                let link = Box::new(Link::new(Arc::clone(connector), peer, session, reuse_idle, upstream));
                let own_host = upstream.host_header.for_server(name).map(str::to_owned);
                return Ok(Dialled { link, reused, own_host, watch });
            }
            Err(error) => {
                tracing::warn!(
                    upstream = %upstream.name, server = %name, error = error.etype().as_str(), cause = %error,
                    "the server cannot be reached"
                );
                let (kind, seen) = match error.etype() {
                    ErrorType::TLSHandshakeFailure => (Failure::Insecure, "tls"),
                    ErrorType::ConnectTimedout => (Failure::NotSent { timed_out: true }, "connect_timeout"),
                    _ => (Failure::NotSent { timed_out: false }, "connect"),
                };
                failure = kind;
                watch.failed(seen);
            }
        }
    }
    Err(failure)
}

#[cfg(test)]
mod tests;
