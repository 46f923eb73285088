//! The `[server.tls]` table.

use std::{path::PathBuf, time::Duration};

use serde_json::{Value, json};

use super::{
    check::Check,
    client_tls::File,
    kinds::{OneOf, Time},
    secrets::warn_if_open,
    table::{InWords, ValueKind, section},
    tls_files::{file, pair},
    units::{hours, ms, seconds},
    written::{Text, Written},
};
use crate::tls::{CertificateFiles, ClientAuth, ServerTls};

section! {
    fills ServerTls of ServerTlsKeys {
        /// The certificates. A client gets the first that matches the name it requests, else the first of all.
        certificates: Vec<CertificateFiles> = Certificates(());
        /// Whether listeners request a certificate from clients.
        client_auth: ClientAuth = OneOf(ClientAuth::Off);
        /// The authorities that issue client certificates, a PEM file.
        client_ca: Option<PathBuf> = File(());
        /// How long a handshake may take.
        handshake_timeout: Duration = Time(seconds(10)) in ms(100)..=seconds(60);
        /// How often the files are checked for changes.
        reload_interval: Duration = Time(seconds(10)) in ms(100)..=hours(24);
    }
}

section!(keys CertificateKeys {
    /// The certificate, then its chain, a PEM file.
    cert: Option<Text>;
    /// The key of the certificate, a PEM file.
    key: Option<Text>;
});

/// A list of certificates with their keys.
pub(super) struct Certificates;

impl ValueKind<Vec<CertificateFiles>> for Certificates {
    type Written = Vec<Written<CertificateKeys>>;
    type Terms = ();

    fn read(check: &mut Check<'_>, key: &str, list: &Self::Written, (): ()) -> Vec<CertificateFiles> {
        list.iter().filter_map(|each| certificate(check, key, each)).collect()
    }
}

impl InWords for CertificateFiles {
    fn shown(&self) -> Value {
        json!({ "cert": self.certificate, "key": self.key })
    }
}

fn certificate(check: &mut Check<'_>, at: &str, spanned: &Written<CertificateKeys>) -> Option<CertificateFiles> {
    let (Some(cert), Some(key)) = (&spanned.get_ref().cert, &spanned.get_ref().key) else {
        let hint = "write { cert = \"/etc/...\", key = \"/etc/...\" }";
        check.hinted(spanned.span(), "a certificate is two files, cert and key", hint);
        return None;
    };
    let certificate = file(check, &format!("{at}.cert"), Some(cert))?;
    let key_file = file(check, &format!("{at}.key"), Some(key))?;
    warn_if_open(check, &format!("{at}.key"), key);
    let mend = "replace the file: a running ifmatch loads it without a reload";
    pair(check, (cert, &certificate), (key, &key_file), mend);
    Some(CertificateFiles { certificate, key: key_file })
}
