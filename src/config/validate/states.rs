//! The keys about locks that the clients of one dialect alone take.

use super::{check::Check, keys::RouteLayers};
use crate::{
    config::Word,
    core::{
        policy::{GuardRules, StoreMethod},
        quirks::ServiceKind,
    },
};

/// Reports such keys on a route of another dialect.
pub(super) fn suit_dialect(check: &mut Check<'_>, keys: RouteLayers<'_>, guard: &GuardRules) {
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
