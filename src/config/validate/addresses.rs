//! Finds servers of a file that are one server under two addresses.
//!
//! # Design
//!
//! *Why is an unresolvable name not a problem?* A file is also checked on the machine where it is written, and a name
//! may resolve only where the file is used. The start checks again.
//!
//! *Why may two names of one address be two servers?* One address of an ingress serves many hosts. If each upstream is
//! sent a different `Host`, and the address is not on this machine, the host tells the servers apart.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::{Duration, Instant},
};

use super::super::Upstream;
use crate::{core::address::Address, names::of_this_system};

/// The time limit for resolving all names of a file together; a resolver that answers takes milliseconds.
const LOOKUPS_MAX: Duration = Duration::from_secs(2);

/// The place where a server listens.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ServerPlace {
    Tcp(SocketAddr),
    Unix(PathBuf),
    /// A name with its port, whether it resolves or not.
    Name(String),
}

/// The places of servers, by their text in the file.
pub(in crate::config) struct ServerPlaces(BTreeMap<String, BTreeSet<ServerPlace>>);

impl ServerPlaces {
    /// Returns the places of the servers of these upstreams. No name is resolved if there is nothing to compare.
    pub(in crate::config) fn of<'a>(upstreams: impl Iterator<Item = &'a Upstream> + Clone) -> Self {
        let identities: BTreeSet<&str> = upstreams.clone().map(|upstream| upstream.identity.as_str()).collect();
        if identities.len() < 2 {
            return Self(BTreeMap::new());
        }
        let servers: BTreeSet<&String> = upstreams.flat_map(|upstream| &upstream.servers).collect();
        let mut places: BTreeMap<String, BTreeSet<ServerPlace>> =
            servers.iter().map(|server| ((*server).clone(), BTreeSet::from([written(server)]))).collect();
        let names = servers.iter().filter(|server| matches!(written(server), ServerPlace::Name(_)));
        for (server, found) in look_up(names.map(|name| (*name).clone()).collect()) {
            places.entry(server).or_default().extend(found.into_iter().map(canonical).map(ServerPlace::Tcp));
        }
        Self(places)
    }

    /// Returns whether a server of one upstream is also a server of another.
    pub(in crate::config) fn are_one(&self, one: (&Upstream, &str), other: (&Upstream, &str)) -> bool {
        if one.1 == other.1 {
            return true;
        }
        let (Some(places), Some(others)) = (self.0.get(one.1), self.0.get(other.1)) else { return false };
        let hosts = (one.0.host_header.for_server(one.1), other.0.host_header.for_server(other.1));
        let are_hosts = matches!(hosts, (Some(host), Some(other)) if !host.eq_ignore_ascii_case(other));
        places.intersection(others).any(|place| match place {
            ServerPlace::Tcp(address) => address.ip().is_loopback() || !are_hosts,
            ServerPlace::Unix(_) | ServerPlace::Name(_) => true,
        })
    }
}

/// Returns the place that the text alone names.
fn written(server: &str) -> ServerPlace {
    if let Some(path) = server.strip_prefix("unix:") {
        return ServerPlace::Unix(fs::canonicalize(path).unwrap_or_else(|_| path.into()));
    }
    if let Ok(address) = server.parse() {
        return ServerPlace::Tcp(canonical(address));
    }
    let (name, port) = server.rsplit_once(':').unwrap_or((server, ""));
    ServerPlace::Name(format!("{}:{port}", name.strip_suffix('.').unwrap_or(name)))
}

/// Returns one spelling per place: `0.0.0.0`, `[::]` and `[::1]` all reach a server of this machine.
fn canonical(address: SocketAddr) -> SocketAddr {
    let ip = address.ip().to_canonical();
    let is_own = ip.is_unspecified() || matches!(ip, IpAddr::V6(ip) if ip.is_loopback());
    SocketAddr::new(if is_own { Ipv4Addr::LOCALHOST.into() } else { ip }, address.port())
}

/// Returns the addresses of the names that resolve in time.
fn look_up(servers: Vec<String>) -> Vec<(String, Vec<SocketAddr>)> {
    let end = Instant::now() + LOOKUPS_MAX;
    // All of them begin before the first is waited for.
    for server in &servers {
        of_this_system().begin(server);
    }
    let tcp = |address: &Address| match address {
        Address::Tcp(address) => Some(*address),
        Address::Unix(_) => None,
    };
    let found = |server: String| {
        let addresses = of_this_system().addresses_by(&server, end).ok()?;
        Some((server, addresses.iter().filter_map(tcp).collect()))
    };
    servers.into_iter().filter_map(found).collect()
}
