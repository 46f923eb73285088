//! Connections of the admin listener, each within limits: the listener answers beside a proxy under full load, and a
//! slow client must not hold it up.
//!
//! # Design
//!
//! *Which connection waits when all places are taken?* None: the connection that has had no request for the longest
//! time makes room. A probe sends its request as soon as it is connected, and clients that only connect would otherwise
//! keep it out forever.
//!
//! *What if the process has no descriptor left?* The listener keeps some open in reserve: it closes one, and the
//! connection gets its number.

use std::{fs::File, io, pin::pin, sync::Arc, time::Duration};

use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use parking_lot::Mutex;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, UnixListener},
    task::AbortHandle,
    time::{Instant, sleep, timeout},
};

use super::bind::AdminSocket;

/// The number of connections at once; a further one takes the place of another.
const CONNECTIONS_MAX: usize = 64;
/// How long a head may take to arrive, and how long a connection may be idle before it: probes and tools send at once.
const HEAD_MAX: Duration = Duration::from_secs(5);
/// The largest request head, in bytes.
const HEAD_BYTES: usize = 16 * 1024;
/// The longest life of a connection, even a busy one: a client that does not read its answers must not hold it.
const CONNECTION_MAX: Duration = Duration::from_secs(300);
/// How long the last answer may take after that.
const LAST_ANSWER_MAX: Duration = Duration::from_secs(10);
/// The pause after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// The number of descriptors in reserve for connections when no others are left: a probe or two, and an operator.
const SPARES: usize = 8;

/// The peer of a connection, for the audit log.
#[derive(Clone, Debug)]
pub(super) struct Caller(pub(super) Arc<str>);

/// Serves forever. Must be called on a runtime.
pub(super) async fn serve(socket: AdminSocket, router: Router) -> io::Result<()> {
    let mut connections = AdminConnections { router, lines: Vec::new(), spares: Spares::default() };
    connections.spares.refill();
    match socket {
        AdminSocket::Tcp(listener) => {
            let listener = TcpListener::from_std(listener)?;
            loop {
                match listener.accept().await {
                    Ok((stream, peer)) => connections.connect(stream, peer.to_string()),
                    Err(error) => connections.make_room(&error).await,
                }
            }
        }
        AdminSocket::Unix(listener) => {
            let listener = UnixListener::from_std(listener)?;
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => {
                        let user = stream.peer_cred().map_or_else(|_| "?".to_owned(), |peer| peer.uid().to_string());
                        connections.connect(stream, format!("user {user}"));
                    }
                    Err(error) => connections.make_room(&error).await,
                }
            }
        }
    }
}

/// How a connection is used, which decides whether it makes room for another.
#[derive(Clone, Debug)]
pub(super) struct AdminConnection(Arc<Mutex<ConnectionUse>>);

#[derive(Debug)]
struct ConnectionUse {
    answers: usize,
    since: Instant,
}

/// An answer in progress, until this value is dropped.
#[derive(Debug)]
pub(super) struct Answering(AdminConnection);

impl AdminConnection {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(ConnectionUse { answers: 0, since: Instant::now() })))
    }

    /// Counts an answer as in progress on this connection.
    pub(super) fn answer(&self) -> Answering {
        self.change(1);
        Answering(self.clone())
    }

    fn change(&self, by: isize) {
        let mut used = self.0.lock();
        *used = ConnectionUse { answers: used.answers.saturating_add_signed(by), since: Instant::now() };
    }

    /// Returns the rank of a connection. The least goes first: idle ones before busy ones, and the oldest among them.
    fn order(&self) -> (bool, Instant) {
        let used = self.0.lock();
        (used.answers > 0, used.since)
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.change(-1);
    }
}

/// All connections, and the descriptors in reserve for further ones.
struct AdminConnections {
    router: Router,
    lines: Vec<(AdminConnection, AbortHandle)>,
    spares: Spares,
}

/// Descriptors held open in reserve, until the process has no others.
#[derive(Clone, Debug, Default)]
struct Spares(Arc<Mutex<Vec<File>>>);

impl Spares {
    fn refill(&self) {
        let mut spares = self.0.lock();
        while spares.len() < SPARES
            && let Ok(spare) = File::open("/dev/null")
        {
            spares.push(spare);
        }
    }

    /// Closes one descriptor; returns false if there was none.
    fn give(&self) -> bool {
        self.0.lock().pop().is_some()
    }
}

/// Returns a connection's descriptor to the reserve when the connection has ended, before it can be used for another.
struct Refill(Spares);

impl Drop for Refill {
    fn drop(&mut self) {
        self.0.refill();
    }
}

impl AdminConnections {
    fn connect<S>(&mut self, stream: S, caller: String)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        self.lines.retain(|(_, task)| !task.is_finished());
        if self.lines.len() >= CONNECTIONS_MAX {
            self.end_one();
        }
        let line = AdminConnection::new();
        let router = self.router.clone().layer(Extension(Caller(caller.into()))).layer(Extension(line.clone()));
        let refill = Refill(self.spares.clone());
        let task = tokio::spawn(async move {
            // Dropped after the connection, no matter how the connection ends.
            let _refill = refill;
            converse(stream, router).await;
        });
        self.lines.push((line, task.abort_handle()));
    }

    /// Ends the connection that has been unused for the longest time.
    fn end_one(&mut self) {
        let oldest = self.lines.iter().enumerate().min_by_key(|(_, (line, _))| line.order()).map(|(place, _)| place);
        if let Some(oldest) = oldest {
            self.lines.swap_remove(oldest).1.abort();
        }
    }

    /// Makes room after a connection could not be accepted, for example for want of descriptors.
    async fn make_room(&mut self, error: &io::Error) {
        if self.spares.give() {
            return;
        }
        tracing::warn!(%error, "the admin listener cannot accept a connection");
        self.end_one();
        sleep(ACCEPT_PAUSE).await;
    }
}

async fn converse<S>(stream: S, router: Router)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut connection = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_MAX)
            .max_buf_size(HEAD_BYTES)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
    );
    // How a connection ends concerns only its client.
    if timeout(CONNECTION_MAX, connection.as_mut()).await.is_err() {
        connection.as_mut().graceful_shutdown();
        let _ = timeout(LAST_ANSWER_MAX, connection).await;
    }
}
