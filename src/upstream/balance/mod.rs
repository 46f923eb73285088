//! The servers of upstreams: which one a request goes to, on the guarded path and beside it.
//!
//! # Design
//!
//! *Who gets what?* A request on a guarded resource goes to the server that its key hashes to, and to another one only
//! while that one is down, or cannot be connected to. So whoever reads what was just written asks where it was
//! written. Other requests are spread as `balance` says.
//!
//! *Why does no request go to a server that is down, even if all are?* Who configures a check says by it that such a
//! server must not be asked: it may be starting, read-only or cut off from its data. A check that asks for the wrong
//! thing is seen at once this way, in the log and in each answer, and not only when a server is lost.
//! A server that could not be connected to, without a check that says so, only goes to the end of the line.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, PoisonError, RwLock, Weak},
};

use tokio::runtime::Handle;

use crate::{
    config::{Config, Upstream},
    telemetry::metrics::{Gauged, ServerState},
};

use order::Order;
use server::UpstreamServer;
pub(crate) use server::{Full, Slot};

/// By what a server is chosen.
#[derive(Clone, Copy, Debug)]
pub enum Choice<'a> {
    /// Each in its turn.
    Turn,
    /// What this hashes to.
    Hash(&'a [u8]),
    /// This one and no other: what was judged by its answer, or written there, concerns no other one.
    Only(usize),
}

/// An upstream of a configuration that somebody may use still, and its servers.
type KnownUpstream = HashMap<usize, (Weak<Upstream>, Arc<UpstreamServers>)>;

/// The servers of all upstreams. What is known of a server outlives the configuration that names it.
#[derive(Default)]
pub struct Upstreams {
    /// By the address of the upstream, which the weak reference keeps from being given to another one.
    known: RwLock<KnownUpstream>,
    /// Where health checks run.
    checks: Option<Handle>,
}

impl fmt::Debug for Upstreams {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.states()).finish()
    }
}

impl Upstreams {
    /// Those whose servers are checked, where the configuration says so, on this runtime.
    pub fn checked_on(runtime: Handle) -> Self {
        Self { checks: Some(runtime), ..Self::default() }
    }

    /// Begins the checks of all servers of a configuration, before the first request goes there.
    pub fn prepare(&self, config: &Config) {
        for route in &config.routes {
            self.of(&route.upstream);
        }
    }

    /// The servers of an upstream.
    pub(crate) fn of(&self, upstream: &Arc<Upstream>) -> Arc<UpstreamServers> {
        let address = Arc::as_ptr(upstream).addr();
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, servers)) = known.get(&address) {
            return Arc::clone(servers);
        }
        drop(known);
        self.make(upstream)
    }

    fn make(&self, upstream: &Arc<Upstream>) -> Arc<UpstreamServers> {
        let address = Arc::as_ptr(upstream).addr();
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, servers)) = known.get(&address) {
            return Arc::clone(servers);
        }
        let of_same_name = || known.values().map(|(_, servers)| servers).filter(|known| known.name == upstream.name);
        let servers = upstream.servers.iter().map(|name| {
            let is_same =
                |server: &&Arc<UpstreamServer>| server.name == *name && server.max() == upstream.connections.max;
            let same = of_same_name().flat_map(|known| &known.list).find(is_same);
            same.cloned().unwrap_or_else(|| Arc::new(UpstreamServer::new(name, upstream.connections.max)))
        });
        let servers = Arc::new(UpstreamServers {
            name: upstream.name.clone(),
            list: servers.collect(),
            order: Order::of(&upstream.servers, &upstream.weights),
            is_checked: upstream.health.is_some(),
        });
        // An upstream of a configuration that nobody uses any more.
        known.retain(|_, (upstream, _)| upstream.strong_count() > 0);
        known.insert(address, (Arc::downgrade(upstream), Arc::clone(&servers)));
        drop(known);
        check::begin(self.checks.as_ref(), upstream, &servers);
        servers
    }

    /// How all servers are, in the order of their names.
    pub fn states(&self) -> Vec<ServerState> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
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
    /// The servers to try, by their places in the configuration, in this order; none where all are down.
    pub(crate) fn order(&self, choice: Choice<'_>) -> Vec<usize> {
        let mut order = match choice {
            Choice::Turn => self.order.by_turn(),
            Choice::Hash(what) => self.order.by_hash(what),
            Choice::Only(server) => vec![server],
        };
        order.retain(|server| self.list.get(*server).is_some_and(|server| !server.is_down()));
        // A stable sort: of those that are well the first one stays the first.
        order.sort_by_key(|server| self.list.get(*server).is_some_and(|server| server.comes_last()));
        order
    }

    /// Notes whether a server could be connected to.
    pub(crate) fn connected(&self, server: usize, succeeded: bool) {
        if let Some(server) = self.list.get(server) {
            server.connected(succeeded);
        }
    }

    /// A slot of this server, within the limits of its upstream.
    pub(crate) async fn slot(&self, server: usize, upstream: &Upstream) -> Result<Slot, Full> {
        match self.list.get(server) {
            Some(server) => server.slot(&upstream.connections).await,
            None => Err(Full),
        }
    }

    /// A slot of this server, if one is free at this moment.
    pub(crate) fn try_slot(&self, server: usize) -> Result<Slot, Full> {
        self.list.get(server).ok_or(Full)?.try_slot()
    }

    fn states(&self) -> impl Iterator<Item = ServerState> {
        self.list.iter().map(|server| ServerState {
            upstream: self.name.clone(),
            server: server.name.clone(),
            is_checked: self.is_checked,
            is_down: server.is_down(),
            comes_last: server.comes_last(),
            in_use: server.in_use(),
            waiting: server.waiting(),
        })
    }
}

mod check;
mod order;
mod server;

#[cfg(test)]
mod tests;
