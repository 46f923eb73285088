//! What the connection of a request tells of its client.

use pingora::{protocols::tls::SslDigest, proxy::Session};

/// Whether the request came over TLS: its scheme is `https`.
pub fn is_tls(session: &Session) -> bool {
    tls(session).is_some()
}

/// The SHA-256 of the certificate that the client has proved to have; it was checked in the handshake.
pub fn certificate(session: &Session) -> Option<&[u8]> {
    tls(session).map(|tls| tls.cert_digest.as_slice()).filter(|digest| !digest.is_empty())
}

fn tls(session: &Session) -> Option<&SslDigest> {
    session.digest()?.ssl_digest.as_deref()
}
