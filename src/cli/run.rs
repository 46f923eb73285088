//! `ifmatch run`: serve until asked to stop.

use std::{error::Error, io, os::unix::net::UnixListener, path::Path, process::ExitCode, sync::Arc, time::Duration};

use tokio::{runtime::Runtime, sync::watch};

use super::{Exit, RunOptions, complain, report};
use crate::{
    config::{Config, Loaded, StoreKind},
    entropy::random_u64,
    exchange::Signer,
    guard::Guards,
    live::{Live, Serving},
    proxy::Gateway,
    reload::{self, Reloader, control},
    server::{
        self, Listeners, Stop,
        signals::{self, Hangups},
    },
    store::{self, Opened},
    telemetry,
};

pub(super) fn execute(options: &RunOptions) -> ExitCode {
    let Loaded { config, warnings } = match options.load() {
        Ok(loaded) => loaded,
        Err(problems) => return report(&problems),
    };
    for warning in &warnings {
        complain(format_args!("warning: {warning}\n"));
    }
    if let Err(error) = telemetry::init("info") {
        complain(format_args!("ifmatch: no logs: {error}"));
    }
    let signer = match reload::signer(&config) {
        Ok(signer) => signer,
        Err(error) => return fail(&error, Exit::Configuration),
    };
    let doors = match Doors::open(&config) {
        Ok(doors) => doors,
        Err(error) => return fail(error.as_ref(), Exit::Unavailable),
    };
    announce(&config, &doors.listeners);
    warn_of_others(&config, &doors.listeners);
    match serve(options.path(), &Arc::new(config), doors, signer) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(error.as_ref(), Exit::Runtime),
    }
}

/// All ways in which the process can be reached, opened before anybody is told that it runs.
struct Doors {
    runtime: Runtime,
    stop: watch::Sender<Stop>,
    hangups: Hangups,
    control: Option<UnixListener>,
    listeners: Listeners,
}

impl Doors {
    fn open(config: &Config) -> Result<Self, Box<dyn Error>> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, hangups) = runtime.block_on(async { Ok::<_, io::Error>((signals::watch()?, Hangups::watch()?)) })?;
        let listeners = Listeners::inherit_or_bind(&config.server.listen)?;
        let control = config.server.control_socket.as_deref().map(control::bind).transpose()?;
        Ok(Self { runtime, stop, hangups, control, listeners })
    }
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

/// Says what two processes on one socket would do without a store that both of them see.
fn warn_of_others(config: &Config, listeners: &Listeners) {
    if listeners.are_inherited() && matches!(config.store.kind, StoreKind::Memory | StoreKind::Disk { .. }) {
        tracing::warn!(
            "the sockets were handed over: with this store no other process may serve them at the same time, or writes \
             through one are not seen by the other; hand over while both run with etcd or redis alone"
        );
    }
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
    file: Option<&Path>,
    config: &Arc<Config>,
    doors: Doors,
    signer: Option<Signer>,
) -> Result<(), Box<dyn Error>> {
    let Doors { runtime, stop, hangups, control, listeners } = doors;
    runtime.block_on(async {
        let store = store::open(&config.store).await?;
        let live = live(config, &store, signer).await?;
        let reloader = Reloader::new(Arc::clone(&live), Arc::clone(&store.store), file.map(Path::to_owned));
        let reloader = Arc::new(reloader);
        tokio::spawn(signals::reload_on_hangup(hangups, Arc::clone(&reloader)));
        if let Some(control) = control {
            tokio::spawn(control::serve(control, reloader));
        }
        server::run(listeners, &config.server, Gateway::new(live), stop.subscribe()).await?;
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
) -> Result<Arc<Live>, Box<dyn Error>> {
    let held_until = opened.store.now().await?.plus(hold(config, opened));
    let guards = Guards::new(config, Arc::clone(&opened.store), random_u64()?, held_until);
    let serving = Serving::new(Arc::clone(config), Arc::new(guards.signing_with(signer)));
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
