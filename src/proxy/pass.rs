//! The unguarded path: pingora's own proxying, with every default that matters to writes said out loud.
//!
//! End-to-end fields pass as they came (RFC 9110 section 7.6), `Via` is appended both ways (section 7.6.3), and a
//! client's `Fencing-Token` is removed: upstreams trust that field, and only the proxy may write it.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderName, Method, Version, header};
use pingora::{
    Error, ErrorType,
    http::{RequestHeader, ResponseHeader},
    upstreams::peer::{H1UpgradePolicy, HttpPeer, HttpUpstreamRequestPolicy},
};

use super::{context::Context, method};
use crate::{
    config::Upstream,
    exchange::{
        Address,
        fields::{Head, end_hop, via},
        peer::{Resolver, peer},
    },
};

/// How long a connection to an upstream may be idle in the pool: shorter than the keep-alive of common servers.
const POOL_IDLE: Duration = Duration::from_secs(55);
/// The field by which upstreams recognise the newest holder of a lease.
static FENCING_TOKEN: HeaderName = HeaderName::from_static("fencing-token");

/// The field by which a client proves its lease to the guard; upstreams never see it.
static LEASE_ID: HeaderName = HeaderName::from_static("lease-id");

/// What spreads requests over the servers of upstreams.
#[derive(Debug)]
pub(super) struct Servers {
    resolver: Resolver,
    /// For each route, the server that its next request begins with.
    turns: Vec<AtomicUsize>,
}

impl Servers {
    /// That of so many routes.
    pub(super) fn new(routes: usize) -> Self {
        Self { resolver: Resolver::new(), turns: (0..routes).map(|_| AtomicUsize::new(0)).collect() }
    }

    /// The next peer of a request: each request begins one server further than the last one on its route, and goes on
    /// through all addresses of all servers.
    pub(super) async fn peer(&self, context: &mut Context, upgrade: bool) -> pingora::Result<Box<HttpPeer>> {
        let no_server = || Error::explain(ErrorType::InternalError, "a request without a server");
        let (route_index, route) = context.route_index.zip(context.entry.route.clone()).ok_or_else(no_server)?;
        let upstream = &route.upstream;
        let next_turn = || self.turns.get(route_index).map_or(0, |next| next.fetch_add(1, Ordering::Relaxed));
        let turn = *context.turn.get_or_insert_with(next_turn);
        let (server, address) = loop {
            let at = |tried: usize| turn.wrapping_add(tried).checked_rem(upstream.servers.len());
            let server = |tried| at(tried).and_then(|index| upstream.servers.get(index)).ok_or_else(no_server);
            if let Some(address) = context.untried.pop() {
                break (server(context.servers_tried.saturating_sub(1))?, address);
            }
            let server = server(context.servers_tried)?;
            context.servers_tried += 1;
            match self.resolver.addresses(server, upstream.connect_timeout).await {
                Ok(addresses) => context.untried.extend(addresses.as_slice().iter().rev().cloned()),
                Err(_) if context.servers_tried < upstream.servers.len() => {}
                Err(error) => return Err(Error::because(ErrorType::ConnectNoRoute, "a server's name", error)),
            }
        };
        let mut peer = http_peer(upstream, server, &address)?;
        if upgrade {
            // WebSocket begins with HTTP/1.1 (RFC 6455 section 4.1); over HTTP/2 it would need another handshake.
            peer.options.set_http_version(1, 1);
        }
        context.entry.server = Some(address);
        Ok(Box::new(peer))
    }
}

fn http_peer(upstream: &Upstream, server: &str, address: &Address) -> pingora::Result<HttpPeer> {
    let mut peer = peer(upstream, server, address)?;
    let options = &mut peer.options;
    options.read_timeout = Some(upstream.timeout);
    options.write_timeout = Some(upstream.timeout);
    options.idle_timeout = Some(POOL_IDLE);
    options.http_upstream_request_policy = HttpUpstreamRequestPolicy {
        strip_hop_by_hop: true,
        strip_connection_nominated: true,
        reject_malformed_connection_nominations: true,
        h1_upgrade: H1UpgradePolicy::WebSocketOnly,
    };
    Ok(peer)
}

/// What the upstream sees differently from what the client sent.
pub(super) fn request_to_upstream(
    received: Version,
    context: &Context,
    request: &mut RequestHeader,
) -> pingora::Result<()> {
    request.remove(&FENCING_TOKEN);
    if context.entry.route.as_ref().is_some_and(|route| route.guard.is_some()) {
        request.remove(&LEASE_ID);
    }
    // Pingora makes HTTP/1.1 of an HTTP/1.0 request, which may have no Host (RFC 9112 section 3.2).
    if let Some(server) = context.entry.server.as_ref().filter(|_| !request.headers.contains_key(header::HOST)) {
        request.insert_header(header::HOST, server.host())?;
    }
    request.append_header("Via", via(received))?;
    Ok(())
}

/// What the client sees differently from what the upstream sent.
pub(super) fn response_from_upstream(response: &mut ResponseHeader) -> pingora::Result<()> {
    if !response.status.is_informational() {
        end_hop(response);
        response.append_header("Via", via(response.version))?;
    }
    Ok(())
}

/// Takes away an empty last chunk: pingora would end a chunked upload to an HTTP/1.1 upstream twice, and the stray
/// bytes would become the next request of that connection.
pub(super) fn request_body(body: &mut Option<Bytes>, end_of_stream: bool) {
    if end_of_stream && body.as_ref().is_some_and(Bytes::is_empty) {
        *body = None;
    }
}

/// Tells of a connection that failed for its security: its reason is for the log alone.
pub(super) fn tell_of_insecure(context: &Context, error: &Error) {
    if *error.etype() == ErrorType::TLSHandshakeFailure {
        let upstream = context.entry.route.as_ref().map(|route| route.upstream.name.as_str());
        let server = context.entry.server.as_ref().map(tracing::field::display);
        tracing::warn!(upstream, server, cause = %error, "no secure connection to the server");
    }
}

/// Whether a connection that failed may be followed by one to the next address, each once: nothing was sent.
pub(super) fn may_connect_again(context: &Context) -> bool {
    let servers = context.entry.route.as_ref().map_or(0, |route| route.upstream.servers.len());
    !context.untried.is_empty() || context.servers_tried < servers
}

/// Whether an exchange that failed may be repeated where it rode on a pooled connection that was dead: only a read, and
/// only where its body can be sent again.
pub(super) fn may_send_again(request: &RequestHeader, body_truncated: bool) -> bool {
    let read = matches!(request.method, Method::GET | Method::HEAD | Method::OPTIONS);
    read && !body_truncated && !method::is_named(&request.headers)
}
