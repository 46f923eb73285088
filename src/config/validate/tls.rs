//! The rules over several keys of `[server]` and `[server.tls]`.

use super::check::Check;
use crate::{
    config::{Listen, Server, server::ServerKeys, server_tls::ServerTlsKeys, tls_files::report},
    tls::{ClientAuth, ServerTls, authorities},
};

/// Reports authorities of client certificates that no listener asks for, or that are missing.
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
