//! How many connections there are, in all and from one client.
//!
//! # Design
//!
//! *What is a client?* An address; of IPv6 the network of 64 bits, which one host has as a whole (RFC 6177). A trusted
//! proxy brings the connections of many, and who they are is known with their requests alone: it is held to the total,
//! and not to the share of one client. So is whoever comes over a Unix socket. Nobody gets more than half of the total,
//! however little that is: one client alone never shuts the others out.
//!
//! *Why by the number of the descriptor?* The system gives the lowest that is free. So the number of a new connection
//! tells how many are in use at least, without counting those of upstreams, stores, files and libraries: at the reserve
//! nobody new is let in, and who is there gets on.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    os::fd::RawFd,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use super::descriptors::Plan;
use crate::{
    config::{self, TrustedProxies},
    telemetry::metrics,
};

/// How often it is told that connections are refused.
const TOLD_EVERY: Duration = Duration::from_secs(60);

/// The connections of all clients.
#[derive(Debug)]
pub(super) struct Places {
    max: usize,
    max_per_client: usize,
    /// Descriptors from this number on are kept for what is under way.
    first_reserved: RawFd,
    open: AtomicUsize,
    by_client: Mutex<HashMap<IpAddr, usize>>,
    /// When it was told last that connections are refused.
    told: Mutex<Option<Instant>>,
}

/// The place of one connection, until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    client: Option<IpAddr>,
}

/// Why there is no place for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoPlace {
    /// All are taken.
    Full,
    /// This client has its share.
    ClientFull,
    /// Descriptors are short.
    Descriptors,
}

impl NoPlace {
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

impl Places {
    /// Places within the limits of a configuration, and below a reserve of descriptors.
    pub(super) fn new(server: &config::Server, plan: Plan) -> Self {
        Self {
            max: plan.max_connections,
            max_per_client: server.max_connections_per_client.min(plan.max_connections.div_ceil(2)),
            first_reserved: plan.first_reserved,
            open: AtomicUsize::new(0),
            by_client: Mutex::default(),
            told: Mutex::default(),
        }
    }

    /// A place for a connection with this descriptor, from this address where it has one; else it is refused, which is
    /// counted and, now and then, told. `trusted` are the proxies that bring the connections of many.
    pub(super) fn take(
        self: &Arc<Self>,
        descriptor: RawFd,
        client: Option<IpAddr>,
        trusted: &TrustedProxies,
    ) -> Option<Place> {
        let counted = client.filter(|client| !trusted.contains(Some(*client)));
        self.try_take(descriptor, counted).inspect_err(|reason| self.refused(*reason, client)).ok()
    }

    fn refused(&self, reason: NoPlace, client: Option<IpAddr>) {
        if let Some(metrics) = metrics::get() {
            metrics.connection_refused(reason.word());
        }
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.is_none_or(|told| told.elapsed() >= TOLD_EVERY) {
            *told = Some(Instant::now());
            let hint = reason.hint();
            tracing::warn!(
                client = client.map(tracing::field::display),
                reason = reason.word(),
                hint,
                "connections are refused"
            );
        }
    }

    fn try_take(self: &Arc<Self>, descriptor: RawFd, client: Option<IpAddr>) -> Result<Place, NoPlace> {
        if descriptor >= self.first_reserved {
            return Err(NoPlace::Descriptors);
        }
        let more = |open: usize| (open < self.max).then_some(open + 1);
        self.open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).map_err(|_full| NoPlace::Full)?;
        let mut place = Place { places: Arc::clone(self), client: None };
        if let Some(client) = client.map(network) {
            let mut by_client = self.by_client();
            let count = by_client.entry(client).or_default();
            if *count >= self.max_per_client {
                return Err(NoPlace::ClientFull);
            }
            *count += 1;
            place.client = Some(client);
        }
        Ok(place)
    }

    fn by_client(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        // A panic leaves no count half changed.
        self.by_client.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.open.fetch_sub(1, Ordering::Relaxed);
        let Some(client) = self.client else { return };
        let mut by_client = self.places.by_client();
        if let Some(count) = by_client.get_mut(&client) {
            *count -= 1;
            if *count == 0 {
                by_client.remove(&client);
            }
        }
    }
}

/// What one client has of the addresses.
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
mod tests {
    use super::*;

    fn places(max: usize, max_per_client: usize, first_reserved: RawFd) -> Arc<Places> {
        Arc::new(Places {
            max,
            max_per_client,
            first_reserved,
            open: AtomicUsize::new(0),
            by_client: Mutex::default(),
            told: Mutex::default(),
        })
    }

    fn address(text: &str) -> Option<IpAddr> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn a_client_takes_its_share_and_leaves_the_rest_to_others() {
        let places = places(10, 2, 100);
        let mine: Vec<_> = (0..2).map(|_| places.try_take(5, address("192.0.2.1")).expect("a share")).collect();
        assert_eq!(places.try_take(5, address("192.0.2.1")).unwrap_err(), NoPlace::ClientFull);
        assert_eq!(
            places.try_take(5, address("::ffff:192.0.2.1")).unwrap_err(),
            NoPlace::ClientFull,
            "the same address"
        );
        let _other = places.try_take(5, address("192.0.2.2")).expect("somebody else");
        let _uncounted: Vec<_> = (0..3).map(|_| places.try_take(5, None).expect("a proxy's own")).collect();
        drop(mine);
        let _again = places.try_take(5, address("192.0.2.1")).expect("the share is free again");
        assert_eq!(places.by_client().len(), 2);
    }

    #[test]
    fn a_trusted_proxy_brings_as_many_as_there_are() {
        let places = places(3, 1, 100);
        let trusted = TrustedProxies { networks: vec!["10.0.0.0/8".parse().unwrap()], over_unix: false };
        let all: Vec<_> = (0..4).map(|_| places.take(5, address("10.1.2.3"), &trusted)).collect();
        assert_eq!(all.iter().map(Option::is_some).collect::<Vec<_>>(), [true, true, true, false]);
    }

    #[test]
    fn a_host_has_a_network_of_ipv6_addresses() {
        let places = places(10, 1, 100);
        let _one = places.try_take(5, address("2001:db8::1")).expect("the first");
        assert_eq!(places.try_take(5, address("2001:db8::ffff:2")).unwrap_err(), NoPlace::ClientFull);
        places.try_take(5, address("2001:db8:0:1::1")).expect("another network");
    }

    #[test]
    fn a_connection_that_is_refused_takes_no_place() {
        let places = places(2, 1, 100);
        let _one = places.try_take(5, address("192.0.2.1")).expect("the first");
        for _ in 0..5 {
            assert_eq!(places.try_take(5, address("192.0.2.1")).unwrap_err(), NoPlace::ClientFull);
            assert_eq!(places.try_take(100, address("192.0.2.2")).unwrap_err(), NoPlace::Descriptors);
        }
        let _two = places.try_take(99, address("192.0.2.2")).expect("the second");
        assert_eq!(places.try_take(5, address("192.0.2.3")).unwrap_err(), NoPlace::Full);
    }

    #[test]
    fn clients_that_have_gone_are_forgotten() {
        let places = places(10, 10, 100);
        drop(places.try_take(5, address("192.0.2.1")));
        assert!(places.by_client().is_empty());
        assert_eq!(places.open.load(Ordering::Relaxed), 0);
    }
}
