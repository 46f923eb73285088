//! The unguarded path: pingora's own proxying, with every default that matters to writes said out loud.
//!
//! End-to-end fields pass as they came (RFC 9110 section 7.6), `Via` is appended both ways (section 7.6.3), and a
//! client's `Fencing-Token` is removed: upstreams trust that field, and only the proxy may write it.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderValue, Method, Version, header};
use pingora::{
    Error, ErrorType, OrErr as _,
    http::{RequestHeader, ResponseHeader},
    protocols::ALPN,
    upstreams::peer::{H1UpgradePolicy, HttpPeer, HttpUpstreamRequestPolicy},
};

use super::{context::Context, method};
use crate::config::{Route, Upstream};

/// How long a connection to an upstream may be idle in the pool: shorter than the keep-alive of common servers.
const POOL_IDLE: Duration = Duration::from_secs(55);
/// The field by which upstreams recognise the newest holder of a lease.
const FENCING_TOKEN: &str = "Fencing-Token";

/// The next server of the request's upstream: each request begins one further than the last one on its route, and each
/// retry goes on from there.
pub(super) async fn peer(
    routes: &[Arc<Route>],
    turns: &[AtomicUsize],
    context: &mut Context,
) -> pingora::Result<Box<HttpPeer>> {
    let no_server = || Error::explain(ErrorType::InternalError, "a request without a server");
    let route_index = context.route_index.ok_or_else(no_server)?;
    let upstream = &routes.get(route_index).ok_or_else(no_server)?.upstream;
    let turn = match context.turn {
        Some(turn) => turn.wrapping_add(context.attempts),
        None => turns.get(route_index).map_or(0, |next| next.fetch_add(1, Ordering::Relaxed)),
    };
    context.turn.get_or_insert(turn);
    context.attempts += 1;
    let index = turn.checked_rem(upstream.servers.len()).unwrap_or_default();
    let address = resolve(upstream.servers.get(index).ok_or_else(no_server)?).await?;
    context.entry.server = Some(address);
    Ok(Box::new(http_peer(address, upstream)))
}

/// The address of a server; names are looked up without blocking the worker thread.
async fn resolve(server: &str) -> pingora::Result<SocketAddr> {
    if let Ok(address) = server.parse() {
        return Ok(address);
    }
    let mut addresses = tokio::net::lookup_host(server)
        .await
        .or_err_with(ErrorType::ConnectNoRoute, || format!("the name of the server {server} cannot be looked up"))?;
    addresses
        .next()
        .ok_or_else(|| Error::explain(ErrorType::ConnectNoRoute, format!("the server {server} has no address")))
}

fn http_peer(address: SocketAddr, upstream: &Upstream) -> HttpPeer {
    let mut peer = HttpPeer::new(address, false, String::new());
    let options = &mut peer.options;
    options.connection_timeout = Some(upstream.connect_timeout);
    options.total_connection_timeout = Some(upstream.connect_timeout);
    options.read_timeout = Some(upstream.timeout);
    options.write_timeout = Some(upstream.timeout);
    options.idle_timeout = Some(POOL_IDLE);
    options.alpn = ALPN::H1;
    options.http_upstream_request_policy = HttpUpstreamRequestPolicy {
        strip_hop_by_hop: true,
        strip_connection_nominated: true,
        reject_malformed_connection_nominations: true,
        h1_upgrade: H1UpgradePolicy::WebSocketOnly,
    };
    peer
}

/// What the upstream sees differently from what the client sent.
pub(super) fn request_to_upstream(received: Version, request: &mut RequestHeader) -> pingora::Result<()> {
    request.remove_header(FENCING_TOKEN);
    request.append_header(header::VIA, via(received))?;
    Ok(())
}

/// What the client sees differently from what the upstream sent.
pub(super) fn response_from_upstream(response: &mut ResponseHeader) -> pingora::Result<()> {
    if !response.status.is_informational() {
        response.append_header(header::VIA, via(response.version))?;
    }
    Ok(())
}

/// The `Via` entry of a message that arrived in this version.
const fn via(received: Version) -> HeaderValue {
    HeaderValue::from_static(match received {
        Version::HTTP_10 => "1.0 ifmatch",
        Version::HTTP_2 => "2 ifmatch",
        _ => "1.1 ifmatch",
    })
}

/// Takes away an empty last chunk: pingora would end a chunked upload to an HTTP/1.1 upstream twice, and the stray
/// bytes would become the next request of that connection.
pub(super) fn request_body(body: &mut Option<Bytes>, end_of_stream: bool) {
    if end_of_stream && body.as_ref().is_some_and(Bytes::is_empty) {
        *body = None;
    }
}

/// Lets a connection that failed be tried at the next server, once each: nothing was sent.
pub(super) fn connect_failed(context: &Context, mut error: Box<Error>) -> Box<Error> {
    let servers = context.entry.route.as_ref().map_or(0, |route| route.upstream.servers.len());
    error.set_retry(context.attempts < servers);
    error
}

/// Whether an exchange that failed may be repeated: only a read, only on a pooled connection that was dead, and only
/// where its body can be sent again.
pub(super) fn exchange_failed(
    request: &RequestHeader,
    truncated: bool,
    reused: bool,
    mut error: Box<Error>,
) -> Box<Error> {
    let read =
        matches!(request.method, Method::GET | Method::HEAD | Method::OPTIONS) && !method::is_named(&request.headers);
    if read && !truncated {
        error.retry.decide_reuse(reused);
    } else {
        error.set_retry(false);
    }
    error
}
