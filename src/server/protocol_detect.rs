//! The protocol of a new connection: HTTP/2 begins with a preface (RFC 9113 section 3.4), HTTP/1.1 with a method.
//!
//! # Design
//!
//! *Why not leave it to pingora?* Pingora waits for as many bytes as the preface has, 24, and without end. Whole
//! HTTP/1.0 requests, such as the health checks of load balancers, are shorter and were never answered. A silent
//! connection was never closed. Four bytes are enough: no request begins with `PRI `.

use std::sync::Arc;

use async_trait::async_trait;
use pingora::{apps::ServerApp, protocols::Stream, server::ShutdownWatch};
use pingora_timeout::timeout;

use super::{
    connections::Connections,
    protocols::{Protocol, spawn},
};

/// The beginning of the HTTP/2 preface.
const BEGINNING: [u8; 4] = *b"PRI ";

/// A proxy whose clients speak HTTP/1.1 or HTTP/2 on one port without TLS.
pub(super) struct ProtocolDetect(pub(super) Arc<Connections>);

#[async_trait]
impl ServerApp for ProtocolDetect {
    async fn process_new(self: &Arc<Self>, stream: Stream, shutdown: &ShutdownWatch) -> Option<Stream> {
        let place = self.0.place(&stream)?;
        let detect = Arc::clone(self);
        spawn(&self.0, shutdown, async move {
            let (mut stream, place) = detect.0.identify(stream, place).await?;
            let protocol = detect.protocol(&mut stream).await?;
            Some((protocol, stream, place))
        });
        None
    }
}

impl ProtocolDetect {
    /// Detects the protocol from the first bytes, without consuming them.
    async fn protocol(&self, stream: &mut Stream) -> Option<Protocol> {
        let mut first = [0];
        timeout(self.0.heads.silence_max, stream.try_peek(&mut first)).await.ok()?.ok()?;
        if first[0] != BEGINNING[0] {
            return Some(Protocol::Http1);
        }
        let mut beginning = [0; BEGINNING.len()];
        timeout(self.0.heads.time_max, stream.try_peek(&mut beginning)).await.ok()?.ok()?;
        Some(if beginning == BEGINNING { Protocol::Http2 } else { Protocol::Http1 })
    }
}
