//! Requests that are forwarded as they came, each direction as it arrives.

use std::sync::Arc;

use http::{Method, StatusCode};
use pingora::http::RequestHeader;

use super::{Gateway, context::Context, entry, pass};
use crate::{
    body::Client as _,
    box_future::box_future,
    config::{Balance, HashBy, Upstream},
    core::{
        http::{
            client_address::ClientAddress, expectation::expects_continue, readings::method, request_target::split_query,
        },
        refusal::Refusal,
    },
    downstream::{
        relay::{Outgoing, relay_interim},
        session::ClientSession,
        upload::ClientUpload,
    },
    guard::{Relayed, of_forwarded, of_head},
    telemetry::stream_info,
    upstream::{
        BodyPrefix, Choice, Connected, Exchange, Following, Lost, Occupant, Purpose, Streamed, StreamedHead, Wanted,
        fields::{is_bodiless, opens_websocket},
    },
};

impl Gateway {
    /// Sends a request to a server, and returns its answer. The rest of the request follows while the answer is sent.
    pub(super) async fn forward(
        &self,
        session: &mut ClientSession,
        context: &mut Context,
    ) -> pingora::Result<Outgoing> {
        let info = context.entry.info.clone();
        // Boxed, because a future that moves is copied, with room for all of its states.
        let begun = stream_info::along(info.as_ref(), box_future(|| exchange(session, context))).await?;
        let exchange = match begun {
            Ok(exchange) => exchange,
            Err(refusal) => return entry::answered(session, context, Err(refusal)),
        };
        if self.live.ends() {
            session.end_connection();
        }
        match context.refused_handshake(exchange.head().status) {
            Some(handshake) => {
                exchange.discard().await;
                let serving = Arc::clone(&context.serving);
                entry::guard(&serving, session, context, &handshake.request).await
            }
            None => answer(session, context, exchange).await,
        }
    }
}

/// Begins the exchange with a server. A read whose idle connection turns out to be dead is sent once more. The outer error
/// is one of the client.
async fn exchange(session: &mut ClientSession, context: &mut Context) -> pingora::Result<Result<Exchange, Refusal>> {
    let Some(upstream) = context.entry.route.as_ref().map(|route| Arc::clone(&route.upstream)) else {
        return Err(pingora::Error::explain(pingora::ErrorType::InternalError, "a request without a route"));
    };
    let is_safe = session.request().method.is_safe();
    let may_repeat = may_send_again(session);
    let hashed = hashed(&upstream, session.request(), context);
    let serving = Arc::clone(&context.serving);
    let wanted = Wanted {
        choice: hashed.as_deref().map_or(Choice::Turn, Choice::Hash),
        purpose: if may_repeat { Purpose::Read } else { Purpose::Write },
        occupant: occupant(context),
        opens_tunnel: opens_websocket(session.request()),
    };
    let mut connected = serving.guards.exchanger().connect_for(&upstream, wanted).await;
    loop {
        let connection = match connected {
            Ok(connection) => connection,
            Err(failure) => return Ok(Err(of_forwarded(failure, is_safe))),
        };
        context.entry.server = Some(connection.address().clone());
        context.is_sent = true;
        let (server, was_idle) = (connection.server(), connection.is_reused());
        let head = match pass::request_to_upstream(session, context) {
            Ok(head) => head,
            Err(error) => return Ok(Err(of_head(&error))),
        };
        match ask(session, connection, head).await? {
            Err(lost) if lost.connection_died && was_idle && may_repeat => {
                connected = serving.guards.exchanger().connect_again(&upstream, wanted, server).await;
            }
            outcome => {
                let begun = outcome.and_then(Streamed::into_exchange);
                return Ok(begun.map_err(|lost| of_forwarded(lost.failure, is_safe)));
            }
        }
    }
}

