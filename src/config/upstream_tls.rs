//! The `[upstreams.NAME.tls]` table. The files that it names are read here, so that a problem with one is known before
//! the proxy serves any request.

use std::{ops::Range, sync::Arc};

use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::{Value, json};

use super::{
    check::Check,
    secrets::warn_if_open,
    section::Layers,
    table::{InWords, ValueKind, section},
    tls_files::{file, pair, report},
    written::{Text, Written},
};
use crate::tls::{Pair, UpstreamTls, authorities, system_authorities};

section!(keys UpstreamTlsKeys {
    /// The name that the certificates of the servers must have.
    server_name: Option<Text>;
    /// The authorities that may have issued them, a PEM file.
    ca: Option<Text>;
    /// The certificate of this program, a PEM file.
    cert: Option<Text>;
    /// The key of that certificate, a PEM file.
    key: Option<Text>;
});

/// The TLS settings for servers. Its term is the position of a server that is reached over TLS, if there is one.
pub(super) struct TlsToServers;

impl ValueKind<Option<Arc<UpstreamTls>>> for TlsToServers {
    type Written = UpstreamTlsKeys;
    type Terms = Option<Range<usize>>;

    fn read(
        check: &mut Check<'_>,
        _key: &str,
        written: Layers<'_, UpstreamTlsKeys>,
        server: Self::Terms,
    ) -> Option<Arc<UpstreamTls>> {
        let tls = written.own;
        let Some(server) = server else {
            let written = [&tls.server_name, &tls.ca, &tls.cert, &tls.key].into_iter().flatten();
            let text = written.into_iter().find(|text| !text.get_ref().is_empty());
            let hint = "begin its servers with https://";
            check.refuse(text, true, "tls is set, but the servers are reached without it", hint);
            return None;
        };
        let server_name = tls.server_name.as_ref().filter(|name| !name.get_ref().is_empty());
        if let Some(name) = server_name
            && ServerName::try_from(name.get_ref().as_str()).is_err()
        {
            let message = format!("tls.server_name {:?} is not a host name", name.get_ref());
            check.hinted(name.span(), message, "write it without port, for example \"backend.example.com\"");
        }
        let identity = identity(check, tls);
        let roots = match (&tls.ca, file(check, "tls.ca", tls.ca.as_ref())) {
            (Some(text), Some(file)) => {
                authorities(&file).map_err(|error| report(check, text, &error)).unwrap_or_default()
            }
            _ => system_roots(check, server),
        };
        let server_name = server_name.map(|name| name.get_ref().to_ascii_lowercase());
        Some(Arc::new(UpstreamTls::new(server_name, &roots, identity.as_ref())))
    }
}

/// Shows only the name that servers are known by: the rest are files, which were read at the start.
impl InWords for Arc<UpstreamTls> {
    fn shown(&self) -> Value {
        json!({ "server_name": self.server_name() })
    }
}

fn system_roots(check: &mut Check<'_>, server: Range<usize>) -> Vec<CertificateDer<'static>> {
    let roots = system_authorities();
    if roots.is_empty() {
        let hint = "install them (Debian: ca-certificates), or name your own in tls.ca";
        check.hinted(server, "this system has no authorities to check the server's certificate against", hint);
    }
    roots
}

fn identity(check: &mut Check<'_>, tls: &UpstreamTlsKeys) -> Option<Pair> {
    let certificate = file(check, "tls.cert", tls.cert.as_ref());
    let key = file(check, "tls.key", tls.key.as_ref());
    if let Some(key) = &tls.key {
        warn_if_open(check, "tls.key", key);
    }
    match (&tls.cert, &tls.key, certificate, key) {
        (Some(cert), Some(key), Some(certificate), Some(key_file)) => {
            pair(check, (cert, &certificate), (key, &key_file), "replace the file, and reload the configuration")
        }
        (cert, _, Some(_), None) | (_, cert, None, Some(_)) => {
            let span = cert.as_ref().map(Written::span).unwrap_or_default();
            check.hinted(span, "tls.cert and tls.key belong together", "write both, or neither");
            None
        }
        _ => None,
    }
}
