//! The protocol of a connection, and the code that serves it.
//!
//! # Design
//!
//! *Why a task of its own?* Pingora's task for a new connection has room for a TLS handshake, 8 KiB, until the connection
//! ends. It ends here as soon as the connection has its place.

use std::sync::Arc;

use pingora::{protocols::Stream, server::ShutdownWatch};

use super::{connections::Connections, http1, http2, places::ConnectionPlace};

/// The protocol of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Http1,
    Http2,
}

/// Serves a connection to its end in a task of its own. `detected` is the connection with its protocol and its place, or
/// nothing if the client has gone before.
pub(super) fn spawn(
    connections: &Arc<Connections>,
    shutdown: &ShutdownWatch,
    detected: impl Future<Output = Option<(Protocol, Stream, ConnectionPlace)>> + Send + 'static,
) {
    let (connections, shutdown) = (Arc::clone(connections), shutdown.clone());
    // Boxed, because it ends long before the connection does.
    let detected = Box::pin(detected);
    tokio::spawn(async move {
        if let Some((protocol, stream, place)) = detected.await {
            serve(&connections, protocol, stream, &place, &shutdown).await;
        }
    });
}

/// Serves a connection to its end. By then, all answers have been written.
async fn serve(
    connections: &Connections,
    protocol: Protocol,
    stream: Stream,
    place: &ConnectionPlace,
    shutdown: &ShutdownWatch,
) {
    let _counted = connections.open.enter();
    match protocol {
        Protocol::Http1 => http1::serve(connections, stream, shutdown).await,
        // Boxed, so that connections of HTTP/1.1 need not make room for it.
        Protocol::Http2 => Box::pin(http2::serve(connections, stream, place, shutdown)).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::size_of_future;

    /// The memory of a connection in its task, no matter what it waits for.
    #[test]
    fn an_idle_connection_takes_little_memory() {
        type Parts = (&'static Connections, Protocol, Stream, &'static ConnectionPlace, &'static ShutdownWatch);
        let bytes = size_of_future(|(connections, protocol, stream, place, shutdown): Parts| {
            serve(connections, protocol, stream, place, shutdown)
        });
        assert!(bytes <= 832, "{bytes}");
    }
}
