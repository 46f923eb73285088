//! The `[[routes]]` tables, with `[defaults]` filled in.

use std::{collections::HashMap, ops::Range, sync::Arc};

use super::{
    check::Check,
    delete_pending,
    guard::{self, guard},
    keys::{Placed, RouteLayers, pattern},
    members, prefixes, touches,
    upstreams::NamedUpstreams,
    writes_to,
};
use crate::{
    config::{
        Route, Upstream,
        raw::{self, File, Text},
        route::RouteKeys,
        route_kinds::defaults_of,
        section::names,
        table::Section as _,
        words::{Word, similar},
        written::Written,
    },
    core::{
        http::request_target::{EncodedSlash, KeptInNames, PathParameters},
        policy::{GuardRules, LeaseRules, Policy},
        resource::KeyTemplate,
        route::{HostPattern, PathPattern},
    },
};

/// The default template of resource keys.
const DEFAULT_KEY: &str = "{path}";

/// The keys that have an effect on an unguarded route.
const UNGUARDED_KEYS: [&str; 9] =
    ["name", "host", "path", "upstream", "strip_prefix", "add_prefix", "policy", "path_params", "encoded_slash"];

/// The key of the table that only pessimistic routes have.
const LEASE_KEY: &str = "lease";

/// The keys that cannot be in `[defaults]`.
const OWN_KEYS: [&str; 6] = ["name", "host", "path", "also_changes", "writes_to", "members"];

/// Returns all routes whose patterns could be read, in the order of the file.
pub(super) fn routes(check: &mut Check<'_>, file: &File, upstreams: &NamedUpstreams) -> Vec<Placed> {
    defaults(check, &file.defaults, upstreams);
    if file.routes.is_empty() && !check.written.unreadable(&["routes"]) {
        check.whole("there is no route", "write [[routes]] and below it path, upstream and policy");
    }
    refuse_shared_names(check, &file.routes);
    let mut routes = Vec::new();
    for (index, raw) in file.routes.iter().enumerate() {
        let table = RouteHeading { index: index.to_string(), span: raw.span() };
        routes.extend(route(check, &table, RouteLayers { own: raw.get_ref(), defaults: &file.defaults }, upstreams));
    }
    routes
}

fn refuse_shared_names(check: &mut Check<'_>, routes: &[raw::Written<RouteKeys>]) {
    // The first route of each name, and the first to which the file gives this name.
    let mut seen: HashMap<String, (usize, Option<usize>)> = HashMap::new();
    for route in routes {
        let (name, given) = (name(route.get_ref()), route.get_ref().name.as_ref());
        let span = given.map_or(route.span(), Written::span);
        let own = given.map(|_| span.start);
        let Some((any, named)) = seen.get_mut(&name) else {
            seen.insert(name, (span.start, own));
            continue;
        };
        // Two unnamed routes with equal default names match the same requests, and `overlap` reports that.
        if let Some(other) = own.map(|_| *any).or(*named) {
            let line = check.source.line(other);
            check.problem(span, format!("another route (line {line}) is also named {name:?}"));
        }
        *named = named.or(own);
    }
}

/// Returns the name of a route; by default, its host and path.
fn name(raw: &RouteKeys) -> String {
    let text = |text: &Option<Text>| text.as_ref().map(|text| text.get_ref().clone());
    text(&raw.name).unwrap_or_else(|| text(&raw.host).unwrap_or_default() + &text(&raw.path).unwrap_or_default())
}

/// Checks `[defaults]` alone, so that a problem there is found even if no route uses it. Rules over several keys apply
/// only to routes, because a route may override some of them.
fn defaults(check: &mut Check<'_>, defaults: &RouteKeys, upstreams: &NamedUpstreams) {
    let written = check.written;
    for (key, span) in written.keys_of(&["defaults"]).filter(|(key, _)| OWN_KEYS.contains(key)) {
        check.problem(span, format!("`{key}` belongs to one route: it cannot be a default"));
    }
    let keys = RouteLayers { own: defaults, defaults };
    let _ = check.word::<Policy>("policy", defaults.policy.as_ref());
    let _ = check.word::<PathParameters>("path_params", defaults.path_params.as_ref());
    let _ = check.word::<EncodedSlash>("encoded_slash", defaults.encoded_slash.as_ref());
    let _ = defaults.upstream.as_ref().and_then(|name| upstream(check, name, upstreams));
    prefixes::values(check, keys);
    let defaults_of_dialect = defaults_of(guard::values(check, keys, Policy::Optimistic).dialect);
    let _ = LeaseRules::read(check, "lease.", keys.part(|keys| &keys.lease), (defaults_of_dialect,));
}

