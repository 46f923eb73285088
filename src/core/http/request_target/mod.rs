//! The normal form of a request's path: one resource, one key (RFC 3986 section 6.2.2; DESIGN, section 3, rule 10).
//!
//! A backend is free to decode `%61`, to merge `//`, and to walk `..`. If it does, several spellings are one resource,
//! and a client could bypass a guard that distinguishes them. So all spellings that servers are known to read alike get
//! one normal form, and a spelling that servers read in different ways is refused. Two resources under one key cost a
//! needless refusal; one resource under two keys costs an update.
//!
//! # Design
//!
//! *Why is `//a` refused, although `/a//b` is merged?* Backends that hand the target to a URL parser read `//a/b` as
//! the host `a` and the path `/b`.
//!
//! *Why may a route keep `%2F`?* Some interfaces name a resource by a path of its own, `/projects/group%2Fname`. If the
//! backend takes that for one segment, it is one here. If it does not, two names would be one resource, so a route has
//! to say it (`encoded_slash`). A dot segment between encoded slashes is refused all the same.
//!
//! *Why is `..` refused after a doubled slash?* `/a//../b` is `/b` to servers that merge slashes first, and `/a/b` to
//! those that follow RFC 3986 section 5.2.4.
//!
//! *Why is `%3B` refused along with `;`?* Some servers cut path parameters off before they decode and some after, so
//! neither spelling shows whether the name ends there. A route may declare that `;` is an ordinary character to its
//! backend. Then both spellings are one.
//!
//! *Why are names that are not UTF-8 refused?* Lenient decoders replace octets that they cannot read, and then `%FE`
//! and `%FF` are one name. Older decoders read the overlong `%C0%AF` as a slash.
//!
//! *What is not covered?* Everything that depends on the backend: links, names that differ in Unicode normalisation,
//! index files, and a second decoding (`%252F` is a name that holds `%2F`). Nor is `+` as a space in a path covered,
//! which only object stores read that way. Letter case is covered if the upstream ignores it ([`NormalPath::folded`]).

use std::borrow::Cow;

use memchr::memchr;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode, utf8_percent_encode};
use thiserror::Error;

mod letter_case;
mod reference;
mod slashes;
#[cfg(test)]
mod tests;

pub(in crate::core) use letter_case::{fold_normal, fold_spelled, has_case};
pub use reference::{same_origin_target, split_authority, without_default_port};
pub use slashes::{decode_slashes, holds_encoded_slash};

/// The treatment of `;` in a path (`path_params`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathParameters {
    /// A path with a `;` is refused.
    Refuse,
    /// A `;` is an ordinary character, to the backend as well.
    Keep,
}

/// The treatment of `%2F` in a path (`encoded_slash`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncodedSlash {
    /// A path with a `%2F` is refused.
    Refuse,
    /// A `%2F` is an ordinary part of a name, to the backend as well.
    Keep,
}

/// The treatment of characters that the backend may take as ordinary parts of names, although other servers give them a
/// meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptInNames {
    /// The treatment of `;`.
    pub path_params: PathParameters,
    /// The treatment of `%2F`.
    pub encoded_slash: EncodedSlash,
}

impl KeptInNames {
    /// Nothing: the reading of a path in a configuration, and of a route without a word on it.
    pub const NOTHING: Self = Self { path_params: PathParameters::Refuse, encoded_slash: EncodedSlash::Refuse };
    /// All of it: the reading of a path whose route is not known, or has been asked already.
    pub const ALL: Self = Self { path_params: PathParameters::Keep, encoded_slash: EncodedSlash::Keep };
}

