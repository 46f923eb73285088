//! The rules over several keys of the `[routes.lease]` table.

use super::{check::Check, keys::RouteLayers};
use crate::{
    config::{lease::LeaseKeys, table::Section as _, units::show_duration, words::Word, written::Written},
    core::policy::{Dialect, LeaseRules},
};

/// Returns the lease rules of a pessimistic route.
pub(super) fn rules(check: &mut Check<'_>, keys: RouteLayers<'_>, dialect: Dialect) -> LeaseRules {
    let problems_before = check.problems.len();
    let mut rules = values(check, keys, dialect);
    let demands = dialect.grammar().facts().demands;
    if demands.idle_lease_keys.iter().any(|(key, _)| *key == "default") {
        rules.default = rules.default.max(rules.min).min(rules.max);
    }
    // A value that could not be read was replaced by its default, which cannot be compared with the others.
    if check.problems.len() == problems_before {
        durations_are_in_order(check, keys, &rules);
        keep_to_dialect(check, keys, &rules, dialect);
    }
    rules
}

/// Returns the values of the keys, each checked alone.
pub(super) fn values(check: &mut Check<'_>, keys: RouteLayers<'_>, dialect: Dialect) -> LeaseRules {
    let defaults = dialect.grammar().facts().defaults;
    LeaseRules::read(check, "lease.", keys.part(|keys| &keys.lease), (defaults,))
}

/// Returns the value of a key of the lease table. Key by key, the route takes precedence over the defaults.
fn lease<'a, T>(keys: RouteLayers<'a>, key: fn(&'a LeaseKeys) -> &'a Option<T>) -> Option<&'a T> {
    keys.part(|keys| &keys.lease).get(key)
}

fn durations_are_in_order(check: &mut Check<'_>, keys: RouteLayers<'_>, rules: &LeaseRules) {
    let ascending = [
        ("min", lease(keys, |raw| &raw.min), rules.min),
        ("default", lease(keys, |raw| &raw.default), rules.default),
        ("max", lease(keys, |raw| &raw.max), rules.max),
        ("max_hold_time", lease(keys, |raw| &raw.max_hold_time), rules.max_hold_time),
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
fn keep_to_dialect(check: &mut Check<'_>, keys: RouteLayers<'_>, rules: &LeaseRules, dialect: Dialect) {
    let (name, demands, own) = (dialect.word(), dialect.grammar().facts().demands, &keys.own.lease);
    let written = [
        ("prefix", own.prefix.as_ref().map(Written::span)),
        ("default", own.default.as_ref().map(Written::span)),
        ("shared", own.shared.as_ref().map(Written::span)),
        ("max_wait", own.max_wait.as_ref().map(Written::span)),
        ("max_waiters", own.max_waiters.as_ref().map(Written::span)),
    ];
    for (key, span) in written {
        let idle = demands.idle_lease_keys.iter().find(|(idle, _)| *idle == key);
        if let (Some(span), Some((_, reason))) = (span, idle) {
            let message = format!("lease.{key} has no effect in the {name} dialect");
            check.hinted(span, message, format!("leave it out: {reason}"));
        }
    }
    check.refuse(
        lease(keys, |raw| &raw.acquire_on_read),
        rules.acquire_on_read && !demands.acquires_on_read,
        format!("the {name} dialect cannot acquire a lease with a read"),
        "leave it out, or write dialect = \"native\"",
    );
    let Some((shortest, longest)) = demands.lease_durations else { return };
    let (least, most) = (show_duration(shortest), show_duration(longest));
    let range = format!(
        "the clients of the {name} dialect request leases from {least} to {most}; lease.infinite allows those without end"
    );
    let (min, max) = (show_duration(rules.min), show_duration(rules.max));
    let too_short = format!("lease.min is {min}: the least in the {name} dialect is {least}");
    check.refuse(lease(keys, |raw| &raw.min), rules.min < shortest, too_short, &range);
    let too_long = format!("lease.max is {max}: the limit in the {name} dialect is {most}");
    check.refuse(lease(keys, |raw| &raw.max), rules.max > longest, too_long, &range);
}
