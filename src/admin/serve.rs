//! Connections of the admin listener, each within limits: it answers beside a proxy under full load, and nobody who is
//! slow there may hold it up.

use std::{pin::pin, sync::Arc, time::Duration};

use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, UnixListener},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{sleep, timeout},
};

use super::bind::AdminSocket;

/// Connections at once; further ones wait to be accepted.
const CONNECTIONS_MAX: usize = 64;
/// How long a head may take to arrive, and a connection may be idle before the next.
const HEAD_MAX: Duration = Duration::from_secs(30);
/// Bytes of a head.
const HEAD_BYTES: usize = 16 * 1024;
/// How long a connection lives, however busy: who does not read its answers does not keep it.
const CONNECTION_MAX: Duration = Duration::from_secs(300);
/// The time that the last answer has after that.
const LAST_ANSWER_MAX: Duration = Duration::from_secs(10);
/// The pause after a connection could not be accepted, for want of descriptors for example.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Who is at the other end of a connection, for the audit log.
#[derive(Clone, Debug)]
pub(super) struct Caller(pub(super) Arc<str>);

/// Serves for ever. Must be called on a runtime.
pub(super) async fn serve(socket: AdminSocket, router: Router) -> std::io::Result<()> {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    match socket {
        AdminSocket::Tcp(listener) => {
            let listener = TcpListener::from_std(listener)?;
            loop {
                let place = place(&places).await;
                match listener.accept().await {
                    Ok((stream, peer)) => connect(stream, peer.to_string(), place, &router),
                    Err(error) => pause(&error).await,
                }
            }
        }
        AdminSocket::Unix(listener) => {
            let listener = UnixListener::from_std(listener)?;
            loop {
                let place = place(&places).await;
                match listener.accept().await {
                    Ok((stream, _)) => {
                        let user = stream.peer_cred().map_or_else(|_| "?".to_owned(), |peer| peer.uid().to_string());
                        connect(stream, format!("user {user}"), place, &router);
                    }
                    Err(error) => pause(&error).await,
                }
            }
        }
    }
}

async fn place(places: &Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
    // It is never closed.
    Arc::clone(places).acquire_owned().await.ok()
}

async fn pause(error: &std::io::Error) {
    tracing::warn!(%error, "the admin listener cannot accept a connection");
    sleep(ACCEPT_PAUSE).await;
}

fn connect<S>(stream: S, caller: String, place: Option<OwnedSemaphorePermit>, router: &Router)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = TowerToHyperService::new(router.clone().layer(Extension(Caller(caller.into()))));
    tokio::spawn(async move {
        let mut connection = pin!(
            http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_MAX)
                .max_buf_size(HEAD_BYTES)
                .serve_connection(TokioIo::new(stream), service)
        );
        // How a connection ends is its client's own matter.
        if timeout(CONNECTION_MAX, connection.as_mut()).await.is_err() {
            connection.as_mut().graceful_shutdown();
            let _ = timeout(LAST_ANSWER_MAX, connection).await;
        }
        drop(place);
    });
}
