//! What is kept of one request while pingora handles it.

use std::net::{IpAddr, SocketAddr};

use super::observe::Observation;
use crate::{exchange::balance::Slot, server::Ticket, telemetry::access::Entry};

/// The context of one request, dropped with it.
#[derive(Debug)]
pub struct Context {
    /// What the access log is to say.
    pub entry: Entry,
    /// Counts the request as in flight.
    pub ticket: Option<Ticket>,
    /// The place in the configuration of the unguarded route, once the door has let the request pass.
    pub route_index: Option<usize>,
    /// What is seen of the request on a route that only watches.
    pub observation: Option<Observation>,
    /// The address that a hash of the client is made of.
    pub client: Option<IpAddr>,
    /// The servers that were not tried, in reverse order, once it is known where the request begins.
    pub servers: Option<Vec<usize>>,
    /// The server that is tried now.
    pub server: Option<usize>,
    /// The place of the request among those that this server has at once.
    pub(crate) slot: Option<Slot>,
    /// Addresses of that server that were not tried, in reverse order.
    pub untried: Vec<SocketAddr>,
    /// Whether a connection to a server was made: from here on one may have seen the request.
    pub connected: bool,
}

impl Context {
    /// The context of a request whose head was just read.
    pub fn new(ticket: Ticket) -> Self {
        Self {
            entry: Entry::default(),
            ticket: Some(ticket),
            route_index: None,
            observation: None,
            client: None,
            servers: None,
            server: None,
            slot: None,
            untried: Vec::new(),
            connected: false,
        }
    }
}
