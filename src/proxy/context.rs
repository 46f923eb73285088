//! The state of one request while it is handled.

use std::sync::Arc;

use http::StatusCode;

use super::{handshake::Handshake, observe::Observation};
use crate::{
    drain::{InFlightGuard, Pass},
    generation::Serving,
    telemetry::access::AccessEntry,
};

/// The context of one request, dropped with it.
#[derive(Debug)]
pub(super) struct Context {
    /// The configuration that handles the request, from its beginning to its end.
    pub(super) serving: Arc<Serving>,
    /// The entry for the access log.
    pub(super) entry: AccessEntry,
    /// Counts the request as in flight.
    pub(super) ticket: Option<InFlightGuard>,
    /// The write's pass through the gate of an unguarded route.
    pub(super) pass: Option<Pass>,
    /// The observation of the request, on a route that only watches.
    pub(super) observation: Option<Observation>,
    /// The WebSocket handshake that the guard has passed to the upstream, until it is answered.
    pub(super) handshake: Option<Handshake>,
    /// True if a server may have seen the request.
    pub(super) is_sent: bool,
}

impl Context {
    /// Ends a write, because its outcome is known or there is none.
    pub(super) fn end_write(&mut self) {
        if let Some(mut pass) = self.pass.take() {
            pass.is_known();
        }
    }

    /// Returns the handshake of the request if this answer to it opens no tunnel.
    pub(super) fn refused_handshake(&mut self, status: StatusCode) -> Option<Handshake> {
        let handshake = self.handshake.take()?;
        if status == StatusCode::SWITCHING_PROTOCOLS {
            return None;
        }
        self.entry.verdict = None;
        Some(handshake)
    }

    /// Creates the context of a request whose head was just read.
    pub(super) fn new(ticket: InFlightGuard, serving: Arc<Serving>) -> Self {
        Self {
            serving,
            entry: AccessEntry::default(),
            ticket: Some(ticket),
            pass: None,
            observation: None,
            handshake: None,
            is_sent: false,
        }
    }
}
