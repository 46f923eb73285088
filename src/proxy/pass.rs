//! The unguarded path: pingora's own proxying, with every default that matters to writes made explicit.
//!
//! End-to-end fields pass unchanged (RFC 9110 section 7.6), and `Via` is appended in both directions (section 7.6.3).
//! A client's `Fencing-Token` is removed: upstreams trust that field, and only the proxy may write it.

use std::{io, sync::Arc};

use bytes::Bytes;
use http::{Method, Version, header};
use pingora::{
    Error, ErrorType,
    http::{RequestHeader, ResponseHeader},
    upstreams::peer::{H1UpgradePolicy, HttpPeer, HttpUpstreamRequestPolicy},
};

use super::{context::Context, handshake};
use crate::{
    config::{Balance, HashBy, Route, Upstream},
    core::{
        address::Address,
        client_address::ClientAddress,
        fields::{is_for_guard, is_ours},
        readings::method,
        target::{split_authority, split_query},
    },
    telemetry::exchange::ExchangeWatch,
    upstream::{
        Choice,
        balance::{self, Full, Occupant},
        fields::{FieldsOfHead, end_hop, remove_own, via},
        peer::{Resolver, peer},
        references::rewrite_references,
        trace,
    },
};

/// The error of a server whose connections are all in use, as opposed to one that cannot be reached.
pub(super) const OVERLOADED: ErrorType = ErrorType::Custom("overloaded");

/// The server that a request goes to next.
pub(super) struct NextServer {
    pub(super) upstream: Arc<Upstream>,
    /// The index of the server in [`Upstream::servers`].
    pub(super) server: usize,
    pub(super) address: Address,
}

/// Finds the addresses of the servers of unguarded requests.
#[derive(Debug)]
pub(super) struct ServerFinder(Resolver);

impl ServerFinder {
    pub(super) fn new() -> Self {
        Self(Resolver::new())
    }

    /// Returns the next server of a request as pingora connects to it.
    pub(super) async fn peer(&self, request: &RequestHeader, context: &mut Context) -> pingora::Result<Box<HttpPeer>> {
        let NextServer { upstream, server, address } = self.next(request, context).await?;
        let mut peer = http_peer(&upstream, upstream.servers.get(server).map_or("", String::as_str), &address)?;
        if request.headers.contains_key(header::UPGRADE) {
            // WebSocket begins with HTTP/1.1 (RFC 6455 section 4.1). Over HTTP/2 it would need another handshake.
            peer.options.set_http_version(1, 1);
        }
        Ok(Box::new(peer))
    }

    /// Returns the next server of a request. It proceeds through all addresses of all servers that are not down,
    /// beginning with the server that `balance` selects.
    pub(super) async fn next(&self, request: &RequestHeader, context: &mut Context) -> pingora::Result<NextServer> {
        let no_server = || Error::explain(ErrorType::InternalError, "a request without a server");
        let upstream = Arc::clone(&context.entry.route.as_ref().ok_or_else(no_server)?.upstream);
        let servers = context.serving.guards.upstreams().of(&upstream);
        if context.servers.is_none() {
            // In reverse order: the next server is at the end.
            let mut order = order(&servers, &upstream, request, context);
            order.reverse();
            context.servers = Some(order);
        }
        let occupant = occupant(context);
        let mut failure = Error::explain(ErrorType::ConnectNoRoute, "no server is up");
        loop {
            if let Some((server, address)) = context.server.zip(context.untried.pop()) {
                let name = upstream.servers.get(server).ok_or_else(no_server)?;
                let is_tls = upstream.tls.is_some();
                context.watch =
                    ExchangeWatch::begin_for(context.entry.info.clone(), name, is_tls, Some(address.clone()));
                context.entry.server = Some(address.clone());
                return Ok(NextServer { upstream, server, address });
            }
            // Freed before the request waits for the next server.
            context.slot = None;
            let untried = context.servers.get_or_insert_default();
            let takes_turns = upstream.balance == Balance::RoundRobin;
            let Some(server) = next(untried, &servers, (takes_turns, occupant)) else { return Err(failure) };
            let name = upstream.servers.get(server).ok_or_else(no_server)?;
            let slot = servers.slot(server, occupant, &upstream).await;
            context.slot = Some(slot.map_err(|Full| Error::explain(OVERLOADED, "all connections are in use"))?);
            context.server = Some(server);
            match self.0.addresses(name, upstream.connect_timeout).await {
                Ok(addresses) => context.untried.extend(addresses.as_slice().iter().rev().cloned()),
                Err(error) => {
                    servers.connected(server, false);
                    let is_late = error.kind() == io::ErrorKind::TimedOut;
                    let kind = if is_late { ErrorType::ConnectTimedout } else { ErrorType::ConnectNoRoute };
                    failure = Error::because(kind, "resolving a server's name", error);
                }
            }
        }
    }
}

