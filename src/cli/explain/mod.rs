//! `ifmatch explain`: shows which route a request takes and why, its resource key, and what a write needs.
//!
//! The door decides, as it does for a request that comes over the network; this module only reports its decision.

use std::{process::ExitCode, slice, sync::Arc};

use http::{HeaderMap, HeaderName, HeaderValue, Method, Version, header};

mod outcome;

use super::{Exit, ExplainOptions, give_up, print, report};
use crate::{
    config::{self, Config, Route, Word, guard_words},
    core::{
        http::{
            client_address::ClientAddress,
            request_target::{EncodedSlash, KeptInNames, NormalPath, PathParameters, normalize, split_query},
        },
        policy::{Dialect, Guarantee, GuardRules, Idempotency, LeaseRules, ProbeAuth},
    },
    routing::{
        door::{Door, Head, decide},
        table::RoutingTable,
    },
};
use outcome::outcome;

/// The parts of a request that routes and policies look at.
#[derive(Debug)]
struct ExplainedRequest {
    method: Method,
    host: String,
    target: String,
    headers: HeaderMap,
}

pub(super) fn execute(options: &ExplainOptions) -> ExitCode {
    let loaded = match config::load(&options.file) {
        Ok(loaded) => loaded,
        Err(problems) => return report(&problems),
    };
    match request(options) {
        Ok(request) => {
            for (label, text) in explain(&loaded.config, &request) {
                print(format_args!("{label:<13}{text}"));
            }
            ExitCode::SUCCESS
        }
        Err(what) => give_up(format_args!("ifmatch explain: {what}"), Exit::Usage),
    }
}

fn request(options: &ExplainOptions) -> Result<ExplainedRequest, String> {
    let method = options.method.parse().ok().ok_or_else(|| format!("{:?} is not a method", options.method))?;
    let mut headers = HeaderMap::new();
    for field in &options.headers {
        let parsed = field.split_once(':').and_then(|(name, value)| {
            Some((name.parse::<HeaderName>().ok()?, value.trim().parse::<HeaderValue>().ok()?))
        });
        let (name, value) = parsed.ok_or_else(|| format!("{field:?} is not 'Name: value'"))?;
        headers.append(name, value);
    }
    let (authority, target) = match options.url.split_once("://") {
        Some((_, rest)) => rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len())),
        None if options.url.starts_with('/') => (field(&headers, &header::HOST), options.url.as_str()),
        None => return Err(format!("{:?} is neither a URL nor a target that begins with \"/\"", options.url)),
    };
    // A fragment is never sent, and an empty path is sent as "/" (RFC 9110 section 7.1).
    let target = target.split('#').next().unwrap_or_default();
    let slash = if target.starts_with('/') { "" } else { "/" };
    Ok(ExplainedRequest { method, host: authority.to_owned(), target: format!("{slash}{target}"), headers })
}

fn field<'a>(headers: &'a HeaderMap, name: &HeaderName) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Explains what becomes of a request, as pairs of a label and a text.
fn explain(config: &Config, request: &ExplainedRequest) -> Vec<(&'static str, String)> {
    let table = RoutingTable::new(&config.routes);
    let (path, _) = split_query(request.target.as_bytes());
    let normal = normalize(path, KeptInNames::ALL);
    let head = Head {
        method: &request.method,
        version: Version::HTTP_11,
        host: &request.host,
        target: request.target.as_bytes(),
        headers: &request.headers,
        client: ClientAddress::Local,
    };
    let door = decide(&table, &head);
    let normal_form = match &normal {
        Ok(normal) => normal.as_str().to_owned(),
        Err(ambiguous) => format!("none: {ambiguous}"),
    };
    let received = format!("{} {}{}", request.method, request.host, request.target);
    let mut lines = vec![("request", received), ("normal form", normal_form)];
    let taken = match &door {
        Door::Refuse { route_index, .. } => *route_index,
        Door::Pass { route_index, .. } | Door::Observed { route_index, .. } => Some(*route_index),
        Door::Guarded(guarded) | Door::Handshake(guarded) => Some(guarded.route_index),
    };
    let route = taken.and_then(|index| config.routes.get(index));
    if let Some(route) = route {
        lines.push(("route", format!("{}, to upstream {}", describe(route), route.upstream.name)));
        lines.extend(readings(route).map(|read| ("reads", read)));
        lines.push(("why", why(config, route, request, normal.as_ref().ok())));
        let of_resource = normal.as_ref().ok().and_then(|path| table.route_without_leases(&request.host, path));
        if let Some(other) = of_resource.filter(|other| other.guard.is_some()) {
            let name = &other.name;
            lines.push((
                "leases",
                format!("route {name:?} offers none, so no lease: that needs policy = \"pessimistic\""),
            ));
        }
        lines.push(("policy", policy(route)));
        if let Some(target) = mapped(route, request) {
            lines.push(("target", format!("the backend gets {target}")));
        }
    }
    if let Door::Guarded(guarded) | Door::Handshake(guarded) | Door::Observed { would: Ok(guarded), .. } = &door {
        lines.push(("key", guarded.key.to_string()));
        if let Some(template) = guarded.writes_to() {
            lines.push(("or its body", format!("a body with these members makes it a write to {template}")));
        }
        if let Some((template, rules)) = guarded.route.members.as_ref().zip(guarded.route.guard.as_ref()) {
            let (pattern, index) = (template.pattern(), rules.index.spelled());
            let next = format!("a GET with Lease-Duration takes the next of {pattern} (index = {index:?})");
            lines.push(("members", next));
        }
    }
    lines.extend(outcome(&door, route.and_then(|route| route.guard.as_deref()), request));
    lines
}