/// The reason why a path has more than one reading, or none. The text tells what to send instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum AmbiguousTarget {
    /// The path does not begin with a slash, or still holds its query.
    #[error("a path begins with \"/\" and ends before its query")]
    NotAPath,
    /// The path begins with two slashes.
    #[error("the path begins with \"//\", which some servers read as the name of a host; begin it with one slash")]
    LeadingSlashes,
    /// A slash as part of a name, on a route that does not keep it.
    #[error("the path holds an encoded slash (%2F); use names without a slash, and \"/\" between them")]
    EncodedSlash,
    /// A backslash, raw or encoded.
    #[error("the path holds a backslash, which some servers read as a slash; use names without one")]
    Backslash,
    /// `.` or `..`, spelled with an encoding or with a path parameter, or between encoded slashes.
    #[error("the path holds a disguised dot segment; send the path that it leads to")]
    EncodedDotSegment,
    /// A control character, raw or encoded.
    #[error("the path holds a control character; use names without one")]
    Control,
    /// A space that is not encoded.
    #[error("the path holds a space; encode it as %20")]
    Space,
    /// `;`, raw or encoded, on a route that does not keep it.
    #[error("the path holds a \";\", which some servers cut off; use names without one")]
    PathParameter,
    /// `#`, at which some servers end the target.
    #[error("the path holds a \"#\"; encode it as %23, or leave the fragment out")]
    Fragment,
    /// `%` without two hexadecimal digits.
    #[error("the path holds a \"%\" without two hexadecimal digits; encode it as %25")]
    BadPercentEncoding,
    /// Octets that are not UTF-8.
    #[error("the path is not UTF-8; encode its names as UTF-8")]
    NotUtf8,
    /// `..` that leads above the root.
    #[error("the path leads above the root; send the path that you intend")]
    AboveRoot,
    /// `..` after a doubled slash.
    #[error("the path holds \"..\" after \"//\", which servers read in two ways; send the path that it leads to")]
    ParentOfEmpty,
}

/// The normal form of a path: `/`, or one or more `/segment`.
///
/// It is ASCII. The characters that RFC 3986 calls `pchar` stand for themselves, and every other octet is `%XX` in
/// upper case. No segment is empty, `.` or `..`. A normal form is its own normal form.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NormalPath(String);

impl NormalPath {
    /// The path, with its leading slash.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The segments between the slashes; none for the root.
    pub fn segments(&self) -> impl Iterator<Item = &str> {
        self.0.split('/').filter(|segment| !segment.is_empty())
    }
}

/// Everything but the unreserved characters (RFC 3986 section 2.3).
pub const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The same without the slashes between the names of a path.
pub const RESERVED_IN_PATH: &AsciiSet = &RESERVED.remove(b'/');

/// Everything but `pchar` without the percent sign (RFC 3986 section 3.3).
pub(in crate::core) const ENCODED: &AsciiSet = &RESERVED
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=')
    .remove(b':')
    .remove(b'@');

/// A request target in origin-form, cut at its first `?`: the path, and the query without the `?`, which may be empty.
pub fn split_query(raw_target: &[u8]) -> (&[u8], Option<&[u8]>) {
    match memchr(b'?', raw_target).and_then(|end| raw_target.split_at_checked(end)) {
        Some((path, query)) => (path, query.strip_prefix(b"?")),
        None => (raw_target, None),
    }
}

/// True if a request target in origin-form is that of a collection: its path ends with a slash (RFC 4918 section 5.2).
pub fn names_collection(raw_target: &[u8]) -> bool {
    split_query(raw_target).0.ends_with(b"/")
}

/// A request target in origin-form, joined from its path and the query without the `?`: the reverse of [`split_query`].
pub fn join_query(path: &[u8], query: Option<&[u8]>) -> Vec<u8> {
    let Some(query) = query else { return path.to_vec() };
    [path, b"?", query].concat()
}

