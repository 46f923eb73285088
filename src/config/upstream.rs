//! The settings of `[upstreams.NAME]` for the servers: load balancing, connection limits, health checks and headers.

use std::{net::IpAddr, ops::RangeInclusive, time::Duration};

use http::HeaderName;
use ipnet::IpNet;

/// The distribution of unguarded requests over the servers (`balance`). Requests to a guarded resource always go by its
/// key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Balance {
    /// The servers take turns.
    #[default]
    RoundRobin,
    /// A hash of the part of the request that [`HashBy`] names decides.
    ConsistentHash,
}

/// The input of a consistent hash (`hash_by`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HashBy {
    /// The path, as in a resource key.
    #[default]
    Path,
    /// The address of the client.
    Client,
    /// This field of the request; the path if the request does not have it.
    Header(HeaderName),
}

/// The limits of connections to each server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// The largest number of exchanges with one server at once.
    pub max: usize,
    /// How long a request waits for another one to end if the server has the maximum.
    pub queue_max_wait: Duration,
    /// The largest number of requests that wait for one server.
    pub queue_max_waiters: usize,
    /// The longest idle time after which a connection may still carry a request that can be sent again.
    pub idle_timeout: Duration,
}

#[cfg(test)]
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

/// The test by which a health check decides whether a server is healthy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HealthProbe {
    /// Whether the server accepts a connection.
    Connect,
    /// Whether the server answers a GET for a path with an expected status.
    Http {
        /// The target of the GET.
        path: String,
        /// The statuses of a healthy server.
        status: RangeInclusive<u16>,
    },
}

/// Active health checks of the servers of an upstream (`[upstreams.NAME.health]`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthCheck {
    /// The test.
    pub question: HealthProbe,
    /// The time between two tests.
    pub interval: Duration,
    /// The time limit for the answer.
    pub timeout: Duration,
    /// The number of good answers in a row after which a server that was down is up.
    pub healthy_after: usize,
    /// The number of bad answers in a row after which a server that was up is down.
    pub unhealthy_after: usize,
}

/// The `Host` that the upstream receives (`host_header`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HostHeader {
    /// The host that the client sent.
    #[default]
    Preserve,
    /// The name and port of the server, as in `servers`.
    Upstream,
    /// This host.
    Named(String),
}

impl HostHeader {
    /// Returns the host that replaces the client's for a server; `None` if the client's stays.
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

/// The proxies in front of this one that it trusts (`trusted_proxies`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustedProxies {
    /// The networks of the trusted proxies.
    pub networks: Vec<IpNet>,
    /// Whether peers that connect over a unix socket are trusted.
    pub over_unix: bool,
}

impl TrustedProxies {
    /// Returns whether a peer is trusted; a peer without an address came over a unix socket.
    pub fn contains(&self, peer: Option<IpAddr>) -> bool {
        peer.map_or(self.over_unix, |address| self.networks.iter().any(|network| network.contains(&address)))
    }
}

/// The fields that tell the upstream who the client is (`forwarded`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Forwarded {
    /// No field: the fields of the client pass unchanged.
    #[default]
    Off,
    /// X-Forwarded-For, -Proto, -Host and -Port.
    XForwarded,
    /// `Forwarded` (RFC 7239).
    Standard,
    /// Both.
    Both,
}
