//! The server: listeners, worker threads, and an end that waits only for requests in flight.
//!
//! # Design
//!
//! *Why not pingora's own server object?* After SIGTERM it sleeps for its whole grace period, even when idle. A port
//! in use costs it thirty seconds and then leaves a process without a listener. SIGQUIT hands its listeners to a new
//! process while the old one lives on, so that two memories would guard one backend. Its services, which do the real
//! work, run just as well without it.

use std::{collections::HashSet, sync::Arc, time::Duration};

use pingora::services::{Service as _, listening::Service};
use pingora_runtime::{BlockingPoolOpts, Runtime, RuntimeBuilder};
use pingora_timeout::fast_timeout::fast_sleep;
use thiserror::Error;
use tokio::sync::watch;

use crate::{
    config,
    drain::InFlight,
    generation::status,
    proxy::Gateway,
    supervisor,
    threads::{KEEP_ALIVE, THREADS_MAX, start_one},
};

mod accept_pace;
mod bind;
mod connections;
mod descriptors;
mod head;
mod http1;
mod http2;
mod places;
mod protocol_detect;
mod protocols;
mod proxy_header;
mod secure;
pub mod signals;

use connections::Connections;
use protocol_detect::ProtocolDetect;
use secure::Secure;

pub(crate) use bind::is_dead_socket;
pub use bind::{BindError, Listeners};

/// How long a request may be uncounted: from its connection's first bytes to its ticket.
const UNCOUNTED: Duration = Duration::from_millis(50);
/// How long connections may take to end once nothing is in flight. Even on a busy machine, a thread with the last
/// frames of an answer waits less. A client that sends unwanted data, or is gone without notice, gets no longer.
const LAST_FRAMES: Duration = Duration::from_secs(2);

/// The stage of a server's stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The server serves.
    Not,
    /// The server accepts nothing more, and ends when the requests in flight have ended.
    Drain,
    /// The server ends at once.
    Now,
}

/// How long listeners may take to end once signalled: they have nothing to wait for.
const LISTENERS_END: Duration = Duration::from_secs(1);

/// The reason why a server could not continue.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The listeners ended on their own.
    #[error("the listeners ended")]
    Listeners(#[source] Option<tokio::task::JoinError>),
}

