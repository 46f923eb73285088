//! An overlay (OpenAPI Overlay 1.0) that tells the clients of a document what the routes of a configuration demand and
//! answer.
//!
//! # Design
//!
//! *Why is a list of parameters removed and written whole?* Programs that apply overlays differ in how they extend a list.
//!
//! *Why is a shared answer replaced by a copy?* An answer in `components` may serve operations that no route guards.

mod components;
mod lease_paths;
#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, sync::Arc};

use http::{Method, StatusCode};
use serde_json::{Map, Value, json};

use super::{
    coverage::CoveringRoutes,
    facts::{OperationFacts, ParameterPlace},
    paths::{ApiOperation, Paths},
    reference::reference_of,
    template::RoutePath,
};
use crate::{
    config::Route,
    core::{
        policy::{GuardRules, LeaseGuards, Require},
        quirks::ServiceKind,
    },
};
use components::{Components, merge};

/// Returns the text of the overlay, in JSON.
pub fn overlay(paths: &Paths<'_>, routes: &[Arc<Route>]) -> String {
    let covering = CoveringRoutes::of(routes);
    let mut components = Components::of(paths.document);
    let (mut actions, mut seen, mut leases) = (Vec::new(), BTreeSet::new(), Map::new());
    for operation in paths.operations.iter().filter(|operation| !operation.is_elsewhere) {
        let Some(guarded) = Guarded::of(paths, operation, &covering) else { continue };
        if let Some((path, item)) = lease_paths::item(&guarded, &mut components) {
            leases.entry(path).or_insert(item);
        }
        // Two paths may share one description.
        if seen.insert(operation.pointer.clone()) {
            guarded.add(&mut components, &mut actions);
        }
    }
    if !leases.is_empty() {
        actions.push(json!({"target": "$['paths']", "update": leases}));
    }
    if let Some(definitions) = components.definitions() {
        actions.insert(0, json!({"target": "$", "update": {"components": definitions}}));
    }
    let title = format!("Preconditions and leases of {}", paths.title());
    let overlay = json!({"overlay": "1.0.0", "info": {"title": title, "version": "1.0.0"}, "actions": actions});
    format!("{overlay:#}\n")
}

/// An operation of a guarded route.
pub(super) struct Guarded<'d, 'o> {
    pub(super) paths: &'o Paths<'d>,
    pub(super) operation: &'o ApiOperation<'d>,
    pub(super) rules: Arc<GuardRules>,
}

impl<'d, 'o> Guarded<'d, 'o> {
    /// The operation, if a route enforces rules on its requests, and its clients speak plain HTTP.
    fn of(paths: &'o Paths<'d>, operation: &'o ApiOperation<'d>, covering: &CoveringRoutes<'_>) -> Option<Self> {
        let path = RoutePath::of(&paths.server.base, operation.path)?;
        let mut routes = covering.of_pattern(&path.pattern).into_iter();
        let rules = routes.find_map(|route| route.enforced())?;
        let is_plain = rules.quirks.service == ServiceKind::Plain || rules.quirks.has_locks;
        is_plain.then(|| Self { paths, operation, rules: Arc::clone(rules) })
    }

    fn facts(&self) -> OperationFacts<'d, 'o> {
        OperationFacts { document: self.paths.document, operation: self.operation }
    }

    fn reads(&self) -> bool {
        matches!(self.operation.method, Method::GET | Method::HEAD)
    }

    /// Adds the changes of the operation's description.
    fn add(&self, components: &mut Components<'_>, actions: &mut Vec<Value>) {
        if self.operation.method == Method::OPTIONS {
            return;
        }
        let target = json_path(&self.operation.pointer);
        let parameters = self.parameters(components);
        if !parameters.is_empty() {
            let own = self.operation.value.get("parameters").and_then(Value::as_array);
            if own.is_some() {
                actions.push(json!({"target": format!("{target}['parameters']"), "remove": true}));
            }
            let all: Vec<&Value> = own.into_iter().flatten().chain(&parameters).collect();
            actions.push(json!({"target": target, "update": {"parameters": all}}));
        }
        self.add_tags(components, &target, actions);
        let refusals = self.refusals(components);
        if !refusals.is_empty() {
            actions.push(json!({"target": target, "update": {"responses": refusals}}));
        }
    }

