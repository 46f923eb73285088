//! The rules over several keys of the `[routes.lease]` table.

use super::{
    check::Check,
    lease::LeaseKeys,
    section::Layers,
    table::{Section as _, ValueKind},
    units::show_duration,
    words::Word,
    written::Written,
};
use crate::core::policy::{Dialect, LeaseGuards, LeaseRules, Policy};

/// The table of leases, which only a pessimistic route has.
pub(super) struct LeaseTable;

impl ValueKind<Option<LeaseRules>> for LeaseTable {
    type Written = LeaseKeys;
    type Terms = (Policy, Dialect);

    fn read(
        check: &mut Check<'_>,
        key: &str,
        written: Layers<'_, LeaseKeys>,
        (policy, dialect): Self::Terms,
    ) -> Option<LeaseRules> {
        (policy == Policy::Pessimistic).then(|| rules(check, key, written, dialect))
    }
}

/// Returns the lease rules of a pessimistic route. `key` is the path of the table in messages.
fn rules(check: &mut Check<'_>, key: &str, keys: Layers<'_, LeaseKeys>, dialect: Dialect) -> LeaseRules {
    let problems_before = check.problems.len();
    let facts = dialect.grammar().facts();
    let mut rules = LeaseRules::read(check, &format!("{key}."), keys, (facts.defaults,));
    if facts.demands.idle_lease_keys.iter().any(|(key, _)| *key == "default") {
        rules.default = rules.default.max(rules.min).min(rules.max);
    }
    // A value that could not be read was replaced by its default, which cannot be compared with the others.
    if check.problems.len() == problems_before {
        durations_are_in_order(check, keys, &rules);
        keep_to_dialect(check, keys, &rules, dialect);
    }
    rules
}

fn durations_are_in_order(check: &mut Check<'_>, keys: Layers<'_, LeaseKeys>, rules: &LeaseRules) {
    let ascending = [
        ("min", keys.get(|raw| &raw.min), rules.min),
        ("default", keys.get(|raw| &raw.default), rules.default),
        ("max", keys.get(|raw| &raw.max), rules.max),
        ("max_hold_time", keys.get(|raw| &raw.max_hold_time), rules.max_hold_time),
    ];
    for pair in ascending.windows(2) {
        if let [(low_key, low_text, low), (high_key, high_text, high)] = pair
            && low > high
            // The four defaults are in order, so the file contains at least one of the two.
            && let Some(text) = high_text.or(*low_text)
        {
            let (low, high) = (show_duration(*low), show_duration(*high));
            let message = format!("lease.{low_key} is {low}, and lease.{high_key} is {high}");
            check.hinted(text.span(), message, "they go from short to long: min, default, max, max_hold_time");
        }
    }
}

/// Reports settings that the clients of the dialect do not expect, and keys without effect in it.
fn keep_to_dialect(check: &mut Check<'_>, keys: Layers<'_, LeaseKeys>, rules: &LeaseRules, dialect: Dialect) {
    let (name, demands, own) = (dialect.word(), dialect.grammar().facts().demands, keys.own);
    let written = [
        ("prefix", own.prefix.as_ref().map(Written::span)),
        ("default", own.default.as_ref().map(Written::span)),
        ("min", own.min.as_ref().map(Written::span)),
        ("max", own.max.as_ref().map(Written::span)),
        ("max_hold_time", own.max_hold_time.as_ref().map(Written::span)),
        ("shared", own.shared.as_ref().map(Written::span)),
        ("max_wait", own.max_wait.as_ref().map(Written::span)),
        ("max_waiters", own.max_waiters.as_ref().map(Written::span)),
        ("linger", own.linger.as_ref().map(Written::span)),
        ("bind", own.bind.as_ref().map(Written::span)),
        ("required", own.required.as_ref().map(Written::span)),
        ("absent", own.absent.as_ref().map(Written::span)),
    ];
    for (key, span) in written {
        let idle = demands.idle_lease_keys.iter().find(|(idle, _)| *idle == key);
        if let (Some(span), Some((_, reason))) = (span, idle) {
            let message = format!("lease.{key} has no effect in the {name} dialect");
            check.hinted(span, message, format!("leave it out: {reason}"));
        }
    }
    check.refuse(
        keys.get(|raw| &raw.acquire_on_read),
        rules.acquire_on_read && !demands.acquires_on_read,
        format!("the {name} dialect cannot acquire a lease with a read"),
        "leave it out, or write dialect = \"native\"",
    );
    check.refuse(
        keys.get(|raw| &raw.guards),
        (demands.has_endless_locks || dialect.quirks().has_locks) && rules.guards != LeaseGuards::Write,
        format!("lease.guards in the {name} dialect is [\"write\"]"),
        "leave it out: its clients name their lock when they write, and never when they read",
    );
    check.refuse(
        keys.get(|raw| &raw.infinite),
        demands.has_endless_locks && !rules.infinite,
        format!("lease.infinite in the {name} dialect is true"),
        "leave it out: its clients name no duration, and never renew a lock",
    );
    let Some((shortest, longest)) = demands.lease_durations else { return };
    let (least, most) = (show_duration(shortest), show_duration(longest));
    let range = format!(
        "the clients of the {name} dialect request leases from {least} to {most}; lease.infinite allows those without end"
    );
    let (min, max) = (show_duration(rules.min), show_duration(rules.max));
    let too_short = format!("lease.min is {min}: the least in the {name} dialect is {least}");
    check.refuse(keys.get(|raw| &raw.min), rules.min < shortest, too_short, &range);
    let too_long = format!("lease.max is {max}: the limit in the {name} dialect is {most}");
    check.refuse(keys.get(|raw| &raw.max), rules.max > longest, too_long, &range);
}
