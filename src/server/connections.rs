//! The common state of all connections, with any protocol and listener.

use std::{net::IpAddr, sync::Arc};

use pingora::{
    http::RequestHeader,
    protocols::{SocketDigest, Stream},
};
use pingora_timeout::timeout;
use tokio::sync::watch;

use super::{
    accept_pace::AcceptPace,
    descriptors,
    head::{Heads, HeldHead},
    places::{ConnectionPlace, ConnectionPlaces, RequestPlace},
    proxy_header::{self, NoProxyHeader},
};
use crate::{config, drain::InFlight, generation::Live, proxy::Gateway};

/// The connections of a proxy.
pub(super) struct Connections {
    pub(super) gateway: Gateway,
    pub(super) heads: Heads,
    places: Arc<ConnectionPlaces>,
    /// The pace of all listeners.
    pub(super) pace: Arc<AcceptPace>,
    live: Arc<Live>,
    /// The number of connections whose protocol is known.
    pub(super) open: InFlight,
    /// True if connections without a request in flight must end.
    end: watch::Sender<bool>,
}

/// The share of the limits that a request beside others holds.
#[derive(Debug)]
pub(super) struct AdmittedRequest {
    _place: RequestPlace,
    _held: HeldHead,
}

impl Connections {
    /// Creates the connections within the limits of a configuration. They are counted among `open`.
    pub(super) fn new(gateway: Gateway, server: &config::Server, open: &InFlight) -> Self {
        Self {
            live: Arc::clone(gateway.live()),
            gateway,
            heads: Heads::new(server),
            places: Arc::new(ConnectionPlaces::new(
                server,
                descriptors::plan(server.max_connections, server.max_staged_uploads),
            )),
            pace: Arc::new(AcceptPace::new()),
            open: open.clone(),
            end: watch::Sender::new(false),
        }
    }

    /// Examines a new connection, and returns its place. If there is none, the caller closes the connection.
    pub(super) fn place(&self, stream: &Stream) -> Option<ConnectionPlace> {
        let digest = stream.get_socket_digest();
        let peer = digest.as_ref().and_then(|digest| digest.peer_addr());
        let address = address(stream);
        let serving = self.live.serving();
        let server = &serving.config.server;
        // The client of a balancer is not known yet: it is counted when it is.
        let client = address.filter(|_| !server.proxy_protocol.contains(address));
        let place = self.places.take(stream.id(), client, &server.trusted_proxies);
        // Pingora does not ask the pace about clients of a Unix socket, which have no address.
        if peer.is_some() {
            self.pace.examined();
        }
        place
    }

    /// Learns the client of a balancer's connection from the header at its beginning. Returns nothing if the connection
    /// must be closed: without a whole header, or because its client has its share.
    pub(super) async fn identify(
        &self,
        mut stream: Stream,
        mut place: ConnectionPlace,
    ) -> Option<(Stream, ConnectionPlace)> {
        let balancer = address(&stream);
        if !self.live.serving().config.server.proxy_protocol.contains(balancer) {
            return Some((stream, place));
        }
        let found = timeout(self.heads.time_max, proxy_header::read(&mut stream)).await;
        match found.unwrap_or(Err(NoProxyHeader::Other)) {
            Ok(None) => {}
            Ok(Some(client)) => {
                let told = SocketDigest::from_raw_fd(stream.id());
                // It is new, so nobody has looked for the address before.
                let _ = told.peer_addr.set(Some(client.into()));
                stream.set_socket_digest(told);
                place.count(client.ip().to_canonical(), &self.live.serving().config.server.trusted_proxies)?;
            }
            Err(NoProxyHeader::Gone) => return None,
            Err(NoProxyHeader::Other) => {
                place.tell_no_header(balancer);
                return None;
            }
        }
        Some((stream, place))
    }

    /// Admits a request beside others on its connection, if its client and the totals have room for it.
    pub(super) fn admit(&self, place: &ConnectionPlace, request: &RequestHeader) -> Option<AdmittedRequest> {
        let mut held = self.heads.hold_none();
        held.hold_head(size(request)).then_some(())?;
        Some(AdmittedRequest { _place: place.request()?, _held: held })
    }

    /// Returns the signal for a connection to end, if nothing is in flight on it.
    pub(super) fn ends(&self) -> watch::Receiver<bool> {
        self.end.subscribe()
    }

    /// Ends the connections without a request in flight: the listeners are closed.
    pub(super) fn end(&self) {
        self.end.send_replace(true);
    }
}

/// Returns the address of the peer, without its port; none over a Unix socket.
fn address(stream: &Stream) -> Option<IpAddr> {
    let digest = stream.get_socket_digest()?;
    digest.peer_addr()?.as_inet().map(|address| address.ip().to_canonical())
}

/// Returns the size in bytes of a head that came as a list of fields (RFC 9113 section 10.5.1).
fn size(request: &RequestHeader) -> usize {
    /// The overhead of a field beside its name and value (RFC 9113 section 6.5.2).
    const FIELD_BYTES: usize = 32;
    let fields = request.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + FIELD_BYTES);
    request.raw_path().len() + fields.sum::<usize>()
}
