//! The demands of `lease.delete_pending` on the other keys of a route.

use super::{check::Check, keys::RouteLayers};
use crate::core::{
    lease::Usage,
    policy::{GuardRules, TagSource},
    resource::KeyTemplate,
};

/// Reports settings under which no DELETE can wait, or under which the one that is sent later could be another one.
pub(super) fn suits_route(check: &mut Check<'_>, keys: RouteLayers<'_>, guard: &GuardRules, key: Option<&KeyTemplate>) {
    const HINT: &str = "leave lease.delete_pending out, or change that";
    let Some(rules) = guard.lease.as_ref().filter(|rules| rules.delete_pending) else { return };
    let written = keys.own.lease.delete_pending.as_ref().or(keys.defaults.lease.delete_pending.as_ref());
    let names_fields = key.is_some_and(|key| key.fields().next().is_some());
    let problems = [
        (!rules.shared, "needs lease.shared = true: an exclusive lease has no other holder to wait for"),
        (
            !rules.guards.covers(Usage::Delete),
            "needs lease.guards with \"write\" or \"delete\": a DELETE waits for a lease",
        ),
        (
            !guard.dialect.grammar().facts().demands.deletes_can_wait,
            "needs dialect = \"native\": other clients do not expect a DELETE to wait",
        ),
        (
            guard.etag == TagSource::Delegate,
            "needs another etag: the backend judges conditions, and does not see the DELETE",
        ),
        (names_fields, "needs a key without {header.NAME}: only the target of a DELETE that waits is kept"),
    ];
    for (is_wrong, what) in problems {
        check.refuse(written, is_wrong, format!("lease.delete_pending = true {what}"), HINT);
    }
}
