//! The protocol of a connection, and who serves it.

use pingora::{apps::HttpServerApp, protocols::Stream, server::ShutdownWatch};

use super::{connections::Connections, http1, http2, places::ConnectionPlace};

/// What a connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Http1,
    Http2,
}

/// Serves a connection to its end: what was answered is written by then.
pub(super) async fn serve<A>(
    connections: &Connections<A>,
    protocol: Protocol,
    stream: Stream,
    place: ConnectionPlace,
    shutdown: &ShutdownWatch,
) where
    A: HttpServerApp + Send + Sync + 'static,
{
    let _counted = connections.open.enter();
    match protocol {
        Protocol::Http1 => http1::serve(connections, stream, shutdown).await,
        Protocol::Http2 => http2::serve(connections, stream, &place, shutdown).await,
    }
}
