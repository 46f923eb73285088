//! The TLS settings of listeners.

use std::{path::PathBuf, time::Duration};

/// The `[server.tls]` table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerTls {
    /// The certificates, of which a client gets the first that fits the name it asks for, else the first of all; never
    /// empty where a listener speaks TLS.
    pub certificates: Vec<CertificateFiles>,
    /// Whether clients are asked for a certificate.
    pub client_auth: ClientAuth,
    /// Whose certificates clients may have, in PEM form; there unless they are not asked.
    pub client_ca: Option<PathBuf>,
    /// How long a handshake may take.
    pub handshake_timeout: Duration,
    /// How often the files are looked at for changes.
    pub reload_interval: Duration,
}

impl ServerTls {
    /// All files that it names.
    pub fn files(&self) -> impl Iterator<Item = &PathBuf> {
        self.certificates.iter().flat_map(|files| [&files.certificate, &files.key]).chain(&self.client_ca)
    }
}

/// A certificate and its key, in files in PEM form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The certificate, and after it those that it was signed with.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// Whether clients are asked for a certificate (`client_auth`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientAuth {
    /// They are not.
    Off,
    /// One that has none is let in; one that has a wrong one is not.
    Optional,
    /// One that has none is not let in.
    Required,
}
