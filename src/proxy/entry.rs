//! A request's entry and exit: its setup, the decision of the door, and the work that is left at its end.

use std::{sync::Arc, time::Duration};

use http::{HeaderName, header};
use pingora::{
    Error,
    proxy::{FailToProxy, Session},
};

use super::{
    context::Context,
    failure,
    handshake::{self, Handshake},
    observe::{Observation, Observer},
    target,
};
use crate::{
    config::Route,
    core::{
        fields::{Underscores, is_second_spelling},
        policy::Dialect,
        refusal::{Code, Refusal},
    },
    downstream::{client, relay, respond},
    drain::{Pass, Retired},
    generation::{Live, Serving},
    routing::{
        GuardedRequest,
        door::{self, Door, Head},
        method,
    },
    telemetry::{self, access::ClientExchange, stream_info},
    upstream::fields::{FieldsOfHead as _, end_nominated, say_length_once},
};

/// How long a client may take to receive a piece of its response.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);

/// Sets limits on the connection, and lets a write finish after its client has gone.
pub(super) fn prepare(session: &mut Session, keepalive_timeout: Duration) {
    // Without this, an idle HTTP/1.1 connection is kept for ever. Pingora reads 0 seconds as the same.
    if session.get_keepalive().is_some() {
        session.set_keepalive(Some(keepalive_timeout.as_secs()).filter(|&seconds| seconds > 0));
    }
    session.set_write_timeout(Some(WRITE_TIMEOUT));
    if !session.req_header().method.is_safe() {
        session.set_abort_on_close(false);
    }
}

/// Makes the next answer the last one of its connection, and announces it (RFC 9112 section 9.6). This has no effect
/// over HTTP/2, whose connection announces its own end.
pub(super) fn end_connection(session: &mut Session) {
    session.set_keepalive(None);
}

/// Sends a request through the door. Returns true if it was answered.
pub(super) async fn enter(
    live: &Live,
    observer: &Observer,
    session: &mut Session,
    context: &mut Context,
) -> pingora::Result<bool> {
    telemetry::begin(&mut context.entry, &session.req_header().headers);
    let most = context.serving.config.server.max_target_bytes;
    let origin_form = target::check_length(session.req_header(), most)
        .and_then(|()| target::to_origin_form(session.req_header_mut()));
    let (serving, door) = loop {
        let serving = Arc::clone(&context.serving);
        if serving.config.server.underscores == Underscores::Drop {
            let is_dropped = |name: &HeaderName| name.as_str().contains('_') && !is_second_spelling(name);
            session.req_header_mut().remove_all(is_dropped);
        }
        let door = origin_form.clone().and_then(|()| decide(&serving, session));
        let door = door.unwrap_or_else(|refusal| Door::Refuse { refusal, route_index: None });
        match pass_gate(&serving, &door, session).await {
            Ok(pass) => {
                context.pass = pass;
                break (serving, door);
            }
            // Nothing was done with the request yet, so it may begin anew.
            Err(Retired) => context.serving = live.serving(),
        }
    };
    let routes = serving.routes();
    let is_refused = matches!(door, Door::Refuse { .. });
    if let Some(route) = door.route_index().filter(|_| !is_refused).and_then(|index| routes.get(index)) {
        // From here on, the proxy judges the request that the upstream receives.
        end_nominated(session.req_header_mut());
        say_length_once(session.req_header_mut())?;
        let trusted = &serving.config.server.trusted_proxies;
        context.client = client::address(session, trusted);
        client::tell(session, &route.upstream, trusted)?;
    }
    match door {
        Door::Refuse { refusal, route_index } => {
            if live.ends() {
                end_connection(session);
            }
            context.entry.route = route_index.and_then(|index| routes.get(index)).cloned();
            refuse(session, context, refusal).await?;
            Ok(true)
        }
        Door::Pass { route_index, upgrade } => {
            if !upgrade {
                session.req_header_mut().remove_header(&header::UPGRADE);
            }
            context.entry.route = routes.get(route_index).cloned();
            context.entry.verdict = Some("passed");
            context.route_index = Some(route_index);
            Ok(false)
        }
        Door::Observed { route_index, would } => {
            context.entry.route = routes.get(route_index).cloned();
            context.entry.verdict = Some("observed");
            context.route_index = Some(route_index);
            context.observation = observe(observer, routes.get(route_index), would, session);
            Ok(false)
        }
        Door::Guarded(request) => guard(&serving, session, context, &request).await.map(|()| true),
        Door::Handshake(request) => match serving.guards.admit_handshake(session, &request).await {
            Some(tunnel) => {
                context.entry.route = Some(Arc::clone(&request.route));
                context.entry.key = Some(request.key.clone());
                context.entry.verdict = Some("passed");
                context.route_index = Some(request.route_index);
                context.handshake = Some(Handshake { request, tunnel });
                Ok(false)
            }
            None => guard(&serving, session, context, &request).await.map(|()| true),
        },
    }
}

/// Passes a request to the guard, without `Upgrade`.
pub(super) async fn guard(
    serving: &Serving,
    session: &mut Session,
    context: &mut Context,
    request: &GuardedRequest,
) -> pingora::Result<()> {
    session.req_header_mut().remove_header(&header::UPGRADE);
    context.entry.route = Some(Arc::clone(&request.route));
    context.entry.key = Some(request.key.clone());
    let info = context.entry.info.clone();
    let handled = stream_info::along(info.as_ref(), handle(serving, request, session, context)).await;
    if let Some(key) = info.as_ref().and_then(|info| info.resource()) {
        context.entry.key = Some(key.clone());
    }
    handled
}

