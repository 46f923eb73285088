//! Which servers of a file are one server under two addresses.
//!
//! # Design
//!
//! *Why is a name that does not resolve no problem?* A file is checked where it is written too, and a name may be known only
//! where it is used. The start looks again.
//!
//! *Why may two names of one address be two servers?* Behind one address of an ingress there are many hosts. Where each
//! upstream is sent a `Host` of its own, and the address is none of this machine, that host tells them apart.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs},
    path::PathBuf,
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use super::super::Upstream;

/// How long all names of a file may take together: a resolver that answers takes milliseconds.
const LOOKUPS_MAX: Duration = Duration::from_secs(2);

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ServerPlace {
    Tcp(SocketAddr),
    Unix(PathBuf),
    /// A name with its port, known or not.
    Name(String),
}

/// The places of servers.
pub(super) struct ServerPlaces(BTreeMap<String, BTreeSet<ServerPlace>>);

impl ServerPlaces {
    /// Those of the servers of these upstreams. Nobody is asked where there is nothing to compare.
    pub(super) fn of<'a>(upstreams: impl Iterator<Item = &'a Upstream> + Clone) -> Self {
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

    /// Whether a server of one upstream is one of another's.
    pub(super) fn are_one(&self, one: (&Upstream, &str), other: (&Upstream, &str)) -> bool {
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

/// What the text alone says.
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

/// One address for one place: a server that is reached by `0.0.0.0`, `[::]` or `[::1]` is one of this machine.
fn canonical(address: SocketAddr) -> SocketAddr {
    let ip = address.ip().to_canonical();
    let is_own = ip.is_unspecified() || matches!(ip, IpAddr::V6(ip) if ip.is_loopback());
    SocketAddr::new(if is_own { Ipv4Addr::LOCALHOST.into() } else { ip }, address.port())
}

/// The addresses of those names that are known in time. A thread that waits longer is left alone: it ends by itself.
fn look_up(names: Vec<String>) -> Vec<(String, Vec<SocketAddr>)> {
    let (sender, receiver) = mpsc::channel();
    let end = Instant::now() + LOOKUPS_MAX;
    for name in names {
        let sender = sender.clone();
        thread::spawn(move || {
            let found = name.to_socket_addrs().map(Iterator::collect).unwrap_or_default();
            // Nobody may be waiting any more.
            let _ = sender.send((name, found));
        });
    }
    drop(sender);
    std::iter::from_fn(|| receiver.recv_timeout(end.saturating_duration_since(Instant::now())).ok()).collect()
}
