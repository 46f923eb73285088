//! The servers of upstreams, and the choice of one for each request, on the guarded path and beside it.
//!
//! # Design
//!
//! *Which server gets a request?* On a guarded resource, it is the server that the key hashes to. Another one is used
//! only while that server is down or cannot be connected to. So a client that reads after a write reaches the server of
//! that write. Other requests are spread by `balance`.
//!
//! *Why does no request go to a server that is down, even if all are?* By configuring a check, the author states that
//! a server which fails it must get no requests: the server may be starting, read-only or cut off from its data. So a
//! check of the wrong thing shows at once, in the log and in each answer, and not only when a server is lost. A server
//! that could not be connected to, but that no check reports as down, only goes to the end of the line.

use std::{
    collections::HashSet,
    fmt,
    sync::{Arc, Weak},
};

use foldhash::HashMap;
use parking_lot::RwLock;
use tokio::runtime::Handle;

use crate::{
    config::{Config, HealthProbe, TrustedProxies, Upstream},
    core::http::client_address::ClientAddress,
    telemetry::metrics::{Gauged, ServerState},
};

use order::Order;
pub(crate) use places::{Full, Occupant, Slot};
use server::UpstreamServer;

/// The way in which a server is chosen.
#[derive(Clone, Copy, Debug)]
pub enum Choice<'a> {
    /// Each server in turn.
    Turn,
    /// The server that these bytes hash to.
    Hash(&'a [u8]),
    /// This server only: the decision was made by its answer, or the write was sent there, and that concerns no other
    /// server.
    Only(usize),
}

/// The place at a server that a guarded exchange wants.
#[derive(Clone, Copy, Debug)]
pub struct WantedPlace<'a> {
    /// At which server.
    pub choice: Choice<'a>,
    /// For which client: the place counts towards its share.
    pub client: ClientAddress,
}

/// The upstreams of configurations that may still be in use, with their servers.
type KnownUpstream = HashMap<usize, (Weak<Upstream>, Arc<UpstreamServers>)>;

/// The servers of all upstreams. The state of a server outlives the configuration that names it.
#[derive(Default)]
pub struct Upstreams {
    /// The upstreams by address. The weak reference keeps an address from being given to another upstream.
    known: RwLock<KnownUpstream>,
    /// The runtime of the health checks.
    checks: Option<Handle>,
    /// The proxies that bring the requests of many clients.
    trusted: RwLock<TrustedProxies>,
}

impl fmt::Debug for Upstreams {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.states()).finish()
    }
}

impl Upstreams {
    /// Creates a set of upstreams whose servers are checked on this runtime, if the configuration has checks.
    pub fn checked_on(runtime: Handle) -> Self {
        Self { checks: Some(runtime), ..Self::default() }
    }

    /// Begins the checks of all servers of a configuration, before the first request goes to them. If there are guarded
    /// requests, keeps places for them.
    pub fn prepare(&self, config: &Config) {
        *self.trusted.write() = config.server.trusted_proxies.clone();
        let guarded = config.routes.iter().filter(|route| route.guard.is_some());
        let guarded: HashSet<_> = guarded.map(|route| Arc::as_ptr(&route.upstream)).collect();
        for route in &config.routes {
            let are_kept = guarded.contains(&Arc::as_ptr(&route.upstream));
            self.of(&route.upstream).list.iter().for_each(|server| server.places.keep_for_guarded(are_kept));
        }
    }

    /// Returns the occupant of a place for a guarded request of this client. A trusted proxy that names no client, and a
    /// Unix socket, bring the requests of many.
    pub(crate) fn guarded(&self, client: ClientAddress) -> Occupant {
        let address = client.first_address();
        Occupant::Guarded(address.filter(|address| !self.trusted.read().contains(Some(*address))).map(|_| client))
    }

    /// Returns the servers of an upstream.
    pub(crate) fn of(&self, upstream: &Arc<Upstream>) -> Arc<UpstreamServers> {
        let address = Arc::as_ptr(upstream).addr();
        let known = self.known.read();
        if let Some((_, servers)) = known.get(&address) {
            return Arc::clone(servers);
        }
        drop(known);
        self.make(upstream)
    }

