//! The `[upstreams.NAME]` tables.

use std::{
    collections::BTreeMap,
    ops::{Range, RangeInclusive},
    sync::Arc,
    time::Duration,
};

use http::{
    HeaderName, HeaderValue,
    uri::{Authority, PathAndQuery},
};
use serde_json::Value;

#[cfg(test)]
use super::table::of_an_empty_table;
use super::{
    check::Check,
    kinds::{Count, Flag, OneOf, PlainName, Table, Time},
    table::{InWords, ValueKind, section},
    units::{ZERO, hours, ms, seconds, status_range},
    upstream_servers::{Servers, Weights},
    upstream_tls::TlsToServers,
    written::Text,
};
use crate::tls::UpstreamTls;

/// The default path of a health check.
pub(super) const DEFAULT_PATH: &str = "/";
/// The default statuses of a healthy server.
pub(super) const DEFAULT_STATUS: &str = "2xx";

section! {
    /// One `[upstreams.NAME]` table.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Upstream of UpstreamKeys given (name: String, place: Range<usize>, secure: Option<Range<usize>>) {
        /// The servers, `host:port` or `unix:/path`; never empty.
        servers: Vec<String> = Servers(name.clone(), place);
        /// The weight of each server; 1 for a server that is not named.
        weights: BTreeMap<String, u32> = Weights(servers.clone()) in 1..=100;
        /// The distribution of unguarded requests over the servers.
        balance: Balance = OneOf(Balance::RoundRobin);
        /// The input of the hash under `balance = "consistent-hash"`.
        hash_by: HashBy = OneOf(HashBy::Path);
        /// The beginning of the resource keys; by default the name of the upstream.
        identity: String = PlainName(name.clone());
        /// True if the servers read paths without regard to letter case.
        ignore_case: bool = Flag(false);
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
        /// True if the proxy speaks HTTP/2: over TLS if the server chooses it, without TLS always.
        http2: bool = Flag(false);
        /// The TLS settings for connections to the servers; `None` without TLS.
        tls: Option<Arc<UpstreamTls>> = TlsToServers(secure);
        /// The longest idle time after which a connection may still carry a request that can be sent again.
        idle_timeout: Duration = Time(seconds(55)) in ZERO..=hours(1);
        /// The largest number of exchanges with one server at once.
        max_connections: usize = Count(1024) in 1..=1_000_000;
        /// The queue for requests beyond that number.
        queue: Queue = Table(());
        /// The `Host` that the upstream receives.
        host_header: HostHeader = HostName(());
        /// The fields that tell the upstream who the client is.
        forwarded: Forwarded = OneOf(Forwarded::Off);
        /// The active health checks of the servers.
        health: HealthCheck = Table(());
        besides {
            /// The name in the file.
            name: String = name;
        }
    }
}

section! {
    /// The queue for requests beyond the connections of a server.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Queue of QueueKeys {
        /// How long a request waits for another one to end if the server has the maximum.
        max_wait: Duration = Time(seconds(1)) in ZERO..=seconds(300);
        /// The largest number of requests that wait for one server.
        max_waiters: usize = Count(256) in 0..=100_000;
    }
}

section! {
    /// Active health checks of the servers of an upstream (`[upstreams.NAME.health]`).
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct HealthCheck of HealthKeys {
        /// The test by which a server is healthy or not.
        check: HealthProbe = OneOf(HealthProbe::Off);
        /// The target of the GET.
        path: String = Target(());
        /// The statuses of a healthy server.
        status: RangeInclusive<u16> = Statuses(());
        /// The time between two tests.
        interval: Duration = Time(seconds(5)) in ms(50)..=hours(1);
        /// The time limit for the answer.
        timeout: Duration = Time(seconds(1)) in ms(10)..=seconds(60);
        /// The number of good answers in a row after which a server that was down is up.
        healthy_after: usize = Count(2) in 1..=100;
        /// The number of bad answers in a row after which a server that was up is down.
        unhealthy_after: usize = Count(3) in 1..=100;
    }
}

#[cfg(test)]
impl Default for Queue {
    fn default() -> Self {
        of_an_empty_table()
    }
}

#[cfg(test)]
impl Default for HealthCheck {
    fn default() -> Self {
        of_an_empty_table()
    }
}

impl Upstream {
    /// The weight of each server, in the order of the servers.
    pub(crate) fn weights_in_order(&self) -> Vec<u32> {
        self.servers.iter().map(|server| self.weights.get(server).copied().unwrap_or(1)).collect()
    }

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

/// The kinds of health check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HealthProbe {
    /// No check.
    Off,
    /// The server must accept a connection.
    Connect,
    /// The server must answer a GET for a path with an expected status.
    Http,
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

/// The target of a health check.
pub(super) struct Target;

impl ValueKind<String> for Target {
    type Written = Option<Text>;
    type Terms = ();

    fn read(check: &mut Check<'_>, key: &str, written: Option<&Text>, (): ()) -> String {
        let Some(value) = written else { return DEFAULT_PATH.to_owned() };
        let path = value.get_ref();
        let is_target = path.starts_with('/') && !path.contains('#') && path.parse::<PathAndQuery>().is_ok();
        if !is_target {
            check.hinted(value.span(), format!("{key} is {path:?}, which is not a path"), "write \"/healthz\"");
            return DEFAULT_PATH.to_owned();
        }
        path.clone()
    }
}

/// A status, or a class of them.
pub(super) struct Statuses;

impl ValueKind<RangeInclusive<u16>> for Statuses {
    type Written = Option<Text>;
    type Terms = ();

    fn read(check: &mut Check<'_>, key: &str, written: Option<&Text>, (): ()) -> RangeInclusive<u16> {
        let written_range = written.map(|text| status_range(text.get_ref()));
        check.refuse(
            written,
            written_range == Some(None),
            format!("{key} is {:?}", written.map_or("", |text| text.get_ref())),
            r#"write "2xx", "204", or another status or class"#,
        );
        written_range.flatten().unwrap_or(200..=299)
    }
}

impl InWords for RangeInclusive<u16> {
    fn shown(&self) -> Value {
        format!("{}-{}", self.start(), self.end()).into()
    }
}
