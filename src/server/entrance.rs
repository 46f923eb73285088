//! Which protocol a new connection speaks: HTTP/2 begins with a preface (RFC 9113 section 3.4), HTTP/1.1 with a method.
//!
//! # Design
//!
//! *Why not leave it to pingora?* It waits for as many bytes as the preface has, 24, and without end. Whole HTTP/1.0
//! requests are shorter, such as the health checks of load balancers, and were never answered; and a connection on
//! which nothing comes was never closed. Four bytes tell as much: `PRI ` is the beginning of no request.

use std::{io, pin::Pin, sync::Arc, time::Duration};

use async_trait::async_trait;
use pingora::{
    apps::{HttpServerApp, HttpServerOptions, ReusedHttpStream, ServerApp},
    protocols::{
        Stream,
        http::{ServerSession, v2::server::H2Options},
    },
    server::ShutdownWatch,
};
use tokio::time::timeout;

use super::InFlight;

/// What the preface of HTTP/2 begins with.
const BEGINNING: [u8; 4] = *b"PRI ";
/// How long the preface is.
const PREFACE_BYTES: usize = 24;

/// An application whose clients speak HTTP/1.1 or HTTP/2 on one port without TLS.
pub(super) struct Entrance<A> {
    http1: Arc<Speaking<A>>,
    http2: Arc<Speaking<A>>,
    /// How long a connection may be silent before its first bytes.
    silence_max: Duration,
}

/// An application for connections whose protocol is known.
pub(super) struct Speaking<A> {
    application: Arc<A>,
    options: HttpServerOptions,
    /// Counts its connections.
    connections: InFlight,
}

impl<A> Entrance<A> {
    /// An entrance that counts the connections whose protocol is known among `connections`.
    pub(super) fn new(
        application: A,
        options: &HttpServerOptions,
        silence_max: Duration,
        connections: &InFlight,
    ) -> Self {
        let application = Arc::new(application);
        let speaking = |h2c| {
            let mut options = options.clone();
            options.h2c = h2c;
            Arc::new(Speaking { application: Arc::clone(&application), options, connections: connections.clone() })
        };
        Self { http1: speaking(false), http2: speaking(true), silence_max }
    }

    /// The application for connections that have chosen their protocol with the handshake of TLS.
    pub(super) fn negotiated(&self) -> Arc<Speaking<A>> {
        Arc::clone(&self.http1)
    }
}

#[async_trait]
impl<A: HttpServerApp + Send + Sync + 'static> ServerApp for Entrance<A> {
    async fn process_new(self: &Arc<Self>, mut stream: Stream, shutdown: &ShutdownWatch) -> Option<Stream> {
        let speaks_http2 = timeout(self.silence_max, speaks_http2(&mut stream)).await.ok()?.ok()?;
        let application = if speaks_http2 { &self.http2 } else { &self.http1 };
        application.serve(stream, shutdown).await
    }

    async fn cleanup(&self) {
        self.http1.cleanup().await;
    }
}

/// Looks at the first bytes and leaves them where they are.
async fn speaks_http2(stream: &mut Stream) -> io::Result<bool> {
    let mut beginning = [0; BEGINNING.len()];
    stream.try_peek(&mut beginning).await?;
    if beginning != BEGINNING {
        return Ok(false);
    }
    // Pingora will look at the whole of it, and wait for it without end.
    stream.try_peek(&mut [0; PREFACE_BYTES]).await
}

impl<A: HttpServerApp + Send + Sync + 'static> Speaking<A> {
    /// Serves a connection to its end: what was answered is written by then.
    pub(super) async fn serve(self: &Arc<Self>, stream: Stream, shutdown: &ShutdownWatch) -> Option<Stream> {
        let _counted = self.connections.enter();
        self.process_new(stream, shutdown).await
    }
}

#[async_trait]
impl<A: HttpServerApp + Send + Sync + 'static> HttpServerApp for Speaking<A> {
    /// What the macro makes of the trait, spelled out: each request would have a second future around its own.
    fn process_new_http<'life0, 'life1, 'async_trait>(
        self: &'life0 Arc<Self>,
        session: ServerSession,
        shutdown: &'life1 ShutdownWatch,
    ) -> Pin<Box<dyn Future<Output = Option<ReusedHttpStream>> + Send + 'async_trait>>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        Self: 'async_trait,
    {
        self.application.process_new_http(session, shutdown)
    }

    fn h2_options(&self) -> Option<H2Options> {
        self.application.h2_options()
    }

    fn server_options(&self) -> Option<&HttpServerOptions> {
        Some(&self.options)
    }

    async fn http_cleanup(&self) {
        self.application.http_cleanup().await;
    }
}
