//! The sessions of clients that return, resumed by tickets (RFC 8446 section 2.2, RFC 5077).
//!
//! # Design
//!
//! *How long does a session last?* The keys of tickets change every six hours, and those before them count for six
//! hours more. Only this process has them. A session ends earlier with the certificates that it began under, so no
//! client sees a certificate that was replaced. A reload that leaves the certificates ends no session.
//!
//! *Why are no sessions resumed if clients show certificates?* A resumed session shows none. So the proxy would not see
//! that the certificate has expired, or that its authority was removed.
//!
//! *Why not sessions that the server remembers?* They need memory for each client, and two tickets of one client would
//! push out the session of another.

use std::sync::Arc;

use rustls::{
    Error, ServerConfig,
    crypto::ring::Ticketer,
    server::{NoServerSessionStorage, ProducesTickets},
    sign::CertifiedKey,
};

use super::ClientAuth;

/// The keys of tickets for sessions that began under some certificates.
#[derive(Clone, Debug)]
pub(super) struct Sessions {
    certificates: blake3::Hash,
    tickets: Arc<dyn ProducesTickets>,
}

impl Sessions {
    /// Returns the keys for sessions under these certificates: those from before if the certificates are the same.
    pub(super) fn under(certificates: &[Arc<CertifiedKey>], before: Option<&Self>) -> Result<Self, Error> {
        let hash = hash_of(certificates);
        match before.filter(|before| before.certificates == hash) {
            Some(before) => Ok(before.clone()),
            None => Ok(Self { certificates: hash, tickets: Ticketer::new()? }),
        }
    }

    /// Lets clients resume sessions under this configuration, unless it requests certificates from them.
    pub(super) fn resume_in(&self, config: &mut ServerConfig, client_auth: ClientAuth) {
        config.session_storage = Arc::new(NoServerSessionStorage {});
        if client_auth == ClientAuth::Off {
            config.ticketer = Arc::clone(&self.tickets);
        } else {
            config.send_tls13_tickets = 0;
        }
    }
}

fn hash_of(certificates: &[Arc<CertifiedKey>]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    for certificate in certificates.iter().flat_map(|certified| &certified.cert) {
        hasher.update(&(certificate.len() as u64).to_le_bytes());
        hasher.update(certificate);
    }
    hasher.finalize()
}
