//! The TLS keys. The files that they name are read here, so that a problem with one is known before the proxy serves
//! any request.

use std::sync::Arc;

use rustls::pki_types::ServerName;

use super::{check::Check, secrets::warn_if_open};
use crate::{
    config::{
        Listen, Server,
        raw::Text,
        server::ServerKeys,
        server_tls::ServerTlsKeys,
        tls_files::{file, pair, report},
        upstream::{UpstreamKeys, UpstreamTlsKeys},
        written::Written,
    },
    tls::{ClientAuth, Pair, ServerTls, UpstreamTls, authorities, system_authorities},
};

/// The beginning of a server that is reached over TLS.
pub(super) const SCHEME: &str = "https://";

/// Reports authorities of client certificates that nobody asks for, or that are missing.
pub(super) fn server(check: &mut Check<'_>, keys: &ServerTlsKeys, tls: &ServerTls) {
    let is_off = tls.client_auth == ClientAuth::Off;
    match (&keys.client_ca, tls.client_ca.as_ref().filter(|file| file.is_absolute())) {
        (Some(text), Some(file)) if is_off => {
            let hint = "write client_auth = \"optional\" or \"required\"";
            check.hinted(text.span(), format!("{} is set, but client_auth is off", file.display()), hint);
        }
        (Some(text), Some(file)) => {
            if let Err(error) = authorities(file) {
                report(check, text, &error);
            }
        }
        _ => check.refuse(
            keys.client_auth.as_ref(),
            !is_off,
            "clients are asked for a certificate, but there is no client_ca",
            "write client_ca = \"/etc/...\", the authority of your clients' certificates",
        ),
    }
}

/// Reports a TLS listener without a certificate, which could answer no client, and a certificate without a listener.
pub(super) fn refuse_missing(check: &mut Check<'_>, keys: &ServerKeys, server: &Server) {
    let is_tls = |listen: &Listen| matches!(listen, Listen::Tls(_));
    let listens = server.listen.iter().any(is_tls);
    match (&keys.listen, keys.tls.certificates.first()) {
        (Some(list), None) if listens && !check.written.unreadable(&["server", "tls", "certificates"]) => {
            let hint = "write certificates = [{ cert = \"/etc/...\", key = \"/etc/...\" }] in [server.tls]";
            check.hinted(list.span(), "a listener speaks TLS, but there is no certificate", hint);
        }
        (_, Some(first)) if !listens && !check.written.unreadable(&["server", "listen"]) => {
            let hint = "begin an address of listen with tls:, for example \"tls:0.0.0.0:443\"";
            check.hinted(first.span(), "there is a certificate, but no listener speaks TLS", hint);
        }
        _ => {}
    }
}

/// Returns the TLS settings for the servers of an upstream; `None` without TLS.
pub(super) fn upstream(check: &mut Check<'_>, raw: &UpstreamKeys) -> Option<Arc<UpstreamTls>> {
    let servers = raw.servers.as_ref()?;
    let is_secure = |text: &&Text| text.get_ref().starts_with(SCHEME);
    let secure = servers.get_ref().iter().filter(is_secure).count();
    let tls = &raw.tls;
    if secure == 0 {
        let written = [&tls.server_name, &tls.ca, &tls.cert, &tls.key].into_iter().flatten();
        let text = written.into_iter().find(|text| !text.get_ref().is_empty());
        let hint = "begin its servers with https://";
        check.refuse(text, true, "tls is set, but the servers are reached without it", hint);
        return None;
    }
    if secure < servers.get_ref().len() {
        check.hinted(servers.span(), "some servers use https and some do not", "write all of them as https://");
    }
    let server_name = tls.server_name.as_ref().filter(|name| !name.get_ref().is_empty());
    if let Some(name) = server_name
        && ServerName::try_from(name.get_ref().as_str()).is_err()
    {
        let message = format!("tls.server_name {:?} is not a host name", name.get_ref());
        check.hinted(name.span(), message, "write it without port, for example \"backend.example.com\"");
    }
    let identity = identity(check, tls);
    let roots = match (&tls.ca, file(check, "tls.ca", tls.ca.as_ref())) {
        (Some(text), Some(file)) => authorities(&file).map_err(|error| report(check, text, &error)).unwrap_or_default(),
        _ => system_roots(check, servers.get_ref().first()?),
    };
    let tls = UpstreamTls::new(server_name.map(|name| name.get_ref().to_ascii_lowercase()), &roots, identity.as_ref());
    Some(Arc::new(tls))
}

fn system_roots(check: &mut Check<'_>, server: &Text) -> Vec<rustls::pki_types::CertificateDer<'static>> {
    let roots = system_authorities();
    if roots.is_empty() {
        let hint = "install them (Debian: ca-certificates), or name your own in tls.ca";
        check.hinted(server.span(), "this system has no authorities to check the server's certificate against", hint);
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
