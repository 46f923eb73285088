//! The table of the request fields that the proxy or the upstream relies on (DESIGN, section 3, rule 14). It tells
//! which party writes each field, which may remove it, and whether it is judged.
//!
//! A field that `Connection` names ends at this hop (RFC 9110 section 7.6.1). A field that the verdict is based on,
//! or that the proxy writes, must not end here. Otherwise the upstream would apply a request that was never judged.
//! Nor may that field have a second spelling: CGI and its successors (WSGI, PHP) read `If_Match` and `If-Match` as
//! one variable.
//!
//! # Design
//!
//! *Why is `_` not the only suspect?* PHP also reads `X.Forwarded.For` as that variable, and lighttpd does so with
//! every octet that is neither a letter nor a digit.
//!
//! *Why may the names of metadata have any spelling?* No server judges requests by the metadata of an object. In Azure
//! its names cannot hold a hyphen: `x-ms-meta-reviewed_by` is the only way to write that name.

use http::{HeaderMap, HeaderName, HeaderValue, Version, header};

use crate::core::lease::field_names;

/// The fields in which backends look for a method that overrides the one of the request.
pub static METHOD_FIELDS: [HeaderName; 3] = [
    HeaderName::from_static("x-http-method"),
    HeaderName::from_static("x-http-method-override"),
    HeaderName::from_static("x-method-override"),
];

/// The fields in which backends look for another path than that of the target: IIS, Symfony, Laminas and Yii, and the
/// servers and middlewares of Python.
static PATH_FIELDS: [HeaderName; 5] = [
    HeaderName::from_static("x-original-url"),
    HeaderName::from_static("x-rewrite-url"),
    HeaderName::from_static("script-name"),
    HeaderName::from_static("x-script-name"),
    HeaderName::from_static("path-info"),
];

/// The fields with which a proxy in front tells its part of the path: Spring, ASP.NET, Symfony and Werkzeug take them.
static FORWARDED_PATH_FIELDS: [HeaderName; 5] = [
    HeaderName::from_static("x-forwarded-prefix"),
    HeaderName::from_static("x-forwarded-path"),
    HeaderName::from_static("x-forwarded-context"),
    HeaderName::from_static("x-forwarded-uri"),
    HeaderName::from_static("x-forwarded-url"),
];

/// The maximum number of options in `Connection`. Pingora takes no more on its own path, and no client sends as many.
const CONNECTION_OPTIONS_MAX: usize = 9;

/// The party that writes a field that the upstream gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldWriter {
    /// The client.
    Client,
    /// The client, and the proxy, which appends to its value or replaces it.
    Both,
    /// Only the proxy.
    Proxy,
    /// Each hop, for the next one.
    Hop,
}

/// The party that may remove a field of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remover {
    /// No party.
    Nobody,
    /// The guard, if it has judged the request by the field and the upstream cannot.
    Verdict,
    /// The guard, always: the field is meant for the proxy.
    Guard,
    /// The proxy, on every route.
    Proxy,
    /// Each hop.
    Hop,
}

/// A line of the table.
#[derive(Clone, Copy, Debug)]
pub struct FieldRule {
    /// The name in lower case, or a prefix of names followed by `*`.
    pub name: &'static str,
    /// The party that writes the field.
    pub writer: FieldWriter,
    /// The party that may remove the field.
    pub remover: Remover,
    /// True if the proxy or the upstream decides anything by the client's value.
    pub is_judged: bool,
}

