//! A request's entry and exit: its setup, the decision of the door, and the work that is left at its end.

use std::sync::Arc;

use http::header;
use pingora::{Error, ErrorSource, ErrorType};

use super::{
    arrival::Arrival,
    context::Context,
    handshake::Handshake,
    observe::{self, Observation, Observer},
};
use crate::{
    body::Client as _,
    box_future::box_future,
    config::Route,
    core::{
        http::{
            expectation::expects_continue, fields::nominates_upgrade, readings::method, request_target::split_query,
        },
        policy::Dialect,
        refusal::{Code, Refusal},
    },
    downstream::{client, relay::Outgoing, respond, session::ClientSession},
    drain::{Pass, Retired},
    generation::{Live, Serving},
    guard::{Answer, Presented, Principal},
    routing::{GuardedRequest, door::Door},
    service,
    telemetry::{self, Decision, OncePerRoute, stream_info},
    upstream::fields::{end_nominated, opens_websocket, say_length_once},
};

static UPGRADE_REMOVED: OncePerRoute = OncePerRoute::new();

/// Sends the 100 to a client that expects it and has no content to send, no matter who answers then. The expectation is
/// met, and the upstream is not asked to meet it again.
async fn continue_without_content(session: &mut ClientSession) -> pingora::Result<()> {
    let request = session.request();
    if expects_continue(request.version, &request.headers) && !session.has_content() {
        session.invite_content().await?;
        session.request_mut().remove_header(&header::EXPECT);
    }
    Ok(())
}

/// The decision about a request that came in.
pub(super) enum Entered {
    /// An answer.
    Answered(Outgoing),
    /// The way to the upstream, as it came.
    Passed,
}

/// Sends a request through the door, and to the guard behind it.
pub(super) async fn enter(
    live: &Live,
    observer: &Observer,
    session: &mut ClientSession,
    context: &mut Context,
    mut arrival: Arrival,
) -> pingora::Result<Entered> {
    let tells_client = context.serving.config.server.server_timing;
    telemetry::begin(&mut context.entry, &session.request().headers, tells_client);
    continue_without_content(session).await?;
    if session.request().headers.contains_key(header::UPGRADE) && !nominates_upgrade(&session.request().headers) {
        session.request_mut().remove_header(&header::UPGRADE);
    }
    let serving = loop {
        if let Ok(pass) = pass_gate(&context.serving, &arrival.door, session).await {
            context.pass = pass;
            break Arc::clone(&context.serving);
        }
        // Nothing was done with the request yet, so it may begin anew.
        context.serving = live.serving();
        arrival.again(&context.serving, session);
    };
    context.entry.client_address = session.peer.ip();
    let door = arrival.door;
    let routes = serving.routes();
    let is_refused = matches!(door, Door::Refuse { .. });
    if let Some(route) = door.route_index().filter(|_| !is_refused).and_then(|index| routes.get(index)) {
        // From here on, the proxy judges the request that the upstream receives.
        end_nominated(session.request_mut());
        say_length_once(session.request_mut())?;
        let trusted = &serving.config.server.trusted_proxies;
        context.entry.client_address = client::address(session, trusted);
        client::tell(session, route, trusted)?;
    }
    match door {
        Door::Refuse { refusal, route_index } => {
            if live.ends() {
                session.end_connection();
            }
            context.entry.route = route_index.and_then(|index| routes.get(index)).cloned();
            answered(session, context, Err(refusal)).map(Entered::Answered)
        }
        Door::Pass { route_index, upgrade } => {
            if !upgrade {
                session.request_mut().remove_header(&header::UPGRADE);
            }
            context.entry.route = routes.get(route_index).cloned();
            context.entry.verdict = Some(Decision::Passed);
            Ok(Entered::Passed)
        }
        Door::Observed { route_index, would } => {
            context.entry.route = routes.get(route_index).cloned();
            context.entry.verdict = Some(Decision::Observed);
            context.observation = observe(observer, routes.get(route_index), would, session);
            Ok(Entered::Passed)
        }
        Door::Guarded(request) => guard(&serving, session, context, &request).await.map(Entered::Answered),
        Door::Handshake(request) => match Box::pin(serving.guards.admit_handshake(session, &request)).await {
            Some(tunnel) => {
                context.entry.route = Some(Arc::clone(&request.route));
                context.entry.key = Some(request.key.clone());
                context.entry.verdict = Some(Decision::Passed);
                context.handshake = Some(Handshake { request, tunnel });
                Ok(Entered::Passed)
            }
            None => guard(&serving, session, context, &request).await.map(Entered::Answered),
        },
    }
}

