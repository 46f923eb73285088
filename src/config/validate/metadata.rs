//! `metadata_suffix`: the documents that keep the metadata of resources.

use super::{check::Check, keys::RouteKeys};
use crate::{
    config::Word,
    core::policy::{Dialect, GuardRules, LeaseGuards, TagSource},
};

/// The longest suffix, in bytes. A file system gives a name 255, and that of the resource needs most of them.
const SUFFIX_BYTES_MAX: usize = 64;

/// Returns the end of the names of the documents, if the route keeps metadata.
pub(super) fn suffix(check: &mut Check<'_>, keys: RouteKeys<'_>, dialect: Dialect) -> Option<Box<str>> {
    // An empty suffix stands for no metadata, so that a route can override `[defaults]`.
    let text = keys.get(|raw| &raw.metadata_suffix).filter(|text| !text.get_ref().is_empty())?;
    if !is_suffix(text.get_ref()) {
        let message = format!("metadata_suffix cannot be {:?}", text.get_ref());
        let hint =
            "it is a punctuation mark and a word, as in \".metadata.json\", so that no percent-encoding changes it";
        check.hinted(text.span(), message, hint);
        return None;
    }
    dialect.grammar().metadata().map(|_grammar| text.get_ref().as_str().into())
}

/// Whether a text can end the name of a document, spelled as it is (RFC 3986 section 2.3).
fn is_suffix(text: &str) -> bool {
    let is_mark = |octet: u8| b".-_~".contains(&octet);
    let is_part = |octet: u8| is_mark(octet) || octet.is_ascii_alphanumeric();
    let has_word = text.bytes().any(|octet| octet.is_ascii_alphanumeric());
    text.bytes().next().is_some_and(is_mark) && text.bytes().all(is_part) && has_word && text.len() <= SUFFIX_BYTES_MAX
}

/// Reports a suffix that does not suit the other keys of its route.
pub(super) fn suits_route(check: &mut Check<'_>, keys: RouteKeys<'_>, guard: &GuardRules) {
    check.refuse(
        keys.own.metadata_suffix.as_ref().filter(|text| !text.get_ref().is_empty()),
        guard.dialect.grammar().metadata().is_none(),
        format!("metadata_suffix has no effect with dialect = {:?}", guard.dialect.word()),
        "leave it out: only clients of dialect = \"azure\" send metadata",
    );
    // Other tags stay the same if metadata change. A route of containers writes no metadata.
    let has_containers = guard.lease.as_ref().is_some_and(|rules| rules.guards == LeaseGuards::Delete);
    check.refuse(
        keys.get(|raw| &raw.metadata_suffix),
        guard.metadata_suffix.is_some() && guard.etag != TagSource::Version && !has_containers,
        "metadata_suffix needs etag = \"version\"",
        "a change of the metadata alone must change the tag, and only the version counts it; etag = \"version\" needs \
         other_writers = false",
    );
}
