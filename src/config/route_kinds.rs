//! The values of keys of a route, and the defaults that depend on its dialect.

use http::{HeaderName, Method, header};

use super::{
    check::Check,
    table::ValueKind,
    written::{Text, Texts},
};
use crate::{
    core::{
        http::credentials::CREDENTIAL_FIELDS,
        policy::{Dialect, OnWrite, Policy, Require, TagAfterWrite, TagSource},
        tags::{json::JsonPointer, version_source::VersionSource},
    },
    dialect::settings::Defaults,
};

/// The longest suffix, in bytes. A file system gives a name 255, and that of the resource needs most of them.
const SUFFIX_BYTES_MAX: usize = 64;

/// Fields with another meaning, which a second tag would spoil.
const NO_MIRRORS: [HeaderName; 12] = [
    header::ETAG,
    header::LAST_MODIFIED,
    header::DATE,
    header::VARY,
    header::VIA,
    header::CONNECTION,
    header::TRANSFER_ENCODING,
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::CONTENT_ENCODING,
    header::CACHE_CONTROL,
    header::SET_COOKIE,
];

/// Returns the defaults of a dialect.
pub(super) fn defaults_of(dialect: Dialect) -> Defaults {
    dialect.grammar().facts().defaults
}

/// Returns which writes need a precondition by default.
pub(super) fn default_require(policy: Policy, dialect: Dialect) -> Require {
    let makes_own_requests = dialect.grammar().facts().demands.makes_own_requests;
    if policy == Policy::Pessimistic || makes_own_requests { Require::Never } else { Require::Always }
}

/// Returns how the new tag is learned by default: a read is needed only if the proxy makes the tag.
pub(super) fn way_to_new_tag(dialect: Dialect, etag: &TagSource) -> OnWrite {
    match etag {
        _ if defaults_of(dialect).probes_after_write => OnWrite::Probe,
        TagSource::Content | TagSource::Header(_) | TagSource::Json(_) => OnWrite::Probe,
        TagSource::Upstream | TagSource::Version | TagSource::Delegate => OnWrite::Omit,
    }
}

/// Returns when the answer to a write has the new tag by default.
pub(super) fn tag_after_write(dialect: Dialect, etag: &TagSource) -> TagAfterWrite {
    let is_known = defaults_of(dialect).version_after_write && *etag == TagSource::Version;
    if is_known { TagAfterWrite::Always } else { TagAfterWrite::Verbatim }
}

/// Reads a member of a JSON body that its tag leaves out.
pub(super) fn member(check: &mut Check<'_>, text: &Text) -> Option<JsonPointer> {
    let pointer = JsonPointer::parse(text.get_ref());
    if pointer.is_none() {
        let message = format!("ignore_json: {:?} is not a JSON pointer", text.get_ref());
        check.hinted(text.span(), message, "it begins with a slash, as in \"/generated_at\" or \"/meta/now\"");
    }
    pointer
}

/// Reads a place where a write names its version.
pub(super) fn version_source(check: &mut Check<'_>, text: &Text) -> Option<VersionSource> {
    let source = VersionSource::parse(text.get_ref());
    if source.is_none() {
        let message = format!("precondition: {:?} names no place of a version", text.get_ref());
        check.hinted(text.span(), message, "write \"json:/pointer\" or \"query:NAME\"");
    }
    source
}

/// Reads a suffix that intermediaries append to tags.
pub(super) fn tag_suffix(check: &mut Check<'_>, text: &Text) -> Option<String> {
    let suffix = text.get_ref();
    let is_suffix = suffix.starts_with(|first: char| first.is_ascii_punctuation())
        && suffix.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"');
    if !is_suffix {
        let message = format!("etag_suffixes: {suffix:?} is no suffix of a tag");
        let hint = "it begins with a punctuation mark, as in \"-gzip\", and has no quotes or blanks";
        check.hinted(text.span(), message, hint);
    }
    is_suffix.then(|| suffix.clone())
}

/// Reads a text that may be empty, so that a route can override `[defaults]` by no value. Reports one that cannot be
/// read.
fn read_unless_empty<T>(
    check: &mut Check<'_>,
    key: &str,
    written: Option<&Text>,
    hint: &'static str,
    read: impl FnOnce(&str) -> Option<T>,
) -> Option<T> {
    let text = written.filter(|text| !text.get_ref().is_empty())?;
    let value = read(text.get_ref());
    if value.is_none() {
        check.hinted(text.span(), format!("{key} cannot be {:?}", text.get_ref()), hint);
    }
    value
}

/// The name of a response field of its own.
pub(super) struct MirrorHeader;

impl ValueKind<Option<HeaderName>> for MirrorHeader {
    type Written = Option<Text>;
    type Terms = ();

    fn read(check: &mut Check<'_>, key: &str, written: Option<&Text>, (): ()) -> Option<HeaderName> {
        read_unless_empty(check, key, written, "it names a field of its own, as in \"X-ETag\"", |name| {
            HeaderName::from_bytes(name.as_bytes()).ok().filter(|name| !NO_MIRRORS.contains(name))
        })
    }
}

/// The name of a request field that has the name of the client.
pub(super) struct OwnerHeader;

