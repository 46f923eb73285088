//! The keys for the source of tags, their comparison, and their changes on the way to clients.

use http::{HeaderName, header};

use super::{check::Check, keys::RouteLayers};
use crate::core::policy::{Compare, GuardRules, Intermediaries, TagSource};

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

/// Returns how intermediaries change tags on this route.
pub(super) fn intermediaries(check: &mut Check<'_>, keys: RouteLayers<'_>) -> Intermediaries {
    let suffixes = keys.get(|raw| &raw.etag_suffixes).map(|list| {
        check.each(list, |check, text| {
            let suffix = text.get_ref();
            let is_suffix = suffix.starts_with(|first: char| first.is_ascii_punctuation())
                && suffix.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"');
            if !is_suffix {
                let message = format!("etag_suffixes: {suffix:?} is no suffix of a tag");
                check.hinted(
                    text.span(),
                    message,
                    "it begins with a punctuation mark, as in \"-gzip\", and has no quotes or blanks",
                );
            }
            is_suffix.then(|| suffix.clone())
        })
    });
    // An empty name stands for no mirror, so that a route can override `[defaults]`.
    let mirror = keys.get(|raw| &raw.mirror_header).filter(|text| !text.get_ref().is_empty());
    let mirror = mirror.and_then(|text| {
        let name = HeaderName::from_bytes(text.get_ref().as_bytes()).ok();
        let name = name.filter(|name| !NO_MIRRORS.contains(name));
        if name.is_none() {
            let message = format!("mirror_header cannot be {:?}", text.get_ref());
            check.hinted(text.span(), message, "it names a field of its own, as in \"X-ETag\"");
        }
        name
    });
    let weakens = keys.get(|raw| &raw.accept_weak_own).is_some_and(|flag| *flag.get_ref());
    Intermediaries { suffixes: suffixes.unwrap_or_default(), weakens, mirror }
}

/// Reports combinations of keys that have no meaning.
pub(super) fn go_together(check: &mut Check<'_>, keys: RouteLayers<'_>, guard: &GuardRules) {
    check.refuse(
        keys.get(|raw| &raw.etag),
        guard.etag == TagSource::Version && guard.other_writers,
        "etag = \"version\" needs other_writers = false",
        "the store's version does not count writes that bypass ifmatch; if there are such writers, use etag = \
         \"content\"",
    );
    check.refuse(
        keys.get(|raw| &raw.compare),
        guard.compare == Compare::Opaque && matches!(guard.etag, TagSource::Content | TagSource::Version),
        "compare = \"opaque\" needs etag = \"upstream\", \"header:NAME\" or \"json:/pointer\"",
        "leave it out: the tags that ifmatch makes are strong",
    );
    check.refuse(
        keys.get(|raw| &raw.accept_weak_own),
        guard.intermediaries.weakens && guard.compare == Compare::Opaque,
        "accept_weak_own has no effect with compare = \"opaque\"",
        "leave it out: with compare = \"opaque\" a weak tag and its strong form are two tags",
    );
    check.refuse(
        keys.own.ignored_json.as_ref(),
        guard.etag != TagSource::Content && !guard.ignored_json.is_empty(),
        "ignore_json needs etag = \"content\"",
        "leave it out: no other tag is made of the whole body",
    );
    check.refuse(
        keys.own.unique_tags.as_ref(),
        guard.unique_tags && !guard.etag.is_backends(),
        "unique_tags needs etag = \"upstream\", \"header:NAME\", \"json:/pointer\" or \"delegate\"",
        "leave it out: ifmatch makes the tags of this route itself, and no two states share one",
    );
    check.refuse(
        keys.get(|raw| &raw.other_writers),
        guard.etag == TagSource::Delegate && !guard.other_writers,
        "other_writers = false has no effect with etag = \"delegate\"",
        "leave it out: the backend judges each request; to judge them here, use etag = \"upstream\"",
    );
}
