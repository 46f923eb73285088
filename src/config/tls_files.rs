//! Files with certificates and keys. They are read while the configuration is, so that a problem with one is known before
//! the proxy serves any request.

use std::{path::PathBuf, time::SystemTime};

use super::{check::Check, client_tls::path, written::Text};
use crate::tls::{FileError, Pair, Validity};

/// Loads a certificate and its key, each given with the text that names it. `mend` is the hint for a certificate
/// outside its validity period.
pub(super) fn pair(
    check: &mut Check<'_>,
    certificate: (&Text, &PathBuf),
    key: (&Text, &PathBuf),
    mend: &str,
) -> Option<Pair> {
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

/// Returns an absolute path. A relative one is reported, and is not checked further.
pub(super) fn file(check: &mut Check<'_>, key: &str, value: Option<&Text>) -> Option<PathBuf> {
    path(check, key, value).filter(|path| path.is_absolute())
}

/// Reports a file that cannot be used.
pub(super) fn report(check: &mut Check<'_>, text: &Text, error: &FileError) {
    check.hinted(text.span(), error.to_string(), error.hint());
}
