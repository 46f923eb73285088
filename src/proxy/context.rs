//! The state of one request while pingora handles it.

use std::{net::IpAddr, sync::Arc};

use super::{handshake::Handshake, observe::Observation};
use crate::{
    core::address::Address,
    drain::{InFlightGuard, Pass},
    generation::Serving,
    telemetry::{access::AccessEntry, exchange::ExchangeWatch},
    upstream::balance::Slot,
};

/// The context of one request, dropped with it.
#[derive(Debug)]
pub struct Context {
    /// The configuration that handles the request, from its beginning to its end.
    pub serving: Arc<Serving>,
    /// The entry for the access log.
    pub entry: AccessEntry,
    /// Counts the request as in flight.
    pub ticket: Option<InFlightGuard>,
    /// The unguarded route's index in the configuration, once the door has let the request pass.
    pub route_index: Option<usize>,
    /// The write's pass through the gate of an unguarded route.
    pub pass: Option<Pass>,
    /// The observation of the request, on a route that only watches.
    pub observation: Option<Observation>,
    /// The WebSocket handshake that the guard has passed to the upstream, until it is answered.
    pub handshake: Option<Handshake>,
    /// The client's address, for balancing by a hash of the client.
    pub client: Option<IpAddr>,
    /// The servers that have not been tried, in reverse order, once the request's first server is known.
    pub servers: Option<Vec<usize>>,
    /// The server that is being tried.
    pub server: Option<usize>,
    /// The slot that the request occupies on this server.
    pub(crate) slot: Option<Slot>,
    /// The declared bytes of the response's body that have not arrived.
    pub(super) response_bytes_left: Option<u64>,
    /// The addresses of that server that have not been tried, in reverse order.
    pub untried: Vec<Address>,
    /// The telemetry of the exchange with the last address.
    pub watch: ExchangeWatch,
    /// Whether a connection to a server was made: from then on, a server may have seen the request.
    pub connected: bool,
}

impl Context {
    /// Ends a write, because its outcome is known or there is none.
    pub fn end_write(&mut self) {
        if let Some(mut pass) = self.pass.take() {
            pass.is_known();
        }
    }

    /// Notes the head of the final response, whose body has this declared length.
    pub(super) fn response_begins(&mut self, declared: Option<u64>) {
        self.response_bytes_left = declared;
        self.response_arrives(0, false);
    }

    /// Notes a part of the response's body. Leaves the server to the next request at the last one, before that reaches
    /// the client: its next request finds the slot free. HTTP/2 may end a response later than its last byte.
    pub(super) fn response_arrives(&mut self, bytes: usize, is_end: bool) {
        self.response_bytes_left = self.response_bytes_left.map(|left| left.saturating_sub(bytes as u64));
        if is_end || self.response_bytes_left == Some(0) {
            self.slot = None;
        }
    }

    /// Whether only pingora's proxying can serve the request, because it is observed or may open a tunnel.
    pub(super) fn needs_pingora(&self) -> bool {
        self.observation.is_some() || self.handshake.is_some()
    }

    /// Creates the context of a request whose head was just read.
    pub fn new(ticket: InFlightGuard, serving: Arc<Serving>) -> Self {
        Self {
            serving,
            entry: AccessEntry::default(),
            ticket: Some(ticket),
            route_index: None,
            pass: None,
            observation: None,
            handshake: None,
            client: None,
            servers: None,
            server: None,
            slot: None,
            response_bytes_left: None,
            untried: Vec::new(),
            watch: ExchangeWatch::nothing(),
            connected: false,
        }
    }
}
