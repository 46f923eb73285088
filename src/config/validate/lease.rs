//! The `[routes.lease]` table (DESIGN, sections 5 and 8).

use std::time::Duration;

use super::{check::Check, keys::RouteKeys};
use crate::{
    config::{
        limits::{self, Limit},
        raw::{Flag, Lease, Text, Texts, Time},
        units::show_duration,
        words::{Word, guard_words},
        written::Written,
    },
    core::{
        policy::{AbsentLease, Dialect, LeaseAuth, LeaseGuards, LeaseRules},
        target::{KeptInNames, normalize},
    },
};

/// The default prefix of the lease URLs of a route.
pub(crate) const DEFAULT_PREFIX: &str = "/.leases";

/// Returns the lease rules of a pessimistic route.
pub(super) fn rules(check: &mut Check<'_>, keys: RouteKeys<'_>, dialect: Dialect) -> LeaseRules {
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
pub(super) fn values(check: &mut Check<'_>, keys: RouteKeys<'_>, dialect: Dialect) -> LeaseRules {
    let flag = |key: fn(&Lease) -> &Option<Flag>, default| lease(keys, key).map_or(default, |flag| *flag.get_ref());
    let defaults = dialect.grammar().facts().defaults;
    let per_principal = lease(keys, |raw| &raw.max_per_principal);
    let max_per_principal = check.count(per_principal, limits::LEASE_MAX_PER_PRINCIPAL);
    LeaseRules {
        prefix: prefix(check, lease(keys, |raw| &raw.prefix)),
        guards: guards(check, lease(keys, |raw| &raw.guards)),
        auth: check.word("lease.auth", lease(keys, |raw| &raw.auth)).unwrap_or(LeaseAuth::Probe),
        bind: flag(|raw| &raw.bind, false),
        shared: flag(|raw| &raw.shared, false),
        delete_pending: flag(|raw| &raw.delete_pending, false),
        acquire_on_read: flag(|raw| &raw.acquire_on_read, false),
        client_break: flag(|raw| &raw.client_break, defaults.client_break),
        absent: check.word("lease.absent", lease(keys, |raw| &raw.absent)).unwrap_or(AbsentLease::Refuse),
        remember_time: check.duration(lease(keys, |raw| &raw.remember_time), limits::LEASE_REMEMBER_TIME),
        max_per_principal,
        max_per_address: max_per_address(check, keys, max_per_principal),
        default: whole_seconds(check, lease(keys, |raw| &raw.default), limits::LEASE_DEFAULT),
        min: whole_seconds(check, lease(keys, |raw| &raw.min), limits::LEASE_MIN),
        max: whole_seconds(check, lease(keys, |raw| &raw.max), limits::LEASE_MAX),
        infinite: flag(|raw| &raw.infinite, defaults.infinite),
        required: flag(|raw| &raw.required, false),
        max_wait: check.duration(lease(keys, |raw| &raw.max_wait), limits::LEASE_MAX_WAIT),
        max_waiters: check.count(lease(keys, |raw| &raw.max_waiters), limits::LEASE_MAX_WAITERS),
        max_hold_time: check.duration(lease(keys, |raw| &raw.max_hold_time), limits::LEASE_MAX_HOLD_TIME),
    }
}

/// Returns the limit per address. Its default grows with the limit per principal, so that one principal at one address
/// can reach its own limit.
fn max_per_address(check: &mut Check<'_>, keys: RouteKeys<'_>, max_per_principal: usize) -> usize {
    let limit = limits::LEASE_MAX_PER_ADDRESS;
    let default = max_per_principal.saturating_mul(10).clamp(limit.default, limit.max);
    check.count(lease(keys, |raw| &raw.max_per_address), Limit { default, ..limit })
}

/// Returns the value of a key of the lease table. Key by key, the route takes precedence over the defaults.
fn lease<'a, T>(keys: RouteKeys<'a>, key: fn(&'a Lease) -> &'a Option<T>) -> Option<&'a T> {
    key(&keys.own.lease).as_ref().or(key(&keys.defaults.lease).as_ref())
}

/// Reads the path below which the leases lie: in normal form, and never the root.
fn prefix(check: &mut Check<'_>, value: Option<&Text>) -> String {
    const HINT: &str = "write lease.prefix = \"/.leases\"";
    let Some(value) = value else { return DEFAULT_PREFIX.to_owned() };
    let text = value.get_ref();
    match normalize(text.as_bytes(), KeptInNames::NOTHING) {
        Err(ambiguous) => check.hinted(value.span(), format!("lease.prefix is {text:?}: {ambiguous}"), HINT),
        Ok(normal) if normal.as_str() == "/" => {
            check.hinted(value.span(), "lease.prefix is \"/\", where the resources themselves are", HINT);
        }
        Ok(normal) if normal.as_str() != text => {
            let message = format!("lease.prefix is {text:?}, which is not how ifmatch spells that path");
            check.hinted(value.span(), message, format!("write {:?}", normal.as_str()));
        }
        Ok(_) => return text.clone(),
    }
    DEFAULT_PREFIX.to_owned()
}

fn guards(check: &mut Check<'_>, value: Option<&Texts>) -> LeaseGuards {
    let Some(value) = value else { return LeaseGuards::Write };
    let mut words = value.get_ref().iter().map(|word| word.get_ref().as_str()).collect::<Vec<_>>();
    words.sort_unstable();
    let known = [LeaseGuards::Write, LeaseGuards::Read, LeaseGuards::ReadAndWrite, LeaseGuards::Delete];
    let found = known.into_iter().find(|guards| guard_words(*guards) == words);
    found.unwrap_or_else(|| {
        let message = format!("lease.guards cannot be [{}]", quoted(&words));
        let list = known.map(|guards| format!("[{}]", quoted(guard_words(guards)))).join(", ");
        check.hinted(value.span(), message, format!("it is one of {list}"));
        LeaseGuards::Write
    })
}

fn quoted(words: &[&str]) -> String {
    words.iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(", ")
}

/// Reads a duration that `Lease-Duration` can express.
fn whole_seconds(check: &mut Check<'_>, value: Option<&Time>, limit: Limit<Duration>) -> Duration {
    if let Some(value) = value.filter(|value| value.get_ref() == "infinite") {
        let message = format!("{} is \"infinite\", which is no duration", limit.key);
        check.hinted(value.span(), message, "set lease.infinite = true, which allows leases without an end");
        return limit.default;
    }
    let duration = check.duration(value, limit);
    match value {
        Some(value) if duration.subsec_nanos() != 0 => {
            let message = format!("{} is {}, and leases last whole seconds", limit.key, show_duration(duration));
            check.problem(value.span(), message);
            limit.default
        }
        _ => duration,
    }
}

fn durations_are_in_order(check: &mut Check<'_>, keys: RouteKeys<'_>, rules: &LeaseRules) {
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
fn keep_to_dialect(check: &mut Check<'_>, keys: RouteKeys<'_>, rules: &LeaseRules, dialect: Dialect) {
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