/// Sends a request on a connection, and relays what comes before its final response. A read waits as long as its client
/// does. The outer error is one of the client.
async fn ask(
    session: &mut ClientSession,
    connected: Box<Connected>,
    head: Box<RequestHeader>,
) -> pingora::Result<Result<Streamed, Lost>> {
    let is_expected = expects_continue(session.request().version, &session.request().headers);
    let mut upload = ClientUpload::of(session);
    let first = if is_expected { None } else { upload.at_once(session).transpose()?.flatten() };
    let following = match &first {
        Some(_) if upload.is_ending() => Following::AtOnce,
        _ if upload.is_open() => Following::Later,
        _ => Following::Nothing,
    };
    let mut streamed = match connected.begin(head, following).await {
        Ok(streamed) => streamed,
        Err(lost) => return Ok(Err(lost)),
    };
    if first.is_some() {
        streamed.send(first).await;
    }
    if is_expected && streamed.is_http2() {
        session.invite_content().await?;
    }
    loop {
        let is_wanted = streamed.is_open();
        tokio::select! {
            biased;
            head = streamed.next_head() => match head {
                Ok(StreamedHead::Interim(head)) => relay_interim(session, head).await?,
                Ok(StreamedHead::Final) => return Ok(Ok(streamed)),
                Err(lost) => return Ok(Err(lost)),
            },
            piece = upload.next(session, is_wanted) => streamed.send(piece?).await,
        }
    }
}

/// Makes the answer of the exchange that has begun.
async fn answer(
    session: &mut ClientSession,
    context: &mut Context,
    mut exchange: Exchange,
) -> pingora::Result<Outgoing> {
    let mut head = exchange.take_head();
    if let Some(observation) = &mut context.observation {
        observation.response(head.status, &head.headers);
    }
    if tells_outcome(head.status) {
        context.end_write();
    }
    // A server that knows the length may answer before it gets the end of the request.
    if exchange.is_open() && session.is_read() && head.status != StatusCode::SWITCHING_PROTOCOLS {
        let _ = exchange.send(None).await;
    }
    let is_bodiless = is_bodiless(&session.request().method, &head);
    pass::response_from_upstream(session.request(), context, &mut head)?;
    let rest = if is_bodiless && !exchange.is_open() {
        // Released first, so that the client's next request finds the connection and the slot.
        exchange.finish().await;
        None
    } else {
        Some(exchange)
    };
    Ok(Outgoing::Forwarded(Box::new(Relayed { head, begun: BodyPrefix::default(), rest })))
}

/// True if the upstream has finished a write that it answers with this status (DESIGN, section 3, rule 3).
fn tells_outcome(status: StatusCode) -> bool {
    !status.is_informational() && !matches!(status, StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT)
}

/// True if a request may be sent again on another connection: only a read, and only without content.
fn may_send_again(session: &ClientSession) -> bool {
    let request = session.request();
    let is_read = matches!(request.method, Method::GET | Method::HEAD | Method::OPTIONS);
    is_read && !method::is_named(&request.headers, request.raw_path()) && session.is_empty()
}

/// Returns what the server of a request is chosen by, if servers do not take turns.
fn hashed(upstream: &Upstream, request: &RequestHeader, context: &Context) -> Option<Vec<u8>> {
    if upstream.balance == Balance::RoundRobin {
        return None;
    }
    let path = || {
        let (path, _) = split_query(request.raw_path());
        [upstream.identity.as_bytes(), b":", path].concat()
    };
    Some(match &upstream.hash_by {
        HashBy::Path => path(),
        HashBy::Client => context.entry.client_address.map_or_else(path, |address| address.to_string().into_bytes()),
        HashBy::Header(name) => request.headers.get(name).map_or_else(path, |value| value.as_bytes().to_vec()),
    })
}

/// Returns who occupies a place at the server of a request. A trusted proxy that names no client brings those of many.
fn occupant(context: &Context) -> Occupant {
    let trusted = &context.serving.config.server.trusted_proxies;
    let client = context.entry.client_address.filter(|client| !trusted.contains(Some(*client)));
    Occupant::Unguarded(client.map(|client| ClientAddress::from(Some(client))))
}