    /// The parameters that the operation does not have.
    fn parameters(&self, components: &mut Components<'_>) -> Vec<Value> {
        let facts = self.facts();
        let method = &self.operation.method;
        let lease = self.rules.lease.as_ref();
        let guards = lease.is_some_and(|lease| match lease.guards {
            LeaseGuards::Write => !self.reads(),
            LeaseGuards::Read => self.reads(),
            LeaseGuards::ReadAndWrite => true,
            LeaseGuards::Delete => *method == Method::DELETE,
        });
        let needs_lease = lease.is_some_and(|lease| lease.required);
        let wanted = [
            ("If-Match", self.needs_tag().then_some("IfMatchRequired").or((!self.reads()).then_some("IfMatch"))),
            (
                "If-None-Match",
                match *method {
                    Method::GET | Method::HEAD => Some("IfNoneMatch"),
                    Method::PUT => Some("IfNoneMatchToCreate"),
                    _ => None,
                },
            ),
            ("Lease-Id", guards.then_some(if needs_lease { "LeaseIdRequired" } else { "LeaseId" })),
        ];
        let missing = wanted.into_iter().filter(|(name, _)| !facts.has_parameter(ParameterPlace::Header, name));
        missing.filter_map(|(_, component)| Some(components.reference("parameters", component?))).collect()
    }

    /// True if each request needs If-Match. A PUT that may create something can have If-None-Match instead, and a version
    /// may be in other places.
    fn needs_tag(&self) -> bool {
        let method = &self.operation.method;
        let may_create = *method == Method::PUT && self.facts().has_status("201");
        let only_there = self.rules.version_sources.is_empty() && !may_create;
        match self.rules.demand(method) {
            Require::Never => false,
            Require::Existing => only_there && *method != Method::PUT,
            Require::Always => only_there,
        }
    }

    /// Adds the tag to the answers of success.
    fn add_tags(&self, components: &mut Components<'_>, target: &str, actions: &mut Vec<Value>) {
        let responses = self.operation.value.get("responses").and_then(Value::as_object);
        let successes = responses.into_iter().flatten().filter(|(status, _)| status.starts_with('2'));
        for (status, response) in successes {
            let Some(whole) = self.paths.document.resolved(response) else { continue };
            let has_tag = whole.get("headers").and_then(Value::as_object);
            let has_tag = has_tag.is_some_and(|fields| fields.keys().any(|name| name.eq_ignore_ascii_case("ETag")));
            if has_tag {
                continue;
            }
            let headers = json!({"ETag": components.reference("headers", "ETag")});
            let place = format!("{target}['responses'][{}]", quoted(status));
            if reference_of(response).is_some() {
                let mut copy = whole.clone();
                if let Some(members) = copy.as_object_mut() {
                    let fields = members.entry("headers").or_insert_with(|| json!({}));
                    merge(fields, headers);
                }
                actions.push(json!({"target": place, "remove": true}));
                actions.push(json!({"target": format!("{target}['responses']"), "update": {status: copy}}));
            } else {
                actions.push(json!({"target": place, "update": {"headers": headers}}));
            }
        }
    }

    /// The refusals that the operation does not have.
    fn refusals(&self, components: &mut Components<'_>) -> Map<String, Value> {
        let method = &self.operation.method;
        let mut statuses = Vec::new();
        if self.reads() {
            statuses.extend([
                (StatusCode::NOT_MODIFIED, "NotModified"),
                (StatusCode::PRECONDITION_FAILED, "PreconditionFailed"),
            ]);
        } else {
            statuses.extend([
                (StatusCode::CONFLICT, "WriteInFlight"),
                (StatusCode::PRECONDITION_FAILED, "PreconditionFailed"),
            ]);
            if self.rules.demand(method) != Require::Never {
                statuses.push((StatusCode::PRECONDITION_REQUIRED, "PreconditionRequired"));
            }
            if self.rules.quirks.has_locks {
                statuses.push((StatusCode::LOCKED, "Locked"));
            }
        }
        let facts = self.facts();
        let missing = statuses.into_iter().filter(|(status, _)| !facts.has_status(status.as_str()));
        missing.map(|(status, name)| (status.as_str().to_owned(), components.reference("responses", name))).collect()
    }
}

/// The JSON path (RFC 9535) of a JSON pointer.
fn json_path(pointer: &str) -> String {
    let tokens = pointer.split('/').skip(1).map(|token| token.replace("~1", "/").replace("~0", "~"));
    tokens.fold("$".to_owned(), |path, token| format!("{path}[{}]", quoted(&token)))
}

fn quoted(token: &str) -> String {
    format!("'{}'", token.replace('\\', "\\\\").replace('\'', "\\'"))
}
