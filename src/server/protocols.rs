//! The protocol of a connection, and the code that serves it.

use pingora::{protocols::Stream, server::ShutdownWatch};

use super::{connections::Connections, http1, http2, places::ConnectionPlace};

/// The protocol of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Http1,
    Http2,
}

/// Serves a connection to its end. By then, all answers have been written.
pub(super) async fn serve(
    connections: &Connections,
    protocol: Protocol,
    stream: Stream,
    place: ConnectionPlace,
    shutdown: &ShutdownWatch,
) {
    let _counted = connections.open.enter();
    match protocol {
        Protocol::Http1 => http1::serve(connections, stream, shutdown).await,
        // Boxed, so that connections of HTTP/1.1 need not make room for it.
        Protocol::Http2 => Box::pin(http2::serve(connections, stream, &place, shutdown)).await,
    }
}