/// Returns the target that the backend gets, if the route changes it.
fn mapped(route: &Route, request: &ExplainedRequest) -> Option<String> {
    let target = route.mapping.to_upstream(request.target.as_bytes())?;
    (!route.mapping.is_identity()).then(|| String::from_utf8_lossy(&target).into_owned())
}

fn describe(route: &Route) -> String {
    format!("{:?} (host {}, path {})", route.name, route.host, route.path)
}

/// Returns how paths are read otherwise than by default.
fn readings(route: &Route) -> Option<String> {
    let readings = [
        (route.upstream.ignore_case, "ignore_case = true"),
        (route.kept.encoded_slash == EncodedSlash::Keep, "encoded_slash = \"keep\""),
        (route.kept.path_params == PathParameters::Keep, "path_params = \"keep\""),
    ];
    let set = readings.into_iter().filter(|(is_set, _)| *is_set).map(|(_, key)| key).collect::<Vec<_>>();
    (!set.is_empty()).then(|| set.join(", "))
}

/// Explains why a route was taken, and names the others that match.
fn why(config: &Config, taken: &Route, request: &ExplainedRequest, normal: Option<&NormalPath>) -> String {
    let Some(normal) = normal else { return "it matches the path as it is spelled".to_owned() };
    let matches =
        |route: &&Arc<Route>| RoutingTable::new(slice::from_ref(*route)).find(&request.host, normal).is_some();
    let others = config.routes.iter().filter(|route| route.name != taken.name).filter(matches);
    let others = others.map(|route| describe(route)).collect::<Vec<_>>();
    if others.is_empty() {
        return "no other route matches".to_owned();
    }
    format!("it is more specific than {}", others.join(", "))
}

fn policy(route: &Route) -> String {
    let policy = route.policy.word();
    route.guard.as_ref().map_or_else(
        || policy.to_owned(),
        |guard| {
            let (etag, writers, require) = (guard.etag.spelled(), guard.other_writers, guard.require.word());
            let observe = if guard.observe { ", observe = true" } else { "" };
            let leases = guard.lease.as_ref().map(leases).unwrap_or_default();
            let clients = clients(guard);
            let guarantee = if guard.guarantee == Guarantee::Safety { ", guarantee = \"safety\"" } else { "" };
            format!(
                "{policy} (etag = {etag:?}, other_writers = {writers}, require = {require:?}{observe}{guarantee}{clients}{leases})"
            )
        },
    )
}

/// Lists the settings that differ between clients, unless they have their defaults.
fn clients(guard: &GuardRules) -> String {
    let words = [
        ("dialect", guard.dialect.word(), Dialect::default().word()),
        ("probe_auth", guard.probe_auth.word(), ProbeAuth::Client.word()),
        ("idempotency", guard.idempotency.word(), Idempotency::Off.word()),
    ];
    let others = words.into_iter().filter(|(_, word, default)| word != default);
    let shown = others.map(|(key, word, _)| format!(", {key} = {word:?}"));
    shown.collect()
}

fn leases(rules: &LeaseRules) -> String {
    let guards = guard_words(rules.guards);
    let shared = if rules.shared { ", lease.shared = true" } else { "" };
    let pending = if rules.delete_pending { ", lease.delete_pending = true" } else { "" };
    format!(", lease.guards = {guards:?}{shared}{pending}, lease.required = {}", rules.required)
}