    fn make(&self, upstream: &Arc<Upstream>) -> Arc<UpstreamServers> {
        let address = Arc::as_ptr(upstream).addr();
        let mut known = self.known.write();
        if let Some((_, servers)) = known.get(&address) {
            return Arc::clone(servers);
        }
        let of_same_name = || known.values().map(|(_, servers)| servers).filter(|known| known.name == upstream.name);
        let servers = upstream.servers.iter().map(|name| {
            let is_same =
                |server: &&Arc<UpstreamServer>| server.name == *name && server.places.max() == upstream.max_connections;
            let same = of_same_name().flat_map(|known| &known.list).find(is_same);
            same.cloned().unwrap_or_else(|| Arc::new(UpstreamServer::new(name, upstream.max_connections)))
        });
        let servers = Arc::new(UpstreamServers {
            name: upstream.name.clone(),
            list: servers.collect(),
            order: Order::of(&upstream.servers, &upstream.weights_in_order()),
            is_checked: upstream.health.check != HealthProbe::Off,
        });
        // Removes the upstreams of configurations that are no longer in use.
        known.retain(|_, (upstream, _)| upstream.strong_count() > 0);
        known.insert(address, (Arc::downgrade(upstream), Arc::clone(&servers)));
        drop(known);
        check::begin(self.checks.as_ref(), upstream, &servers);
        servers
    }

    /// Returns the state of every server, sorted by name.
    pub fn states(&self) -> Vec<ServerState> {
        let known = self.known.read();
        let in_use = known.values().filter(|(upstream, _)| upstream.strong_count() > 0);
        let mut states = in_use.flat_map(|(_, servers)| servers.states()).collect::<Vec<_>>();
        drop(known);
        states.sort_by(|one, other| (&one.upstream, &one.server).cmp(&(&other.upstream, &other.server)));
        states.dedup_by(|one, other| (&one.upstream, &one.server) == (&other.upstream, &other.server));
        states
    }
}

impl Gauged for Upstreams {
    fn servers(&self) -> Vec<ServerState> {
        self.states()
    }
}

/// The servers of one upstream.
pub(crate) struct UpstreamServers {
    name: String,
    list: Vec<Arc<UpstreamServer>>,
    order: Order,
    is_checked: bool,
}

impl UpstreamServers {
    /// Returns the servers to try, in this order, as indexes in the configuration. None if all are down.
    pub(crate) fn order(&self, choice: Choice<'_>) -> Vec<usize> {
        let mut order = match choice {
            Choice::Turn => self.order.by_turn(),
            Choice::Hash(what) => self.order.by_hash(what),
            Choice::Only(server) => vec![server],
        };
        order.retain(|server| self.list.get(*server).is_some_and(|server| !server.is_down()));
        // The sort is stable: the first of the servers that are well stays first.
        order.sort_by_key(|server| self.list.get(*server).is_some_and(|server| server.comes_last()));
        order
    }

    /// Notes whether a connection to a server succeeded.
    pub(crate) fn connected(&self, server: usize, succeeded: bool) {
        if let Some(server) = self.list.get(server) {
            server.connected(succeeded);
        }
    }

    /// Returns a slot of this server, within the limits of its upstream.
    pub(crate) async fn slot(&self, server: usize, occupant: Occupant, upstream: &Upstream) -> Result<Slot, Full> {
        match self.list.get(server) {
            Some(server) => server.places.slot(occupant, &upstream.queue).await,
            None => Err(Full),
        }
    }

    /// True if this server has a slot at this moment.
    pub(crate) fn has_place(&self, server: usize, occupant: Occupant) -> bool {
        self.list.get(server).is_some_and(|server| server.places.has_place(occupant))
    }

    fn states(&self) -> impl Iterator<Item = ServerState> {
        self.list.iter().map(|server| ServerState {
            upstream: self.name.clone(),
            server: server.name.clone(),
            is_checked: self.is_checked,
            is_down: server.is_down(),
            comes_last: server.comes_last(),
            in_use: server.places.in_use(),
            waiting: server.places.waiting(),
        })
    }
}

mod check;
mod order;
pub(super) mod places;
mod server;

#[cfg(test)]
mod tests;
