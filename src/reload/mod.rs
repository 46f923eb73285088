//! Reload: puts another configuration into effect without losing a request or a record.
//!
//! # Design
//!
//! *Why do new writes wait, rather than run by the old rules until all is quiet?* Under load it is never quiet. So a
//! route whose rules of exclusion change gets its gate closed: new writes wait behind it, those in flight end, and the
//! swap comes when no mark and no doubt is left. That takes as long as one write, and at most
//! `server.shutdown_timeout`. If writes are still in flight by then, the gate opens again and nothing has changed. All
//! other routes, and all reads, never wait.
//!
//! *Why look for leases behind the closed gate?* A lease granted between the look and the swap would be lost.
//!
//! *What about other proxies on the same store?* The look finds their marks and leases too. Their configuration is
//! their own: as long as two proxies differ in keys or policies, they do not exclude each other's writes.

use std::{
    fmt,
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio::{
    sync::Mutex,
    task::{JoinError, spawn_blocking},
    time::timeout,
};

use crate::{
    config::{self, Config, Loaded, Problems, ReloadPlan, Route, plan},
    drain::{Gate, Gates},
    generation::{Live, Serving, status},
    store::{Store, StoreError, owed},
    supervisor,
    telemetry::metrics::{Gauged, LoadState},
    tls::{Downstream, FileError},
    upstream::{NoCredentials, OwnCredentials},
};

pub mod control;
mod survey;
mod triggers;

pub(crate) use triggers::reload_on_change;
pub use triggers::{Hangups, reload_on_hangup};

use survey::Survey;

/// The pause between two looks at unsettled records.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Brings another configuration into a running proxy.
pub struct Reloader {
    live: Arc<Live>,
    store: Arc<dyn Store>,
    /// `None` if no listener speaks TLS.
    tls: Option<Arc<Downstream>>,
    /// `None` if the process was started without a file.
    file: Option<PathBuf>,
    one_at_a_time: Mutex<()>,
    last: parking_lot::Mutex<LoadState>,
}

/// The result of a successful reload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reloaded {
    /// The changes.
    pub plan: ReloadPlan,
    /// Warnings about settings that are allowed but rarely meant.
    pub warnings: Vec<String>,
}

/// The reason why a reload did not happen. It has changed nothing then.
#[derive(Debug, thiserror::Error)]
pub enum NotReloaded {
    /// There is no file to load.
    #[error("the process was started without a configuration file: there is nothing to reload")]
    NoFile,
    /// The file has problems.
    #[error("the file has problems:\n\n{0}")]
    Problems(Problems),
    /// The thread that loads the file has ended.
    #[error("the file could not be loaded")]
    Unloaded(#[from] JoinError),
    /// The listeners cannot shake hands with the certificates that the file names.
    #[error("the certificates of the listeners cannot be used")]
    Certificates(#[from] FileError),
    /// A route probes with credentials that the process does not have.
    #[error(transparent)]
    NoCredentials(#[from] NoCredentials),
    /// The remembered state cannot be trusted on these routes.
    #[error(
        "routes {}: other_writers = false would trust what is remembered from before, when writes could bypass \
         it; restart the process, or force the reload if no client has a tag from before", list(.0)
    )]
    Untrusted(Vec<String>),
    /// Retries would be applied again on these routes.
    #[error(
        "routes {}: their resources get other keys, so a retry of a write with an Idempotency-Key from before would be \
         applied again; force the reload if no client may send one", list(.0)
    )]
    Forgetful(Vec<String>),
    /// Writes on these routes did not end in time.
    #[error("writes on routes {} did not end within {:?} (server.shutdown_timeout)", counts(.routes), .waited)]
    Busy {
        /// The names of the routes, each with the number of writes in flight; zero if one is in doubt.
        routes: Vec<(String, usize)>,
        /// How long the reload waited.
        waited: Duration,
    },
    /// Clients hold leases on these routes.
    #[error("leases live on routes {}: wait for their end, or force the reload; their holders then lose them", counts(.0))]
    Leased(Vec<(String, usize)>),
    /// The store did not answer the query for writes and leases.
    #[error("the store cannot report the writes in flight")]
    Store(#[from] StoreError),
}

