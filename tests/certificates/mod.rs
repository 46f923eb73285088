//! Certificates for tests, made as they are needed: of any name, authority and time.

#![allow(clippy::expect_used, dead_code, unreachable_pub, reason = "not each binary that shares this uses all of it")]

use std::{
    fs::OpenOptions,
    io::Write as _,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};

/// An authority that issues certificates.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate with its key, in PEM form.
#[derive(Clone)]
pub struct Issued {
    pub certificate: String,
    pub key: String,
}

/// When a certificate is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    Now,
    Past,
    Future,
}

impl Authority {
    pub fn new(name: &str) -> Self {
        let mut params = params(&[], name, Time::Now);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        Self { issuer: CertifiedIssuer::self_signed(params, key).expect("a certificate") }
    }

    /// A certificate for a server or a client of these names.
    pub fn issue(&self, names: &[&str]) -> Issued {
        self.issue_at(names, Time::Now)
    }

    pub fn issue_at(&self, names: &[&str], time: Time) -> Issued {
        let key = KeyPair::generate().expect("a key");
        let params = params(names, names.first().copied().unwrap_or("nobody"), time);
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        Issued { certificate: certificate.pem(), key: key.serialize_pem() }
    }

    /// Its own certificate, in PEM form.
    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// Writes its own certificate into a directory.
    pub fn write(&self, directory: &Path, name: &str) -> PathBuf {
        let file = directory.join(format!("{name}.pem"));
        replace(&file, &self.pem());
        file
    }
}

impl Issued {
    /// Writes certificate and key into a directory, in place of those that are there.
    pub fn write(&self, directory: &Path, name: &str) -> (PathBuf, PathBuf) {
        let [certificate, key] = ["pem", "key"].map(|end| directory.join(format!("{name}.{end}")));
        for (file, text) in [(&certificate, &self.certificate), (&key, &self.key)] {
            replace(file, text);
        }
        (certificate, key)
    }
}

/// Writes a file that no reader sees half written, even if another process writes it at the same time.
fn replace(file: &Path, text: &str) {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let new = file.with_extension(format!("new-{}", NUMBER.fetch_add(1, Ordering::Relaxed)));
    let mut created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new).expect("a file");
    created.write_all(text.as_bytes()).expect("a file");
    std::fs::rename(&new, file).expect("a file");
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
