//! `ifmatch run`: serve until asked to stop.

use std::{error::Error, os::unix::net::UnixListener, path::Path, process::ExitCode, sync::Arc, time::Duration};

use tokio::runtime::Handle;

use super::{Exit, RunOptions, complain, desk::Desk, report};
use crate::{
    admin,
    config::{Config, Listen, Loaded, StoreKind},
    entropy::random_u64,
    exchange::{Signer, Upstreams},
    guard::Guards,
    live::{Live, Serving},
    proxy::Gateway,
    reload::{self, Reloader, control},
    server::{self, Listeners, signals},
    store::{self, Opened},
    telemetry::{self, activity::Activity},
    tls::{Downstream, FileError},
};

pub(super) fn execute(options: &RunOptions) -> ExitCode {
    let Loaded { config, warnings } = match options.load() {
        Ok(loaded) => loaded,
        Err(problems) => return report(&problems),
    };
    for warning in &warnings {
        complain(format_args!("warning: {warning}\n"));
    }
    let _telemetry = match telemetry::init(&config.telemetry, config.admin.is_some()) {
        Ok(telemetry) => telemetry,
        Err(error) => return fail(&error, Exit::Configuration),
    };
    let signer = match reload::signer(&config) {
        Ok(signer) => signer,
        Err(error) => return fail(&error, Exit::Configuration),
    };
    let tls = match tls(&config) {
        Ok(tls) => tls,
        Err(error) => return fail(&error, Exit::Configuration),
    };
    let listeners = match Listeners::bind(&config.server.listen) {
        Ok(listeners) => listeners.secured(tls),
        Err(error) => return fail(&error, Exit::Unavailable),
    };
    let control = match config.server.control_socket.as_deref().map(control::bind).transpose() {
        Ok(control) => control,
        Err(error) => return fail(&error, Exit::Unavailable),
    };
    let desk = match Desk::open(&config) {
        Ok(desk) => desk,
        Err((error, exit)) => return fail(error.as_ref(), exit),
    };
    announce(&config, &listeners);
    match serve(options, &Arc::new(config), (listeners, control), signer, desk) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(error.as_ref(), Exit::Runtime),
    }
}

/// What handshakes are answered with, where a listener speaks TLS.
fn tls(config: &Config) -> Result<Option<Arc<Downstream>>, FileError> {
    let server = &config.server;
    let is_needed = server.listen.iter().any(|listen| matches!(listen, Listen::Tls(_)));
    if is_needed { Downstream::load(&server.tls).map(|tls| Some(Arc::new(tls))) } else { Ok(None) }
}

/// Says what serves where, and what its store promises.
fn announce(config: &Config, listeners: &Listeners) {
    let guarded = config.routes.iter().filter(|route| route.guard.is_some()).count();
    tracing::info!(
        listen = %listeners.addresses().collect::<Vec<_>>().join(" "),
        routes = config.routes.len(),
        guarded,
        threads = config.server.threads,
        store = promise(&config.store.kind),
        "ifmatch {}",
        env!("CARGO_PKG_VERSION"),
    );
}

/// What a store keeps, and for whom.
fn promise(kind: &StoreKind) -> &'static str {
    match kind {
        StoreKind::Memory => {
            "memory: leases, fences and marks end with the process; \
             one process only: two proxies in front of one backend need a shared store"
        }
        StoreKind::Disk { .. } => {
            "disk: leases and fences survive the end of the process and a loss of power; \
             one process only: two proxies in front of one backend need a shared store"
        }
        StoreKind::Etcd(_) => {
            "etcd: shared by all proxies; linearizable, and nothing is lost while most of its members live; \
             without most of them guarded writes are refused"
        }
        StoreKind::Redis(_) => {
            "redis: shared by all proxies, and as durable as that Redis; a failover may lose the last writes, \
             and with them claims, leases and fences"
        }
    }
}

fn serve(
    options: &RunOptions,
    config: &Arc<Config>,
    (listeners, control): (Listeners, Option<UnixListener>),
    signer: Option<Signer>,
    desk: Option<Desk>,
) -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let store = store::open(&config.store).await?;
        let activity = desk.as_ref().map(|_| Arc::<Activity>::default());
        let live = live(config, &store, signer, activity.clone()).await?;
        let counting = tokio::spawn(telemetry::metrics::count_records(Arc::clone(&store.store)));
        let stop = signals::watch()?;
        let file = options.path().map(Path::to_owned);
        let store_for_reloads = Arc::clone(&store.store);
        let reloader = Arc::new(Reloader::new(Arc::clone(&live), store_for_reloads, listeners.tls(), file));
        signals::reload_on_hangup(Arc::clone(&reloader))?;
        if let Some(control) = control {
            tokio::spawn(control::serve(control, reloader));
        }
        if let (Some(desk), Some(activity)) = (desk, &activity) {
            let (live, activity) = (Arc::clone(&live), Arc::clone(activity));
            let listeners = listeners.addresses().collect();
            let metrics = Box::new(telemetry::metrics::prometheus_text);
            desk.serve(admin::Subject { live, activity, listeners, stop: stop.subscribe(), metrics });
        }
        let gateway = Gateway::new(live).noting(activity);
        server::run(listeners, &config.server, gateway, stop.subscribe()).await?;
        counting.abort();
        store.store.close().await;
        tracing::info!("ended");
        Ok(())
    })
}

/// The first generation: a configuration with its guard and its store.
pub(super) async fn live(
    config: &Arc<Config>,
    opened: &Opened,
    signer: Option<Signer>,
    activity: Option<Arc<Activity>>,
) -> Result<Arc<Live>, Box<dyn Error>> {
    let held_until = opened.store.now().await?.plus(hold(config, opened));
    // This runtime carries no requests, and lives as long as they come.
    let upstreams = Arc::new(Upstreams::checked_on(Handle::current()));
    let guards = Guards::new(config, upstreams, Arc::clone(&opened.store), random_u64()?, held_until);
    let guards = Arc::new(guards.signing_with(signer).noting(activity));
    guards.show();
    let serving = Serving::new(Arc::clone(config), guards);
    Ok(Arc::new(Live::new(serving)))
}

/// How long writes and grants are held back: until no write of an earlier process can come any more.
fn hold(config: &Config, opened: &Opened) -> Duration {
    let late_max = config.routes.iter().map(|route| route.upstream.late_max).max();
    let Some(late_max) = late_max.filter(|_| opened.unclean) else { return config.store.start_grace };
    let hold = config.store.start_grace.max(late_max);
    tracing::warn!(hold = ?hold, "the store was not closed in good order: writes and grants are held back");
    hold
}

/// Says what went wrong, with its causes.
pub(super) fn fail(error: &dyn Error, exit: Exit) -> ExitCode {
    let causes = std::iter::successors(Some(error), |&error| error.source());
    complain(format_args!("ifmatch: {}", causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")));
    exit.into()
}
