//! Connections that speak HTTP/2: requests side by side, within the limits of one connection.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use pingora::{
    apps::HttpServerApp,
    protocols::{
        Digest, Stream,
        http::{
            ServerSession,
            v2::server::{H2Accept, H2Options, HttpSession, handshake},
        },
    },
    server::ShutdownWatch,
};
use pingora_runtime::current_handle;
use tokio::{sync::Notify, time::timeout};

use super::connections::Connections;

/// Requests at once on one HTTP/2 connection (RFC 9113 section 6.5.2 recommends no less than 100).
const STREAMS: u32 = 128;
/// Bytes that one HTTP/2 stream may send ahead; the 64 KiB of the protocol make uploads slow on long ways.
const STREAM_WINDOW_BYTES: u32 = 256 * 1024;
/// Bytes that all streams of a connection may send ahead together, and so what they may hold in memory.
const CONNECTION_WINDOW_BYTES: u32 = 1024 * 1024;
/// Streams that a client may reset before they are handled (rapid reset attacks).
const PENDING_RESETS: usize = 32;
/// Requests of one connection that may be refused for what they are before it ends.
const MALFORMED: usize = 32;

/// What an HTTP/2 connection is told at its beginning.
pub(super) fn options(header_bytes_max: usize) -> H2Options {
    let mut options = H2Options::new();
    options
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(u32::try_from(header_bytes_max).unwrap_or(u32::MAX))
        .initial_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_pending_accept_reset_streams(PENDING_RESETS);
    options
}

/// Serves a connection to its end: what was answered is written by then.
pub(super) async fn serve<A>(connections: &Connections<A>, stream: Stream, shutdown: &ShutdownWatch)
where
    A: HttpServerApp + Send + Sync + 'static,
{
    let digest = Arc::new(Digest {
        ssl_digest: stream.get_ssl_digest(),
        timing_digest: stream.get_timing_digest(),
        proxy_digest: stream.get_proxy_digest(),
        socket_digest: stream.get_socket_digest(),
    });
    let options = options(connections.heads.bytes_max);
    let Ok(Ok(mut connection)) = timeout(connections.heads.time_max, handshake(stream, Some(options))).await else {
        return;
    };
    let running = Arc::new(Running::default());
    let mut watch = shutdown.clone();
    let (mut is_ending, mut malformed) = (*shutdown.borrow(), 0);
    if is_ending {
        connection.graceful_shutdown();
    }
    loop {
        let accepted = tokio::select! {
            biased;
            _ = watch.wait_for(|ends| *ends), if !is_ending => {
                connection.graceful_shutdown();
                is_ending = true;
                continue;
            }
            accepted = HttpSession::from_h2_conn(&mut connection, Arc::clone(&digest)) => accepted,
            // There is nobody to be told: the socket is closed.
            () = running.idle_for(connections.heads.silence_max), if !is_ending => return,
        };
        match accepted {
            Ok(Some(H2Accept::Session(session))) => {
                let application = Arc::clone(&connections.application);
                let (request, shutdown) = (running.enter(), shutdown.clone());
                current_handle().spawn(async move {
                    let _running = request;
                    application.process_new_http(ServerSession::new_http2(session), &shutdown).await;
                });
            }
            Ok(Some(H2Accept::Rejected)) if malformed < MALFORMED => malformed += 1,
            Ok(Some(H2Accept::Rejected) | None) | Err(_) => return,
        }
    }
}

/// The requests of one connection that are being handled.
#[derive(Debug, Default)]
struct Running {
    count: AtomicUsize,
    none: Notify,
}

/// One of them, until it is dropped.
struct Request(Arc<Running>);

impl Running {
    fn enter(self: &Arc<Self>) -> Request {
        self.count.fetch_add(1, Ordering::Relaxed);
        Request(Arc::clone(self))
    }

    /// Waits until there were none for so long.
    async fn idle_for(&self, silence: Duration) {
        while self.count.load(Ordering::Relaxed) != 0 {
            self.none.notified().await;
        }
        pingora_timeout::sleep(silence).await;
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        if self.0.count.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.none.notify_one();
        }
    }
}
