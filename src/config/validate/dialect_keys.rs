//! The keys that the clients of one dialect alone have a use for.

use super::{check::Check, keys::RouteLayers};
use crate::{
    config::Word,
    core::{
        policy::{GuardRules, StoreMethod, TagSource},
        quirks::ServiceKind,
    },
};

/// Reports such keys on a route of another dialect.
pub(super) fn suit_dialect(check: &mut Check<'_>, keys: RouteLayers<'_>, guard: &GuardRules) {
    metadata(check, keys, guard);
    locks(check, keys, guard);
}

/// Reports a suffix that does not suit the other keys of its route.
fn metadata(check: &mut Check<'_>, keys: RouteLayers<'_>, guard: &GuardRules) {
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

/// Reports a key about locks that the clients of another dialect take.
fn locks(check: &mut Check<'_>, keys: RouteLayers<'_>, guard: &GuardRules) {
    const OF_STATES: &str = "leave it out: only clients of dialect = \"terraform\" store and lock states";
    const OF_OWNERS: &str = "leave it out: only clients of dialect = \"git-lfs\" show who owns a lock";
    let message = |key: &str| format!("{key} has no effect with dialect = {:?}", guard.dialect.word());
    let has_no_states = guard.quirks.service != ServiceKind::Terraform;
    let is_put = guard.store_method == StoreMethod::Put;
    check.refuse(keys.own.store_method.as_ref(), has_no_states && is_put, message("store_method"), OF_STATES);
    let is_set = guard.lock_suffix.is_some();
    check.refuse(keys.own.lock_suffix.as_ref(), has_no_states && is_set, message("lock_suffix"), OF_STATES);
    let has_no_owners = guard.quirks.service != ServiceKind::GitLfs;
    let is_named = guard.owner_header.is_some();
    check.refuse(keys.own.owner_header.as_ref(), has_no_owners && is_named, message("owner_header"), OF_OWNERS);
}
