//! The keys of a guarded route.

use http::{HeaderName, Method, header};

use super::{
    check::Check,
    clients::{probe_region, signed_requests_stay_as_they_are},
    keys::RouteKeys,
    lease, metadata, tags,
};
use crate::{
    config::{Word, limits, raw::Texts, written::Written},
    core::{
        credentials::CREDENTIAL_PARAMETERS,
        policy::{
            Collections, Compare, Dialect, Guarantee, GuardRules, Idempotency, MethodOverride, OnWrite, Policy,
            ProbeAuth, ReadConsistency, Require, TagAfterWrite, TagSource,
        },
    },
};

/// The methods whose class no route can change.
const FIXED_METHODS: [&str; 7] = ["GET", "HEAD", "OPTIONS", "TRACE", "CONNECT", "COPY", "MOVE"];

/// The methods that change the resource by definition (RFC 9110 section 9.3, RFC 5789).
const CHANGING_METHODS: [Method; 3] = [Method::PUT, Method::PATCH, Method::DELETE];

/// The request fields that carry credentials.
const IDENTITY_HEADERS: [HeaderName; 4] =
    [header::AUTHORIZATION, header::COOKIE, HeaderName::from_static("x-api-key"), HeaderName::from_static("api-key")];

/// Returns the guard of a route with this policy.
pub(super) fn guard(check: &mut Check<'_>, keys: RouteKeys<'_>, policy: Policy) -> GuardRules {
    let mut guard = values(check, keys, policy);
    if policy == Policy::Pessimistic {
        guard.lease = Some(lease::rules(check, keys, guard.dialect));
        check.refuse(
            keys.get(|raw| &raw.observe),
            guard.observe,
            "a pessimistic route cannot only observe: no client holds a lease that is not granted",
            "to observe what its preconditions would do, write policy = \"optimistic\" and require = \"never\"",
        );
    }
    suits_dialect(check, keys, policy, &guard);
    tags::go_together(check, keys, &guard);
    metadata::suits_route(check, keys, &guard);
    methods_have_one_class(check, keys, &guard);
    guard
}

/// Returns the values of the keys except those for leases, each checked alone.
pub(super) fn values(check: &mut Check<'_>, keys: RouteKeys<'_>, policy: Policy) -> GuardRules {
    let etag = check.word("etag", keys.get(|raw| &raw.etag)).unwrap_or(TagSource::Content);
    let dialect: Dialect = check.word("dialect", keys.get(|raw| &raw.dialect)).unwrap_or_default();
    let defaults = dialect.grammar().facts().defaults;
    let on_write_default = match etag {
        _ if defaults.probes_after_write => OnWrite::Probe,
        TagSource::Content | TagSource::Header(_) | TagSource::Json(_) => OnWrite::Probe,
        TagSource::Upstream | TagSource::Version | TagSource::Delegate => OnWrite::Omit,
    };
    let is_known_after_write = defaults.version_after_write && etag == TagSource::Version;
    let tag_after_write_default = if is_known_after_write { TagAfterWrite::Always } else { TagAfterWrite::Verbatim };
    let require_default = if policy == Policy::Pessimistic { Require::Never } else { Require::Always };
    let identity_headers = keys.get(|raw| &raw.identity_headers);
    if let Some(list) = identity_headers.filter(|list| list.get_ref().is_empty()) {
        const HINT: &str = "name the field that your clients authenticate with, or leave the key out";
        let message = "identity_headers is empty: all clients count as one, whatever fields they send";
        check.warn(list.span(), message, HINT);
    }
    GuardRules {
        etag,
        ignored_json: tags::ignored_json(check, keys),
        unique_tags: tags::are_unique(keys, dialect),
        intermediaries: tags::intermediaries(check, keys),
        compare: check.word("compare", keys.get(|raw| &raw.compare)).unwrap_or(Compare::Strong),
        other_writers: keys.get(|raw| &raw.other_writers).is_none_or(|flag| *flag.get_ref()),
        require: check.word("require", keys.get(|raw| &raw.require)).unwrap_or(require_default),
        require_methods: check.methods("require_methods", keys.get(|raw| &raw.require_methods), &CHANGING_METHODS),
        allow_any: keys.get(|raw| &raw.allow_any).is_some_and(|flag| *flag.get_ref()),
        on_write: check.word("on_write", keys.get(|raw| &raw.on_write)).unwrap_or(on_write_default),
        tag_after_write: check
            .word("etag_after_write", keys.get(|raw| &raw.etag_after_write))
            .unwrap_or(tag_after_write_default),
        safe_methods: check.methods("safe_methods", keys.get(|raw| &raw.safe_methods), &[]),
        append_methods: check.methods("append_methods", keys.get(|raw| &raw.append_methods), &[Method::POST]),
        reads: check.word("reads", keys.get(|raw| &raw.reads)).unwrap_or(ReadConsistency::Any),
        method_override: check
            .word("method_override", keys.get(|raw| &raw.method_override))
            .unwrap_or(MethodOverride::Refuse),
        collections: check.word("collections", keys.get(|raw| &raw.collections)).unwrap_or(Collections::Detect),
        websocket: keys.get(|raw| &raw.websocket).is_some_and(|flag| *flag.get_ref()),
        guarantee: check.word("guarantee", keys.get(|raw| &raw.guarantee)).unwrap_or(Guarantee::Store),
        observe: keys.get(|raw| &raw.observe).is_some_and(|flag| *flag.get_ref()),
        max_hash_size_bytes: check.memory(keys.get(|raw| &raw.max_hash_size), limits::MAX_HASH_SIZE),
        hash_wait: keys.get(|raw| &raw.hash_wait).map(|text| check.duration(Some(text), limits::HASH_WAIT)),
        identity_cookies: identity_cookies(check, keys.get(|raw| &raw.identity_cookies)),
        identity_query: identity_query(check, keys.get(|raw| &raw.identity_query)),
        identity_headers: identity_headers
            .map_or_else(|| IDENTITY_HEADERS.to_vec(), |names| check.header_names("identity_headers", names)),
        identity_ttl: check.duration(keys.get(|raw| &raw.identity_ttl), limits::IDENTITY_TTL),
        claim_max_wait: check.duration(keys.get(|raw| &raw.claim.max_wait), limits::CLAIM_MAX_WAIT),
        claim_max_waiters: check.count(keys.get(|raw| &raw.claim.max_waiters), limits::CLAIM_MAX_WAITERS),
        probe_timeout: check.duration(keys.get(|raw| &raw.probe.timeout), limits::PROBE_TIMEOUT),
        probe_auth: check.word("probe_auth", keys.get(|raw| &raw.probe_auth)).unwrap_or(ProbeAuth::Client),
        probe_region: probe_region(check, keys),
        idempotency: check.word("idempotency", keys.get(|raw| &raw.idempotency)).unwrap_or(Idempotency::Off),
        idempotency_ttl: check.duration(keys.get(|raw| &raw.idempotency_ttl), limits::IDEMPOTENCY_TTL),
        metadata_suffix: metadata::suffix(check, keys, dialect),
        dialect,
        quirks: dialect.quirks(),
        also_changes: Vec::new(),
        lease: None,
    }
}