/// Lets the guard answer a request, and sends the answer.
async fn handle(
    serving: &Serving,
    request: &GuardedRequest,
    session: &mut Session,
    context: &mut Context,
) -> pingora::Result<()> {
    let answer = serving.guards.handle(session, request).await?;
    if serving.guards.gates().get(request.route_index).is_some_and(|gate| gate.has_cancelled_waiters()) {
        end_connection(session);
    }
    let dialect = request.route.guard.as_ref().map_or_else(Dialect::default, |guard| guard.dialect);
    relay::send(session, answer, dialect, &mut context.entry).await
}

/// Lets a write through the gate of its route. A guarded write only waits for the gate here. It goes through once its
/// body has arrived, so that no slow client holds up a reload.
async fn pass_gate(serving: &Serving, door: &Door, session: &Session) -> Result<Option<Pass>, Retired> {
    let request = session.req_header();
    let writes = !request.method.is_safe() || method::is_named(&request.headers, request.raw_path());
    let (route_index, is_guarded) = match door {
        Door::Guarded(request) | Door::Handshake(request) => (request.route_index, true),
        Door::Pass { route_index, .. } | Door::Observed { route_index, .. } => (*route_index, false),
        Door::Refuse { .. } => return Ok(None),
    };
    match (serving.guards.gates().get(route_index), serving.routes().get(route_index)) {
        (Some(gate), Some(_)) if writes && is_guarded => gate.opened().await.map(|()| None),
        (Some(gate), Some(route)) if writes => gate.enter_unmarked(route.upstream.late_write_window).await.map(Some),
        _ => Ok(None),
    }
}

/// Observes a request on a route that only watches.
fn observe(
    observer: &Observer,
    route: Option<&Arc<Route>>,
    would: Result<GuardedRequest, Code>,
    session: &Session,
) -> Option<Observation> {
    let (route, request) = (route?, session.req_header());
    match would {
        Ok(guarded) => {
            Some(observer.begin(route, route.guard.as_ref()?, &guarded.key, &guarded.method, &request.headers))
        }
        Err(code) => {
            observer.record(route, &request.method, code.as_str());
            None
        }
    }
}

fn decide(serving: &Serving, session: &Session) -> Result<Door, Refusal> {
    let request = session.req_header();
    let head = Head {
        method: &request.method,
        version: request.version,
        host: target::host(request)?,
        target: request.raw_path(),
        headers: &request.headers,
        client: client::address(session, &serving.config.server.trusted_proxies).into(),
    };
    Ok(door::decide(&serving.table, &head))
}

async fn refuse(session: &mut Session, context: &mut Context, refusal: Refusal) -> pingora::Result<()> {
    let guard = context.entry.route.as_ref().and_then(|route| route.guard.as_ref());
    let dialect = guard.map_or_else(Dialect::default, |guard| guard.dialect);
    respond::refuse(session, refusal, dialect, &mut context.entry).await
}

/// Handles a handshake as a plain read, if the upstream has opened no tunnel. Returns false if there is none to
/// handle.
async fn read_instead(session: &mut Session, error: &Error, context: &mut Context) -> pingora::Result<bool> {
    let opened_none = handshake::opened_no_tunnel(error);
    let Some(handshake) = context.handshake.take().filter(|_| opened_none) else { return Ok(false) };
    // The next request for that server may take the slot.
    context.slot = None;
    // Pingora closes the connection after a failure.
    end_connection(session);
    context.entry.verdict = None;
    let serving = Arc::clone(&context.serving);
    guard(&serving, session, context, &handshake.request).await.map(|()| true)
}

/// Answers a request that could not be handled, if its client can still be answered.
pub(super) async fn fail(session: &mut Session, error: &Error, context: &mut Context) -> FailToProxy {
    match read_instead(session, error, context).await {
        Ok(true) => {
            let error_code = session.response_written().map_or(0, |head| head.status.as_u16());
            return FailToProxy { error_code, can_reuse_downstream: false };
        }
        Ok(false) => {}
        Err(error) => tracing::debug!(%error, "a handshake could not be handled as a plain read"),
    }
    let answered = session.response_written().is_some_and(|head| !head.status.is_informational());
    let refusal = failure::refusal(error, &session.req_header().method, context.connected).filter(|_| !answered);
    let mut error_code = 0;
    if let Some(refusal) = refusal {
        error_code = refusal.code.status().as_u16();
        // Pingora closes the connection after a failure.
        session.set_keepalive(None);
        if refuse(session, context, refusal).await.is_err() {
            error_code = 0;
        }
    }
    tracing::debug!(%error, error_code, "an exchange failed");
    FailToProxy { error_code, can_reuse_downstream: false }
}

/// Ends a request: writes a line to the access log, and avoids a reset for a client that is still sending.
pub(super) async fn leave(session: &mut Session, error: Option<&Error>, context: &mut Context) {
    tell(session, context);
    if !context.connected {
        context.end_write();
    }
    // The answer is out, and the rest must not hold up the end of the process.
    drop(context.ticket.take());
    drop(context.slot.take());
    if error.is_none() || context.entry.refused.is_some() {
        respond::linger(session).await;
    }
}

/// Reports the outcome of a request to telemetry.
fn tell(session: &Session, context: &mut Context) {
    let request = session.req_header();
    let exchange = ClientExchange {
        method: &request.method,
        target: request.raw_path(),
        status: session.response_written().map_or(0, |head| head.status.as_u16()),
        received_bytes: session.body_bytes_read(),
        sent_bytes: session.body_bytes_sent(),
        client: session.client_addr().and_then(|address| address.as_inet().copied()),
        is_tls: session.digest().is_some_and(|digest| digest.ssl_digest.is_some()),
    };
    telemetry::end(&mut context.entry, &exchange);
}
