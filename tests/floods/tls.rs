//! An HTTP/2 client over TLS, for floods of a proxy that speaks it.

use std::{net::SocketAddr, sync::Arc};

use pingora::tls::{ClientTlsStream, TlsConnector};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use tokio::net::TcpStream;

use crate::{
    arena::Arena,
    sockets::{HONEST, connect_from},
    support::{
        ports,
        proxy::Proxy,
        tls::{Office, Secure},
        wait::within,
    },
};

const NAME: &str = "proxy.example";

/// A proxy that speaks TLS beside plain HTTP, and a client that trusts its certificate.
pub struct SecureArena {
    _arena: Arena,
    addr: SocketAddr,
    connector: TlsConnector,
}

impl SecureArena {
    pub async fn start() -> Self {
        let office = Office::new();
        let (addr, issued) = (ports::free(), office.issue(&[NAME]));
        let arena = Arena::with(|to| Secure::configuration(&Proxy::to(to), addr, &[issued], ""), None).await;
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(office.ca()).expect("a certificate")).expect("it is an authority's");
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().expect("the provider has them");
        let mut config = builder.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec()];
        Self { _arena: arena, addr, connector: Arc::new(config).into() }
    }

    /// A connection on which both sides have agreed to speak HTTP/2.
    pub async fn connect(&self) -> ClientTlsStream<TcpStream> {
        let stream = connect_from(HONEST, self.addr).await.expect("it is let in");
        let name = ServerName::try_from(NAME).expect("a name");
        let stream = within("a handshake", self.connector.connect(name, stream)).await.expect("a handshake");
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        stream
    }
}
