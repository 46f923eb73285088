//! Connections to servers: idle ones, and new ones.

use std::{sync::Arc, time::Duration};

use futures_util::FutureExt as _;
use pingora::{
    Error, ErrorType,
    connectors::{ConnectorOptions, TransportConnector, http::Connector},
    protocols::{
        Stream,
        http::{client::HttpSession, v2::client::Http2Session},
    },
    upstreams::peer::HttpPeer,
};

use super::{
    Connected, Failure, NO_AUTHORITIES, Purpose,
    http1::Http1Exchange,
    idle::{Destination, Home, IdleConnections},
    peer::{Resolver, peer},
    terms::Terms,
};
use crate::{box_future::box_future, config::Upstream, telemetry::exchange::ExchangeWatch};

/// The number of idle connections kept for reads and for writes, over all upstreams. The longest idle one is closed first.
const POOLED_CONNECTIONS: usize = 512;
/// Marks a peer that must not use a pooled connection. Any value but the default works.
const FRESH: u64 = 1;

/// Connects for one purpose.
pub(crate) struct Dialler {
    purpose: Purpose,
    idle: Arc<IdleConnections>,
    transport: TransportConnector,
    /// Pingora's own pool, for servers that speak HTTP/2.
    http2: Arc<Connector>,
}

/// A connection to a server, and the place to which it returns.
pub(super) enum ServerConnection {
    Http1(Http1Exchange, Home),
    /// A stream of a connection that others use too.
    Http2(Box<Http2Session>, Pooled),
}

/// A connection in pingora's pool.
pub(super) struct Pooled {
    connector: Arc<Connector>,
    peer: Box<HttpPeer>,
}

impl Purpose {
    /// How long a connection may be idle between two exchanges.
    pub(super) fn idle_max(self, upstream: &Upstream) -> Duration {
        match self {
            Self::Read => upstream.idle_timeout,
            Self::Write => upstream.reuse_idle_writes,
        }
    }
}

impl Dialler {
    /// Creates a dialler without idle connections.
    pub(crate) fn new(purpose: Purpose) -> Self {
        let mut options = ConnectorOptions::new(POOLED_CONNECTIONS);
        options.ca_file = Some(NO_AUTHORITIES.to_owned());
        Self {
            purpose,
            idle: IdleConnections::new(POOLED_CONNECTIONS),
            transport: TransportConnector::new(Some(options.clone())),
            http2: Arc::new(Connector::new(Some(options))),
        }
    }

    /// Connects to the first reachable address of the server at this index, by an idle connection or a new one. With
    /// `http2` the server may speak HTTP/2. A `fresh` connection has carried no exchange.
    pub(super) async fn dial(
        &self,
        resolver: &Resolver,
        (upstream, server): (&Arc<Upstream>, usize),
        http2: bool,
        fresh: bool,
    ) -> Result<Box<Connected>, Failure> {
        let mut failure = Failure::NotSent { timed_out: false };
        let name = upstream.servers.get(server).ok_or(failure)?;
        let addresses = resolver.addresses(name, upstream.connect_timeout).await.map_err(|error| {
            tracing::warn!(upstream = %upstream.name, server = %name, %error, "the server's name cannot be resolved");
            Failure::NotSent { timed_out: error.kind() == std::io::ErrorKind::TimedOut }
        })?;
        for address in addresses.as_slice() {
            let mut watch = ExchangeWatch::begin(name, upstream.tls.is_some(), Some(address.clone()));
            let destination = Destination::of(upstream, name, address.clone(), http2);
            match self.open(upstream, name, &destination, fresh).await {
                Ok((opened, reused)) => {
                    // Boxed, because it is in the states of many futures.
                    return Ok(Box::new(Connected {
                        opened,
                        terms: Terms {
                            destination,
                            upstream: Arc::clone(upstream),
                            purpose: self.purpose,
                            slot: None,
                            body_wait: upstream.read_timeout,
                        },
                        server,
                        reused,
                        watch,
                    }));
                }
                Err(error) => {
                    tracing::warn!(
                        upstream = %upstream.name, server = %name, error = error.etype().as_str(), cause = %error,
                        "start the server, or correct servers of its upstream: it cannot be reached"
                    );
                    let (kind, seen) = unreachable(&error);
                    failure = kind;
                    watch.failed(seen);
                }
            }
        }
        Err(failure)
    }

    /// Returns a connection to this address of a server, and whether it carried an exchange before.
    async fn open(
        &self,
        upstream: &Upstream,
        server: &str,
        destination: &Destination,
        fresh: bool,
    ) -> pingora::Result<(ServerConnection, bool)> {
        let peer = || peer(upstream, server, &destination.address);
        // A server that may speak HTTP/2 has idle connections here if it has chosen HTTP/1.1.
        if !fresh && let Some((stream, home)) = self.idle.take(destination) {
            return Ok((ServerConnection::http1(stream, home), true));
        }
        if destination.http2 {
            return Box::pin(self.negotiate(peer()?, fresh)).await;
        }
        let mut peer = Box::new(peer()?);
        peer.options.set_http_version(1, 1);
        // Boxed, because the future has room for a handshake, while an idle connection is available in most cases.
        let stream = box_future(|| self.transport.new_stream(&*peer)).await?;
        Ok((ServerConnection::http1(stream, self.idle.home()), false))
    }

    async fn negotiate(&self, mut peer: HttpPeer, fresh: bool) -> pingora::Result<(ServerConnection, bool)> {
        let pooled = peer.group_key;
        peer.group_key ^= if fresh { FRESH } else { 0 };
        let (session, reused) = box_future(|| self.http2.get_http_session(&peer)).await?;
        peer.group_key = pooled;
        match session {
            HttpSession::H1(session) => Ok((ServerConnection::http1(session.into_inner(), self.idle.home()), reused)),
            HttpSession::H2(session) => {
                let pooled = Pooled { connector: Arc::clone(&self.http2), peer: Box::new(peer) };
                Ok((ServerConnection::Http2(Box::new(session), pooled), reused))
            }
            HttpSession::Custom(()) => Err(Error::new(ErrorType::InternalError)),
        }
    }
}

impl ServerConnection {
    fn http1(stream: Stream, home: Home) -> Self {
        Self::Http1(Http1Exchange::new(stream), home)
    }

    /// Keeps the connection of a complete request, if the response is complete and both sides allow it.
    pub(super) async fn keep(self, destination: Destination, idle_max: Duration) {
        match self {
            Self::Http1(session, home) => {
                if let Some(stream) = session.into_idle() {
                    home.keep(destination, stream, idle_max);
                }
            }
            Self::Http2(mut session, Pooled { connector, peer }) => {
                // The response is not over before its trailers, wanted or not.
                let _ = session.read_trailers().now_or_never();
                if session.response_finished() {
                    let session = HttpSession::H2(*session);
                    // Boxed, because the future is large, and every exchange would need room for it.
                    Box::pin(connector.release_http_session(session, &*peer, Some(idle_max))).await;
                }
            }
        }
    }
}

impl Pooled {
    /// True if the server is reached over TLS.
    pub(super) fn is_tls(&self) -> bool {
        self.peer.is_tls()
    }
}

/// Returns the failure to connect, and its name in metrics.
fn unreachable(error: &pingora::Error) -> (Failure, &'static str) {
    match error.etype() {
        ErrorType::TLSHandshakeFailure => (Failure::Insecure, "tls"),
        ErrorType::ConnectTimedout => (Failure::NotSent { timed_out: true }, "connect_timeout"),
        _ => (Failure::NotSent { timed_out: false }, "connect"),
    }
}
