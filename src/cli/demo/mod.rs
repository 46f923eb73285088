//! `ifmatch demo`: a plain backend and the proxy in one process, and a walk through what the proxy does.

use std::{error::Error, net::SocketAddr, process::ExitCode, sync::Arc};

use tokio::sync::watch;

use super::{DemoOptions, Exit, print, run};
use crate::{
    config::{self, GuardedBy, Listen, LogLevel},
    core::policy::Policy,
    proxy::Gateway,
    server::{self, BindError, Listeners, Stop, signals},
    store, telemetry, threads,
    upstream::OwnCredentials,
};

mod backend;
mod walk;

/// The ports that the documents name.
const BACKEND_PORT: u16 = 9000;
const PROXY_PORT: u16 = 8080;

/// More connections than a browser and a terminal open.
const CONNECTIONS: usize = 64;

pub(super) fn execute(options: &DemoOptions) -> ExitCode {
    match demonstrate(options.once) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => run::fail(error.as_ref(), Exit::Runtime),
    }
}

fn demonstrate(once: bool) -> Result<(), Box<dyn Error>> {
    let (backend, listeners) = (listen(BACKEND_PORT)?, listen(PROXY_PORT)?);
    let (backend_address, proxy) = (address(&backend)?, address(&listeners)?);
    let upstream = format!("http://{backend_address}");
    let mut config =
        config::from_upstream(&upstream, GuardedBy::Policy(Policy::Optimistic), &[proxy.to_string()], None)
            .map_err(|problems| problems.to_string())?
            .config;
    // The walk is the output; RUST_LOG=info shows the access log as well.
    config.telemetry.level = LogLevel::Warn;
    // A single user need not raise the limit of open files.
    config.server.max_connections = CONNECTIONS;
    let _telemetry = telemetry::init(&config.telemetry, false)?;
    for (wanted, got) in [(BACKEND_PORT, backend_address), (PROXY_PORT, proxy)] {
        if got.port() != wanted {
            print(format_args!("Port {wanted} cannot be used: this demo listens on port {} in its place.", got.port()));
        }
    }
    print(format_args!("A backend that knows nothing of ETags: {upstream}"));
    print(format_args!("ifmatch in front of it:                http://{proxy}"));

    let runtime = threads::build(tokio::runtime::Builder::new_current_thread().enable_all())?;
    runtime.block_on(async {
        let (_backend_runs, backend_stops) = watch::channel(false);
        tokio::spawn(backend::serve(backend, backend_stops));
        let config = Arc::new(config);
        let live = run::live(&config, &store::open(&config).await?, OwnCredentials::default(), None)?;
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

/// Listens on this port of the loopback interface, or on any free port if another process uses it.
fn listen(port: u16) -> Result<Listeners, BindError> {
    let bind = |port: u16| Listeners::bind(&[Listen::Tcp(format!("127.0.0.1:{port}"))]);
    bind(port).or_else(|_in_use| bind(0))
}

fn address(listeners: &Listeners) -> Result<SocketAddr, Box<dyn Error>> {
    Ok(listeners.addresses().next().ok_or("no address to listen on")?.parse()?)
}

fn print_outlook(proxy: SocketAddr, upstream: &str) {
    print(format_args!("\n# Continue by hand at http://{proxy}; at {upstream} nothing is checked."));
    print("# In front of your own server: ifmatch run --upstream http://127.0.0.1:9000 --policy optimistic");
    print("# Ctrl-C ends the demo.");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_in_use_is_replaced_by_a_free_one() {
        let free = address(&listen(0).expect("a free port")).expect("its address").port();
        let first = listen(free).expect("the port");
        assert_eq!(address(&first).expect("its address").port(), free);
        let second = listen(free).expect("another port");
        assert_ne!(address(&second).expect("its address").port(), free);
    }
}