/// Notes whether a connection to the server of a request succeeded.
pub(super) fn connected(context: &Context, succeeded: bool) {
    if let Some((route, server)) = context.entry.route.as_ref().zip(context.server) {
        context.serving.guards.upstreams().of(&route.upstream).connected(server, succeeded);
    }
}

/// Returns the servers of an upstream in the order in which a request tries them.
fn order(
    servers: &balance::UpstreamServers,
    upstream: &Upstream,
    request: &RequestHeader,
    context: &Context,
) -> Vec<usize> {
    if upstream.balance == Balance::RoundRobin {
        return servers.order(Choice::Turn);
    }
    let path = || {
        let (path, _) = split_query(request.raw_path());
        [upstream.identity.as_bytes(), b":", path].concat()
    };
    let hashed = match &upstream.hash_by {
        HashBy::Path => path(),
        HashBy::Client => context.client.map_or_else(path, |address| address.to_string().into_bytes()),
        HashBy::Header(name) => request.headers.get(name).map_or_else(path, |value| value.as_bytes().to_vec()),
    };
    servers.order(Choice::Hash(&hashed))
}

/// Returns who occupies a place at the server of a request. A trusted proxy that names no client brings those of many.
fn occupant(context: &Context) -> Occupant {
    let trusted = &context.serving.config.server.trusted_proxies;
    let client = context.client.filter(|client| !trusted.contains(Some(*client)));
    Occupant::Unguarded(client.map(|client| ClientAddress::from(Some(client))))
}

/// Removes and returns the next server: the first, or, if they take turns, the first with room for another request if
/// any.
fn next(
    untried: &mut Vec<usize>,
    servers: &balance::UpstreamServers,
    (takes_turns, occupant): (bool, Occupant),
) -> Option<usize> {
    let has_room = |server: &usize| takes_turns && servers.has_place(*server, occupant);
    let free = untried.iter().rposition(has_room);
    match free {
        Some(place) => Some(untried.remove(place)),
        None => untried.pop(),
    }
}

fn http_peer(upstream: &Upstream, server: &str, address: &Address) -> pingora::Result<HttpPeer> {
    let mut peer = peer(upstream, server, address)?;
    let options = &mut peer.options;
    options.read_timeout = Some(upstream.longest_wait());
    options.write_timeout = Some(upstream.write_timeout);
    options.idle_timeout = Some(upstream.connections.idle_timeout);
    options.http_upstream_request_policy = HttpUpstreamRequestPolicy {
        strip_hop_by_hop: true,
        strip_connection_nominated: true,
        reject_malformed_connection_nominations: true,
        h1_upgrade: H1UpgradePolicy::WebSocketOnly,
    };
    Ok(peer)
}

/// Makes the changes that the upstream sees in a request.
pub(super) fn request_to_upstream(
    received: Version,
    context: &mut Context,
    request: &mut RequestHeader,
) -> pingora::Result<()> {
    context.watch.asks(&request.method);
    trace(request, context.watch.trace_fields())?;
    request.remove_all(is_ours);
    if context.entry.route.as_ref().is_some_and(|route| route.guard.is_some()) {
        request.remove_all(|name| is_for_guard(name) && name != header::EXPECT);
    }
    if let Some(handshake) = &context.handshake {
        handshake::request_to_upstream(handshake, request)?;
    }
    if let Some(route) = context.entry.route.as_ref().filter(|route| !route.mapping.is_identity()) {
        map_request(request, route)?;
    }
    let server = context.entry.route.as_ref().zip(context.server);
    let server = server.and_then(|(route, server)| Some((route, route.upstream.servers.get(server)?)));
    if let Some(host) = server.and_then(|(route, name)| route.upstream.host_header.for_server(name)) {
        request.insert_header(header::HOST, host)?;
    }
    // Pingora turns an HTTP/1.0 request, which may lack Host, into HTTP/1.1 (RFC 9112 section 3.2).
    if let Some(server) = context.entry.server.as_ref().filter(|_| !request.headers.contains_key(header::HOST)) {
        request.insert_header(header::HOST, server.host())?;
    }
    request.append_header("Via", via(received))?;
    Ok(())
}