/// Serves until a stop is requested. Requests in flight have the configured `shutdown_timeout` to end.
///
/// Must run on a tokio runtime. That runtime carries none of the requests.
pub async fn run(
    listeners: Listeners,
    server: &config::Server,
    gateway: Gateway,
    mut stop: watch::Receiver<Stop>,
) -> Result<(), ServeError> {
    let live = Arc::clone(gateway.live());
    let in_flight = live.in_flight().clone();
    in_flight.show();
    let open = InFlight::default();
    let connections = Arc::new(Connections::new(gateway, server, &open));
    let tls = listeners.tls();
    let watching = tls.clone().map(|tls| AbortOnDrop(tokio::spawn(tls.watch())));
    let over_tls = |tls| Service::new("ifmatch over TLS".to_owned(), Secure::new(Arc::clone(&connections), tls));
    let mut secure = tls.map(over_tls);
    let mut service = Service::new("ifmatch".to_owned(), ProtocolDetect(Arc::clone(&connections)));
    service.set_connection_filter(Arc::clone(&connections.pace) as _);
    if let Some(secure) = &mut secure {
        secure.set_connection_filter(Arc::clone(&connections.pace) as _);
    }
    let descriptors = listeners.attach(&mut service, secure.as_mut());

    // One single-threaded runtime per worker: measured cheaper than work stealing for short requests.
    let runtime = RuntimeBuilder::new(server.threads, "ifmatch").work_steal(false);
    let runtime = runtime
        .blocking_pool_opts(BlockingPoolOpts { max_threads: Some(THREADS_MAX), thread_keep_alive: Some(KEEP_ALIVE) });
    let runtime = runtime.build();
    start_threads(&runtime, server.threads);
    // Pingora starts its timer with the first request, and panics if it cannot.
    fast_sleep(Duration::from_millis(1)).await;
    let (shutdown, shutdown_watch) = watch::channel(false);
    let mut serving = runtime.get_handle().spawn(async move {
        let over_tls = async {
            if let Some(secure) = &mut secure {
                secure.start_service(Some(Arc::clone(&descriptors)), shutdown_watch.clone(), 1).await;
            }
        };
        tokio::join!(service.start_service(Some(Arc::clone(&descriptors)), shutdown_watch.clone(), 1), over_tls);
        // A service without listeners ends at once, so this is for neither of them to do.
        connections.end();
    });

    supervisor::ready(&status(&live));
    let watchdog = tokio::spawn(supervisor::stay_alive(runtime.get_handle().clone()));
    let result = tokio::select! {
        ended = &mut serving => Err(ServeError::Listeners(ended.err())),
        () = reached(&mut stop, Stop::Drain) => {
            supervisor::stopping();
            // This comes before the listeners close: a client that finds them closed has the end of its connection
            // announced in its next answer.
            live.end();
            shutdown.send_replace(true);
            let drain = async {
                // The listeners end first, and connections between two requests end with them.
                let _ = (&mut serving).await;
                drained(&in_flight, &open).await;
            };
            tokio::select! {
                _ = tokio::time::timeout(live.serving().config.server.shutdown_timeout, drain) => {}
                () = reached(&mut stop, Stop::Now) => {}
            }
            // A listener that still runs after its runtime is gone reports errors until it notices.
            if !serving.is_finished() {
                let _ = tokio::time::timeout(LISTENERS_END, serving).await;
            }
            Ok(())
        }
    };
    drop(watching);
    watchdog.abort();
    // Tasks that are still running are dropped, so this takes no time. It blocks, which a runtime does not allow.
    let _ = tokio::task::spawn_blocking(move || runtime.shutdown_timeout(Duration::ZERO)).await;
    result
}

/// Starts a thread for work that blocks in the runtime of each worker. Pingora names one of them at random.
fn start_threads(runtime: &Runtime, workers: usize) {
    let mut started = HashSet::new();
    while started.len() < workers {
        let worker = runtime.get_handle();
        if started.insert(worker.id()) {
            start_one(worker);
        }
    }
}

/// A task that ends with its owner.
struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Waits until nothing is in flight and everything is written. Checks twice, for a request that was not counted yet.
async fn drained(in_flight: &InFlight, connections: &InFlight) {
    in_flight.idle().await;
    tokio::time::sleep(UNCOUNTED).await;
    // Another thread may still have unwritten frames of an HTTP/2 answer whose request is over.
    let _ = tokio::time::timeout(LAST_FRAMES, connections.idle()).await;
    in_flight.idle().await;
}

/// Waits until a stop of at least this kind is requested, or without end if no sender is left.
async fn reached(stop: &mut watch::Receiver<Stop>, least: Stop) {
    let enough = |asked: &Stop| *asked == Stop::Now || *asked == least;
    if stop.wait_for(enough).await.is_err() {
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, sleep, timeout};

    use super::*;

    /// The frames that an HTTP/2 connection has not written when the request is over would be lost.
    #[tokio::test]
    async fn the_end_waits_for_connections_that_have_something_to_write() {
        let (in_flight, connections) = (InFlight::default(), InFlight::default());
        let connection = connections.enter();
        let written = async {
            sleep(4 * UNCOUNTED).await;
            drop(connection);
            Instant::now()
        };
        let ended = async {
            drained(&in_flight, &connections).await;
            Instant::now()
        };
        let (written, ended) = tokio::join!(written, ended);
        assert!(written <= ended);
    }

    #[tokio::test]
    async fn a_connection_that_does_not_end_holds_the_end_up_for_a_while_only() {
        let (in_flight, connections) = (InFlight::default(), InFlight::default());
        let _connection = connections.enter();
        timeout(10 * LAST_FRAMES, drained(&in_flight, &connections)).await.expect("the end");
    }
}
