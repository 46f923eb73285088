//! The TLS settings of listeners.

use std::{path::PathBuf, time::Duration};

/// The `[server.tls]` table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerTls {
    /// The certificates. A client gets the first that matches the name it requests, else the first of all. Never empty
    /// if a listener speaks TLS.
    pub certificates: Vec<CertificateFiles>,
    /// The rule by which listeners request a certificate from clients.
    pub client_auth: ClientAuth,
    /// The PEM file of the authorities that issue client certificates. Present unless `client_auth` is off.
    pub client_ca: Option<PathBuf>,
    /// How long a handshake may take.
    pub handshake_timeout: Duration,
    /// How often the files are checked for changes.
    pub reload_interval: Duration,
}

impl ServerTls {
    /// All files that the settings name.
    pub fn files(&self) -> impl Iterator<Item = &PathBuf> {
        self.certificates.iter().flat_map(|files| [&files.certificate, &files.key]).chain(&self.client_ca)
    }
}

/// The PEM files of a certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The certificate, followed by those that it was signed with.
    pub certificate: PathBuf,
    /// The key of the certificate.
    pub key: PathBuf,
}

/// The rule by which listeners request a certificate from clients (`client_auth`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientAuth {
    /// Listeners request no certificate.
    Off,
    /// A client without a certificate is accepted, one with a wrong certificate is rejected.
    Optional,
    /// A client without a certificate is rejected.
    Required,
}
