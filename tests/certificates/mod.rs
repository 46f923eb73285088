//! Certificates for tests, made as they are needed: of any name, authority and time.

#![allow(dead_code, reason = "not each binary that shares this uses all of it")]

use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};

/// Somebody who issues certificates.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate with its key, in PEM form.
#[derive(Clone)]
pub(crate) struct Issued {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// When a certificate is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Time {
    Now,
    Past,
    Future,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = params(&[], name, Time::Now);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        Self { issuer: CertifiedIssuer::self_signed(params, key).expect("a certificate") }
    }

    /// A certificate for a server or a client of these names.
    pub(crate) fn issue(&self, names: &[&str]) -> Issued {
        self.issue_at(names, Time::Now)
    }

    pub(crate) fn issue_at(&self, names: &[&str], time: Time) -> Issued {
        let key = KeyPair::generate().expect("a key");
        let params = params(names, names.first().copied().unwrap_or("nobody"), time);
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        Issued { certificate: certificate.pem(), key: key.serialize_pem() }
    }

    /// Its own certificate, in PEM form.
    pub(crate) fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// Writes its own certificate into a directory.
    pub(crate) fn write(&self, directory: &Path, name: &str) -> PathBuf {
        let file = directory.join(format!("{name}.pem"));
        std::fs::write(&file, self.pem()).expect("a file");
        file
    }
}

impl Issued {
    /// Writes certificate and key into a directory, in place of those that are there.
    pub(crate) fn write(&self, directory: &Path, name: &str) -> (PathBuf, PathBuf) {
        let [certificate, key] = ["pem", "key"].map(|end| directory.join(format!("{name}.{end}")));
        for (file, text) in [(&certificate, &self.certificate), (&key, &self.key)] {
            let new = file.with_extension("new");
            std::fs::write(&new, text).expect("a file");
            std::fs::rename(&new, file).expect("a file");
        }
        (certificate, key)
    }
}

fn params(names: &[&str], common_name: &str, time: Time) -> CertificateParams {
    let names = names.iter().map(ToString::to_string).collect::<Vec<_>>();
    let mut params = CertificateParams::new(names).expect("names");
    params.distinguished_name.push(DnType::CommonName, common_name);
    let (from, until) = match time {
        Time::Now => (2020, 2090),
        Time::Past => (2001, 2002),
        Time::Future => (2080, 2090),
    };
    params.not_before = date_time_ymd(from, 1, 1);
    params.not_after = date_time_ymd(until, 1, 1);
    params
}
