//! The keys of a guarded route.

use super::{
    check::Check,
    clients::{leases_ask_for_their_clients, own_field_has_its_file, signed_requests_stay_as_they_are},
    dialect_keys,
    keys::RouteLayers,
    tags, watch,
};
use crate::{
    config::{Word, raw::Texts, route::CHANGING_METHODS, table::Section as _, written::Written},
    core::{
        policy::{Dialect, GuardRules, Policy, Require},
        quirks::ServiceKind,
    },
};

/// The methods whose class no route can change.
const FIXED_METHODS: [&str; 7] = ["GET", "HEAD", "OPTIONS", "TRACE", "CONNECT", "COPY", "MOVE"];

/// Returns the guard of a route with this policy.
pub(super) fn guard(check: &mut Check<'_>, keys: RouteLayers<'_>, policy: Policy) -> GuardRules {
    let guard = values(check, keys, policy);
    if policy == Policy::Pessimistic {
        check.refuse(
            keys.get(|raw| &raw.observe),
            guard.observe,
            "a pessimistic route cannot only observe: no client holds a lease that is not granted",
            "to observe what its preconditions would do, write policy = \"optimistic\" and require = \"never\"",
        );
    }
    suits_dialect(check, keys, policy, &guard);
    tags::go_together(check, keys, &guard);
    leases_speak_natively(check, keys, &guard);
    dialect_keys::suit_dialect(check, keys, &guard);
    own_field_has_its_file(check, keys, &guard);
    leases_ask_for_their_clients(check, keys, &guard);
    watch::refuse_unaskable(check, keys, &guard);
    methods_have_one_class(check, keys, &guard);
    guard
}

/// Returns the values of the keys, each checked alone.
pub(super) fn values(check: &mut Check<'_>, keys: RouteLayers<'_>, policy: Policy) -> GuardRules {
    if let Some(list) = keys.get(|keys| &keys.identity_headers).filter(|list| list.get_ref().is_empty()) {
        const HINT: &str = "name the field that your clients authenticate with, or leave the key out";
        let message = "identity_headers is empty: all clients count as one, whatever fields they send";
        check.warn(list.span(), message, HINT);
    }
    // The row of the key reports a wrong word.
    let dialect = keys.get(|keys| &keys.dialect).and_then(|word| Dialect::of(word.get_ref())).unwrap_or_default();
    GuardRules::read(check, "", keys, (policy, dialect))
}

/// Reports a refusal that the clients of a dialect do not know.
fn leases_speak_natively(check: &mut Check<'_>, keys: RouteLayers<'_>, guard: &GuardRules) {
    check.refuse(
        keys.own.lease.sharing_violation.as_ref(),
        guard.lease.as_ref().is_some_and(|rules| rules.sharing_violation) && guard.quirks.service != ServiceKind::Plain,
        "lease.sharing_violation = true needs dialect = \"native\"",
        "leave it out: the clients of the other dialects know the errors of those",
    );
}

/// Reports settings that do not suit the dialect.
fn suits_dialect(check: &mut Check<'_>, keys: RouteLayers<'_>, policy: Policy, guard: &GuardRules) {
    const HINT: &str = "leave it out: the dialect is a list of operations, and any other method is refused";
    let (name, demands) = (guard.dialect.word(), guard.dialect.grammar().facts().demands);
    check.refuse(
        keys.get(|raw| &raw.dialect),
        demands.leases && policy != Policy::Pessimistic,
        format!("dialect = {name:?} needs policy = \"pessimistic\""),
        "leases are part of it; a client that requests none writes as under policy = \"optimistic\"",
    );
    check.refuse(
        keys.get(|raw| &raw.policy),
        demands.makes_own_requests && policy != Policy::Optimistic,
        format!("dialect = {name:?} needs policy = \"optimistic\""),
        "each change of a queue or message depends on the state before it, and nothing has a lease",
    );
    check.refuse(
        keys.get(|raw| &raw.require),
        demands.makes_own_requests && guard.require != Require::Never,
        format!("require has no effect in the {name} dialect"),
        "leave it out: ifmatch writes the conditions itself",
    );
    let own = [
        ("safe_methods", keys.own.safe_methods.as_ref().map(Written::span)),
        ("append_methods", keys.own.append_methods.as_ref().map(Written::span)),
        ("websocket", keys.own.websocket.as_ref().map(Written::span)),
    ];
    for (key, span) in own {
        if let Some(span) = span.filter(|_| demands.idle_keys.contains(&key)) {
            check.hinted(span, format!("{key} has no effect in the {name} dialect"), HINT);
        }
    }
    if demands.signed_requests {
        signed_requests_stay_as_they_are(check, keys, guard);
    }
}

fn methods_have_one_class(check: &mut Check<'_>, keys: RouteLayers<'_>, guard: &GuardRules) {
    let unclaimed = keys.get(|raw| &raw.append_methods);
    refuse_methods(check, keys.get(|raw| &raw.safe_methods), |method| {
        if FIXED_METHODS.contains(&method) {
            Some(format!("the meaning of {method} is fixed: it cannot be in safe_methods"))
        } else if CHANGING_METHODS.iter().any(|changing| changing == method) {
            Some(format!("{method} changes the resource: it cannot be in safe_methods"))
        } else {
            None
        }
    });
    refuse_methods(check, unclaimed, |method| {
        if FIXED_METHODS.contains(&method) {
            Some(format!("the meaning of {method} is fixed: it cannot be in append_methods"))
        } else if guard.safe_methods.iter().any(|safe| safe == method) {
            Some(format!("{method} is in safe_methods and in append_methods"))
        } else {
            None
        }
    });
    refuse_methods(check, keys.get(|raw| &raw.require_methods), |method| {
        let is_safe = guard.safe_methods.iter().any(|safe| safe == method);
        let is_no_write = FIXED_METHODS.contains(&method) && !matches!(method, "COPY" | "MOVE");
        (is_no_write || is_safe).then(|| format!("{method} is not a write: it cannot be in require_methods"))
    });
}

fn refuse_methods(check: &mut Check<'_>, list: Option<&Texts>, wrong: impl Fn(&str) -> Option<String>) {
    for text in list.iter().flat_map(|list| list.get_ref()) {
        if let Some(message) = wrong(text.get_ref()) {
            check.problem(text.span(), message);
        }
    }
}
