//! Turns a configured server into the peer that pingora connects to.

use std::{io, path::Path, slice, sync::Arc, time::Duration};

use pingora::upstreams::peer::HttpPeer;

use crate::{
    config::Upstream,
    core::address::{Address, UNIX},
    names::{Names, of_this_system},
};

/// Finds the addresses of servers.
#[derive(Clone, Debug)]
pub(crate) struct Resolver {
    names: Names,
}

/// The addresses of one server, in the order to try them. Never empty.
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
        Self { names: of_this_system().clone() }
    }

    /// Returns the addresses of `host:port` or `unix:/path`. Fails if the name is unknown or the answer takes longer
    /// than `wait`.
    pub(crate) async fn addresses(&self, server: &str, wait: Duration) -> io::Result<Addresses> {
        if let Ok(address) = server.parse() {
            return Ok(Addresses::One(Address::Tcp(address)));
        }
        if let Some(path) = server.strip_prefix(UNIX) {
            return Ok(Addresses::One(Address::Unix(Path::new(path).into())));
        }
        Ok(Addresses::Several(self.names.addresses(server, wait).await?))
    }
}

/// Returns the peer for one address of an upstream's server, with all that decides whether a pooled connection may
/// carry a request. Pingora would wait without end by default. The exchange bounds reading and writing, because a
/// `Connector` applies no such option.
///
/// # Design
///
/// *Why one stream per connection, if HTTP/2 could carry many?* To give up a write means to close its connection.
/// `late_write_window` counts from that moment, and no other exchange may end with it.
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
        // Without TLS, nothing negotiates the version (RFC 9113 section 3.3).
        (true, None) => peer.options.set_http_version(2, 2),
        (true, Some(_)) => peer.options.set_http_version(2, 1),
    }
    peer.options.max_h2_streams = 1;
    if let Some(tls) = tls {
        tls.secure(&mut peer);
    }
    Ok(peer)
}
