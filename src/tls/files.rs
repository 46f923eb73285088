//! PEM files (RFC 7468), and what can be wrong with them.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use rustls::{
    RootCertStore,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    sign::CertifiedKey,
};
use thiserror::Error;
use x509_parser::{parse_x509_certificate, time::ASN1Time};

/// A file from which no certificates or no key can be read.
#[derive(Debug, Error)]
#[error("{} {fault}", .path.display())]
pub struct FileError {
    path: PathBuf,
    #[source]
    fault: FileFault,
}

#[derive(Debug, Error)]
pub(super) enum FileFault {
    #[error("cannot be read: {0}")]
    Unreadable(io::Error),
    #[error("is not in PEM form")]
    NotPem,
    #[error("holds no certificate")]
    NoCertificate,
    #[error("holds a certificate that cannot be understood")]
    BadCertificate,
    #[error("holds no private key")]
    NoKey,
    #[error("holds a private key that is encrypted")]
    Encrypted,
    #[error("holds a private key of a kind that is not supported")]
    BadKey,
    #[error("holds a key that does not belong to the certificate")]
    Mismatch,
    #[error("holds no authority that certificates can be checked against")]
    NoAuthority,
    #[error("cannot be used: {0}")]
    Unusable(rustls::Error),
}

impl FileError {
    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How to fix it.
    pub fn hint(&self) -> &'static str {
        match &self.fault {
            FileFault::Unreadable(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                "let the user that ifmatch runs as read it"
            }
            FileFault::Unreadable(_) => "write the path of a file that exists",
            FileFault::NotPem | FileFault::NoCertificate | FileFault::BadCertificate => {
                "it begins with -----BEGIN CERTIFICATE-----; the certificate comes first, those that it was signed with \
                 follow"
            }
            FileFault::NoKey | FileFault::BadKey => {
                "it begins with -----BEGIN PRIVATE KEY-----; RSA from 2048 bits on, ECDSA (P-256, P-384, P-521), Ed25519"
            }
            FileFault::Encrypted => "store it without a passphrase: openssl pkey -in KEY -out PLAIN",
            FileFault::Mismatch => {
                "take the key that the certificate was requested with, and the certificate's own file first"
            }
            FileFault::NoAuthority | FileFault::Unusable(_) => "name the file of the authority's own certificate",
        }
    }
}

/// The validity of a certificate at a given time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Validity {
    /// The certificate is valid.
    Valid,
    /// The certificate expired at this time.
    Expired(String),
    /// The certificate is valid only from this time on.
    NotYet(String),
}

/// A certificate, the certificates that it was signed with, and its key.
#[derive(Debug)]
pub struct Pair {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl Pair {
    /// Reads a certificate and its key, and checks that they belong together.
    pub fn load(certificate: &Path, key: &Path) -> Result<Self, FileError> {
        let pair = Self { chain: certificates(certificate)?, key: private_key(key)? };
        pair.certified().map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => FileFault::Mismatch.of(key),
            rustls::Error::InvalidCertificate(_) => FileFault::BadCertificate.of(certificate),
            _ => FileFault::BadKey.of(key),
        })?;
        Ok(pair)
    }

    /// The certificate, followed by those that it was signed with, each in DER form. Never empty.
    pub fn chain(&self) -> &[CertificateDer<'static>] {
        &self.chain
    }

    /// The key in DER form. It is a secret.
    pub fn key(&self) -> &PrivateKeyDer<'static> {
        &self.key
    }

    /// Returns the Unix time at which the certificate expires, in seconds.
    pub fn expires_at(&self) -> Option<u64> {
        let (_, leaf) = parse_x509_certificate(self.chain.first()?).ok()?;
        u64::try_from(leaf.validity().not_after.timestamp()).ok()
    }

    /// Returns the validity of the certificate at the time `now`.
    pub fn validity(&self, now: SystemTime) -> Validity {
        let seconds = now.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let Ok(now) = ASN1Time::from_timestamp(i64::try_from(seconds).unwrap_or(i64::MAX)) else {
            return Validity::Valid;
        };
        let Some(Ok((_, leaf))) = self.chain.first().map(|leaf| parse_x509_certificate(leaf)) else {
            return Validity::Valid;
        };
        let validity = leaf.validity();
        if now > validity.not_after {
            Validity::Expired(validity.not_after.to_string())
        } else if now < validity.not_before {
            Validity::NotYet(validity.not_before.to_string())
        } else {
            Validity::Valid
        }
    }

    pub(super) fn certified(&self) -> Result<CertifiedKey, rustls::Error> {
        CertifiedKey::from_der(self.chain.clone(), self.key.clone_key(), &provider())
    }
}

/// The cryptography provider for all connections.
pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// Reads the certificates of authorities, each in DER form. Never empty.
pub fn authorities(path: &Path) -> Result<Vec<CertificateDer<'static>>, FileError> {
    let found = certificates(path)?;
    let mut roots = RootCertStore::empty();
    for authority in &found {
        roots.add(authority.clone()).map_err(|_unfit| FileFault::NoAuthority.of(path))?;
    }
    Ok(found)
}

/// Reads the authorities that the operating system trusts, each in DER form. Those that cannot be parsed are left out.
/// `SSL_CERT_FILE` and `SSL_CERT_DIR` name others.
pub fn system_authorities() -> Vec<CertificateDer<'static>> {
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!(%error, "some system authorities cannot be read");
    }
    let is_usable = |authority: &CertificateDer<'static>| {
        RootCertStore::empty().add(authority.clone()).is_ok() && parse_x509_certificate(authority).is_ok()
    };
    found.certs.into_iter().filter(is_usable).collect()
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, FileError> {
    let text = read(path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let found = found.map_err(|_malformed| FileFault::NotPem.of(path))?;
    if found.is_empty() {
        return Err(FileFault::NoCertificate.of(path));
    }
    if found.iter().any(|certificate| parse_x509_certificate(certificate).is_err()) {
        return Err(FileFault::BadCertificate.of(path));
    }
    Ok(found)
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, FileError> {
    let text = read(path)?;
    let is_encrypted = text.windows(9).any(|word| word == b"ENCRYPTED");
    PrivateKeyDer::from_pem_slice(&text)
        .map_err(|_none| if is_encrypted { FileFault::Encrypted } else { FileFault::NoKey }.of(path))
}

fn read(path: &Path) -> Result<Vec<u8>, FileError> {
    fs::read(path).map_err(|error| FileFault::Unreadable(error).of(path))
}

impl FileFault {
    pub(super) fn of(self, path: &Path) -> FileError {
        FileError { path: path.to_owned(), fault: self }
    }
}
