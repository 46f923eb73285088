//! How the servers of an upstream share its load, and what each of them is spared (`[upstreams.NAME]`).

use std::{net::IpAddr, ops::RangeInclusive, time::Duration};

use http::HeaderName;
use ipnet::IpNet;

/// How the requests that nothing guards are spread over the servers (`balance`). Those on a guarded resource go by its
/// key, always.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Balance {
    /// Each takes its turn.
    #[default]
    RoundRobin,
    /// What [`HashBy`] says decides.
    ConsistentHash,
}

/// What a consistent hash is made of (`hash_by`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HashBy {
    /// The path, as a resource key has it.
    #[default]
    Path,
    /// The address of the client.
    Client,
    /// This field of the request; the path where it is not there.
    Header(HeaderName),
}

/// How many connections a server is given, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Exchanges with one server at once.
    pub max: usize,
    /// How long a request waits for the end of another one where there are as many.
    pub queue_max_wait: Duration,
    /// How many requests wait so for one server.
    pub queue_max_waiters: usize,
    /// How long a connection may be idle and still carry a request that may be sent again.
    pub idle_timeout: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            max: 1024,
            queue_max_wait: Duration::from_secs(1),
            queue_max_waiters: 256,
            idle_timeout: Duration::from_secs(55),
        }
    }
}

/// What a server is asked to see whether it is well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HealthProbe {
    /// Whether it takes a connection.
    Connect,
    /// Whether it answers a GET for a path with a status that is expected.
    Http {
        /// The target of the GET.
        path: String,
        /// The statuses of a server that is well.
        status: RangeInclusive<u16>,
    },
}

/// Active health checks of the servers of an upstream (`[upstreams.NAME.health]`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthCheck {
    /// What is asked.
    pub question: HealthProbe,
    /// How often.
    pub interval: Duration,
    /// How long the answer may take.
    pub timeout: Duration,
    /// Good answers in a row after which a server that was down is up.
    pub healthy_after: usize,
    /// Bad ones in a row after which a server that was up is down.
    pub unhealthy_after: usize,
}

/// What the upstream gets in `Host` (`host_header`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HostHeader {
    /// What the client sent.
    #[default]
    Preserve,
    /// The server's own name and port, as they stand in `servers`.
    Upstream,
    /// This.
    Named(String),
}

impl HostHeader {
    /// The host that a server is sent in the place of the client's; `None` where that stays.
    pub fn for_server<'a>(&'a self, server: &'a str) -> Option<&'a str> {
        match self {
            Self::Preserve => None,
            // A socket has no name.
            Self::Upstream if server.starts_with("unix:") => Some("localhost"),
            Self::Upstream => Some(server),
            Self::Named(name) => Some(name),
        }
    }
}

/// Proxies in front of this one that are believed (`trusted_proxies`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustedProxies {
    /// Where they are.
    pub networks: Vec<IpNet>,
    /// Whether those who come over a unix socket are.
    pub over_unix: bool,
}

impl TrustedProxies {
    /// Whether a peer is one of them; without an address it came over a unix socket.
    pub fn contains(&self, peer: Option<IpAddr>) -> bool {
        peer.map_or(self.over_unix, |address| self.networks.iter().any(|network| network.contains(&address)))
    }
}

/// Which fields tell the upstream who the client is (`forwarded`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Forwarded {
    /// None: what the client sent passes as it came.
    #[default]
    Off,
    /// X-Forwarded-For, -Proto, -Host and -Port.
    XForwarded,
    /// `Forwarded` (RFC 7239).
    Standard,
    /// Both.
    Both,
}
