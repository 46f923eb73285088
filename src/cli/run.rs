//! `ifmatch run`: serve until asked to stop.

use std::{error::Error, path::Path, process::ExitCode, sync::Arc};

use super::{Exit, RunOptions, complain, report};
use crate::{
    config::{self, Config, Loaded, Problems},
    core::policy::Policy,
    proxy::{Gateway, GuardedPath},
    server::{self, Listeners, signals},
    telemetry,
};

/// The configuration that is read where neither a file nor an upstream is given.
const DEFAULT_FILE: &str = "ifmatch.toml";

/// Makes whoever handles the guarded requests of a configuration.
pub(super) type MakeGuard = fn(&Config) -> Arc<dyn GuardedPath>;

pub(super) fn execute(options: &RunOptions, guard: MakeGuard) -> ExitCode {
    let Loaded { config, warnings } = match load(options) {
        Ok(loaded) => loaded,
        Err(problems) => return report(&problems),
    };
    for warning in &warnings {
        complain(format_args!("warning: {warning}\n"));
    }
    if let Err(error) = telemetry::init() {
        complain(format_args!("ifmatch: no logs: {error}"));
    }
    let listeners = match Listeners::bind(&config.server.listen) {
        Ok(listeners) => listeners,
        Err(error) => return fail(&error, Exit::Unavailable),
    };
    announce(&config, &listeners);
    match serve(&config, listeners, guard) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(error.as_ref(), Exit::Runtime),
    }
}

fn load(options: &RunOptions) -> Result<Loaded, Problems> {
    match &options.upstream {
        Some(url) => config::from_upstream(url, options.policy.unwrap_or(Policy::Optimistic), &options.listen),
        None => config::load(options.file.as_deref().unwrap_or(Path::new(DEFAULT_FILE))),
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
        store = "memory: leases, fences and marks end with the process; \
                 one process only: two proxies in front of one backend need a shared store",
        "ifmatch {}",
        env!("CARGO_PKG_VERSION"),
    );
}

fn serve(config: &Config, listeners: Listeners, guard: MakeGuard) -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let gateway = Gateway::new(config, guard(config));
    runtime.block_on(async {
        let stop = signals::watch()?;
        server::run(listeners, &config.server, gateway, stop).await?;
        tracing::info!("ended");
        Ok(())
    })
}

/// Says what went wrong, with its causes.
fn fail(error: &dyn Error, exit: Exit) -> ExitCode {
    let mut line = format!("ifmatch: {error}");
    let mut cause = error.source();
    while let Some(error) = cause {
        line.push_str(&format!(": {error}"));
        cause = error.source();
    }
    complain(line);
    exit.into()
}
