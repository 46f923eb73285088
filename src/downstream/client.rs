//! The client as its connection shows it, and the fields that describe the client to the upstream.

use std::net::IpAddr;

use pingora::protocols::{http::ServerSession, tls::SslDigest};

use crate::{
    config::{Forwarded, Route, TrustedProxies},
    core::{
        fields::{is_of_client, is_of_forwarded_path},
        forwarded::{ForwardedFields, Peer, client, told},
    },
    upstream::fields::FieldsOfHead as _,
};

/// Returns the address of the client, behind any trusted proxies, or `None` over a unix socket.
pub fn address(session: &ServerSession, trusted: &TrustedProxies) -> Option<IpAddr> {
    let peer = peer_address(session)?;
    Some(client(&session.req_header().headers, peer, |address| trusted.contains(Some(address))))
}

/// Writes the fields that describe the client to the upstream, if the upstream has any configured. A client that is no
/// trusted proxy says nothing of the path if a resource behind that upstream is guarded.
pub fn tell(session: &mut ServerSession, route: &Route, trusted: &TrustedProxies) -> pingora::Result<()> {
    let wanted = match route.upstream.forwarded {
        Forwarded::Off => {
            if route.is_protected() && !trusted.contains(peer_address(session)) {
                session.req_header_mut().remove_all(is_of_forwarded_path);
            }
            return Ok(());
        }
        Forwarded::XForwarded => ForwardedFields { x_forwarded: true, standard: false },
        Forwarded::Standard => ForwardedFields { x_forwarded: false, standard: true },
        Forwarded::Both => ForwardedFields { x_forwarded: true, standard: true },
    };
    let address = peer_address(session);
    let peer = Peer { address, is_trusted: trusted.contains(address), is_secure: is_tls(session) };
    let request = session.req_header_mut();
    let fields = told(&request.headers, peer, wanted);
    request.remove_all(is_of_client);
    for (name, value) in &fields {
        request.append_header(name.clone(), value.clone())?;
    }
    Ok(())
}

/// Whether the request came over TLS: its scheme is `https`.
pub fn is_tls(session: &ServerSession) -> bool {
    tls(session).is_some()
}

/// Returns the SHA-256 of the client's certificate. The handshake checked the certificate and the client's key.
pub fn certificate(session: &ServerSession) -> Option<&[u8]> {
    tls(session).map(|tls| tls.cert_digest.as_slice()).filter(|digest| !digest.is_empty())
}

fn tls(session: &ServerSession) -> Option<&SslDigest> {
    session.digest()?.ssl_digest.as_deref()
}

fn peer_address(session: &ServerSession) -> Option<IpAddr> {
    Some(session.client_addr()?.as_inet()?.ip().to_canonical())
}
