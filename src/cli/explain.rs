//! `ifmatch explain`: shows which route a request takes and why, its resource key, and what a write needs.
//!
//! The door decides, as it does for a request that comes over the network; this module only reports its decision.

use std::{fmt::Write as _, process::ExitCode, slice, sync::Arc};

use http::{HeaderMap, HeaderName, HeaderValue, Method, Version, header};

use super::{Exit, ExplainOptions, complain, print, report};
use crate::{
    config::{self, Config, Route, Word, guard_words},
    core::{
        client_address::ClientAddress,
        idempotency::{key_of, missing},
        lease::Usage,
        policy::{Dialect, Guarantee, GuardRules, Idempotency, LeaseRules, MethodClass, ProbeAuth, Require},
        precondition::{Preconditions, Requirement, requirement},
        refusal::{Code, Refusal},
        target::{NormalPath, PathParameters, normalize, split_query},
        validators::Representation,
    },
    dialect::{Incoming, Intent},
    routing::{
        GuardedRequest,
        door::{Door, Head, decide},
        table::table,
    },
};

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
        Err(what) => {
            complain(format_args!("ifmatch explain: {what}"));
            Exit::Usage.into()
        }
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
    let table = table(&config.routes);
    let (path, _) = split_query(request.target.as_bytes());
    let normal = normalize(path, PathParameters::Keep);
    let head = Head {
        method: &request.method,
        version: Version::HTTP_11,
        host: &request.host,
        target: request.target.as_bytes(),
        headers: &request.headers,
        client: ClientAddress::Local,
    };
    let door = decide(&table, &config.routes, &head);
    let mut lines = vec![("request", format!("{} {}{}", request.method, request.host, request.target))];
    lines.push((
        "normal form",
        match &normal {
            Ok(normal) => normal.as_str().to_owned(),
            Err(ambiguous) => format!("none: {ambiguous}"),
        },
    ));
    let taken = match &door {
        Door::Refuse { route_index, .. } => *route_index,
        Door::Pass { route_index, .. } | Door::Observed { route_index, .. } => Some(*route_index),
        Door::Guarded(guarded) | Door::Handshake(guarded) => Some(guarded.route_index),
    };
    let route = taken.and_then(|index| config.routes.get(index));
    if let Some(route) = route {
        lines.push(("route", format!("{}, to upstream {}", describe(route), route.upstream.name)));
        lines.push(("why", why(config, route, request, normal.as_ref().ok())));
        lines.push(("policy", policy(route)));
        if let Some(target) = mapped(route, request) {
            lines.push(("target", format!("the backend gets {target}")));
        }
    }
    if let Door::Guarded(guarded) | Door::Handshake(guarded) | Door::Observed { would: Ok(guarded), .. } = &door {
        lines.push(("key", guarded.key.to_string()));
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

/// Explains why a route was taken, and names the others that match.
fn why(config: &Config, taken: &Route, request: &ExplainedRequest, normal: Option<&NormalPath>) -> String {
    let Some(normal) = normal else { return "it matches the path as it is spelled".to_owned() };
    let matches = |route: &&Arc<Route>| table(slice::from_ref(*route)).find(&request.host, normal).is_some();
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
    let mut text = String::new();
    let words = [
        ("dialect", guard.dialect.word(), Dialect::default().word()),
        ("probe_auth", guard.probe_auth.word(), ProbeAuth::Client.word()),
        ("idempotency", guard.idempotency.word(), Idempotency::Off.word()),
    ];
    // Writing to a string cannot fail.
    for (key, word, _) in words.iter().filter(|(_, word, default)| word != default) {
        let _ = write!(text, ", {key} = {word:?}");
    }
    text
}

fn leases(rules: &LeaseRules) -> String {
    let guards = guard_words(rules.guards);
    format!(", lease.guards = {guards:?}, lease.required = {}", rules.required)
}

/// Explains what becomes of a request, and what a write needs.
fn outcome(door: &Door, guard: Option<&GuardRules>, request: &ExplainedRequest) -> Vec<(&'static str, String)> {
    match door {
        Door::Refuse { refusal, .. } => vec![("outcome", refused(refusal))],
        Door::Pass { .. } if guard.is_some() => vec![("outcome", "it passes unjudged".to_owned())],
        Door::Pass { .. } => vec![("outcome", "it passes as it came; nothing guards this route".to_owned())],
        Door::Observed { would: Err(code), .. } => {
            vec![("outcome", format!("it passes; without observe: {} {}", code.status().as_u16(), code.as_str()))]
        }
        Door::Guarded(guarded) | Door::Handshake(guarded) | Door::Observed { would: Ok(guarded), .. } => match guard {
            Some(guard) if guard.quirks.is_closed_list => operation(guarded, guard, request),
            Some(guard) => judged(guarded, guard, &request.headers),
            None => Vec::new(),
        },
    }
}

/// Explains what becomes of a request in a dialect that is a list of operations: it is one of them, or it is refused.
fn operation(guarded: &GuardedRequest, guard: &GuardRules, request: &ExplainedRequest) -> Vec<(&'static str, String)> {
    let incoming = Incoming { method: &guarded.method, target: request.target.as_bytes(), headers: &request.headers };
    let call = match guard.dialect.grammar().read(incoming, guard, guarded.is_lease) {
        Ok(call) => call,
        Err(refusal) => {
            let error = guard.dialect.grammar().refusal(incoming, &refusal, || [0; 16]);
            return vec![("outcome", format!("{} {}: {}", error.status.as_u16(), error.code, refusal.detail))];
        }
    };
    let mut lines: Vec<_> = call.operation.map(|name| ("operation", name.to_owned())).into_iter().collect();
    if call.intent == Intent::Lease {
        lines.push(("outcome", "the lease is judged after the backend has been asked for the resource".to_owned()));
        return lines;
    }
    let usage = usage(guarded, guard.class_of(&guarded.method));
    if let Some(rules) = guard.lease.as_ref().filter(|rules| rules.guards.covers(usage)) {
        lines.push(("lease", lease_needs(guard, rules)));
    }
    let outcome = if call.conditions.is_empty() { "" } else { ", if its conditions are true" };
    if let Some(sent) = call.forwarded {
        let target = String::from_utf8_lossy(&sent.target).into_owned();
        lines.push(("outcome", format!("the backend gets {} {target}{outcome}", sent.method)));
    }
    lines
}

fn judged(request: &GuardedRequest, guard: &GuardRules, headers: &HeaderMap) -> Vec<(&'static str, String)> {
    let class = guard.class_of(&request.method);
    let kind = match class {
        MethodClass::Read => "a read",
        MethodClass::UnclaimedWrite => "a write that runs beside others",
        _ => "a write",
    };
    if class == MethodClass::Unjudged {
        return vec![("outcome", "it passes unjudged; ifmatch adds its fields to what the upstream allows".to_owned())];
    }
    let mut lines = vec![("method", format!("{} is {kind}", request.method))];
    if let Some(rules) = guard.lease.as_ref().filter(|rules| rules.guards.covers(usage(request, class))) {
        lines.push(("lease", lease_needs(guard, rules)));
    }
    if class == MethodClass::Read {
        lines.push(("outcome", "it is answered with a tag, or with 304 or 412 by its preconditions".to_owned()));
        return lines;
    }
    let require = if guard.require_methods.contains(&request.method) { guard.require } else { Require::Never };
    lines.push(("needs", needs(require, guard.allow_any).to_owned()));
    if !guard.also_changes.is_empty() {
        let paths = guard.also_changes.iter().map(|template| template.pattern().to_string()).collect::<Vec<_>>();
        lines.push(("also changes", paths.join(", ")));
    }
    let outcome = match Preconditions::parse(headers) {
        Err(malformed) => refused(&Refusal::new(Code::MalformedPrecondition, malformed.to_string())),
        Ok(conditions) => match requirement(require, guard.allow_any, &conditions, &Representation::Unknown) {
            Requirement::Missing => refused(&Refusal::new(Code::PreconditionRequired, "the request has none of these")),
            Requirement::NeedsExistence => "the current state of the resource decides if that is enough".to_owned(),
            Requirement::Satisfied if conditions.is_empty() => "it passes without a precondition".to_owned(),
            Requirement::Satisfied => "its preconditions are judged against the current state".to_owned(),
        },
    };
    let outcome = lacks_key(guard, headers).unwrap_or(outcome);
    let outcome = if guard.observe { format!("it passes; without observe: {outcome}") } else { outcome };
    lines.push(("outcome", outcome));
    lines
}

/// Returns the refusal of a write whose key is required but missing, or cannot be read.
fn lacks_key(guard: &GuardRules, headers: &HeaderMap) -> Option<String> {
    match key_of(headers, guard.quirks.idempotency_fields) {
        _ if guard.idempotency == Idempotency::Off => None,
        Ok(None) if guard.idempotency == Idempotency::Required => Some(refused(&missing())),
        Ok(_) => None,
        Err(malformed) => Some(refused(&Refusal::new(Code::MalformedRequest, malformed.to_string()))),
    }
}

/// Returns what a request does to its resource, as far as leases are concerned.
fn usage(request: &GuardedRequest, class: MethodClass) -> Usage {
    match class {
        MethodClass::Read => Usage::Read,
        _ if request.method == Method::DELETE => Usage::Delete,
        _ => Usage::Write,
    }
}

fn lease_needs(guard: &GuardRules, rules: &LeaseRules) -> String {
    let when = if rules.required { ", always: a lease must be taken first" } else { " while the resource is leased" };
    format!("{}{when}", guard.dialect.grammar().lease_field())
}

fn needs(require: Require, allow_any: bool) -> &'static str {
    match (require, allow_any) {
        (Require::Never, _) => "nothing; a precondition is judged if there is one",
        (Require::Existing, false) => "If-Match with the current tag if the resource exists, nothing to create it",
        (Require::Existing, true) => "If-Match with the current tag or * if the resource exists, nothing to create it",
        (Require::Always, false) => "If-Match with the current tag, or If-None-Match: * to create",
        (Require::Always, true) => "If-Match with the current tag or *, or If-None-Match: * to create",
    }
}

fn refused(refusal: &Refusal) -> String {
    format!("{} {}: {}", refusal.code.status().as_u16(), refusal.code.as_str(), refusal.detail)
}
