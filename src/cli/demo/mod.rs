//! `ifmatch demo`: a plain backend and the proxy in one process, and a walk through what the proxy does.

use std::{error::Error, net::SocketAddr, process::ExitCode, sync::Arc};

use tokio::sync::watch;

use super::{DemoOptions, Exit, print, run};
use crate::{
    config::{self, Listen, LogLevel},
    core::policy::Policy,
    proxy::Gateway,
    server::{self, Listeners, Stop, signals},
    store, telemetry,
};

mod backend;
mod walk;

/// Any free port.
const FREE_PORT: &str = "127.0.0.1:0";

/// More connections than a browser and a terminal open.
const CONNECTIONS: usize = 64;

pub(super) fn execute(options: &DemoOptions) -> ExitCode {
    match demonstrate(options.once) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => run::fail(error.as_ref(), Exit::Runtime),
    }
}

fn demonstrate(once: bool) -> Result<(), Box<dyn Error>> {
    let backend = Listeners::bind(&[Listen::Tcp(FREE_PORT.to_owned())])?;
    let upstream = format!("http://{}", address(&backend)?);
    let mut config = config::from_upstream(&upstream, Policy::Optimistic, &[FREE_PORT.to_owned()])
        .map_err(|problems| problems.to_string())?
        .config;
    // The walk is the output; RUST_LOG=info shows the access log as well.
    config.telemetry.level = LogLevel::Warn;
    // A single user need not raise the limit of open files.
    config.server.max_connections = CONNECTIONS;
    let _telemetry = telemetry::init(&config.telemetry, false)?;
    let listeners = Listeners::bind(&config.server.listen)?;
    let proxy = address(&listeners)?;
    print(format_args!("A backend that knows nothing of ETags: {upstream}"));
    print(format_args!("ifmatch in front of it:                http://{proxy}"));

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (_backend_runs, backend_stops) = watch::channel(false);
        tokio::spawn(backend::serve(backend, backend_stops));
        let config = Arc::new(config);
        let live = run::live(&config, &store::open(&config.store).await?, None, None).await?;
        let stop = signals::watch()?;
        let serving = server::run(listeners, &config.server, Gateway::new(live), stop.subscribe());
        let walking = async {
            let walked = tokio::task::spawn_blocking(move || walk::walk(proxy)).await;
            if walked.as_ref().is_ok_and(Result::is_ok) && !once {
                print_outlook(proxy, &upstream);
            } else {
                stop.send_replace(Stop::Now);
            }
            walked
        };
        let (served, walked) = tokio::join!(serving, walking);
        served?;
        Ok(walked??)
    })
}

fn address(listeners: &Listeners) -> Result<SocketAddr, Box<dyn Error>> {
    Ok(listeners.addresses().next().ok_or("no address to listen on")?.parse()?)
}

fn print_outlook(proxy: SocketAddr, upstream: &str) {
    print(format_args!("\n# Continue by hand at http://{proxy}; at {upstream} nothing is checked."));
    print("# In front of your own server: ifmatch run --upstream http://127.0.0.1:9000 --policy optimistic");
    print("# Ctrl-C ends the demo.");
}
