//! One exchange with an upstream: connect, send, receive, and give the connection back.
//!
//! This module knows HTTP, TLS and pingora's connection pool, and nothing of stores, policies or preconditions. What it
//! does guarantee is what the guard builds on: a failure says whether a byte may have been sent ([`Failure`]), nothing
//! but a read is ever sent twice, and a connection goes back to the pool only when both messages on it are complete.
//!
//! Every future here may be dropped at any time. The connection is closed then, except where a method says otherwise.

use std::{sync::Arc, time::Duration};

use pingora::{
    ErrorType,
    connectors::{ConnectorOptions, http::Connector},
    http::RequestHeader,
};
use thiserror::Error;

use crate::config::Upstream;

mod body;
mod budget;
mod connection;
pub mod fields;
mod http2;
pub(crate) mod peer;
mod receive;
mod response;
mod signing;
mod spool;
#[cfg(test)]
mod testing;
mod tls;

pub use body::{Body, BodyReader};
pub use budget::BodyBudget;
pub use connection::Connected;
pub use peer::Address;
pub use receive::{BodyLimits, ReceiveError, receive};
pub use response::{Begun, Exchange, Hashed, Whole, hash_whole, read_whole};
pub use signing::{NoCredentials, Signer};
pub use tls::UpstreamTls;

use connection::Link;
use peer::{Resolver, peer};

/// Idle connections kept for each purpose, over all upstreams; the longest idle one is closed first.
const POOLED_CONNECTIONS: usize = 512;
/// How long a connection may be idle and carry a read. A read that meets a dead connection is sent again.
const REUSE_IDLE_READS: Duration = Duration::from_secs(60);
/// Each peer names its own authorities. Pingora would read those of the system for each pool, and panic at one that it
/// cannot read.
pub(crate) const NO_AUTHORITIES: &str = "/dev/null";
/// Marks a peer whose pooled connections must not be used; any value but the default works.
const FRESH: u64 = 1;

/// Why an exchange has no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Failure {
    /// The upstream has not seen a byte of the request.
    #[error("no connection to the upstream")]
    NotSent {
        /// Whether connecting took too long, rather than failed.
        timed_out: bool,
    },
    /// No secure connection came about, mostly because of the upstream's certificate: it has not seen a byte.
    #[error("no secure connection to the upstream")]
    Insecure,
    /// A byte of the request may have been sent: whether the upstream acts on it cannot be known.
    #[error("no complete response from the upstream")]
    Abandoned {
        /// Whether the upstream took too long, rather than failed.
        timed_out: bool,
    },
}

/// What a connection is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A request that may be sent again when a pooled connection turns out to be dead.
    Read,
    /// A request that is sent at most once.
    Write,
}

/// Connects to upstreams. Reads and writes have pools of their own, because a write rides only on a connection that
/// has been idle for less than [`Upstream::reuse_idle_writes`].
pub struct Exchanger {
    reads: Arc<Connector>,
    writes: Arc<Connector>,
    resolver: Resolver,
}

impl Default for Exchanger {
    fn default() -> Self {
        Self::new()
    }
}

impl Exchanger {
    /// Two empty pools.
    pub fn new() -> Self {
        let connector = || {
            let mut options = ConnectorOptions::new(POOLED_CONNECTIONS);
            options.ca_file = Some(NO_AUTHORITIES.to_owned());
            Arc::new(Connector::new(Some(options)))
        };
        Self { reads: connector(), writes: connector(), resolver: Resolver::new() }
    }

    /// A connection to one server of an upstream: `preferred_server` (an index into [`Upstream::servers`]), or where
    /// it cannot be reached, one of the others in their order. Each attempt is bounded by the upstream's connect
    /// timeout. The failure is always [`Failure::NotSent`] or [`Failure::Insecure`].
    pub async fn connect(
        &self,
        upstream: &Arc<Upstream>,
        preferred_server: usize,
        purpose: Purpose,
    ) -> Result<Connected, Failure> {
        let others = (0..upstream.servers.len()).filter(|server| *server != preferred_server);
        let mut failure = Failure::NotSent { timed_out: false };
        for server in std::iter::once(preferred_server).chain(others) {
            match self.open(upstream, server, purpose, false).await {
                Ok(connected) => return Ok(connected),
                Err(refused) => failure = refused,
            }
        }
        Err(failure)
    }

    /// Connects and sends a request that changes nothing. Where a pooled connection dies before the response's head,
    /// the request is sent once more, on a fresh connection to the same server.
    pub async fn read(
        &self,
        upstream: &Arc<Upstream>,
        preferred_server: usize,
        head: RequestHeader,
        body: &Body,
    ) -> Result<Exchange, Failure> {
        let connected = self.connect(upstream, preferred_server, Purpose::Read).await?;
        if !connected.is_reused() {
            return connected.send(head, body).await;
        }
        let server = connected.server();
        match connected.transmit(head.clone(), body).await {
            Err(lost) if lost.connection_died => {
                self.open(upstream, server, Purpose::Read, true).await?.send(head, body).await
            }
            outcome => outcome.map_err(|lost| lost.failure),
        }
    }

    async fn open(
        &self,
        upstream: &Arc<Upstream>,
        server: usize,
        purpose: Purpose,
        fresh: bool,
    ) -> Result<Connected, Failure> {
        let name = upstream.servers.get(server).ok_or(Failure::NotSent { timed_out: false })?;
        let addresses = self.resolver.addresses(name, upstream.connect_timeout).await.map_err(|error| {
            tracing::warn!(upstream = %upstream.name, server = %name, %error, "the server's name cannot be resolved");
            Failure::NotSent { timed_out: error.kind() == std::io::ErrorKind::TimedOut }
        })?;
        let (connector, reuse_idle) = match purpose {
            Purpose::Read => (&self.reads, REUSE_IDLE_READS),
            Purpose::Write => (&self.writes, upstream.reuse_idle_writes),
        };
        let mut failure = Failure::NotSent { timed_out: false };
        for address in addresses.as_slice() {
            let Ok(mut peer) = peer(upstream, name, address) else { continue };
            let pooled = peer.group_key;
            peer.group_key ^= if fresh { FRESH } else { 0 };
            match connector.get_http_session(&peer).await {
                Ok((session, reused)) => {
                    peer.group_key = pooled;
                    let to = (peer, address.host());
                    let link = Link::new(Arc::clone(connector), to, session, reuse_idle, upstream.timeout);
                    return Ok(Connected::new(link, server, reused));
                }
                Err(error) => {
                    tracing::warn!(
                        upstream = %upstream.name, server = %name, error = error.etype().as_str(), cause = %error,
                        "the server cannot be reached"
                    );
                    failure = match error.etype() {
                        ErrorType::TLSHandshakeFailure => Failure::Insecure,
                        kind => Failure::NotSent { timed_out: *kind == ErrorType::ConnectTimedout },
                    };
                }
            }
        }
        Err(failure)
    }
}

#[cfg(test)]
mod tests;
