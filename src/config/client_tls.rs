//! The certificates for connections to a store or a collector.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::{
    check::Check,
    secrets::warn_if_open,
    section::Layers,
    table::{InWords, ValueKind, section},
    written::{Text, Written},
};

/// The PEM files with certificates for connections to a store or a collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// The authorities that may have issued the servers' certificates.
    pub ca: Option<PathBuf>,
    /// The certificate of this program and its key.
    pub identity: Option<(PathBuf, PathBuf)>,
}

section!(keys TlsKeys {
    /// The authorities that may have issued the server's certificate, a PEM file.
    ca: Option<Text>;
    /// The certificate of this program, a PEM file.
    cert: Option<Text>;
    /// The key of that certificate, a PEM file.
    key: Option<Text>;
});

/// The table of certificates. Its term is the message and the hint for certificates that have no effect.
pub(super) struct ClientTls;

impl ValueKind<Option<Tls>> for ClientTls {
    type Written = TlsKeys;
    type Terms = Option<(&'static str, &'static str)>;

    fn read(check: &mut Check<'_>, key: &str, written: Layers<'_, TlsKeys>, unused: Self::Terms) -> Option<Tls> {
        client_tls(check, key, written.own, unused)
    }
}

impl InWords for Tls {
    fn shown(&self) -> Value {
        let (certificate, key) = self.identity.as_ref().map(|(certificate, key)| (certificate, key)).unzip();
        json!({ "ca": self.ca, "cert": certificate, "key": key })
    }
}

/// Returns the certificates of a client. `unused` is the message and the hint for certificates that have no effect.
pub(super) fn client_tls(
    check: &mut Check<'_>,
    name: &str,
    keys: &TlsKeys,
    unused: Option<(&str, &str)>,
) -> Option<Tls> {
    let ca = path(check, &format!("{name}.ca"), keys.ca.as_ref());
    let certificate = path(check, &format!("{name}.cert"), keys.cert.as_ref());
    let key = path(check, &format!("{name}.key"), keys.key.as_ref());
    if let Some(file) = &keys.key {
        warn_if_open(check, &format!("{name}.key"), file);
    }
    let alone = if certificate.is_some() { keys.cert.as_ref() } else { keys.key.as_ref() };
    let message = format!("{name}.cert and {name}.key belong together");
    check.refuse(alone, certificate.is_some() != key.is_some(), message, "write both, or neither");
    let identity = certificate.zip(key);
    let tls = (ca.is_some() || identity.is_some()).then_some(Tls { ca, identity });
    let span = [&keys.ca, &keys.cert].into_iter().flatten().map(Written::span).next();
    if let Some(((message, hint), span)) = unused.zip(span).filter(|_| tls.is_some()) {
        check.hinted(span, message, hint);
    }
    tls
}

/// The path of a file; an empty text means none.
pub(super) struct File;

impl ValueKind<Option<PathBuf>> for File {
    type Written = Option<Text>;
    type Terms = ();

    fn read(check: &mut Check<'_>, key: &str, written: Option<&Text>, (): ()) -> Option<PathBuf> {
        path(check, key, written)
    }
}

/// Returns the path of a file; `None` if the text is empty.
pub(super) fn path(check: &mut Check<'_>, key: &str, value: Option<&Text>) -> Option<PathBuf> {
    let value = value.filter(|text| !text.get_ref().is_empty())?;
    Some(check.absolute_path(key, value, "write the path from the root on, \"/etc/ifmatch/...\""))
}
