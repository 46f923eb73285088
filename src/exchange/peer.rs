//! From a configured server to the peer that pingora connects to.

use std::{fmt, io, net::SocketAddr, path::Path, slice, sync::Arc, time::Duration};

use moka::sync::Cache;
use pingora::upstreams::peer::HttpPeer;
use tokio::{net::lookup_host, time::timeout};

use crate::config::Upstream;

/// What the address of a server begins with that listens on a Unix socket.
const UNIX: &str = "unix:";
/// How long the addresses of a name are used: short enough to follow a service that moves.
const NAME_TTL: Duration = Duration::from_secs(5);
/// Names remembered; far more than a configuration has.
const NAMES_MAX: u64 = 1024;

/// Resolves `host:port` without a system call for addresses, and seldom for names.
#[derive(Debug)]
pub(crate) struct Resolver {
    names: Cache<String, Arc<[Address]>>,
}

/// Where a connection is made to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// An address and a port.
    Tcp(SocketAddr),
    /// The path of a Unix socket.
    Unix(Arc<Path>),
}

impl Address {
    /// What stands in Host where the client named none, which it may over HTTP/1.0 alone: a socket has no name.
    pub(crate) fn host(&self) -> String {
        match self {
            Self::Tcp(address) => address.to_string(),
            Self::Unix(_) => "localhost".to_owned(),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(formatter),
            Self::Unix(path) => write!(formatter, "{UNIX}{}", path.display()),
        }
    }
}

/// The addresses of one server, in the order in which to try them; never empty.
pub(crate) enum Addresses {
    One(Address),
    Several(Arc<[Address]>),
}

impl Addresses {
    pub(crate) fn as_slice(&self) -> &[Address] {
        match self {
            Self::One(address) => slice::from_ref(address),
            Self::Several(addresses) => addresses,
        }
    }
}

impl Resolver {
    pub(crate) fn new() -> Self {
        Self { names: Cache::builder().max_capacity(NAMES_MAX).time_to_live(NAME_TTL).build() }
    }

    /// The addresses of `host:port` or `unix:/path`; an error where the name is unknown or the answer takes longer
    /// than `wait`.
    pub(crate) async fn addresses(&self, server: &str, wait: Duration) -> io::Result<Addresses> {
        if let Ok(address) = server.parse() {
            return Ok(Addresses::One(Address::Tcp(address)));
        }
        if let Some(path) = server.strip_prefix(UNIX) {
            return Ok(Addresses::One(Address::Unix(Path::new(path).into())));
        }
        if let Some(known) = self.names.get(server) {
            return Ok(Addresses::Several(known));
        }
        let found: Arc<[Address]> = timeout(wait, lookup_host(server)).await??.map(Address::Tcp).collect();
        if found.is_empty() {
            return Err(io::Error::from(io::ErrorKind::NotFound));
        }
        self.names.insert(server.to_owned(), Arc::clone(&found));
        Ok(Addresses::Several(found))
    }
}

/// One address of a server of an upstream, with all that decides whether a pooled connection may carry a request to it.
/// Pingora's own default is to wait for ever; reading and writing are bounded by the exchange, because a `Connector`
/// applies no such option.
///
/// # Design
///
/// *Why one stream a connection, where HTTP/2 could carry many?* To give a write up is to close its connection, which
/// `late_max` counts from, and no other exchange may end with it.
pub(crate) fn peer(upstream: &Upstream, server: &str, address: &Address) -> pingora::Result<HttpPeer> {
    let tls = upstream.tls.as_deref();
    let name = tls.map_or_else(String::new, |tls| tls.name_of(server));
    let mut peer = match address {
        Address::Tcp(address) => HttpPeer::new(*address, tls.is_some(), name),
        Address::Unix(path) => HttpPeer::new_uds(&path.to_string_lossy(), tls.is_some(), name)?,
    };
    peer.options.connection_timeout = Some(upstream.connect_timeout);
    peer.options.total_connection_timeout = Some(upstream.connect_timeout);
    match (upstream.http2, tls) {
        (false, _) => peer.options.set_http_version(1, 1),
        // Without TLS there is nothing to choose with (RFC 9113 section 3.3).
        (true, None) => peer.options.set_http_version(2, 2),
        (true, Some(_)) => peer.options.set_http_version(2, 1),
    }
    peer.options.max_h2_streams = 1;
    if let Some(tls) = tls {
        tls.secure(&mut peer);
    }
    Ok(peer)
}
