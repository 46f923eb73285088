//! `store_method` and `lock_suffix`: how the states of Terraform are stored and locked.

use super::{check::Check, keys::RouteLayers};
use crate::{
    config::Word,
    core::policy::{GuardRules, StoreMethod},
};

/// Reports keys about states on a route without states.
pub(super) fn suit_dialect(check: &mut Check<'_>, keys: RouteLayers<'_>, guard: &GuardRules) {
    const HINT: &str = "leave it out: only clients of dialect = \"terraform\" store and lock states";
    let has_no_states = !guard.dialect.grammar().facts().demands.locks_states;
    let message = |key: &str| format!("{key} has no effect with dialect = {:?}", guard.dialect.word());
    let is_put = guard.store_method == StoreMethod::Put;
    check.refuse(keys.own.store_method.as_ref(), has_no_states && is_put, message("store_method"), HINT);
    let is_set = guard.lock_suffix.is_some();
    check.refuse(keys.own.lock_suffix.as_ref(), has_no_states && is_set, message("lock_suffix"), HINT);
}