/// The table, sorted by the first letter. If two lines match a name, the first one counts.
pub static TABLE: [FieldRule; 63] = [
    judged("authorization", Remover::Nobody),
    judged("api-key", Remover::Nobody),
    judged("amz-sdk-*", Remover::Nobody),
    of_hop("connection"),
    FieldRule { writer: FieldWriter::Both, ..judged("cookie", Remover::Nobody) },
    written("content-length", FieldWriter::Both),
    judged(field_names::DELETE_PENDING.lower, Remover::Guard),
    judged("depth", Remover::Nobody),
    FieldRule { writer: FieldWriter::Both, ..judged("destination", Remover::Nobody) },
    judged(field_names::DESTINATION_LEASE_ID.lower, Remover::Guard),
    FieldRule { is_judged: false, ..judged("expect", Remover::Guard) },
    written("forwarded", FieldWriter::Both),
    written(field_names::FENCING_TOKEN.lower, FieldWriter::Proxy),
    of_hop("http2-settings"),
    FieldRule { writer: FieldWriter::Both, ..judged("host", Remover::Nobody) },
    judged("if", Remover::Verdict),
    judged("if-match", Remover::Verdict),
    judged("if-none-match", Remover::Verdict),
    judged("if-modified-since", Remover::Verdict),
    judged("if-unmodified-since", Remover::Verdict),
    judged("if-range", Remover::Verdict),
    judged("if-*", Remover::Nobody),
    judged("idempotency-key", Remover::Nobody),
    of_hop("keep-alive"),
    judged(field_names::LEASE_ID.lower, Remover::Guard),
    judged(field_names::LEASE_DURATION.lower, Remover::Guard),
    judged(field_names::LEASE_HOLDER.lower, Remover::Guard),
    judged(field_names::LEASE_MODE.lower, Remover::Guard),
    judged(field_names::LEASE_ACCESS.lower, Remover::Guard),
    judged(field_names::LEASE_SHARE.lower, Remover::Guard),
    judged(field_names::LEASE_BREAK_PERIOD.lower, Remover::Guard),
    judged("lease-*", Remover::Nobody),
    judged("lock-token", Remover::Verdict),
    judged("origin", Remover::Nobody),
    judged("overwrite", Remover::Nobody),
    of_hop("proxy-authorization"),
    of_hop("proxy-connection"),
    judged(field_names::PROPOSED_LEASE_ID.lower, Remover::Guard),
    judged("path-info", Remover::Nobody),
    judged("prefer", Remover::Nobody),
    judged("range", Remover::Verdict),
    judged("script-name", Remover::Nobody),
    of_hop("te"),
    judged("timeout", Remover::Verdict),
    of_hop("trailer"),
    written("transfer-encoding", FieldWriter::Both),
    written("traceparent", FieldWriter::Both),
    written("tracestate", FieldWriter::Both),
    of_hop("upgrade"),
    written("via", FieldWriter::Both),
    judged("x-api-key", Remover::Nobody),
    judged("x-http-method", Remover::Nobody),
    judged("x-http-method-override", Remover::Nobody),
    judged("x-method-override", Remover::Nobody),
    judged("x-original-url", Remover::Nobody),
    judged("x-rewrite-url", Remover::Nobody),
    judged("x-script-name", Remover::Nobody),
    FieldRule { is_judged: false, ..judged("x-ms-meta-*", Remover::Nobody) },
    judged("x-ms-*", Remover::Verdict),
    FieldRule { is_judged: false, ..judged("x-amz-meta-*", Remover::Nobody) },
    judged("x-amz-*", Remover::Nobody),
    written("x-forwarded-*", FieldWriter::Both),
    written("x-real-ip", FieldWriter::Both),
];

impl FieldRule {
    fn letter(&self) -> Option<u8> {
        self.name.bytes().next()
    }
}

const fn of_hop(name: &'static str) -> FieldRule {
    FieldRule { name, writer: FieldWriter::Hop, remover: Remover::Hop, is_judged: false }
}

const fn judged(name: &'static str, remover: Remover) -> FieldRule {
    FieldRule { name, writer: FieldWriter::Client, remover, is_judged: true }
}

const fn written(name: &'static str, writer: FieldWriter) -> FieldRule {
    FieldRule { name, writer, remover: Remover::Proxy, is_judged: false }
}

