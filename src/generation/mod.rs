//! The configuration that is served now, as one value that can be swapped while requests are in flight.
//!
//! # Design
//!
//! *Why one value?* One generation handles a request from beginning to end: the request loads the value once, when its
//! head has been read. With parts of two generations, the proxy would make a request's key under one rule and judge it
//! by another.
//!
//! *What outlives a generation?* Everything that decides what happens to resources: the store, the queues of waiting
//! writes, the knowledge from responses, the number of leases of each client, the room for bodies. [`Guard::renewed`]
//! shares all of that. Counts by the place of a route in the file belong to one generation and are built anew.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use arc_swap::ArcSwap;

use crate::{
    config::{Config, Route},
    drain::{Gate, InFlight},
    guard::Guard,
    routing::table::RoutingTable,
    telemetry::metrics,
};

/// One generation: a configuration, and everything that is built from it.
pub struct Serving {
    /// The configuration.
    pub config: Arc<Config>,
    /// The table in which requests are looked up.
    pub table: Arc<RoutingTable>,
    /// The guard of all guarded routes.
    pub guards: Arc<Guard>,
    /// Routes of earlier generations on which writes are still in flight that no record shows.
    pub(crate) lingering: Vec<(Arc<Route>, Arc<Gate>)>,
}

impl Serving {
    /// Builds the generation of a configuration. Its table is lent to the guard that `guard` makes.
    pub fn new(config: Arc<Config>, guard: impl FnOnce(Arc<RoutingTable>) -> Guard) -> Self {
        let table = Arc::new(RoutingTable::new(&config.routes));
        let guards = Arc::new(guard(Arc::clone(&table)));
        guards.upstreams().prepare(&config);
        if let Some(metrics) = metrics::get() {
            metrics.begin_at_zero(config.routes.iter().map(|route| &**route));
        }
        Self { config, table, guards, lingering: Vec::new() }
    }

    /// Returns the routes, in the order of the file.
    pub fn routes(&self) -> &[Arc<Route>] {
        &self.config.routes
    }
}

impl fmt::Debug for Serving {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Serving").field("routes", &self.config.routes).finish_non_exhaustive()
    }
}

/// The generation that is served now, and the counts over all generations.
#[derive(Debug)]
pub struct Live {
    serving: ArcSwap<Serving>,
    in_flight: InFlight,
    ends: AtomicBool,
}

impl Live {
    /// Starts with the first generation.
    pub fn new(serving: Serving) -> Self {
        Self { serving: ArcSwap::from_pointee(serving), in_flight: InFlight::default(), ends: AtomicBool::new(false) }
    }

    /// Returns the generation that handles a request which begins now, to its end.
    pub fn serving(&self) -> Arc<Serving> {
        self.serving.load_full()
    }

    /// Handles all requests that begin from now on with another generation. Answers that last end with theirs.
    pub fn replace(&self, serving: Serving) {
        let before = self.serving.swap(Arc::new(serving));
        before.guards.end().come();
    }

    /// Marks the process as ending: clients that wait for a lease are answered, answers that last end, and no
    /// connection is kept.
    pub fn end(&self) {
        self.ends.store(true, Ordering::SeqCst);
        let serving = self.serving();
        serving.guards.gates().iter().for_each(|gate| gate.cancel_waiters());
        serving.guards.end().come();
    }

    /// True if the process is ending.
    pub fn ends(&self) -> bool {
        self.ends.load(Ordering::SeqCst)
    }

    /// Returns the requests in progress, of all generations.
    pub fn in_flight(&self) -> &InFlight {
        &self.in_flight
    }
}

/// Returns the status that a supervisor shows for the process.
pub fn status(live: &Live) -> String {
    let serving = live.serving();
    let guarded = serving.routes().iter().filter(|route| route.guard.is_some()).count();
    format!("serving {} routes, {guarded} of them guarded", serving.routes().len())
}
