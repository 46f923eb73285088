//! The configuration that is served now, as one value that can be swapped while requests are in flight.
//!
//! # Design
//!
//! *Why one value?* A request is handled by one generation from its beginning to its end: it loads the value once, when
//! its head was read. Half a request by one table of routes and half by another would make a key under one rule and
//! judge by a second.
//!
//! *What outlives a generation?* Whatever says what happens to resources: the store, the lines of waiting writes, what
//! responses taught, who holds how many leases, the room for bodies. [`Guard::renewed`] shares all of that. What is
//! counted by the place of a route in the file belongs to one generation, and is built anew.

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
    core::route::RouteTable,
    drain::{Gate, Gates, InFlight},
    guard::Guard,
    routing::table::table,
    telemetry::metrics,
};

/// One generation: a configuration, and all that is made of it.
pub struct Serving {
    /// The configuration.
    pub config: Arc<Config>,
    /// Where requests are looked up; its places are those of [`Serving::routes`].
    pub table: RouteTable,
    /// The guard of all its guarded routes.
    pub guards: Arc<Guard>,
    pub(crate) gates: Gates,
    /// Routes of earlier generations on which writes were still under way that no record tells of.
    pub(crate) lingering: Vec<(Arc<Route>, Arc<Gate>)>,
}

impl Serving {
    /// That of a configuration, guarded by `guards`.
    pub fn new(config: Arc<Config>, guards: Arc<Guard>) -> Self {
        guards.upstreams().prepare(&config);
        if let Some(metrics) = metrics::get() {
            metrics.begin_at_zero(config.routes.iter().map(|route| route.name.as_str()));
        }
        Self { table: table(&config.routes), gates: guards.gates(), guards, lingering: Vec::new(), config }
    }

    /// The routes, in the order of the file.
    pub fn routes(&self) -> &[Arc<Route>] {
        &self.config.routes
    }
}

impl fmt::Debug for Serving {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Serving").field("routes", &self.config.routes).finish_non_exhaustive()
    }
}

/// What is served now, and what is counted over all generations.
#[derive(Debug)]
pub struct Live {
    serving: ArcSwap<Serving>,
    in_flight: InFlight,
    ends: AtomicBool,
}

impl Live {
    /// The first generation.
    pub fn new(serving: Serving) -> Self {
        Self { serving: ArcSwap::from_pointee(serving), in_flight: InFlight::default(), ends: AtomicBool::new(false) }
    }

    /// The generation that a request which begins now is handled by, to its end.
    pub fn serving(&self) -> Arc<Serving> {
        self.serving.load_full()
    }

    /// Serves all requests that begin from now on by another generation.
    pub fn replace(&self, serving: Serving) {
        self.serving.store(Arc::new(serving));
    }

    /// From now on the process ends: whoever waits for a lease is answered, and no connection is kept.
    pub fn end(&self) {
        self.ends.store(true, Ordering::SeqCst);
        self.serving().gates.iter().for_each(|gate| gate.cancel_waiters());
    }

    /// Whether the process ends.
    pub fn ends(&self) -> bool {
        self.ends.load(Ordering::SeqCst)
    }

    /// The requests that are being handled, by whatever generation.
    pub fn in_flight(&self) -> &InFlight {
        &self.in_flight
    }
}

/// What a supervisor shows of the process.
pub fn status(live: &Live) -> String {
    let serving = live.serving();
    let guarded = serving.routes().iter().filter(|route| route.guard.is_some()).count();
    format!("serving {} routes, {guarded} of them guarded", serving.routes().len())
}