/// Reports settings that do not suit the dialect.
fn suits_dialect(check: &mut Check<'_>, keys: RouteKeys<'_>, policy: Policy, guard: &GuardRules) {
    const HINT: &str = "leave it out: the dialect is a list of operations, and any other method is refused";
    let (name, demands) = (guard.dialect.word(), guard.dialect.grammar().facts().demands);
    check.refuse(
        keys.get(|raw| &raw.dialect),
        demands.leases && policy != Policy::Pessimistic,
        format!("dialect = {name:?} needs policy = \"pessimistic\""),
        "leases are part of it; a client that requests none writes as under policy = \"optimistic\"",
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

fn methods_have_one_class(check: &mut Check<'_>, keys: RouteKeys<'_>, guard: &GuardRules) {
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
        let fixed_or_safe = FIXED_METHODS.contains(&method) || guard.safe_methods.iter().any(|safe| safe == method);
        fixed_or_safe.then(|| format!("{method} is not a write: it cannot be in require_methods"))
    });
}

fn refuse_methods(check: &mut Check<'_>, list: Option<&Texts>, wrong: impl Fn(&str) -> Option<String>) {
    for text in list.iter().flat_map(|list| list.get_ref()) {
        if let Some(message) = wrong(text.get_ref()) {
            check.problem(text.span(), message);
        }
    }
}

fn identity_query(check: &mut Check<'_>, names: Option<&Texts>) -> Vec<String> {
    let Some(names) = names else { return CREDENTIAL_PARAMETERS.map(str::to_owned).to_vec() };
    check.each(names, |check, text| {
        let name = text.get_ref();
        if name.is_empty() {
            check.problem(text.span(), "identity_query: a parameter has a name");
        }
        (!name.is_empty()).then(|| name.clone())
    })
}

fn identity_cookies(check: &mut Check<'_>, names: Option<&Texts>) -> Vec<String> {
    let Some(names) = names else { return Vec::new() };
    check.each(names, |check, text| {
        let name = text.get_ref();
        // The name of a cookie is a token (RFC 6265 section 4.1.1), like the name of a field.
        let is_token = HeaderName::from_bytes(name.as_bytes()).is_ok();
        if !is_token {
            check.problem(text.span(), format!("identity_cookies: {name:?} is not the name of a cookie"));
        }
        is_token.then(|| name.clone())
    })
}