impl Reloader {
    /// Builds the reloader of a proxy that was started with this file, and whose listeners use these certificates.
    pub fn new(live: Arc<Live>, store: Arc<dyn Store>, tls: Option<Arc<Downstream>>, file: Option<PathBuf>) -> Self {
        let last = LoadState { loaded_at: SystemTime::now(), is_refused_since: false };
        Self { live, store, tls, file, one_at_a_time: Mutex::default(), last: parking_lot::Mutex::new(last) }
    }

    /// Loads the file again and serves by it, or returns the reason for not doing so. `force` insists on a change that
    /// takes leases from their holders, or that trusts what may be wrong.
    pub async fn reload(&self, force: bool) -> Result<Reloaded, NotReloaded> {
        let _turn = self.one_at_a_time.lock().await;
        supervisor::reloading();
        let reloaded = self.load_and_swap(force).await;
        let status = status(&self.live);
        match &reloaded {
            Ok(reloaded) => {
                *self.last.lock() = LoadState { loaded_at: SystemTime::now(), is_refused_since: false };
                tracing::info!(forced = force, "reloaded: {reloaded}");
                supervisor::ready(&status);
            }
            Err(error) => {
                self.last.lock().is_refused_since = true;
                tracing::error!(forced = force, "not reloaded, the old configuration stays: {error}");
                let why = supervisor::one_line(&error.to_string());
                supervisor::ready(&format!("{status}; the last reload was refused: {why}"));
            }
        }
        reloaded
    }

    async fn load_and_swap(&self, force: bool) -> Result<Reloaded, NotReloaded> {
        let file = self.file.clone().ok_or(NotReloaded::NoFile)?;
        let old = self.live.serving();
        let lingering: Vec<_> = old.lingering.iter().filter(|(_, gate)| !gate.is_quiet()).cloned().collect();
        let lingering_routes: Vec<_> = lingering.iter().map(|(route, _)| Arc::clone(route)).collect();
        let running = Arc::clone(&old.config);
        // Loading blocks, because it resolves the names of servers; this thread also watches the signals.
        let loaded = spawn_blocking(move || {
            let loaded = config::load_again(&file)?;
            let plan = plan(&running, &lingering_routes, &loaded.config);
            Ok((loaded, plan))
        });
        let (Loaded { config, warnings }, plan) = loaded.await?.map_err(NotReloaded::Problems)?;
        if !force && !plan.untrusted.is_empty() {
            return Err(NotReloaded::Untrusted(plan.untrusted));
        }
        if !force && !plan.forgetful.is_empty() {
            return Err(NotReloaded::Forgetful(plan.forgetful));
        }
        let own = own_credentials(&config)?;
        let before =
            old.config.routes.iter().cloned().zip(old.guards.gates().iter().cloned()).chain(lingering).collect();
        let closed = Closed::close(before, &plan);
        self.settle(&closed, &config, force).await?;
        self.store.owe(owed(&config)).await?;
        if let Some(tls) = self.tls.as_ref().filter(|_| !config.server.tls.certificates.is_empty()) {
            tls.replace(&config.server.tls)?;
        }
        self.swap(&old, config.beside(&old.config), own, &plan, closed);
        let warnings = warnings.iter().map(ToString::to_string).collect();
        Ok(Reloaded { plan, warnings })
    }

