//! The fields that describe a client, from the proxies before this one, and to the upstream.

use std::net::IpAddr;

use super::session::ClientSession;

use crate::{
    config::{Forwarded, Route, TrustedProxies},
    core::http::{
        fields::{is_of_client, is_of_forwarded_path},
        forwarded::{ForwardedFields, Peer, client, told},
    },
    upstream::fields::FieldsOfHead as _,
};

/// Returns the address of the client, behind any trusted proxies, or `None` over a unix socket.
pub(crate) fn address(session: &ClientSession, trusted: &TrustedProxies) -> Option<IpAddr> {
    let peer = session.peer.ip()?;
    Some(client(&session.request().headers, peer, |address| trusted.contains(Some(address))))
}

/// Writes the fields that describe the client to the upstream, if the upstream has any configured. A client that is no
/// trusted proxy says nothing of the path if a resource behind that upstream is guarded.
pub(crate) fn tell(session: &mut ClientSession, route: &Route, trusted: &TrustedProxies) -> pingora::Result<()> {
    let wanted = match route.upstream.forwarded {
        Forwarded::Off => {
            if route.is_protected() && !trusted.contains(session.peer.ip()) {
                session.request_mut().remove_all(is_of_forwarded_path);
            }
            return Ok(());
        }
        Forwarded::XForwarded => ForwardedFields { x_forwarded: true, standard: false },
        Forwarded::Standard => ForwardedFields { x_forwarded: false, standard: true },
        Forwarded::Both => ForwardedFields { x_forwarded: true, standard: true },
    };
    let address = session.peer.ip();
    let peer = Peer { address, is_trusted: trusted.contains(address), is_secure: session.peer.is_tls() };
    let request = session.request_mut();
    let fields = told(&request.headers, peer, wanted);
    request.remove_all(is_of_client);
    for (name, value) in &fields {
        request.append_header(name.clone(), value.clone())?;
    }
    Ok(())
}
