//! The TLS keys. The files that they name are read here, so that a problem with one is known before the proxy serves
//! any request.

use std::{path::PathBuf, sync::Arc, time::SystemTime};

use rustls::pki_types::ServerName;

use super::{check::Check, secrets::warn_if_open, shared};
use crate::{
    config::{
        Listen, Server, limits,
        raw::{self, Text},
        written::Written,
    },
    tls::{
        CertificateFiles, ClientAuth, FileError, Pair, ServerTls, UpstreamTls, Validity, authorities,
        system_authorities,
    },
};

/// The beginning of a server that is reached over TLS.
pub(super) const SCHEME: &str = "https://";

pub(super) fn server(check: &mut Check<'_>, raw: &raw::ServerTls) -> ServerTls {
    let client_auth = check.word("tls.client_auth", raw.client_auth.as_ref()).unwrap_or(ClientAuth::Off);
    ServerTls {
        certificates: raw.certificates.iter().filter_map(|each| certificate(check, each)).collect(),
        client_auth,
        client_ca: client_ca(check, raw, client_auth),
        handshake_timeout: check.duration(raw.handshake_timeout.as_ref(), limits::HANDSHAKE_TIMEOUT),
        reload_interval: check.duration(raw.reload_interval.as_ref(), limits::RELOAD_INTERVAL),
    }
}

/// Reports a TLS listener without a certificate, which could answer no client, and a certificate without a listener.
pub(super) fn refuse_missing(check: &mut Check<'_>, raw: &raw::Server, server: &Server) {
    let is_tls = |listen: &Listen| matches!(listen, Listen::Tls(_));
    let listens = server.listen.iter().any(is_tls);
    match (&raw.listen, raw.tls.certificates.first()) {
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

fn certificate(check: &mut Check<'_>, spanned: &raw::Written<raw::Certificate>) -> Option<CertificateFiles> {
    let raw = spanned.get_ref();
    let (Some(cert), Some(key)) = (&raw.cert, &raw.key) else {
        let hint = "write { cert = \"/etc/...\", key = \"/etc/...\" }";
        check.hinted(spanned.span(), "a certificate is two files, cert and key", hint);
        return None;
    };
    let certificate = file(check, "tls.certificates.cert", Some(cert))?;
    let key_file = file(check, "tls.certificates.key", Some(key))?;
    warn_if_open(check, "tls.certificates.key", key);
    let mend = "replace the file: a running ifmatch loads it without a reload";
    pair(check, (cert, &certificate), (key, &key_file), mend);
    Some(CertificateFiles { certificate, key: key_file })
}

fn client_ca(check: &mut Check<'_>, raw: &raw::ServerTls, auth: ClientAuth) -> Option<PathBuf> {
    let file = file(check, "tls.client_ca", raw.client_ca.as_ref());
    match (&raw.client_ca, &file) {
        (Some(text), Some(file)) if auth == ClientAuth::Off => {
            let hint = "write client_auth = \"optional\" or \"required\"";
            check.hinted(text.span(), format!("{} is set, but client_auth is off", file.display()), hint);
        }
        (Some(text), Some(file)) => {
            if let Err(error) = authorities(file) {
                report(check, text, &error);
            }
        }
        _ => check.refuse(
            raw.client_auth.as_ref(),
            auth != ClientAuth::Off,
            "clients are asked for a certificate, but there is no client_ca",
            "write client_ca = \"/etc/...\", the authority of your clients' certificates",
        ),
    }
    file
}

/// Returns the TLS settings for the servers of an upstream; `None` without TLS.
pub(super) fn upstream(check: &mut Check<'_>, raw: &raw::Upstream) -> Option<Arc<UpstreamTls>> {
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

fn identity(check: &mut Check<'_>, tls: &raw::UpstreamTls) -> Option<Pair> {
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

/// Loads a certificate and its key, each given with the text that names it. `mend` is the hint for a certificate
/// outside its validity period.
fn pair(check: &mut Check<'_>, certificate: (&Text, &PathBuf), key: (&Text, &PathBuf), mend: &str) -> Option<Pair> {
    let pair = match Pair::load(certificate.1, key.1) {
        Ok(pair) => pair,
        Err(error) => {
            let text = if error.path() == key.1 { key.0 } else { certificate.0 };
            report(check, text, &error);
            return None;
        }
    };
    let message = match pair.validity(SystemTime::now()) {
        Validity::Valid => return Some(pair),
        Validity::Expired(since) => format!("the certificate {} expired on {since}", certificate.1.display()),
        Validity::NotYet(from) => format!("the certificate {} is not valid before {from}", certificate.1.display()),
    };
    check.warn(certificate.0.span(), message, mend);
    Some(pair)
}

/// Returns an absolute path. A relative one is reported, and nothing more is checked of it.
fn file(check: &mut Check<'_>, key: &str, value: Option<&Text>) -> Option<PathBuf> {
    shared::path(check, key, value).filter(|path| path.is_absolute())
}

fn report(check: &mut Check<'_>, text: &Text, error: &FileError) {
    check.hinted(text.span(), error.to_string(), error.hint());
}
