//! `ifmatch run`: serves until asked to stop.

use std::{error::Error, io, os::unix::net::UnixListener, path::Path, process::ExitCode, sync::Arc, time::Duration};

use tokio::{
    runtime::{Builder, Handle, Runtime},
    sync::watch,
};

use super::{Exit, RunOptions, admin_listener::BoundAdmin, complain, report};
use crate::{
    admin,
    config::{Config, Listen, Loaded, StoreKind},
    core::records::owed::Owed,
    entropy::random_u64,
    error_causes::with_causes,
    generation::{Live, Serving},
    guard::{Guard, StartHold},
    names,
    proxy::Gateway,
    reload::{self, Hangups, Reloader, control},
    server::{self, Listeners, Stop, signals},
    store::{self, Opened, Store},
    telemetry::{self, activity::Activity},
    threads,
    tls::{Downstream, FileError, stamp::FileStamp},
    upstream::{OwnCredentials, Upstreams},
};

pub(super) fn execute(options: &RunOptions) -> ExitCode {
    // Taken before the file is read: a change in between is loaded later, and never missed.
    let stamp = FileStamp::of(options.path().map(Path::to_owned).iter());
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
    match open_and_serve(options.path().map(|file| (file, stamp)), config) {
        Ok(()) => ExitCode::SUCCESS,
        Err((error, exit)) => fail(error.as_ref(), exit),
    }
}

/// Serves until the process ends. The error has the exit code of the process.
fn open_and_serve(file: Option<(&Path, FileStamp)>, config: Config) -> Result<(), (Box<dyn Error>, Exit)> {
    let own = reload::own_credentials(&config).map_err(|error| (error.into(), Exit::Configuration))?;
    let tls = tls(&config).map_err(|error| (error.into(), Exit::Configuration))?;
    let doors = Doors::open(&config, tls)?;
    serve(file, &Arc::new(config), doors, own).map_err(|error| (error, Exit::Runtime))
}

/// All ways in which the process can be reached.
struct Doors {
    runtime: Runtime,
    stop: watch::Sender<Stop>,
    hangups: Hangups,
    control: Option<UnixListener>,
    admin_listener: Option<BoundAdmin>,
    listeners: Listeners,
}

impl Doors {
    /// Opens all of them. The error tells why one cannot be opened, and has the exit code of the process.
    fn open(config: &Config, tls: Option<Arc<Downstream>>) -> Result<Self, (Box<dyn Error>, Exit)> {
        let failed = |error: io::Error| (error.into(), Exit::Unavailable);
        let listeners = Listeners::inherit_or_bind(&config.server.listen);
        let listeners = listeners.map_err(|error| (error.into(), Exit::Unavailable))?.secured(tls);
        let control = config.server.control_socket.as_deref().map(control::bind).transpose();
        let control = control.map_err(|error| (error.into(), Exit::Unavailable))?;
        let admin_listener = BoundAdmin::open(config)?;
        announce(config, &listeners);
        warn_of_others(config, &listeners);
        let runtime = threads::build(Builder::new_current_thread().enable_all()).map_err(failed)?;
        names::start().map_err(failed)?;
        let signals = runtime.block_on(async { Ok((signals::watch()?, Hangups::watch()?)) });
        let (stop, hangups) = signals.map_err(failed)?;
        Ok(Self { runtime, stop, hangups, control, admin_listener, listeners })
    }
}

/// Loads the certificates if a listener speaks TLS.
fn tls(config: &Config) -> Result<Option<Arc<Downstream>>, FileError> {
    let server = &config.server;
    let is_needed = server.listen.iter().any(|listen| matches!(listen, Listen::Tls(_)));
    if is_needed { Downstream::load(&server.tls).map(|tls| Some(Arc::new(tls))) } else { Ok(None) }
}

/// Logs where the proxy serves, and what its store promises.
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

/// Warns that two processes on one socket need a store that both of them see.
fn warn_of_others(config: &Config, listeners: &Listeners) {
    if listeners.are_inherited() && matches!(config.store.kind, StoreKind::Memory | StoreKind::Disk { .. }) {
        tracing::warn!(
            "the sockets were handed over: with this store no other process may serve them at the same time, because \
             neither process sees the other's writes; hand over only while both run with etcd, postgres or redis"
        );
    }
}

/// Returns what a store keeps, and for which proxies.
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
        StoreKind::Postgres(_) => {
            "postgres: shared by all proxies; what it acknowledges survives the end of the server, \
             and with a synchronous standby the loss of the server"
        }
        StoreKind::Redis(_) => {
            "redis: shared by all proxies, and as durable as that Redis; a failover may lose the last writes, \
             and with them claims, leases and fences"
        }
    }
}