/// The normal form of a path as received, without its query.
pub fn normalize(raw_path: &[u8], kept: KeptInNames) -> Result<NormalPath, AmbiguousTarget> {
    let relative = raw_path.strip_prefix(b"/").ok_or(AmbiguousTarget::NotAPath)?;
    if relative.starts_with(b"/") {
        return Err(AmbiguousTarget::LeadingSlashes);
    }
    let mut normal = String::with_capacity(raw_path.len());
    let mut doubled_slash = false;
    for segment in relative.split(|&octet| octet == b'/') {
        match segment {
            b"" => doubled_slash = true,
            b"." => {}
            b".." if doubled_slash => return Err(AmbiguousTarget::ParentOfEmpty),
            b".." => normal.truncate(normal.rfind('/').ok_or(AmbiguousTarget::AboveRoot)?),
            name => {
                normal.push('/');
                normal.push_str(&normal_segment(name, kept)?);
            }
        }
    }
    if normal.is_empty() {
        normal.push('/');
    }
    Ok(NormalPath(normal))
}

/// The normal form of one segment, which is not empty and not a raw dot segment.
pub(in crate::core) fn normal_segment(spelled: &[u8], kept: KeptInNames) -> Result<Cow<'_, str>, AmbiguousTarget> {
    if spelled.iter().copied().all(is_plain)
        && let Ok(plain) = str::from_utf8(spelled)
    {
        return Ok(Cow::Borrowed(plain));
    }
    check_spelling(spelled)?;
    let decoded: Cow<'_, [u8]> = percent_decode(spelled).into();
    let Ok(name) = str::from_utf8(&decoded) else { return Err(AmbiguousTarget::NotUtf8) };
    check_name(name, kept)?;
    Ok(Cow::Owned(utf8_percent_encode(name, ENCODED).collect()))
}

/// True if an octet is its own normal form on every route.
fn is_plain(octet: u8) -> bool {
    octet.is_ascii_alphanumeric()
        || matches!(octet, b'-' | b'.' | b'_' | b'~' | b'!' | b'$' | b'&' | b'\'' | b'(' | b')')
        || matches!(octet, b'*' | b'+' | b',' | b'=' | b':' | b'@')
}

/// True if a normal segment can hold this octet.
pub(in crate::core) fn is_segment_character(octet: u8) -> bool {
    is_plain(octet) || matches!(octet, b';' | b'%')
}

/// Checks for octets that no server takes as part of a name unless they are encoded.
fn check_spelling(spelled: &[u8]) -> Result<(), AmbiguousTarget> {
    for octet in spelled {
        match octet {
            b'?' => return Err(AmbiguousTarget::NotAPath),
            b'#' => return Err(AmbiguousTarget::Fragment),
            b' ' => return Err(AmbiguousTarget::Space),
            _ => {}
        }
    }
    if has_bad_encoding(spelled) { Err(AmbiguousTarget::BadPercentEncoding) } else { Ok(()) }
}

/// True if a percent sign lacks its two hexadecimal digits.
pub(in crate::core) fn has_bad_encoding(spelled: &[u8]) -> bool {
    let encodings = spelled.split(|&octet| octet == b'%').skip(1);
    encodings
        .into_iter()
        .any(|text| !matches!(text, [high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit()))
}

/// Checks for decoded names that some server takes for something else.
fn check_name(name: &str, kept: KeptInNames) -> Result<(), AmbiguousTarget> {
    for octet in name.bytes() {
        match octet {
            b'/' if kept.encoded_slash == EncodedSlash::Refuse => return Err(AmbiguousTarget::EncodedSlash),
            b'\\' => return Err(AmbiguousTarget::Backslash),
            b';' if kept.path_params == PathParameters::Refuse => return Err(AmbiguousTarget::PathParameter),
            _ if octet.is_ascii_control() => return Err(AmbiguousTarget::Control),
            _ => {}
        }
    }
    // Servers that cut parameters off, or decode slashes, may do so before they resolve dot segments.
    let without_parameters = |part: &str| part.split(';').next().is_some_and(|part| matches!(part, "." | ".."));
    if name.split('/').any(without_parameters) { Err(AmbiguousTarget::EncodedDotSegment) } else { Ok(()) }
}
