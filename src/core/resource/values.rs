//! The values that a request gives to the placeholders of a key template.
//!
//! Every value is spelled as it would be in a path of normal form. So `/documents/{id}`, `/documents/{query.id}` and
//! the `{path}` of another route make one key for one document.
//!
//! # Design
//!
//! *Why is an absent value the same as an empty one?* Some readers of queries drop a parameter without a value. Two
//! resources under one key cost a needless refusal; one resource under two keys costs an update.
//!
//! *Why is a query with very many parameters refused?* PHP and qs leave out all after the first thousand.

use std::borrow::Cow;

use http::{HeaderMap, HeaderName};
use percent_encoding::{AsciiSet, percent_encode};

use super::{
    super::{
        http::{
            readings::{
                json_field::json_field,
                query_names::{form_decode, is_only_read_as, may_be_read_as},
            },
            request_target::{ENCODED, NormalPath, fold_normal, has_bad_encoding},
        },
        route::{Captures, host_name},
    },
    AmbiguousKey, KeyTemplate, ResourceKey,
    template::{ABSENT, TemplatePart},
};

/// The colon is encoded, because it ends the identity.
const IDENTITY_ENCODED: &AsciiSet = &ENCODED.add(b':');

/// The maximum number of parameters that every reader reads.
const PARAMETERS_MAX: usize = 1000;

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
        TemplatePart::JsonHeader(name) => {
            let value = field(request.headers, name)?.and_then(json_field);
            append(key, value.ok_or_else(|| AmbiguousKey::BadJson(name.to_string()))?.as_bytes());
        }
    }
    Ok(())
}

/// Appends a value that may be absent or empty.
fn append_present(key: &mut String, value: Option<&[u8]>) {
    match value.filter(|value| !value.is_empty()) {
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
    for (before, pair) in query.split(|&octet| octet == b'&').enumerate() {
        if before == PARAMETERS_MAX {
            return Err(AmbiguousKey::TooManyParameters);
        }
        let mut sides = pair.splitn(2, |&octet| octet == b'=');
        let spelled_name = sides.next().unwrap_or_default();
        if !is_only_read_as(spelled_name, name) {
            if may_be_read_as(spelled_name, name) {
                return Err(AmbiguousKey::OtherSpelling(name.to_owned()));
            }
            continue;
        }
        if found.is_some() {
            return Err(AmbiguousKey::RepeatedParameter(name.to_owned()));
        }
        let spelled = sides.next().unwrap_or_default();
        let value = form_decode(spelled);
        let readable = str::from_utf8(&value).is_ok_and(|text| !text.bytes().any(|octet| octet.is_ascii_control()));
        if !readable || has_bad_encoding(spelled) {
            return Err(AmbiguousKey::BadEncoding(name.to_owned()));
        }
        found = Some(value);
    }
    Ok(found)
}

/// The value of a header field. Of several lines some readers take the first, some the last, and some all.
fn field<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a [u8]>, AmbiguousKey> {
    let mut values = headers.get_all(name).iter().map(|value| value.as_bytes().trim_ascii());
    let first = values.next();
    if values.next().is_some() {
        return Err(AmbiguousKey::RepeatedField(name.to_string()));
    }
    Ok(first)
}
