//! The client as its connection shows it.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use pingora::protocols::{Stream, tls::SslDigest};

/// The client's side of a connection.
#[derive(Clone, Debug)]
pub(crate) struct ClientPeer {
    /// The address; `None` over a Unix socket.
    pub(crate) address: Option<SocketAddr>,
    /// The facts that the handshake has shown, over TLS.
    tls: Option<Arc<SslDigest>>,
}

impl ClientPeer {
    /// The client at the other end of a connection.
    pub(crate) fn of(stream: &Stream) -> Self {
        let socket = stream.get_socket_digest();
        let address = socket.as_ref().and_then(|digest| digest.peer_addr()).and_then(|peer| peer.as_inet().copied());
        Self { address, tls: stream.get_ssl_digest() }
    }

    /// True if the connection is one of TLS: the scheme is `https`.
    pub(crate) fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Returns the SHA-256 of the client's certificate. The handshake checked the certificate and the client's key.
    pub(crate) fn certificate(&self) -> Option<&[u8]> {
        self.tls.as_ref().map(|tls| tls.cert_digest.as_slice()).filter(|digest| !digest.is_empty())
    }

    /// The address, without its port.
    pub(crate) fn ip(&self) -> Option<IpAddr> {
        self.address.map(|address| address.ip().to_canonical())
    }
}