/// Gives the target, and the `Destination` of a COPY or MOVE (RFC 4918 section 10.3), the prefix that the upstream
/// uses.
fn map_request(request: &mut RequestHeader, route: &Route) -> pingora::Result<()> {
    let cannot = || Error::explain(ErrorType::InvalidHTTPHeader, "a target without the prefix of its route");
    let target = route.mapping.to_upstream(request.raw_path()).ok_or_else(cannot)?;
    request.set_raw_path(&target)?;
    let Some(destination) = request.headers.get("destination").and_then(|value| value.to_str().ok()) else {
        return Ok(());
    };
    if let Some((beginning, _, path)) = split_authority(destination)
        && let Some(path) = route.mapping.to_upstream(path.as_bytes())
    {
        let mapped = [beginning.as_bytes(), &path].concat();
        request.insert_header("Destination", mapped)?;
    }
    Ok(())
}

/// Makes the changes that the client sees in a response.
pub(super) fn response_from_upstream(
    client: &RequestHeader,
    context: &Context,
    response: &mut ResponseHeader,
) -> pingora::Result<()> {
    if context.entry.route.as_ref().is_some_and(|route| route.enforced().is_some()) {
        remove_own(response);
    }
    if !response.status.is_informational() {
        end_hop(response);
        if let Some(route) = &context.entry.route {
            rewrite_references(response, route, client)?;
        }
        response.append_header("Via", via(response.version))?;
    }
    Ok(())
}

/// Drops an empty last chunk. Pingora would end a chunked upload to an HTTP/1.1 upstream twice, and the stray bytes
/// would become the next request of that connection.
pub(super) fn request_body(body: &mut Option<Bytes>, end_of_stream: bool) {
    if end_of_stream && body.as_ref().is_some_and(Bytes::is_empty) {
        *body = None;
    }
}

/// Notes that the last address cannot be reached.
pub(super) fn failed_to_connect(context: &mut Context, error: &Error) {
    tell_of_insecure(context, error);
    if context.untried.is_empty() {
        connected(context, false);
    }
    context.watch.failed("connect");
}

/// Logs a connection that failed for its security. The reason is for the log alone.
fn tell_of_insecure(context: &Context, error: &Error) {
    if *error.etype() == ErrorType::TLSHandshakeFailure {
        let upstream = context.entry.route.as_ref().map(|route| route.upstream.name.as_str());
        let server = context.entry.server.as_ref().map(tracing::field::display);
        tracing::warn!(upstream, server, cause = %error, "no secure connection to the server");
    }
}

/// Whether another address may be tried after a failed connection. Each is tried once, and nothing was sent.
pub(super) fn may_connect_again(context: &Context) -> bool {
    !context.untried.is_empty() || context.servers.as_ref().is_some_and(|untried| !untried.is_empty())
}

/// Makes a request that is sent again begin with the server that it went to.
pub(super) fn stay(context: &mut Context) {
    if let (Some(server), Some(untried)) = (context.server, &mut context.servers) {
        context.untried.clear();
        untried.push(server);
    }
}

/// Whether a request of HTTP/1.1 is a GET or HEAD without content, `Upgrade` or `Expect`.
pub(super) fn is_plain_read(request: &RequestHeader) -> bool {
    let more = [header::CONTENT_LENGTH, header::TRANSFER_ENCODING, header::UPGRADE, header::EXPECT];
    request.version == Version::HTTP_11
        && matches!(request.method, Method::GET | Method::HEAD)
        && !more.iter().any(|name| request.headers.contains_key(name))
        && !method::is_named(&request.headers, request.raw_path())
}

/// Whether a failed exchange on a dead pooled connection may be repeated: only a read, and only if its body can be
/// sent again.
pub(super) fn may_send_again(request: &RequestHeader, body_truncated: bool) -> bool {
    let read = matches!(request.method, Method::GET | Method::HEAD | Method::OPTIONS);
    read && !body_truncated && !method::is_named(&request.headers, request.raw_path())
}
