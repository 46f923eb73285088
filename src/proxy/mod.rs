//! The path of requests through pingora: the door, the unguarded path, and the hand-over to the guard and back.
//!
//! [`Gateway`] is a table of pingora's hooks. Each hook is one line that names the module that does the work:
//!
//! 1. `entry` sets limits on the connection before anything else happens.
//! 2. `arrival`, `target`, and the `door` and `method` of `routing`, find the route, and refuse, pass or guard the
//!    request.
//! 3. `entry` hands a guarded request to the guard.
//! 4. `pass` is the unguarded path, also for a `handshake` that the guard has let go. `observe` serves routes that only
//!    watch. `failure` turns failures into answers to the client.
//! 5. In `downstream`, `session` is the client as the guard sees it, `relay` sends the guard's answer, and `respond`
//!    writes refusals and other local responses.
//! 6. `entry` again writes the line in the access log.
//!
//! `unread` answers and counts requests that cannot be read, over either protocol.
//!
//! Over HTTP/1.1, `direct` serves most guarded requests by the same steps without the hooks, and so do `direct` and
//! `forward` most unguarded reads.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, StatusCode, Version};
use pingora::{
    Error,
    http::{RequestHeader, ResponseHeader},
    modules::http::HttpModules,
    protocols::{Digest, http::ServerSession},
    proxy::{FailToProxy, ProxyHttp, ProxyWarnLogContext, Session},
    upstreams::peer::HttpPeer,
};

use crate::{
    body::content_length,
    generation::Live,
    telemetry::activity::Activity,
    upstream::{
        dial::{Dialler, Traffic},
        fields::is_bodiless,
    },
};

mod arrival;
mod context;
mod direct;
mod entry;
mod failure;
mod forward;
mod handshake;
mod observe;
mod pass;
mod target;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod unread;

use arrival::Arrival;
pub use context::Context;
pub(crate) use direct::{Served, look_at};
use entry::Entered;
pub(crate) use failure::malformed_request;
pub use observe::Observation;
use observe::Observer;
use pass::ServerFinder;
pub(crate) use unread::UnreadClient;

/// The proxy as pingora sees it. A clone is the same proxy.
#[derive(Clone)]
pub struct Gateway {
    live: Arc<Live>,
    observer: Arc<Observer>,
    activity: Option<Arc<Activity>>,
    servers: Arc<ServerFinder>,
    /// The connections for reads that pingora does not forward.
    forwards: Arc<Dialler>,
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Gateway").field("live", &self.live).finish_non_exhaustive()
    }
}

impl Gateway {
    /// Creates the proxy of whatever configuration is live.
    pub fn new(live: Arc<Live>) -> Self {
        let forwards = Arc::new(Dialler::new(Traffic::UnguardedReads));
        Self { live, observer: Arc::default(), activity: None, servers: Arc::new(ServerFinder::new()), forwards }
    }

    /// Adds a record of events for an operator.
    #[must_use]
    pub fn noting(self, activity: Option<Arc<Activity>>) -> Self {
        Self { activity, ..self }
    }

    /// Returns the configuration that this proxy serves.
    pub(crate) fn live(&self) -> &Arc<Live> {
        &self.live
    }

    /// Ends a request, whatever became of it.
    async fn leave(&self, session: &mut ServerSession, error: Option<&Error>, context: &mut Context) {
        let status = session.response_written().map_or(0, |head| head.status.as_u16());
        self.tell(session, context, status, session.body_bytes_sent());
        entry::leave(session, error, context).await;
    }

    /// Reports the outcome of a request to telemetry.
    fn tell(&self, session: &ServerSession, context: &mut Context, status: u16, sent_bytes: usize) {
        if let Some(activity) = &self.activity {
            activity.ended(&context.entry, status);
        }
        entry::tell(session, context, status, sent_bytes);
    }
}

/// Whether the upstream has finished a write that it answers with this status (DESIGN, section 3, rule 3).
fn tells_outcome(status: StatusCode) -> bool {
    !status.is_informational() && !matches!(status, StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT)
}

#[async_trait]
impl ProxyHttp for Gateway {
    type CTX = Context;

    fn new_ctx(&self) -> Context {
        Context::new(self.live.in_flight().enter(), self.live.serving())
    }

    /// Adds no modules: a compressed body would need a weak tag, and no weak tag satisfies If-Match (RFC 9110 section
    /// 13.1.1).
    fn init_downstream_modules(&self, _modules: &mut HttpModules) {}

    async fn early_request_filter(&self, session: &mut Session, context: &mut Context) -> pingora::Result<()> {
        entry::prepare(session, context.serving.config.server.keepalive_timeout);
        Ok(())
    }