/// Returns the line of the table for a name in lower case.
pub fn of(name: &str) -> Option<&'static FieldRule> {
    let letter = name.bytes().next();
    let begins = TABLE.partition_point(|field| field.letter() < letter);
    let mut lines = TABLE.iter().skip(begins).take_while(|field| field.letter() == letter);
    lines.find(|field| match field.name.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => field.name == name,
    })
}

/// True if a field ends at this hop, even if `Connection` does not name it.
pub fn ends_at_hop(name: &HeaderName) -> bool {
    of(name.as_str()).is_some_and(|field| field.remover == Remover::Hop)
}

/// True if the proxy sends the client's field to no upstream.
pub fn is_ours(name: &HeaderName) -> bool {
    of(name.as_str()).is_some_and(|field| field.writer == FieldWriter::Proxy)
}

/// True if the proxy sends the client's field to no upstream of a guarded route.
pub fn is_for_guard(name: &HeaderName) -> bool {
    of(name.as_str()).is_some_and(|field| field.writer == FieldWriter::Proxy || field.remover == Remover::Guard)
}

/// True if a field tells which client sent the request, and through which proxies.
pub fn is_of_client(name: &HeaderName) -> bool {
    let name = name.as_str();
    matches!(name, "forwarded" | "x-real-ip") || name.starts_with("x-forwarded-")
}

/// True if a field tells which part of the path a proxy in front of this one has removed.
pub fn is_of_forwarded_path(name: &HeaderName) -> bool {
    FORWARDED_PATH_FIELDS.contains(name)
}

/// True if a request names a path beside that of its target, which the backend could read instead.
pub fn names_path(headers: &HeaderMap) -> bool {
    headers.keys().any(|name| PATH_FIELDS.contains(name))
}

/// The treatment of all other fields with an underscore in their name (`underscores`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Underscores {
    /// These fields pass.
    #[default]
    Keep,
    /// The proxy removes these fields.
    Drop,
}

/// Why the upstream might read the fields of a request differently from the proxy. The text tells the client what to
/// send instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// `Connection` is no list of names, or has too many of them.
    #[error("send in Connection only the names of a few fields of this connection, separated by commas")]
    MalformedConnection,
    /// `Connection` names a field that must reach the upstream as it was judged.
    #[error("leave out of Connection the fields that the request is judged by: it names fields of this connection")]
    Nominated,
    /// There is more than one `Transfer-Encoding` field, or one coding twice (RFC 9112 section 6.1).
    #[error("send one Transfer-Encoding field that names chunked once")]
    Codings,
    /// There is a transfer coding in addition to `chunked`.
    #[error("send the body without a transfer coding, or with chunked alone")]
    UnknownCoding,
    /// Some servers read a name as another one.
    #[error("use no separators but hyphens in field names: some servers read another spelling as the same field")]
    SecondSpelling,
}

/// Returns the fault of a request's fields that counts on any route.
pub fn fault(headers: &HeaderMap) -> Option<Fault> {
    for (before, option) in connection_options(headers).enumerate() {
        let Some(name) = token(option).filter(|_| before < CONNECTION_OPTIONS_MAX) else {
            return Some(Fault::MalformedConnection);
        };
        if of(name.as_str()).is_some_and(|field| field.remover != Remover::Hop) {
            return Some(Fault::Nominated);
        }
    }
    let of_coding = fault_of_coding(headers);
    of_coding.or_else(|| headers.keys().any(is_second_spelling).then_some(Fault::SecondSpelling))
}

fn fault_of_coding(headers: &HeaderMap) -> Option<Fault> {
    let mut lines = headers.get_all(header::TRANSFER_ENCODING).iter();
    let line = lines.next()?;
    let codings = || line.as_bytes().split(|octet| *octet == b',').map(<[u8]>::trim_ascii);
    let is_known = |coding: &[u8]| coding.is_empty() || coding.eq_ignore_ascii_case(b"chunked");
    match (lines.next(), codings().nth(1)) {
        (None, None) => None,
        (None, Some(_)) if !codings().all(is_known) => Some(Fault::UnknownCoding),
        _ => Some(Fault::Codings),
    }
}

