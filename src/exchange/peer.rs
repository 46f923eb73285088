//! From a configured server to the peer that pingora connects to.

use std::{io, net::SocketAddr, slice, sync::Arc, time::Duration};

use moka::sync::Cache;
use pingora::upstreams::peer::HttpPeer;
use tokio::{net::lookup_host, time::timeout};

use crate::config::Upstream;

/// How long the addresses of a name are used: short enough to follow a service that moves.
const NAME_TTL: Duration = Duration::from_secs(5);
/// Names remembered; far more than a configuration has.
const NAMES_MAX: u64 = 1024;

/// Resolves `host:port` without a system call for addresses, and seldom for names.
#[derive(Debug)]
pub(crate) struct Resolver {
    names: Cache<String, Arc<[SocketAddr]>>,
}

/// The addresses of one server, in the order in which to try them; never empty.
pub(crate) enum Addresses {
    One(SocketAddr),
    Several(Arc<[SocketAddr]>),
}

impl Addresses {
    pub(crate) fn as_slice(&self) -> &[SocketAddr] {
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

    /// The addresses of `host:port`; an error where the name is unknown or the answer takes longer than `wait`.
    pub(crate) async fn addresses(&self, server: &str, wait: Duration) -> io::Result<Addresses> {
        if let Ok(address) = server.parse() {
            return Ok(Addresses::One(address));
        }
        if let Some(known) = self.names.get(server) {
            return Ok(Addresses::Several(known));
        }
        let found: Arc<[SocketAddr]> = timeout(wait, lookup_host(server)).await??.collect();
        if found.is_empty() {
            return Err(io::Error::from(io::ErrorKind::NotFound));
        }
        self.names.insert(server.to_owned(), Arc::clone(&found));
        Ok(Addresses::Several(found))
    }
}

/// One address of an upstream. Pingora's own default is to wait for ever; reading and writing are bounded by the
/// exchange, because a `Connector` applies no such option.
pub(super) fn peer(upstream: &Upstream, address: SocketAddr) -> HttpPeer {
    let mut peer = HttpPeer::new(address, false, String::new());
    peer.options.connection_timeout = Some(upstream.connect_timeout);
    peer.options.total_connection_timeout = Some(upstream.connect_timeout);
    peer.options.set_http_version(1, 1);
    peer
}