fn route(
    check: &mut Check<'_>,
    table: &RouteHeading,
    keys: RouteLayers<'_>,
    upstreams: &NamedUpstreams,
) -> Option<Placed> {
    if let Some(name) = &keys.own.name {
        check.name("the route's name", name);
    }
    let host = keys.own.host.as_ref();
    let host = host.map_or(Some(HostPattern::Any), |text| pattern(check, text, HostPattern::parse(text.get_ref())));
    let path_text = table.required(check, "path", keys.own.path.as_ref(), "path = \"/documents/{id}\"");
    let path = path_text.and_then(|text| pattern(check, text, PathPattern::parse(text.get_ref())));
    let upstream = table
        .required(check, "upstream", keys.get(|raw| &raw.upstream), "upstream = \"NAME\"")
        .and_then(|name| upstream(check, name, upstreams));
    let policy_text = table.required(check, "policy", keys.get(|raw| &raw.policy), "policy = \"optimistic\"");
    let policy = check.word::<Policy>("policy", policy_text);
    let kept = kept(check, keys);
    let guard = guard_under(check, table, keys, policy);
    let ignores_case = upstream.as_ref().is_some_and(|upstream| upstream.ignore_case);
    let (host, path) = (host?, path?);
    let path = if ignores_case { path.ignoring_case() } else { path };
    let key = key(check, keys, guard.is_some(), &path);
    let key = if ignores_case { key.map(KeyTemplate::ignoring_case) } else { key };
    if let Some(guard) = &guard {
        delete_pending::suits_route(check, keys, guard, key.as_ref());
    }
    let mapping = prefixes::mapping(check, keys, &path);
    let touches = touches::read(check, keys.own.also_changes.as_ref().filter(|_| guard.is_some()), &path);
    let templates = || touches.iter().map(|touch| touch.get_ref().clone()).collect();
    let guard = guard.map(|guard| GuardRules { also_changes: templates(), ..guard });
    let named = writes_to::read(check, keys.own.writes_to.as_ref().filter(|_| guard.is_some()), &path);
    let collection = members::read(check, keys, guard.as_ref(), &path);
    let guard = guard.map(|guard| GuardRules { has_members: collection.is_some(), ..guard });
    if let (Some(upstream), Some(guard)) = (&upstream, &guard) {
        prefixes::refuse_unsignable(check, keys, upstream, guard);
    }
    let whole = upstream.zip(policy).zip(key).zip(mapping);
    let route = whole.map(|(((upstream, policy), key), (mapping, upstream_path))| Route {
        name: name(keys.own),
        host: host.clone(),
        path: path.clone(),
        upstream,
        policy,
        guard: guard.map(Arc::new),
        mapping,
        upstream_path,
        key,
        writes_to: named.as_ref().map(|template| template.get_ref().clone()),
        members: collection.as_ref().map(|template| template.get_ref().clone()),
        kept,
        beside_guarded: false,
        reads_may_be_leased: false,
        deletes_may_be_pending: false,
        may_hold_members: false,
        has_trees: false,
    });
    let guarantee = keys.get(|raw| &raw.guarantee).map(Written::span);
    Some(Placed {
        name: name(keys.own),
        host,
        path,
        span: path_text?.span(),
        touches,
        writes_to: named,
        members: collection,
        guarantee,
        collections: keys.own.collections.as_ref().map(Written::span),
        route,
    })
}

/// Reads the rules of a route with this policy, if it has any.
fn guard_under(
    check: &mut Check<'_>,
    table: &RouteHeading,
    keys: RouteLayers<'_>,
    policy: Option<Policy>,
) -> Option<GuardRules> {
    match policy {
        Some(Policy::LastWriterWins) => {
            table.refuse_guard_keys(check);
            return None;
        }
        Some(Policy::Optimistic) => table.refuse_leases(check),
        Some(Policy::Pessimistic) | None => {}
    }
    Some(guard(check, keys, policy.unwrap_or(Policy::Optimistic)))
}

