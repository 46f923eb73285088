//! What is kept of one request while pingora handles it.

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
    /// The configuration that handles it, from its beginning to its end.
    pub serving: Arc<Serving>,
    /// What the access log is to say.
    pub entry: AccessEntry,
    /// Counts the request as in flight.
    pub ticket: Option<InFlightGuard>,
    /// The place in the configuration of the unguarded route, once the door has let the request pass.
    pub route_index: Option<usize>,
    /// Its way through the gate of an unguarded route, if it writes.
    pub pass: Option<Pass>,
    /// What is seen of the request on a route that only watches.
    pub observation: Option<Observation>,
    /// The WebSocket handshake that the guard has let go to the upstream, until it is answered.
    pub handshake: Option<Handshake>,
    /// The address that a hash of the client is made of.
    pub client: Option<IpAddr>,
    /// The servers that were not tried, in reverse order, once it is known where the request begins.
    pub servers: Option<Vec<usize>>,
    /// The server that is tried now.
    pub server: Option<usize>,
    /// The place of the request among those that this server has at once.
    pub(crate) slot: Option<Slot>,
    /// Addresses of that server that were not tried, in reverse order.
    pub untried: Vec<Address>,
    /// What is seen of the exchange with the last of them.
    pub watch: ExchangeWatch,
    /// Whether a connection to a server was made: from here on one may have seen the request.
    pub connected: bool,
}

impl Context {
    /// The outcome of a write is known, or there is none: it is over.
    pub fn end_write(&mut self) {
        if let Some(mut pass) = self.pass.take() {
            pass.is_known();
        }
    }

    /// The context of a request whose head was just read.
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
            untried: Vec::new(),
            watch: ExchangeWatch::nothing(),
            connected: false,
        }
    }
}
