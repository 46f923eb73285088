//! How the proxy authenticates upstreams over TLS, and how it authenticates itself to them.

use std::{fmt, sync::Arc};

use pingora::{
    tls::CertificateDer,
    upstreams::peer::HttpPeer,
    utils::tls::{CertKey, WrappedX509, parse_x509},
};

use super::Pair;
use crate::core::tags::parts_hash::PartsHasher;

/// The TLS settings for connections to the servers of an upstream. The certificate of a server is always checked.
pub struct UpstreamTls {
    server_name: Option<String>,
    roots: Arc<[WrappedX509]>,
    identity: Option<Arc<CertKey>>,
    /// The key of the connection pool. pingora itself does not compare the roots, and compares only the serial number
    /// of the certificate.
    pool: u64,
}

impl fmt::Debug for UpstreamTls {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("UpstreamTls").field("server_name", &self.server_name).finish_non_exhaustive()
    }
}

/// Two settings are equal if they share connections.
impl PartialEq for UpstreamTls {
    fn eq(&self, other: &Self) -> bool {
        self.pool == other.pool
    }
}

impl Eq for UpstreamTls {}

impl UpstreamTls {
    /// Accepts servers whose certificate one of these authorities issued for `server_name`, or if there is none, for
    /// the host of their address. The proxy presents the certificate of `identity` if a server requests one.
    pub fn new(server_name: Option<String>, authorities: &[CertificateDer<'static>], identity: Option<&Pair>) -> Self {
        let wrapped = |authority: &CertificateDer<'_>| WrappedX509::new(authority.to_vec(), parse_x509);
        let cert_key = |pair: &Pair| {
            let chain = pair.chain().iter().map(|certificate| certificate.to_vec()).collect();
            Arc::new(CertKey::new(chain, pair.key().secret_der().to_vec()))
        };
        Self {
            pool: pool(server_name.as_deref(), authorities, identity),
            server_name,
            roots: authorities.iter().map(wrapped).collect(),
            identity: identity.map(cert_key),
        }
    }

    /// The key of the pool of connections that are authenticated in this way.
    pub(crate) fn pool(&self) -> u64 {
        self.pool
    }

    /// The name that all certificates must be issued for, if it is not the name of the server.
    pub fn server_name(&self) -> Option<&str> {
        self.server_name.as_deref()
    }

    /// The name that the certificate of a server must be issued for. Never empty: without a name pingora checks
    /// nothing.
    pub(crate) fn name_of(&self, server: &str) -> String {
        let host = || server.rsplit_once(':').map_or(server, |(host, _)| host).trim_matches(['[', ']']);
        self.server_name.as_deref().unwrap_or_else(host).to_owned()
    }

    pub(crate) fn secure(&self, peer: &mut HttpPeer) {
        peer.options.ca = Some(Arc::clone(&self.roots));
        peer.client_cert_key.clone_from(&self.identity);
        peer.options.verify_cert = true;
        peer.options.verify_hostname = true;
        peer.group_key = self.pool;
    }
}

fn pool(name: Option<&str>, authorities: &[CertificateDer<'static>], identity: Option<&Pair>) -> u64 {
    let mut hasher = PartsHasher::default();
    hasher.add(name.unwrap_or_default().as_bytes());
    for authority in authorities {
        hasher.add(authority);
    }
    // The empty separator between authorities and certificates cannot be a certificate.
    hasher.add(b"");
    for certificate in identity.into_iter().flat_map(Pair::chain) {
        hasher.add(certificate);
    }
    hasher.hash().iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_known_by_its_host_where_no_name_is_given() {
        let tls = UpstreamTls::new(None, &[], None);
        for (server, name) in [("backend:8443", "backend"), ("127.0.0.1:1", "127.0.0.1"), ("[::1]:1", "::1")] {
            assert_eq!(tls.name_of(server), name);
        }
        assert_eq!(UpstreamTls::new(Some("other".into()), &[], None).name_of("backend:1"), "other");
    }

    #[test]
    fn what_is_checked_otherwise_does_not_share_connections() {
        let authority = |octet: u8| CertificateDer::from(vec![octet; 3]);
        let of = |name: Option<&str>, authorities: &[CertificateDer<'static>]| pool(name, authorities, None);
        let (one, two) = (authority(1), authority(2));
        assert_eq!(of(None, std::slice::from_ref(&one)), of(None, std::slice::from_ref(&one)));
        assert_ne!(of(None, std::slice::from_ref(&one)), of(None, std::slice::from_ref(&two)));
        assert_ne!(of(None, std::slice::from_ref(&one)), of(None, &[one.clone(), two]));
        assert_ne!(of(None, std::slice::from_ref(&one)), of(Some("a"), &[one]));
    }
}