/// Reads what the backend takes as ordinary parts of names.
fn kept(check: &mut Check<'_>, keys: RouteLayers<'_>) -> KeptInNames {
    let path_params = check.word("path_params", keys.get(|raw| &raw.path_params));
    let encoded_slash = check.word("encoded_slash", keys.get(|raw| &raw.encoded_slash));
    KeptInNames {
        path_params: path_params.unwrap_or(KeptInNames::NOTHING.path_params),
        encoded_slash: encoded_slash.unwrap_or(KeptInNames::NOTHING.encoded_slash),
    }
}

/// One `[[routes]]` table: its index and the position of its heading.
struct RouteHeading {
    index: String,
    span: Range<usize>,
}

impl RouteHeading {
    /// Reports a missing key. A key of the route or of `[defaults]` that could not be read has already been reported.
    fn required<'t, T>(&self, check: &mut Check<'_>, key: &str, value: Option<&'t T>, hint: &str) -> Option<&'t T> {
        let unreadable = |path: &[&str]| check.written.unreadable(path);
        let reported =
            unreadable(&["routes", &self.index, key]) || unreadable(&["defaults", key]) || unreadable(&["defaults"]);
        if value.is_none() && !reported {
            check.hinted(self.span.clone(), format!("the route has no {key}"), format!("write {hint}"));
        }
        value
    }

    /// Reports keys without effect on an unguarded route: their author believes that the route is guarded.
    fn refuse_guard_keys(&self, check: &mut Check<'_>) {
        let written = check.written;
        let known = names::<RouteKeys>();
        for (key, span) in written.keys_of(&["routes", &self.index]) {
            if known.contains(&key) && !UNGUARDED_KEYS.contains(&key) {
                let needed = if key == LEASE_KEY { Policy::Pessimistic } else { Policy::Optimistic };
                refuse_key(check, key, span, "a last-writer-wins", needed);
            }
        }
    }

    /// Like [`Self::refuse_guard_keys`], but for leases on a route that judges only preconditions.
    fn refuse_leases(&self, check: &mut Check<'_>) {
        let written = check.written;
        for (key, span) in written.keys_of(&["routes", &self.index]).filter(|(key, _)| *key == LEASE_KEY) {
            refuse_key(check, key, span, "an optimistic", Policy::Pessimistic);
        }
    }
}

fn refuse_key(check: &mut Check<'_>, key: &str, span: Range<usize>, kind: &str, needed: Policy) {
    let message = format!("`{key}` has no effect on {kind} route");
    check.hinted(span, message, format!("leave it out, or write policy = {:?}", needed.word()));
}

fn upstream(check: &mut Check<'_>, name: &Text, upstreams: &NamedUpstreams) -> Option<Arc<Upstream>> {
    let found = upstreams.get(name.get_ref());
    if found.is_none() && !check.written.unreadable(&["upstreams"]) {
        let known = upstreams.keys().map(String::as_str);
        let hint = match similar(name.get_ref(), known.clone()) {
            Some(meant) => format!("did you mean {meant:?}?"),
            None if upstreams.is_empty() => format!("write [upstreams.{}]", name.get_ref()),
            None => format!("the upstreams are: {}", known.collect::<Vec<_>>().join(", ")),
        };
        check.hinted(name.span(), format!("there is no upstream {:?}", name.get_ref()), hint);
    }
    found.cloned()
}

fn key(check: &mut Check<'_>, keys: RouteLayers<'_>, guarded: bool, path: &PathPattern) -> Option<KeyTemplate> {
    let names = path.names().collect::<Vec<_>>();
    match keys.get(|raw| &raw.key) {
        Some(text) if guarded => pattern(check, text, KeyTemplate::parse(text.get_ref(), &names)),
        // Without a name in reach, {path} is the whole path, even if a capture has that name.
        _ => KeyTemplate::parse(DEFAULT_KEY, &[]).ok(),
    }
}
