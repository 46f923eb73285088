//! Connections over TLS: a bounded handshake comes first.
//!
//! # Design
//!
//! *Why not pingora's own TLS listeners?* They build their handshakes once, so that client authorities could not be
//! changed, and give a client a minute. Only pingora's code for the handshake itself is used.

use std::sync::Arc;

use async_trait::async_trait;
use pingora::{
    apps::ServerApp,
    listeners::tls::Acceptor,
    protocols::{ALPN, GetSocketDigest as _, Stream, l4::stream::Stream as Connection},
    server::ShutdownWatch,
};
use tokio::time::timeout;

use super::{
    connections::Connections,
    protocols::{Protocol, spawn},
};
use crate::tls::Downstream;

/// A proxy whose clients choose HTTP/1.1 or HTTP/2 in the TLS handshake (ALPN, RFC 7301).
pub(super) struct Secure {
    connections: Arc<Connections>,
    tls: Arc<Downstream>,
}

impl Secure {
    /// Serves the same connections as protocol detection without TLS.
    pub(super) fn new(connections: Arc<Connections>, tls: Arc<Downstream>) -> Self {
        Self { connections, tls }
    }

    async fn shake_hands(&self, connection: Connection) -> Option<Stream> {
        let client = connection.get_socket_digest().and_then(|digest| digest.peer_addr().cloned());
        let client = client.as_ref().map(tracing::field::display);
        let acceptor = Acceptor::from_server_config(self.tls.handshakes());
        match timeout(self.tls.handshake_timeout(), acceptor.tls_handshake(connection)).await {
            Ok(Ok(stream)) => return Some(Box::new(stream)),
            Ok(Err(error)) => tracing::debug!(client, %error, "a TLS handshake failed"),
            Err(_) => tracing::debug!(client, "a TLS handshake took too long"),
        }
        None
    }
}

#[async_trait]
impl ServerApp for Secure {
    async fn process_new(self: &Arc<Self>, stream: Stream, shutdown: &ShutdownWatch) -> Option<Stream> {
        let place = self.connections.place(&stream)?;
        let secure = Arc::clone(self);
        spawn(&self.connections, shutdown, async move {
            let (stream, place) = secure.connections.identify(stream, place).await?;
            let connection = stream.into_any().downcast::<Connection>().ok()?;
            let stream = secure.shake_hands(*connection).await?;
            let has_chosen = matches!(stream.selected_alpn_proto(), Some(ALPN::H2));
            Some((if has_chosen { Protocol::Http2 } else { Protocol::Http1 }, stream, place))
        });
        None
    }
}
