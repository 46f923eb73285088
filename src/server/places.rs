//! Limits on the number of connections, in total and per client.
//!
//! # Design
//!
//! *What is a client?* A client is an address. For IPv6 it is the network of 64 bits, which belongs to one host as a
//! whole (RFC 6177). A trusted proxy brings the connections of many clients, who are identified only by their requests.
//! So the proxy is held to the total, and not to the share of one client. The same holds for connections over a Unix
//! socket. No client gets more than half of even a small total: one client alone never shuts out the others.
//!
//! *Why by the number of the descriptor?* The system assigns the lowest free number. So the number of a new connection
//! shows how many are in use at least, without counting those of upstreams, stores, files and libraries. At the
//! reserve, new connections are refused and existing ones continue.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    os::fd::RawFd,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;

use super::descriptors::DescriptorPlan;
use crate::{
    config::{self, TrustedProxies},
    telemetry::{Seldom, metrics},
};

/// The least time between two log lines about refused connections.
const TOLD_EVERY: Duration = Duration::from_secs(60);

/// The connections of all clients.
#[derive(Debug)]
pub(super) struct ConnectionPlaces {
    max: usize,
    max_per_client: usize,
    /// Descriptors from this number on are kept for requests in flight.
    first_reserved: RawFd,
    open: AtomicUsize,
    /// The number of requests beside others on their connection.
    requests: AtomicUsize,
    by_client: Mutex<HashMap<IpAddr, Arc<ClientCount>>>,
    /// When the log lines about refused connections are due, by reason: a handful of fixed words.
    told: Mutex<HashMap<&'static str, Seldom>>,
}

/// The counts of one client.
#[derive(Debug, Default)]
struct ClientCount {
    /// Changed only while the table is locked.
    connections: AtomicUsize,
    requests: AtomicUsize,
}

/// The place of one connection, held until it is dropped.
#[derive(Debug)]
pub(super) struct ConnectionPlace {
    places: Arc<ConnectionPlaces>,
    address: Option<IpAddr>,
    client: Option<(IpAddr, Arc<ClientCount>)>,
}

/// The place of one request among those that a client may have at once, held until it is dropped.
#[derive(Debug)]
pub(super) struct RequestPlace {
    places: Arc<ConnectionPlaces>,
    client: Option<(IpAddr, Arc<ClientCount>)>,
}

/// The reason why there is no place for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionRefused {
    /// All places are taken.
    Full,
    /// The client already has its share.
    ClientFull,
    /// Descriptors are short.
    Descriptors,
}

impl ConnectionRefused {
    fn word(self) -> &'static str {
        match self {
            Self::Full => "all",
            Self::ClientFull => "client",
            Self::Descriptors => "descriptors",
        }
    }

    fn hint(self) -> &'static str {
        match self {
            Self::Full => "server.max_connections is reached",
            Self::ClientFull => {
                "server.max_connections_per_client is reached; name a proxy that brings many clients in trusted_proxies"
            }
            Self::Descriptors => "raise the limit of open files (LimitNOFILE, ulimit -n)",
        }
    }
}

impl ConnectionPlaces {
    /// Creates places within the limits of a configuration, and below a reserve of descriptors.
    pub(super) fn new(server: &config::Server, plan: DescriptorPlan) -> Self {
        Self {
            max: plan.max_connections,
            max_per_client: server.max_connections_per_client.min(plan.max_connections.div_ceil(2)),
            first_reserved: plan.first_reserved,
            open: AtomicUsize::new(0),
            requests: AtomicUsize::new(0),
            by_client: Mutex::default(),
            told: Mutex::default(),
        }
    }

    /// Returns a place for a connection with this descriptor, from this address if it has one. A refusal is counted
    /// and, now and then, logged. `trusted` names the proxies that bring the connections of many clients.
    pub(super) fn take(
        self: &Arc<Self>,
        descriptor: RawFd,
        address: Option<IpAddr>,
        trusted: &TrustedProxies,
    ) -> Option<ConnectionPlace> {
        let place = self.try_take(descriptor, address, trusted);
        place.inspect_err(|reason| self.tell(reason.word(), reason.hint(), address)).ok()
    }

    /// Counts a connection that is refused or cut off, and logs it now and then.
    fn tell(&self, reason: &'static str, hint: &str, client: Option<IpAddr>) {
        if let Some(metrics) = metrics::get() {
            metrics.connection_refused(reason);
        }
        // One reason does not silence another.
        if self.told.lock().entry(reason).or_insert(Seldom::every(TOLD_EVERY)).due().is_some() {
            let client = client.map(tracing::field::display);
            tracing::warn!(client, reason, hint, "connections are refused or cut off");
        }
    }

