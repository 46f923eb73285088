//! The way to the backend, which notes the servers that reads are bound to.

use std::sync::{Arc, Mutex};

use pingora::http::RequestHeader;

use crate::{
    body::{Body, BoxFuture},
    config::Upstream,
    upstream::{Choice, Connection, Exchange, Exchanger, Failure, Purpose, Transport, Upstreams, WantedPlace},
};

/// A real way to the upstreams.
pub(super) struct NotingTransport {
    exchanger: Exchanger,
    read_from: Mutex<Vec<Option<usize>>>,
}

impl NotingTransport {
    pub(super) fn to(upstreams: Arc<Upstreams>) -> Self {
        Self { exchanger: Exchanger::to(upstreams), read_from: Mutex::default() }
    }

    /// Returns for each read the only server that it may go to, if there is one.
    pub(super) fn read_from(&self) -> Vec<Option<usize>> {
        self.read_from.lock().unwrap().clone()
    }
}

impl Transport for NotingTransport {
    fn connect<'a>(
        &'a self,
        upstream: &'a Arc<Upstream>,
        wanted: WantedPlace<'a>,
        purpose: Purpose,
    ) -> BoxFuture<'a, Result<Box<dyn Connection>, Failure>> {
        Transport::connect(&self.exchanger, upstream, wanted, purpose)
    }

    fn read<'a>(
        &'a self,
        upstream: &'a Arc<Upstream>,
        wanted: WantedPlace<'a>,
        head: Box<RequestHeader>,
        body: &'a Body,
    ) -> BoxFuture<'a, Result<Exchange, Failure>> {
        self.read_from.lock().unwrap().push(match wanted.choice {
            Choice::Only(server) => Some(server),
            _ => None,
        });
        Transport::read(&self.exchanger, upstream, wanted, head, body)
    }
}
