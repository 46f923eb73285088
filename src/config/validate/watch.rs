//! `watch`: which routes let their resources be watched.

use super::{check::Check, keys::RouteLayers};
use crate::{
    config::Word,
    core::policy::{GuardRules, ProbeAuth},
};

/// Reports watches for which the backend cannot be asked whether a client may read.
pub(super) fn refuse_unaskable(check: &mut Check<'_>, keys: RouteLayers<'_>, guard: &GuardRules) {
    let is_signed = guard.quirks.is_closed_list || guard.dialect.grammar().facts().demands.signed_requests;
    let dialect = guard.dialect.word();
    check.refuse(
        keys.get(|raw| &raw.watch),
        guard.watch && is_signed,
        format!("watch has no place in dialect = {dialect:?}"),
        "leave it out: its clients sign each request, and ifmatch cannot ask in their name whether they may read",
    );
    check.refuse(
        keys.get(|raw| &raw.watch),
        guard.watch && guard.observe,
        "watch and observe do not go together",
        "leave one of them out: a route that only observes keeps no records that could be watched",
    );
    check.refuse(
        keys.get(|raw| &raw.watch),
        guard.watch && matches!(guard.probe_auth, ProbeAuth::SigV4 | ProbeAuth::Field),
        format!("watch and probe_auth = {:?} do not go together", guard.probe_auth.word()),
        "set probe_auth = \"client\": the backend must decide for each client whether it may read",
    );
}
