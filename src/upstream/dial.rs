//! Connections to servers: idle ones, and new ones.

use std::{sync::Arc, time::Duration};

use pingora::{
    ErrorType,
    connectors::{ConnectorOptions, TransportConnector, http::Connector},
    protocols::{
        Stream,
        http::{client::HttpSession, v1::client::HttpSession as Http1Session},
    },
    upstreams::peer::HttpPeer,
};
use tokio::io::BufWriter;

use super::{
    Connected, Failure, NO_AUTHORITIES, Purpose,
    idle::{Destination, Home, IdleConnections},
    peer::{Resolver, peer},
    tapped::{Tap, Tapped, spoil},
    terms::Terms,
};
use crate::{
    box_future::box_future, config::Upstream, core::wire::response_scan::ResponseScan,
    telemetry::exchange::ExchangeWatch,
};

/// The number of idle connections kept for reads and for writes, over all upstreams. The longest idle one is closed first.
const POOLED_CONNECTIONS: usize = 512;
/// Marks a peer that must not use a pooled connection. Any value but the default works.
const FRESH: u64 = 1;

/// Connects for one purpose.
pub(crate) struct Dialler {
    purpose: Purpose,
    idle: Arc<IdleConnections>,
    transport: TransportConnector,
    /// Pingora's own pool, for servers that may speak HTTP/2.
    http2: Arc<Connector>,
}

/// A connection on which no exchange has begun.
pub(super) enum OpenedConnection {
    /// One of HTTP/1.1.
    Http1(Stream, Home),
    /// One of a server that may speak HTTP/2.
    Negotiated(Box<HttpSession>, Pooled),
}

/// The place to which the connection of an exchange returns.
pub(super) enum Origin {
    Idle(Home),
    Pingora(Pooled),
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
            let destination = Destination::of(upstream, name, address.clone());
            match self.open(upstream, name, &destination, (http2, fresh)).await {
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
                        "the server cannot be reached"
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
        (http2, fresh): (bool, bool),
    ) -> pingora::Result<(OpenedConnection, bool)> {
        let peer = || peer(upstream, server, &destination.address);
        if http2 {
            return Box::pin(self.negotiate(peer()?, fresh)).await;
        }
        if !fresh && let Some((stream, home)) = self.idle.take(destination) {
            return Ok((OpenedConnection::Http1(stream, home), true));
        }
        let mut peer = Box::new(peer()?);
        peer.options.set_http_version(1, 1);
        // Boxed, because the future has room for a handshake, while an idle connection is available in most cases.
        let stream = box_future(|| self.transport.new_stream(&*peer)).await?;
        Ok((OpenedConnection::Http1(stream, self.idle.home()), false))
    }

    async fn negotiate(&self, mut peer: HttpPeer, fresh: bool) -> pingora::Result<(OpenedConnection, bool)> {
        let pooled = peer.group_key;
        peer.group_key ^= if fresh { FRESH } else { 0 };
        let (session, reused) = box_future(|| self.http2.get_http_session(&peer)).await?;
        peer.group_key = pooled;
        let pooled = Pooled { connector: Arc::clone(&self.http2), peer: Box::new(peer) };
        Ok((OpenedConnection::Negotiated(Box::new(session), pooled), reused))
    }
}

impl OpenedConnection {
    /// Begins an exchange. With `holds_head`, a request of HTTP/1.1 is not sent before the beginning of its body, so that
    /// the server receives both at once.
    pub(super) fn begin(self, holds_head: bool) -> (HttpSession, Origin) {
        match self {
            Self::Http1(stream, home) => {
                let stream: Stream = Box::new(Tapped { stream, tap: ResponseScan::default() });
                let stream = if holds_head { hold_head(stream) } else { stream };
                (HttpSession::H1(Http1Session::new(stream)), Origin::Idle(home))
            }
            Self::Negotiated(session, pooled) => (*session, Origin::Pingora(pooled)),
        }
    }
}

impl Origin {
    /// True if a server that may speak HTTP/2 is reached over TLS.
    pub(super) fn is_tls(&self) -> bool {
        matches!(self, Self::Pingora(pooled) if pooled.peer.is_tls())
    }

    /// Keeps the connection of an exchange whose messages are complete, if both sides allow it.
    pub(super) async fn keep(self, session: HttpSession, destination: Destination, idle_max: Duration) {
        match (self, session) {
            (Self::Pingora(Pooled { connector, peer }), session) => {
                // Boxed, because the future is large, and every exchange would need room for it.
                Box::pin(connector.release_http_session(session, &*peer, Some(idle_max))).await;
            }
            (Self::Idle(home), HttpSession::H1(mut session)) => {
                session.respect_keepalive();
                if let Some(stream) = session.reuse().await {
                    home.keep(destination, unscanned(unhold(stream)), idle_max);
                }
            }
            (Self::Idle(_), _) => {}
        }
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

/// A response whose chunks are malformed breaks off there.
impl Tap for ResponseScan {
    fn received(&mut self, bytes: &mut [u8]) {
        let well_formed = self.look(bytes);
        spoil(bytes, well_formed);
    }
}

fn unscanned(stream: Stream) -> Stream {
    Tapped::<ResponseScan>::untap(stream).unwrap_or_else(|other| other)
}

/// Ignores the first flush, which follows the head.
#[derive(Debug, Default)]
struct HeadHold {
    is_over: bool,
}

impl Tap for HeadHold {
    fn flushes(&mut self) -> bool {
        std::mem::replace(&mut self.is_over, true)
    }
}

/// Holds the head of the next request back until its body follows. Pingora's own streams to servers have no buffer.
fn hold_head(stream: Stream) -> Stream {
    Box::new(Tapped { stream: BufWriter::new(stream), tap: HeadHold::default() })
}

fn unhold(stream: Stream) -> Stream {
    Tapped::<HeadHold, BufWriter<Stream>>::untap(stream).map_or_else(|unheld| unheld, BufWriter::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use pingora::protocols::l4;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpStream,
    };

    use super::*;
    use crate::upstream::testing::listen;

    /// Counts the writes to a connection.
    #[derive(Debug)]
    struct Writes(Arc<AtomicUsize>);

    impl Tap for Writes {
        fn wrote(&mut self, _bytes: usize) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A server that receives the head alone is woken twice for each write.
    #[tokio::test]
    async fn the_head_and_a_small_body_are_one_write() {
        let (listener, server) = listen().await;
        let ours = TcpStream::connect(&server).await.unwrap();
        let (mut theirs, writes) = (listener.accept().await.unwrap().0, Arc::default());
        let stream: Stream = Box::new(l4::stream::Stream::from(ours));
        let mut stream: Stream = Box::new(Tapped { stream, tap: Writes(Arc::clone(&writes)) });
        for number in 1..=2 {
            let mut held = hold_head(stream);
            for part in [b"head", b"body"] {
                held.write_all(part).await.unwrap();
                held.flush().await.unwrap();
            }
            let mut received = [0; 8];
            theirs.read_exact(&mut received).await.unwrap();
            assert_eq!((received, writes.load(Ordering::Relaxed)), (*b"headbody", number));
            stream = unhold(held);
        }
    }
}