impl ValueKind<Option<HeaderName>> for OwnerHeader {
    type Written = Option<Text>;
    type Terms = ();

    fn read(check: &mut Check<'_>, key: &str, written: Option<&Text>, (): ()) -> Option<HeaderName> {
        let hint = "it names a field that all may read, as in \"X-Forwarded-User\"";
        read_unless_empty(check, key, written, hint, |name| {
            HeaderName::from_bytes(name.as_bytes()).ok().filter(|name| !CREDENTIAL_FIELDS.contains(name))
        })
    }
}

/// A member that has the tag of its object.
pub(super) struct TagMember;

impl ValueKind<Option<JsonPointer>> for TagMember {
    type Written = Option<Text>;
    type Terms = ();

    fn read(check: &mut Check<'_>, key: &str, written: Option<&Text>, (): ()) -> Option<JsonPointer> {
        let hint = "it is a JSON pointer, as in \"/_etag\" or \"/meta/version\"";
        read_unless_empty(check, key, written, hint, JsonPointer::parse)
    }
}

/// Reads the name of a request field.
pub(super) fn identity_header(check: &mut Check<'_>, text: &Text) -> Option<HeaderName> {
    let name = HeaderName::from_bytes(text.get_ref().as_bytes()).ok();
    if name.is_none() {
        check.problem(text.span(), format!("identity_headers: {:?} is not a field name", text.get_ref()));
    }
    name
}

/// Reads the name of a cookie.
pub(super) fn identity_cookie(check: &mut Check<'_>, text: &Text) -> Option<String> {
    let name = text.get_ref();
    // The name of a cookie is a token (RFC 6265 section 4.1.1), like the name of a field.
    let is_token = HeaderName::from_bytes(name.as_bytes()).is_ok();
    if !is_token {
        check.problem(text.span(), format!("identity_cookies: {name:?} is not the name of a cookie"));
    }
    is_token.then(|| name.clone())
}

/// Reads the name of a parameter of the query.
pub(super) fn identity_parameter(check: &mut Check<'_>, text: &Text) -> Option<String> {
    let name = text.get_ref();
    if name.is_empty() {
        check.problem(text.span(), "identity_query: a parameter has a name");
    }
    (!name.is_empty()).then(|| name.clone())
}

/// A list of methods.
pub(super) struct Methods;

impl ValueKind<Vec<Method>> for Methods {
    type Written = Option<Texts>;
    type Terms = &'static [Method];

    fn read(check: &mut Check<'_>, key: &str, written: Option<&Texts>, default: &'static [Method]) -> Vec<Method> {
        let Some(value) = written else { return default.to_vec() };
        check.each(value, |check, text| {
            let method = Method::from_bytes(text.get_ref().as_bytes()).ok();
            if method.is_none() {
                check.problem(text.span(), format!("{key}: {:?} is not a method", text.get_ref()));
            } else if text.get_ref().contains(|each: char| each.is_ascii_lowercase()) {
                let upper = text.get_ref().to_ascii_uppercase();
                let message = format!("{key}: methods are case-sensitive, and {:?} is not one", text.get_ref());
                check.hinted(text.span(), message, format!("did you mean {upper:?}?"));
            }
            method
        })
    }
}

/// The end of the names of the documents that keep metadata.
pub(super) struct Suffix;

impl ValueKind<Option<Box<str>>> for Suffix {
    type Written = Option<Text>;
    type Terms = Dialect;

    fn read(check: &mut Check<'_>, key: &str, written: Option<&Text>, dialect: Dialect) -> Option<Box<str>> {
        let hint =
            "it is a punctuation mark and a word, as in \".metadata.json\", so that no percent-encoding changes it";
        let suffix =
            read_unless_empty(check, key, written, hint, |suffix| is_suffix(suffix).then(|| Box::from(suffix)))?;
        dialect.grammar().description().map(|_grammar| suffix)
    }
}

/// The end of the paths of locks.
pub(super) struct LockSuffix;

impl ValueKind<Option<Box<str>>> for LockSuffix {
    type Written = Option<Text>;
    type Terms = ();

    fn read(check: &mut Check<'_>, key: &str, written: Option<&Text>, (): ()) -> Option<Box<str>> {
        read_unless_empty(check, key, written, "it is a slash and a word, as in \"/lock\"", |suffix| {
            suffix.strip_prefix('/').is_some_and(is_plain_name).then(|| suffix.into())
        })
    }
}

/// True if a text is a word that no percent-encoding changes.
fn is_plain_name(text: &str) -> bool {
    let is_plain = |octet: u8| octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'_');
    !text.is_empty() && text.bytes().all(is_plain)
}

/// True if a text can end the name of a document, spelled as it is (RFC 3986 section 2.3).
fn is_suffix(text: &str) -> bool {
    let is_mark = |octet: u8| b".-_~".contains(&octet);
    let is_part = |octet: u8| is_mark(octet) || octet.is_ascii_alphanumeric();
    let has_word = text.bytes().any(|octet| octet.is_ascii_alphanumeric());
    text.bytes().next().is_some_and(is_mark) && text.bytes().all(is_part) && has_word && text.len() <= SUFFIX_BYTES_MAX
}
