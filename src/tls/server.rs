//! The TLS handshakes of listeners: the certificate for each name, and the requirements on clients.

use std::sync::Arc;

use rustls::{
    RootCertStore, ServerConfig,
    client::verify_server_name,
    pki_types::ServerName,
    server::{
        ClientHello, NoClientAuth, ParsedCertificate, ResolvesServerCert, WebPkiClientVerifier,
        danger::ClientCertVerifier,
    },
    sign::CertifiedKey,
    version::{TLS12, TLS13},
};

use super::{
    ClientAuth, ServerTls,
    files::{FileError, FileFault, Pair, authorities, provider},
    sessions::Sessions,
};

/// The protocols offered by ALPN (RFC 7301), the preferred one first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Builds the handshake configuration of listeners: TLS 1.2 and 1.3, the certificate that matches the requested name,
/// and the requirements on clients. Sessions from before go on if they may.
pub(super) fn server_config(
    settings: &ServerTls,
    before: Option<&Sessions>,
) -> Result<(ServerConfig, Sessions), FileError> {
    let mut certificates = Vec::new();
    for files in &settings.certificates {
        let certified = Pair::load(&files.certificate, &files.key)?.certified();
        certificates.push(Arc::new(certified.map_err(|error| FileFault::Unusable(error).of(&files.certificate))?));
    }
    let first = settings.certificates.first().map(|files| files.certificate.clone()).unwrap_or_default();
    let unusable = |error| FileFault::Unusable(error).of(&first);
    let sessions = Sessions::under(&certificates, before).map_err(unusable)?;
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13, &TLS12])
        .map_err(unusable)?
        .with_client_cert_verifier(client_verifier(settings)?)
        .with_cert_resolver(Arc::new(ByName { certificates }));
    config.alpn_protocols = PROTOCOLS.iter().map(|protocol| protocol.to_vec()).collect();
    sessions.resume_in(&mut config, settings.client_auth);
    Ok((config, sessions))
}

fn client_verifier(settings: &ServerTls) -> Result<Arc<dyn ClientCertVerifier>, FileError> {
    let Some(path) = settings.client_ca.as_ref().filter(|_| settings.client_auth != ClientAuth::Off) else {
        return Ok(Arc::new(NoClientAuth));
    };
    let mut roots = RootCertStore::empty();
    for authority in authorities(path)? {
        roots.add(authority).map_err(|error| FileFault::Unusable(error).of(path))?;
    }
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider());
    let builder = if settings.client_auth == ClientAuth::Optional { builder.allow_unauthenticated() } else { builder };
    let verifier = builder.build().map_err(|_none| FileFault::NoAuthority.of(path))?;
    Ok(verifier)
}

/// The certificates in configuration order. Selects the first that is valid for the name, else the first of all.
#[derive(Debug)]
struct ByName {
    certificates: Vec<Arc<CertifiedKey>>,
}

impl ResolvesServerCert for ByName {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name().and_then(|name| ServerName::try_from(name).ok());
        let fits = |certificate: &&Arc<CertifiedKey>| name.as_ref().is_some_and(|name| is_for(certificate, name));
        self.certificates.iter().find(fits).or(self.certificates.first()).cloned()
    }
}

fn is_for(certificate: &CertifiedKey, name: &ServerName<'_>) -> bool {
    let leaf = certificate.end_entity_cert().ok().and_then(|leaf| ParsedCertificate::try_from(leaf).ok());
    leaf.is_some_and(|leaf| verify_server_name(&leaf, name).is_ok())
}
