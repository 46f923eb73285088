//! The proxy's own credentials, for the probes of routes that do not use those of the client (`probe_auth`).

use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use http::{HeaderName, HeaderValue};
use pingora::http::RequestHeader;

use super::signing::{NoKeys, Signer, Unsignable};
use crate::core::{
    http::credentials::CREDENTIAL_FIELDS,
    policy::{GuardRules, ProbeAuth},
};

/// The proxy's own credentials. They are never disclosed.
#[derive(Default)]
pub struct OwnCredentials {
    signer: Option<Arc<Signer>>,
    fields: HashMap<PathBuf, (HeaderName, HeaderValue)>,
}

/// A route probes with credentials that the process does not have.
#[derive(Debug, thiserror::Error)]
pub enum NoCredentials {
    /// The environment holds no keys to sign with.
    #[error(transparent)]
    Keys(#[from] NoKeys),
    /// The file of a field cannot be read.
    #[error("the credentials of probes cannot be read from {} (probe_field_file)", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        error: io::Error,
    },
    /// The file does not hold a field with credentials.
    #[error(
        "{} must hold one field with the credentials of probes, such as \"Authorization: Bearer ...\"; the field is \
         Authorization, Cookie, X-Api-Key, Api-Key, or one of the route's identity_headers", .0.display()
    )]
    NoField(PathBuf),
}

impl OwnCredentials {
    /// Reads the credentials that routes with these rules probe with: keys from the environment, fields from files.
    ///
    /// # Errors
    ///
    /// Returns an error for the first credentials that are missing or cannot be used.
    pub fn read<'a>(guards: impl Iterator<Item = &'a GuardRules>) -> Result<Self, NoCredentials> {
        let mut own = Self::default();
        for rules in guards {
            match (rules.probe_auth, &rules.probe_field_file) {
                (ProbeAuth::SigV4, _) if own.signer.is_none() => {
                    own.signer = Some(Arc::new(Signer::from_environment()?));
                }
                (ProbeAuth::Field, Some(path)) => {
                    let text =
                        fs::read_to_string(path).map_err(|error| NoCredentials::File { path: path.clone(), error })?;
                    let field = field(&text, &rules.identity_headers);
                    own.fields.insert(path.clone(), field.ok_or_else(|| NoCredentials::NoField(path.clone()))?);
                }
                _ => {}
            }
        }
        Ok(own)
    }

    /// Returns these credentials, with those before that they do not replace: probes in flight still need them.
    #[must_use]
    pub(crate) fn over(mut self, before: &Self) -> Self {
        self.signer = self.signer.or_else(|| before.signer.clone());
        for (path, field) in &before.fields {
            self.fields.entry(path.clone()).or_insert_with(|| field.clone());
        }
        self
    }

    /// Returns the credentials that sign a request.
    pub(crate) fn signer(&self) -> Option<&Signer> {
        self.signer.as_deref()
    }

    /// Puts the field from a file into the head of a request.
    pub(crate) fn put_field(&self, path: &Path, head: &mut RequestHeader) -> Result<(), Unsignable> {
        let (name, value) = self.fields.get(path).ok_or(Unsignable)?;
        head.insert_header(name.clone(), value.clone()).map_err(|_invalid| Unsignable)
    }
}

/// Returns the field in a text, if it may carry credentials. No other field may be set: a probe must ask for what the
/// client's write was judged by.
fn field(text: &str, identity_headers: &[HeaderName]) -> Option<(HeaderName, HeaderValue)> {
    let (name, value) = text.trim_end_matches(['\r', '\n']).split_once(':')?;
    let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
    let mut value = HeaderValue::from_str(value.trim()).ok().filter(|value| !value.is_empty())?;
    value.set_sensitive(true);
    let is_credential = CREDENTIAL_FIELDS.contains(&name) || identity_headers.contains(&name);
    is_credential.then_some((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_holds_one_field_that_carries_credentials() {
        let own = [HeaderName::from_static("x-user")];
        let read = |text| field(text, &own).map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()));
        for (text, expected) in [
            ("Authorization: Bearer abc\n", Some("authorization: Bearer abc")),
            ("x-api-key:abc", Some("x-api-key: abc")),
            ("X-User: ifmatch\r\n", Some("x-user: ifmatch")),
            ("Authorization:  \n", None),
            ("Bearer abc", None),
            ("If-Match: \"a\"", None),
            ("Host: elsewhere", None),
            ("Authorization: a\nCookie: b\n", None),
            ("", None),
        ] {
            assert_eq!(read(text).as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn what_a_reload_no_longer_names_stays_for_probes_under_way() {
        let with = |path: &str, value: &'static str| {
            let field = (CREDENTIAL_FIELDS[0].clone(), HeaderValue::from_static(value));
            OwnCredentials { signer: None, fields: HashMap::from([(PathBuf::from(path), field)]) }
        };
        let own = with("/b", "b").over(&with("/a", "a"));
        let own = with("/a", "new").over(&own);
        for (path, expected) in [("/a", Some("new")), ("/b", Some("b")), ("/c", None)] {
            let mut head = RequestHeader::build("GET", b"/", None).unwrap();
            let put = own.put_field(Path::new(path), &mut head).is_ok();
            let value = head.headers.get("authorization").map(|value| value.to_str().unwrap());
            assert_eq!((put, value), (expected.is_some(), expected), "{path}");
        }
    }
}
