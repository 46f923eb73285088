//! From a configured server to the peer that pingora connects to.

use std::{io, path::Path, slice, sync::Arc, time::Duration};

use moka::sync::Cache;
use pingora::upstreams::peer::HttpPeer;
use tokio::{net::lookup_host, time::timeout};

use crate::{
    config::Upstream,
    core::address::{Address, UNIX},
};

/// How long the addresses of a name are used: short enough to follow a service that moves.
const NAME_TTL: Duration = Duration::from_secs(5);
/// Names remembered; far more than a configuration has.
const NAMES_MAX: u64 = 1024;

/// Resolves `host:port` without a system call for addresses, and seldom for names.
#[derive(Debug)]
pub(crate) struct Resolver {
    names: Cache<String, Arc<[Address]>>,
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
