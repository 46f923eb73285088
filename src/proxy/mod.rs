//! The path of requests through the proxy.
//!
//! `serve` is the way of every request, from top to bottom. It names the module that does the work:
//!
//! 1. `arrival`, `target`, and the `door` and `method` of `routing`, find the route, and refuse, pass or guard the
//!    request.
//! 2. `entry` sets limits on the connection, and hands a guarded request to the guard.
//! 3. `forward` is the unguarded path, also for a `handshake` that the guard has let go. `pass` is what it changes in the
//!    two heads. `observe` serves routes that only watch.
//! 4. In `downstream`, `session` is the client as the guard sees it, `relay` sends the upstream's answer, and `respond`
//!    writes refusals and other local responses.
//! 5. `Gateway::tell` reports the outcome to telemetry, which writes the line in the access log.
//!
//! `unread` answers and counts requests that cannot be read, over either protocol.

use std::sync::Arc;

use pingora::Error;

use crate::{
    downstream::session::ClientSession,
    generation::Live,
    telemetry::{self, access::ClientExchange, activity::Activity},
};

mod arrival;
mod context;
mod entry;
mod forward;
mod handshake;
mod observe;
mod pass;
mod serve;
mod target;
#[cfg(test)]
mod tests;
mod unread;

pub(crate) use entry::malformed_request;
use observe::Observer;
pub(crate) use serve::Served;

/// The proxy. A clone is the same proxy.
#[derive(Clone)]
pub struct Gateway {
    live: Arc<Live>,
    observer: Arc<Observer>,
    activity: Option<Arc<Activity>>,
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Gateway").field("live", &self.live).finish_non_exhaustive()
    }
}

impl Gateway {
    /// Creates the proxy of the configuration that is live at each moment.
    pub fn new(live: Arc<Live>) -> Self {
        Self { live, observer: Arc::default(), activity: None }
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

    /// Ends a request, with any outcome.
    async fn leave(&self, session: &mut ClientSession, error: Option<&Error>, context: &mut context::Context) {
        let status = session.answered().map_or(0, |status| status.as_u16());
        self.tell(session, context, status, session.sent_bytes);
        entry::leave(session, error, context).await;
    }

    /// Reports the outcome of a request to telemetry.
    fn tell(&self, session: &ClientSession, context: &mut context::Context, status: u16, sent_bytes: usize) {
        let request = session.request();
        let exchange = ClientExchange {
            method: Some(&request.method),
            target: request.raw_path(),
            status,
            received_bytes: session.received_bytes,
            sent_bytes,
            client: session.peer.address,
            is_tls: session.peer.is_tls(),
        };
        telemetry::end(&mut context.entry, &exchange, self.activity.as_deref());
    }
}