    fn try_take(
        self: &Arc<Self>,
        descriptor: RawFd,
        address: Option<IpAddr>,
        trusted: &TrustedProxies,
    ) -> Result<ConnectionPlace, ConnectionRefused> {
        if descriptor >= self.first_reserved {
            return Err(ConnectionRefused::Descriptors);
        }
        if !take(&self.open, self.max) {
            return Err(ConnectionRefused::Full);
        }
        let mut place = ConnectionPlace { places: Arc::clone(self), address: None, client: None };
        if let Some(address) = address {
            place.try_count(address, trusted)?;
        }
        Ok(place)
    }

    /// Forgets a client without connections and requests. Requests whose connection has gone keep the entry: their
    /// client gets no new share by connecting again.
    fn forget_gone(network: IpAddr, by_client: &mut HashMap<IpAddr, Arc<ClientCount>>) {
        let counts =
            |client: &Arc<ClientCount>| [&client.connections, &client.requests].map(|n| n.load(Ordering::Relaxed));
        if by_client.get(&network).map(counts) == Some([0, 0]) {
            by_client.remove(&network);
        }
    }
}

impl ConnectionPlace {
    /// Counts the place for the client at an address that was not known before. A refusal is counted and, now and then,
    /// logged.
    pub(super) fn count(&mut self, address: IpAddr, trusted: &TrustedProxies) -> Option<()> {
        let counted = self.try_count(address, trusted);
        counted.inspect_err(|reason| self.places.tell(reason.word(), reason.hint(), Some(address))).ok()
    }

    fn try_count(&mut self, address: IpAddr, trusted: &TrustedProxies) -> Result<(), ConnectionRefused> {
        self.address = Some(address);
        if trusted.contains(Some(address)) {
            return Ok(());
        }
        let network = network(address);
        let mut by_client = self.places.by_client.lock();
        let client = by_client.entry(network).or_default();
        if client.connections.load(Ordering::Relaxed) >= self.places.max_per_client {
            return Err(ConnectionRefused::ClientFull);
        }
        client.connections.fetch_add(1, Ordering::Relaxed);
        self.client = Some((network, Arc::clone(client)));
        Ok(())
    }

    /// Reports that a balancer's connection names no client.
    pub(super) fn tell_no_header(&self, balancer: Option<IpAddr>) {
        let hint =
            "a balancer in proxy_protocol sends no PROXY header: let it send one (HAProxy: send-proxy), or remove it";
        self.places.tell("proxy-header", hint, balancer);
    }

    /// Returns a place for a request beside others on the same connection. Such requests have the same limits as
    /// connections, per client and in total: no client gains anything by its protocol.
    pub(super) fn request(&self) -> Option<RequestPlace> {
        let places = &self.places;
        take(&places.requests, places.max).then_some(())?;
        let mut place = RequestPlace { places: Arc::clone(places), client: None };
        if let Some((network, client)) = &self.client {
            take(&client.requests, places.max_per_client).then_some(())?;
            place.client = Some((*network, Arc::clone(client)));
        }
        Some(place)
    }

    /// Reports why the connection is closed before its client has ended it.
    pub(super) fn tell_end(&self, reason: &'static str) {
        self.places.tell(reason, "an HTTP/2 connection exceeds its limits: see docs/floods.md", self.address);
    }
}

impl Drop for RequestPlace {
    fn drop(&mut self) {
        self.places.requests.fetch_sub(1, Ordering::Relaxed);
        let Some((network, client)) = &self.client else { return };
        let was_last = client.requests.fetch_sub(1, Ordering::Relaxed) == 1;
        if was_last && client.connections.load(Ordering::Relaxed) == 0 {
            ConnectionPlaces::forget_gone(*network, &mut self.places.by_client.lock());
        }
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        self.places.open.fetch_sub(1, Ordering::Relaxed);
        let Some((network, client)) = &self.client else { return };
        let mut by_client = self.places.by_client.lock();
        client.connections.fetch_sub(1, Ordering::Relaxed);
        ConnectionPlaces::forget_gone(*network, &mut by_client);
    }
}

/// Counts one more, unless the limit is reached. The counters guard no other memory, so relaxed order is enough.
fn take(count: &AtomicUsize, max: usize) -> bool {
    let more = |count: usize| (count < max).then_some(count + 1);
    count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
}

/// Returns the network that counts as one client.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
#[path = "places_tests.rs"]
mod tests;