/// Lets the guard answer a request, without `Upgrade`.
pub(super) async fn guard(
    serving: &Serving,
    session: &mut ClientSession,
    context: &mut Context,
    request: &GuardedRequest,
) -> pingora::Result<Outgoing> {
    let takes_websocket = request.route.guard.as_ref().is_some_and(|rules| rules.websocket);
    if opens_websocket(session.request()) && !takes_websocket {
        tell_of_upgrade(&request.route);
    }
    session.request_mut().remove_header(&header::UPGRADE);
    context.entry.route = Some(Arc::clone(&request.route));
    context.entry.key = Some(request.key.clone());
    let info = context.entry.info.clone();
    let answer = stream_info::along(info.as_ref(), service::handle(&serving.guards, session, request)).await;
    if let Some(key) = info.as_ref().and_then(|info| info.resource()) {
        context.entry.key = Some(key.clone());
    }
    if serving.guards.gates().get(request.route_index).is_some_and(|gate| gate.has_cancelled_waiters()) {
        session.end_connection();
    }
    let mut outgoing = answered(session, context, answer?)?;
    if serving.config.server.server_timing
        && let Some(told) = info.and_then(|info| info.times().server_timing())
    {
        outgoing.add_field("Server-Timing", told)?;
    }
    Ok(outgoing)
}

/// Logs once for each route that a handshake is judged as a plain read.
fn tell_of_upgrade(route: &Route) {
    if UPGRADE_REMOVED.is_first(&route.name) {
        tracing::warn!(
            route = %route.name,
            "a client asked for a WebSocket, and its request lost Upgrade, as on every guarded route: for WebSocket, set \
             websocket = true on this route; this is logged once"
        );
    }
}

/// Prepares an answer in the dialect of the route.
pub(super) fn answered(
    session: &ClientSession,
    context: &mut Context,
    answer: Result<Answer, Refusal>,
) -> pingora::Result<Outgoing> {
    let dialect = dialect(context);
    Outgoing::new(session.request(), answer, dialect, &mut context.entry)
}

/// Sends an answer to its end.
pub(super) async fn send(session: &mut ClientSession, context: &Context, outgoing: Outgoing) -> pingora::Result<()> {
    // Boxed, because a future that moves is copied, with room for all of its states.
    stream_info::along(context.entry.info.as_ref(), box_future(|| outgoing.send(session))).await
}

/// The dialect of the route that a request took.
fn dialect(context: &Context) -> Dialect {
    let guard = context.entry.route.as_ref().and_then(|route| route.guard.as_ref());
    guard.map_or_else(Dialect::default, |guard| guard.dialect)
}

/// Lets a write through the gate of its route. A guarded write only waits for the gate here. It goes through once its
/// body has arrived, so that no slow client holds up a reload.
async fn pass_gate(serving: &Serving, door: &Door, session: &ClientSession) -> Result<Option<Pass>, Retired> {
    let request = session.request();
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
    session: &ClientSession,
) -> Option<Observation> {
    let (route, request) = (route?, session.request());
    match would {
        Ok(guarded) => {
            let (guard, headers) = (route.guard.as_ref()?, &request.headers);
            let (_, query) = split_query(request.raw_path());
            let presented = Presented { headers, query, certificate: session.certificate() };
            let client = observe::client_name(Principal::of(presented, guard), guarded.client, headers);
            Some(observer.begin(guard, guarded, request, client))
        }
        Err(code) => {
            observer.refused(route, &request.method, code);
            None
        }
    }
}

async fn refuse(session: &mut ClientSession, context: &mut Context, refusal: Refusal) -> pingora::Result<()> {
    respond::refuse(session, refusal, dialect(context), &mut context.entry).await
}

/// Answers a request that could not be handled, if its client can still be answered.
pub(super) async fn fail(session: &mut ClientSession, error: &Error, context: &mut Context) {
    tracing::debug!(%error, "a request failed");
    if let Some(refusal) = refusal_of(error).filter(|_| session.answered().is_none()) {
        // The rest of the request cannot be distinguished from the next one.
        session.end_connection();
        let _ = refuse(session, context, refusal).await;
    }
}

/// Returns the refusal for an error in a request, or `None` if the client is gone.
fn refusal_of(error: &Error) -> Option<Refusal> {
    match error.etype() {
        ErrorType::ReadTimedout if *error.esource() == ErrorSource::Downstream => {
            Some(Refusal::new(Code::BodyTimeout, "send the whole body without pausing for a minute"))
        }
        ErrorType::WriteError | ErrorType::WriteTimedout | ErrorType::ReadError | ErrorType::ConnectionClosed => None,
        _ => Some(malformed_request()),
    }
}

/// Ends a request, and avoids a reset for a client that is still sending.
pub(super) async fn leave(session: &mut ClientSession, error: Option<&Error>, context: &mut Context) {
    if !context.is_sent {
        context.end_write();
    }
    // The answer is out, and the rest must not hold up the end of the process.
    drop(context.ticket.take());
    if error.is_none() || context.entry.refused.is_some() {
        respond::linger(session).await;
    }
}

/// Returns the refusal of a request that the parser does not take.
pub(crate) fn malformed_request() -> Refusal {
    Refusal::new(Code::MalformedRequest, "send a request that follows RFC 9110 and RFC 9112")
}
