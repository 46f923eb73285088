//! The `[upstreams.NAME]` tables.

use std::{collections::BTreeMap, ops::RangeInclusive, sync::Arc, time::Duration};

use http::{HeaderName, HeaderValue, uri::Authority};
use serde_json::Value;

use super::{
    check::Check,
    kinds::{Count, Flag, OneOf, PlainName, Time},
    table::{InWords, ValueKind, section},
    units::{ZERO, hours, ms, seconds},
    words::CheckWord,
    written::{Number, Text, Texts, WrittenTime, WrittenWord},
};
use crate::tls::UpstreamTls;

section! {
    /// One `[upstreams.NAME]` table.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Upstream of UpstreamKeys given (
        name: String, servers: Vec<String>, weights: Vec<u32>, connections: ConnectionLimits,
        health: Option<HealthCheck>, tls: Option<Arc<UpstreamTls>>
    ) {
        by hand {
            /// The servers.
            servers: Option<Texts>;
            /// The weight of each server; 1 for a server that is not named.
            weights: BTreeMap<Text, Number> where 1..=100;
            /// The longest idle time after which a connection may still carry a request that can be sent again.
            idle_timeout: Option<WrittenTime> where ZERO..=hours(1);
            /// The largest number of exchanges with one server at once.
            max_connections: Option<Number> where 1..=1_000_000;
            /// The queue for requests beyond that number.
            queue: QueueKeys;
            /// The active health checks of the servers.
            health: HealthKeys;
            /// The TLS settings for connections to the servers.
            tls: UpstreamTlsKeys;
        }
        /// The beginning of the resource keys; by default the name of the upstream.
        identity: String = PlainName(name.clone());
        /// Whether the servers read paths without regard to letter case.
        ignore_case: bool = Flag(false);
        /// The distribution of unguarded requests over the servers.
        balance: Balance = OneOf(Balance::RoundRobin);
        /// The input of the hash under `balance = "consistent-hash"`.
        hash_by: HashBy = OneOf(HashBy::Path);
        /// The time limit for making a connection.
        connect_timeout: Duration = Time(seconds(1)) in ms(10)..=seconds(300);
        /// The time limit of an exchange, from its first byte to the head of the response.
        timeout: Duration = Time(seconds(30)) in ms(10)..=hours(24);
        /// The time limit of each wait for more of the response body; by default that of the exchange.
        read_timeout: Duration = Time(timeout) in ms(10)..=hours(24);
        /// The time limit of each wait for room to send more of the request body; by default that of the exchange.
        write_timeout: Duration = Time(timeout) in ms(10)..=hours(24);
        /// The time for which the upstream may still apply a write after the connection that carried it has ended; by
        /// default the time limit of the exchange.
        late_write_window: Duration = Time(timeout) in ZERO..=hours(1);
        /// The longest idle time after which a pooled connection may still carry a write.
        reuse_idle_writes: Duration = Time(seconds(1)) in ZERO..=hours(1);
        /// The `Host` that the upstream receives.
        host_header: HostHeader = HostName(());
        /// The fields that tell the upstream who the client is.
        forwarded: Forwarded = OneOf(Forwarded::Off);
        /// Whether the proxy speaks HTTP/2: over TLS if the server chooses it, without TLS always.
        http2: bool = Flag(false);
        besides {
            /// The name in the file.
            name: String = name;
            /// The servers, `host:port` or `unix:/path`; never empty.
            servers: Vec<String> = servers;
            /// The weight of each server, in the order of `servers`.
            weights: Vec<u32> = weights;
            /// The connection limits of each server.
            connections: ConnectionLimits = connections;
            /// The active health checks of the servers, if any.
            health: Option<HealthCheck> = health;
            /// The TLS settings for connections to the servers; `None` without TLS.
            tls: Option<Arc<UpstreamTls>> = tls;
        }
    }
}

section! {
    /// The queue for requests beyond the connections of a server.
    pub(super) struct Queue of QueueKeys {
        /// How long a request waits for another one to end if the server has the maximum.
        max_wait: Duration = Time(seconds(1)) in ZERO..=seconds(300);
        /// The largest number of requests that wait for one server.
        max_waiters: usize = Count(256) in 0..=100_000;
    }
}

section! {
    /// Active health checks of the servers of an upstream (`[upstreams.NAME.health]`).
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct HealthCheck of HealthKeys given (question: HealthProbe) {
        by hand {
            /// The test.
            check: Option<WrittenWord<CheckWord>>;
            /// The target of the GET.
            path: Option<Text>;
            /// The statuses of a healthy server.
            status: Option<Text>;
        }
        /// The time between two tests.
        interval: Duration = Time(seconds(5)) in ms(50)..=hours(1);
        /// The time limit for the answer.
        timeout: Duration = Time(seconds(1)) in ms(10)..=seconds(60);
        /// The number of good answers in a row after which a server that was down is up.
        healthy_after: usize = Count(2) in 1..=100;
        /// The number of bad answers in a row after which a server that was up is down.
        unhealthy_after: usize = Count(3) in 1..=100;
        besides {
            /// The test.
            question: HealthProbe = question;
        }
    }
}

section!(keys UpstreamTlsKeys {
    /// The name that the certificates of the servers must have.
    server_name: Option<Text>;
    /// The authorities that may have issued them, a PEM file.
    ca: Option<Text>;
    /// The certificate of this program, a PEM file.
    cert: Option<Text>;
    /// The key of that certificate, a PEM file.
    key: Option<Text>;
});

impl Upstream {
    /// The time limit of each wait for a server on an unguarded route.
    pub(crate) fn longest_wait(&self) -> Duration {
        self.timeout.max(self.read_timeout)
    }
}

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

/// A word, or the name of a host.
pub(super) struct HostName;

impl ValueKind<HostHeader> for HostName {
    type Written = Option<Text>;
    type Terms = ();

    fn read(check: &mut Check<'_>, key: &str, written: Option<&Text>, (): ()) -> HostHeader {
        const HINT: &str = r#"it is "preserve", "upstream", or the name of a host: "docs.internal", "localhost:80""#;
        let Some(value) = written else { return HostHeader::Preserve };
        match value.get_ref().as_str() {
            "preserve" => HostHeader::Preserve,
            "upstream" => HostHeader::Upstream,
            // A single word is more likely a misspelt word than a host.
            name if name.contains(['.', ':']) && is_authority(name) => HostHeader::Named(name.to_owned()),
            name => {
                check.hinted(value.span(), format!("{key} cannot be {name:?}"), HINT);
                HostHeader::Preserve
            }
        }
    }
}

impl InWords for HostHeader {
    fn shown(&self) -> Value {
        match self {
            Self::Preserve => "preserve".into(),
            Self::Upstream => "upstream".into(),
            Self::Named(name) => name.as_str().into(),
        }
    }
}

fn is_authority(name: &str) -> bool {
    let authority = name.parse::<Authority>();
    authority.is_ok_and(|authority| !authority.as_str().contains('@')) && HeaderValue::from_str(name).is_ok()
}