    /// Waits until no write is in flight behind the closed gates, and looks for leases there.
    async fn settle(&self, closed: &Closed, config: &Config, force: bool) -> Result<(), NotReloaded> {
        let waited = config.server.shutdown_timeout;
        if !closed.places.is_empty() {
            let routes: Vec<_> = closed.to_settle().map(|(route, _)| route.name.as_str()).collect();
            tracing::info!(routes = routes.join(", "), at_most = ?waited, "new writes wait until those in flight have ended");
        }
        let settled = async {
            for (_, gate) in closed.to_settle() {
                gate.quiet().await;
            }
            loop {
                let survey = Survey::of(&*self.store, &closed.guarded_to_settle()).await?;
                if survey.unsettled.is_empty() {
                    return Ok(survey);
                }
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        };
        let survey: Result<Survey, StoreError> =
            timeout(waited, settled).await.map_err(|_elapsed| NotReloaded::Busy { routes: closed.busy(), waited })?;
        let leases = survey?.leases;
        let taken: Vec<_> = leases.into_iter().filter(|(route, _)| closed.unleased.contains(route)).collect();
        if taken.is_empty() || force { Ok(()) } else { Err(NotReloaded::Leased(taken)) }
    }

    fn swap(&self, old: &Serving, config: Config, own: OwnCredentials, plan: &ReloadPlan, closed: Closed) {
        let gate = |continued: &Option<usize>| {
            let kept = continued.and_then(|place| Some(Arc::clone(&closed.before.get(place)?.1)));
            kept.filter(|_| !continued.is_some_and(|place| closed.settles(place))).unwrap_or_default()
        };
        let gates: Gates = plan.continued.iter().map(gate).collect();
        let is_left = |place: &usize| !plan.continued.contains(&Some(*place)) && !closed.settles(*place);
        let left = (0..closed.before.len()).filter(is_left).filter_map(|place| closed.before.get(place).cloned());
        let lingering = left.filter(|(_, gate)| !gate.is_quiet()).collect();
        let config = Arc::new(config);
        let serving =
            Serving::new(Arc::clone(&config), |table| old.guards.renewed(&config, table, gates).probing_with(own));
        self.live.replace(Serving { lingering, ..serving });
        closed.retire();
    }
}

impl Gauged for Reloader {
    fn load(&self) -> Option<LoadState> {
        Some(*self.last.lock())
    }
}

/// The routes before a reload. Some of their gates are closed until this value is retired or dropped.
struct Closed {
    /// The routes with their gates.
    before: Vec<(Arc<Route>, Arc<Gate>)>,
    places: Vec<usize>,
    /// The names of the routes on which no lease may be held.
    unleased: Vec<String>,
}

impl Closed {
    fn close(before: Vec<(Arc<Route>, Arc<Gate>)>, plan: &ReloadPlan) -> Self {
        let name = |place: &usize| Some(before.get(*place)?.0.name.clone());
        let unleased = plan.must_be_unleased.iter().filter_map(name).collect();
        let closed = Self { places: plan.must_settle.clone(), unleased, before };
        closed.to_settle().for_each(|(_, gate)| gate.close());
        closed
    }

    fn to_settle(&self) -> impl Iterator<Item = &(Arc<Route>, Arc<Gate>)> {
        self.places.iter().filter_map(|place| self.before.get(*place))
    }

    fn guarded_to_settle(&self) -> Vec<Arc<Route>> {
        self.to_settle().map(|(route, _)| Arc::clone(route)).filter(|route| route.enforced().is_some()).collect()
    }

    fn settles(&self, place: usize) -> bool {
        self.places.contains(&place)
    }

    /// Returns the names of the routes that the reload waited for in vain, each with the number of writes in flight. If
    /// that number is zero, a write is in doubt, or marked by another proxy.
    fn busy(&self) -> Vec<(String, usize)> {
        let count = |(route, gate): &(Arc<Route>, Arc<Gate>)| (route.name.clone(), gate.under_way());
        let busy: Vec<_> = self.to_settle().filter(|(_, gate)| !gate.is_quiet()).map(count).collect();
        if busy.is_empty() { self.to_settle().map(count).collect() } else { busy }
    }

    fn retire(self) {
        self.to_settle().for_each(|(_, gate)| gate.retire());
    }
}

impl Drop for Closed {
    fn drop(&mut self) {
        self.to_settle().for_each(|(_, gate)| gate.open());
    }
}

/// Returns the proxy's own credentials that the routes probe with.
pub fn own_credentials(config: &Config) -> Result<OwnCredentials, NoCredentials> {
    OwnCredentials::read(config.routes.iter().filter_map(|route| route.guard.as_deref()))
}

impl fmt::Display for Reloaded {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ReloadPlan { added, removed, changed, needs_restart, .. } = &self.plan;
        let parts = [("added", added), ("removed", removed), ("changed", changed)];
        let parts = parts.iter().filter(|(_, names)| !names.is_empty());
        let mut parts: Vec<_> = parts.map(|(what, names)| format!("routes {what}: {}", list(names))).collect();
        if parts.is_empty() {
            parts.push("no route has changed".to_owned());
        }
        if !needs_restart.is_empty() {
            parts.push(format!("left as it was until the next start: {}", needs_restart.join(", ")));
        }
        formatter.write_str(&parts.join("; "))
    }
}

fn list(names: &[String]) -> String {
    names.join(", ")
}

fn counts(leases: &[(String, usize)]) -> String {
    leases.iter().map(|(route, count)| format!("{route} ({count})")).collect::<Vec<_>>().join(", ")
}
