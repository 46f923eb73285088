//! `metadata_suffix`: the documents that keep the metadata of resources.

use super::{check::Check, keys::RouteLayers};
use crate::{
    config::Word,
    core::policy::{GuardRules, TagSource},
};

/// Reports a suffix that does not suit the other keys of its route.
pub(super) fn suits_route(check: &mut Check<'_>, keys: RouteLayers<'_>, guard: &GuardRules) {
    check.refuse(
        keys.own.metadata_suffix.as_ref().filter(|text| !text.get_ref().is_empty()),
        guard.dialect.grammar().description().is_none(),
        format!("metadata_suffix has no effect with dialect = {:?}", guard.dialect.word()),
        "leave it out: only clients of dialect = \"azure\" send metadata",
    );
    // Other tags stay the same if metadata change.
    check.refuse(
        keys.get(|raw| &raw.metadata_suffix),
        guard.metadata_suffix.is_some() && guard.etag != TagSource::Version,
        "metadata_suffix needs etag = \"version\"",
        "a change of the metadata alone must change the tag, and only the version counts it; etag = \"version\" needs \
         other_writers = false",
    );
}