    async fn request_filter(&self, session: &mut Session, context: &mut Context) -> pingora::Result<bool> {
        let arrival = Arrival::at(&context.serving, session);
        match entry::enter(&self.live, &self.observer, session, context, arrival).await? {
            Entered::Answered(outgoing) => entry::send(session, context, outgoing).await.map(|()| true),
            Entered::Passed => Ok(false),
        }
    }

    async fn upstream_peer(&self, session: &mut Session, context: &mut Context) -> pingora::Result<Box<HttpPeer>> {
        self.servers.peer(session.req_header(), context).await
    }

    fn fail_to_connect(
        &self,
        _session: &mut Session,
        _peer: &HttpPeer,
        context: &mut Context,
        mut error: Box<Error>,
    ) -> Box<Error> {
        pass::failed_to_connect(context, &error);
        error.set_retry(pass::may_connect_again(context));
        error
    }

    async fn connected_to_upstream(
        &self,
        _session: &mut Session,
        _reused: bool,
        _peer: &HttpPeer,
        _descriptor: std::os::fd::RawFd,
        _digest: Option<&Digest>,
        context: &mut Context,
    ) -> pingora::Result<()> {
        context.connected = true;
        pass::connected(context, true);
        Ok(())
    }

    async fn upstream_request_filter(
        &self,
        session: &mut Session,
        request: &mut RequestHeader,
        context: &mut Context,
    ) -> pingora::Result<()> {
        let received: Version = session.req_header().version;
        pass::request_to_upstream(received, context, request)
    }

    async fn request_body_filter(
        &self,
        _session: &mut Session,
        body: &mut Option<Bytes>,
        end_of_stream: bool,
        _context: &mut Context,
    ) -> pingora::Result<()> {
        pass::request_body(body, end_of_stream);
        Ok(())
    }

    async fn upstream_response_filter(
        &self,
        session: &mut Session,
        response: &mut ResponseHeader,
        context: &mut Context,
    ) -> pingora::Result<()> {
        if !response.status.is_informational() {
            let is_bodiless = is_bodiless(&session.req_header().method, response);
            context.response_begins(if is_bodiless { Some(0) } else { content_length(&response.headers) });
        }
        if let Some(observation) = &mut context.observation {
            observation.response(response.status, &response.headers);
        }
        if self.live.ends() {
            entry::end_connection(session);
        }
        if !response.status.is_informational() {
            context.watch.answered(response.status.as_u16());
        }
        handshake::check_answer(&mut context.handshake, response.status)?;
        if tells_outcome(response.status) {
            context.end_write();
        }
        pass::response_from_upstream(session.req_header(), context, response)
    }

    fn upstream_response_body_filter(
        &self,
        _session: &mut Session,
        body: &mut Option<Bytes>,
        end_of_stream: bool,
        context: &mut Context,
    ) -> pingora::Result<Option<Duration>> {
        context.response_arrives(body.as_ref().map_or(0, Bytes::len), end_of_stream);
        Ok(None)
    }

    fn upstream_response_trailer_filter(
        &self,
        _session: &mut Session,
        _trailers: &mut HeaderMap,
        context: &mut Context,
    ) -> pingora::Result<()> {
        context.response_arrives(0, true);
        Ok(())
    }

    fn error_while_proxy(
        &self,
        _peer: &HttpPeer,
        session: &mut Session,
        mut error: Box<Error>,
        context: &mut Context,
        reused: bool,
    ) -> Box<Error> {
        if handshake::opened_no_tunnel(&error) {
            error.set_retry(false);
            return error;
        }
        context.watch.failed(if failure::is_timeout(&error) { "timeout" } else { "broken" });
        if pass::may_send_again(session.req_header(), session.as_ref().retry_buffer_truncated()) {
            error.retry.decide_reuse(reused);
            pass::stay(context);
        } else {
            error.set_retry(false);
        }
        error
    }

    async fn fail_to_proxy(&self, session: &mut Session, error: &Error, context: &mut Context) -> FailToProxy {
        entry::fail(session, error, context).await
    }

    /// Suppresses the log line, because failures of single requests are in the access log.
    fn suppress_error_log(&self, _session: &Session, _context: &Context, _error: &Error) -> bool {
        true
    }

    fn suppress_proxy_warn_log(
        &self,
        _session: &Session,
        _context: &Context,
        _error: &Error,
        _place: ProxyWarnLogContext,
    ) -> bool {
        true
    }

    async fn logging(&self, session: &mut Session, error: Option<&Error>, context: &mut Context) {
        self.leave(session, error, context).await;
    }
}