fn serve(
    file: Option<(&Path, FileStamp)>,
    config: &Arc<Config>,
    doors: Doors,
    own: OwnCredentials,
) -> Result<(), Box<dyn Error>> {
    let Doors { runtime, stop, hangups, control, admin_listener, listeners } = doors;
    runtime.block_on(async {
        let store = store::open(config).await?;
        let activity = admin_listener.as_ref().map(|_| Arc::<Activity>::default());
        let live = live(config, &store, own, activity.clone())?;
        let counting = tokio::spawn(store::census::count_records(Arc::clone(&store.store)));
        let holding = tokio::spawn(end_hold(Arc::clone(&store.store), store.hold));
        let store_for_reloads = Arc::clone(&store.store);
        let path = file.as_ref().map(|(path, _)| path.to_path_buf());
        let reloader = Arc::new(Reloader::new(Arc::clone(&live), store_for_reloads, listeners.tls(), path));
        telemetry::metrics::watch(&reloader);
        listeners.tls().iter().for_each(telemetry::metrics::watch);
        tokio::spawn(reload::reload_on_hangup(hangups, Arc::clone(&reloader)));
        if let Some((path, stamp)) = file {
            tokio::spawn(reload::reload_on_change(Arc::clone(&reloader), path.to_owned(), stamp));
        }
        if let Some(control) = control {
            tokio::spawn(control::serve(control, reloader));
        }
        if let (Some(admin_listener), Some(activity)) = (admin_listener, &activity) {
            let (live, activity) = (Arc::clone(&live), Arc::clone(activity));
            let listeners = listeners.addresses().collect();
            let metrics = Box::new(telemetry::metrics::prometheus_text);
            admin_listener.serve(admin::Subject { live, activity, listeners, stop: stop.subscribe(), metrics })?;
        }
        let gateway = Gateway::new(live).noting(activity);
        server::run(listeners, &config.server, gateway, stop.subscribe()).await?;
        counting.abort();
        holding.abort();
        store.store.close().await;
        tracing::info!("ended");
        Ok(())
    })
}

/// Notes when the hold is over that only the writes of this process are owed.
async fn end_hold(store: Arc<dyn Store>, hold: Duration) {
    if !hold.is_zero() {
        tokio::time::sleep(hold).await;
        // If this cannot be written, the next process holds back for longer than it must.
        let _ = store.owe(Owed::NONE).await;
    }
}

/// Builds the first generation: a configuration with its guard and its store.
pub(super) fn live(
    config: &Arc<Config>,
    opened: &Opened,
    own: OwnCredentials,
    activity: Option<Arc<Activity>>,
) -> Result<Arc<Live>, Box<dyn Error>> {
    let grace = config.store.start_grace.max(opened.hold);
    let hold = opened.time.map_or_else(StartHold::none, |time| StartHold::from(time, grace));
    // This runtime carries no requests, and lives as long as requests come.
    let upstreams = Arc::new(Upstreams::checked_on(Handle::current()));
    let (store, owner) = (Arc::clone(&opened.store), random_u64()?);
    let serving = Serving::new(Arc::clone(config), |table| {
        Guard::new(config, table, upstreams, store, owner, hold).probing_with(own).noting(activity)
    });
    serving.guards.show();
    Ok(Arc::new(Live::new(serving)))
}

/// Reports what went wrong, with its causes.
pub(super) fn fail(error: &(dyn Error + 'static), exit: Exit) -> ExitCode {
    complain(format_args!("ifmatch: {}", with_causes(error)));
    exit.into()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::{
        core::records::owed::Owed,
        store::owed,
        testing::{config, route},
    };

    /// The upstream of a test's route has `timeout` and `late_write_window` of 5 s each.
    #[test]
    fn a_process_owes_the_longest_time_that_a_write_on_any_route_may_come_late() {
        let seconds = Duration::from_secs;
        assert_eq!(owed(&config(vec![])), Owed::NONE);
        let mut config = config(vec![route("/doc", None, &[]), route("/other", None, &[])]);
        assert_eq!(owed(&config), Owed::by_writes(seconds(5), seconds(5)));
        let other = config.routes.get_mut(1).and_then(std::sync::Arc::get_mut).expect("a route");
        std::sync::Arc::make_mut(&mut other.upstream).late_write_window = seconds(7);
        assert_eq!(owed(&config), Owed::by_writes(seconds(5), seconds(7)));
    }
}
