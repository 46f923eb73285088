//! `ifmatch run`: serve until asked to stop.

use std::{error::Error, process::ExitCode, sync::Arc};

use super::{Exit, RunOptions, complain, report};
use crate::{
    config::{Config, Loaded},
    entropy::random_u64,
    guard::Guards,
    proxy::Gateway,
    server::{self, Listeners, signals},
    store, telemetry,
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
    let listeners = match Listeners::bind(&config.server.listen) {
        Ok(listeners) => listeners,
        Err(error) => return fail(&error, Exit::Unavailable),
    };
    announce(&config, &listeners);
    match serve(&config, listeners) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(error.as_ref(), Exit::Runtime),
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
        store = store::promise(&config.store.engine),
        "ifmatch {}",
        env!("CARGO_PKG_VERSION"),
    );
}

fn serve(config: &Config, listeners: Listeners) -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let gateway = gateway(config).await?;
        let stop = signals::watch()?;
        server::run(listeners, &config.server, gateway, stop.subscribe()).await?;
        tracing::info!("ended");
        Ok(())
    })
}

/// The proxy of a configuration, with its guard and its store.
pub(super) async fn gateway(config: &Config) -> Result<Gateway, Box<dyn Error>> {
    let store = store::open(&config.store).await?;
    let guards = Guards::new(config, Arc::clone(&store), random_u64()?, store.now().await?);
    Ok(Gateway::new(config, Arc::new(guards)))
}

/// Says what went wrong, with its causes.
pub(super) fn fail(error: &dyn Error, exit: Exit) -> ExitCode {
    let causes = std::iter::successors(Some(error), |&error| error.source());
    complain(format_args!("ifmatch: {}", causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")));
    exit.into()
}
