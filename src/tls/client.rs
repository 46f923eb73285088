//! The client's side of TLS.

use rustls::{ClientConfig, Error, RootCertStore, pki_types::CertificateDer};

use super::{Pair, files::provider};

/// Returns a client that trusts servers with a certificate of these authorities. It shows its own certificate, if it
/// has one, to servers that ask for it.
pub fn client(authorities: Vec<CertificateDer<'static>>, own: Option<Pair>) -> Result<ClientConfig, Error> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(authorities);
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots);
    match own {
        Some(own) => builder.with_client_auth_cert(own.chain().to_vec(), own.key().clone_key()),
        None => Ok(builder.with_no_client_auth()),
    }
}
