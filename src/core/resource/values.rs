//! The values that a request gives to the placeholders of a key template.
//!
//! Every value is spelled as it would be in a path of normal form. So `/documents/{id}`, `/documents/{query.id}` and
//! the `{path}` of another route make one key for one document.

use std::borrow::Cow;

use http::{HeaderMap, HeaderName};
use percent_encoding::{AsciiSet, percent_decode, percent_encode};

use super::{
    super::{
        route::{Captures, host_name},
        target::{ENCODED, NormalPath, fold_normal, has_bad_encoding},
    },
    AmbiguousKey, KeyTemplate, ResourceKey,
    template::{ABSENT, TemplatePart},
};

/// The colon is encoded, because it ends the identity.
const IDENTITY_ENCODED: &AsciiSet = &ENCODED.add(b':');

/// The parts of a request that a key template can take values from.
#[derive(Clone, Copy, Debug)]
pub struct KeyParts<'a> {
    /// The host as received.
    pub host: &'a str,
    /// The path in normal form.
    pub path: &'a NormalPath,
    /// The captures of the route's path pattern.
    pub captures: &'a Captures<'a>,
    /// The query as received, without its `?`.
    pub query: Option<&'a [u8]>,
    /// The header fields.
    pub headers: &'a HeaderMap,
}

impl KeyTemplate {
    /// The key of a request to the upstream with this identity.
    pub fn key(&self, identity: &str, request: &KeyParts<'_>) -> Result<ResourceKey, AmbiguousKey> {
        let mut key = String::with_capacity(identity.len() + 1 + request.path.as_str().len());
        append_identity(&mut key, identity);
        let names = key.len();
        for part in &self.parts {
            append_part(&mut key, part, request)?;
        }
        if self.ignores_case {
            let folded = fold_normal(key.get(names..).unwrap_or_default()).into_owned();
            key.replace_range(names.., &folded);
        }
        Ok(ResourceKey::new(key))
    }
}

/// The beginning of all keys of the upstream with this identity.
pub(super) fn identity_prefix(identity: &str) -> String {
    let mut prefix = String::with_capacity(identity.len() + 1);
    append_identity(&mut prefix, identity);
    prefix
}

fn append_identity(key: &mut String, identity: &str) {
    key.extend(percent_encode(identity.as_bytes(), IDENTITY_ENCODED));
    key.push(':');
}

fn append_part(key: &mut String, part: &TemplatePart, request: &KeyParts<'_>) -> Result<(), AmbiguousKey> {
    match part {
        TemplatePart::Literal(text) => key.push_str(text),
        TemplatePart::Host => append(key, host_name(request.host).to_ascii_lowercase().as_bytes()),
        TemplatePart::Path => key.push_str(request.path.as_str()),
        TemplatePart::Capture { name, .. } => key.push_str(request.captures.get(name).unwrap_or_default()),
        TemplatePart::Query(name) => append_present(key, parameter(request.query, name)?.as_deref()),
        TemplatePart::Header(name) => append_present(key, field(request.headers, name)?),
    }
    Ok(())
}

/// Appends a value that may be absent, which is not the same as empty.
fn append_present(key: &mut String, value: Option<&[u8]>) {
    match value {
        Some(value) => append(key, value),
        None => key.push(char::from(ABSENT)),
    }
}

fn append(key: &mut String, value: &[u8]) {
    key.extend(percent_encode(value, ENCODED));
}

/// The decoded value of a query parameter, in the encoding of HTML forms: `&` between parameters, `+` for a space.
fn parameter<'a>(query: Option<&'a [u8]>, name: &str) -> Result<Option<Cow<'a, [u8]>>, AmbiguousKey> {
    let Some(query) = query else { return Ok(None) };
    if query.iter().any(|octet| matches!(octet, b';' | b'#')) {
        return Err(AmbiguousKey::Separator);
    }
    let mut found = None;
    for pair in query.split(|&octet| octet == b'&').filter(|pair| !pair.is_empty()) {
        let mut sides = pair.splitn(2, |&octet| octet == b'=');
        if *form_decode(sides.next().unwrap_or_default()) != *name.as_bytes() {
            continue;
        }
        let spelled = sides.next().unwrap_or_default();
        let value = form_decode(spelled);
        let readable = str::from_utf8(&value).is_ok_and(|text| !text.bytes().any(|octet| octet.is_ascii_control()));
        if !readable || has_bad_encoding(spelled) {
            return Err(AmbiguousKey::BadEncoding(name.to_owned()));
        }
        if found.as_ref().is_some_and(|earlier| *earlier != value) {
            return Err(AmbiguousKey::RepeatedParameter(name.to_owned()));
        }
        found = Some(value);
    }
    Ok(found)
}

fn form_decode(spelled: &[u8]) -> Cow<'_, [u8]> {
    if !spelled.iter().any(|octet| matches!(octet, b'+' | b'%')) {
        return Cow::Borrowed(spelled);
    }
    let spaced: Vec<u8> = spelled.iter().map(|&octet| if octet == b'+' { b' ' } else { octet }).collect();
    Cow::Owned(percent_decode(&spaced).collect())
}

/// The value of a header field that may occur several times, but with one value only.
fn field<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a [u8]>, AmbiguousKey> {
    let mut values = headers.get_all(name).iter().map(|value| value.as_bytes().trim_ascii());
    let first = values.next();
    if values.any(|value| Some(value) != first) {
        return Err(AmbiguousKey::RepeatedField(name.to_string()));
    }
    Ok(first)
}