/// Returns the fault of a request's fields by the additional fields that one route judges.
pub fn fault_of_own<'a>(headers: &HeaderMap, own: &(impl Iterator<Item = &'a HeaderName> + Clone)) -> Option<Fault> {
    if connection_options(headers).filter_map(token).any(|name| own.clone().any(|own| *own == name)) {
        return Some(Fault::Nominated);
    }
    let is_second = |own: &HeaderName, name: &HeaderName| are_read_alike(own.as_str(), name.as_str()) && own != name;
    let has_second = |own: &HeaderName| headers.keys().any(|name| is_second(own, name));
    own.clone().any(has_second).then_some(Fault::SecondSpelling)
}

/// True if some servers read a name as another one, of a field in the table that is judged or that the proxy writes.
pub fn is_second_spelling(name: &HeaderName) -> bool {
    let name = name.as_str();
    if name.bytes().all(|octet| octet.is_ascii_alphanumeric() || octet == b'-') {
        return false;
    }
    let meant = name.replace(|character: char| !character.is_ascii_alphanumeric(), "-");
    of(&meant).is_some_and(|field| field.is_judged || field.writer != FieldWriter::Client)
}

/// True if CGI gives two names one variable.
fn are_read_alike(one: &str, other: &str) -> bool {
    let is_letter = |octet: u8| octet.is_ascii_alphanumeric();
    let is_read_alike = |(one, other): (u8, u8)| one == other || !is_letter(one) && !is_letter(other);
    one.len() == other.len() && one.bytes().zip(other.bytes()).all(is_read_alike)
}

/// Returns the fields of the request that `Connection` names, except those that end at this hop anyway.
pub fn nominated(headers: &HeaderMap) -> impl Iterator<Item = HeaderName> {
    let named = connection_options(headers).filter_map(token);
    named.filter(|name| !ends_at_hop(name) && headers.contains_key(name))
}

/// Returns the members of `Connection`, without the empty ones, which mean nothing (RFC 9110 section 5.6.1.2).
fn connection_options(headers: &HeaderMap) -> impl Iterator<Item = &[u8]> {
    let lines = headers.get_all(header::CONNECTION).into_iter();
    let options = lines.flat_map(|line| line.as_bytes().split(|octet| *octet == b','));
    options.map(<[u8]>::trim_ascii).filter(|option| !option.is_empty())
}

fn token(option: &[u8]) -> Option<HeaderName> {
    HeaderName::from_bytes(option).ok()
}

/// True if `Connection` names `Upgrade`. Otherwise that field is not meant for the next hop (RFC 9110 section 7.8).
pub fn nominates_upgrade(headers: &HeaderMap) -> bool {
    connection_options(headers).any(|option| option.eq_ignore_ascii_case(b"upgrade"))
}

/// True if an answer describes its content as a request describes its own (RFC 9110 section 8), except for the length.
pub fn describe_alike(sent: &HeaderMap, shown: &HeaderMap) -> bool {
    let described = |name: &HeaderName| name.as_str().starts_with("content-") && *name != header::CONTENT_LENGTH;
    let is_shown = |name: &HeaderName, value: &HeaderValue| {
        shown.get(name).is_some_and(|shown| shown.as_bytes().eq_ignore_ascii_case(value.as_bytes()))
    };
    sent.iter().filter(|(name, _)| described(name)).all(|(name, value)| is_shown(name, value))
}

/// True if the client of a request wants its connection to stay (RFC 9112 section 9.3).
pub fn wants_connection(version: Version, headers: &HeaderMap) -> bool {
    let has = |wanted: &[u8]| connection_options(headers).any(|option| option.eq_ignore_ascii_case(wanted));
    !has(b"close") && (version == Version::HTTP_11 || has(b"keep-alive"))
}

#[cfg(test)]
#[path = "fields_tests.rs"]
mod tests;
