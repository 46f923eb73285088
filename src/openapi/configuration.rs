//! The configuration that a document suggests, as a text with the reason for each choice.

use std::{collections::BTreeMap, slice};

use toml::Value;

use super::{
    classify::{DecidedPath, PathRole, PostOfResource, RoutePlan, UndecidedPoint, plan},
    paths::{ApiOperation, Paths, printable},
    security::{Credentials, KNOWN_FIELDS},
    written::{comment, key, list},
};
use crate::core::http::credentials::CREDENTIAL_PARAMETERS;

/// The address of a backend that the document does not name.
const UNKNOWN_BACKEND: &str = "127.0.0.1:9000";

/// The port that clients connect to, unless the backend has it.
const PORT: u16 = 8080;

/// Returns the text of a configuration for the server of a document.
pub fn configuration(paths: &Paths<'_>) -> String {
    let plan = plan(paths);
    let mut text = String::new();
    add_head(&mut text, paths, &plan);
    add_upstream(&mut text, paths);
    add_defaults(&mut text, paths);
    for decided in &plan.decided {
        add_route(&mut text, decided);
    }
    let takes_all = |decided: &DecidedPath<'_>| decided.path.is_open && decided.path.spelled.matches('/').count() == 1;
    if !plan.decided.iter().any(takes_all) {
        text.push_str("\n# All other requests pass.\n[[routes]]\n");
        key(&mut text, "name", "rest");
        key(&mut text, "path", "/{*rest}");
        key(&mut text, "policy", "last-writer-wins");
    }
    add_open(&mut text, paths, &plan);
    add_next_members(&mut text, &plan);
    text
}

fn add_head(text: &mut String, paths: &Paths<'_>, plan: &RoutePlan<'_>) {
    let (name, title) = (printable(paths.document.name()), paths.title());
    comment(text, &format!("Made by `ifmatch openapi init` of {name}: {title}."));
    comment(text, "");
    comment(
        text,
        "Each route has the reason for it. Read them all, and then what could not be decided, at the end. Check the file \
         with `ifmatch check FILE --openapi SPEC`.",
    );
    comment(
        text,
        "A route without etag has tags made of the bytes of its content. A write needs If-Match, or If-None-Match: * to \
         create, if its method is PUT, PATCH or DELETE.",
    );
    let names_members =
        plan.decided.iter().any(|decided| matches!(decided.role, PathRole::Collection { writes_to: Some(_) }));
    let except = if names_members { ", and leave out writes_to meanwhile" } else { "" };
    comment(
        text,
        &format!(
            "To see first what would be refused, write observe = true below [defaults]{except} (docs/how-to/roll-out.md)."
        ),
    );
}

fn add_upstream(text: &mut String, paths: &Paths<'_>) {
    let address = paths.server.address.as_deref();
    let is_taken = address.is_some_and(|address| address.ends_with(&format!(":{PORT}")));
    let port = if is_taken { PORT + 1 } else { PORT };
    text.push_str("\n[server]\n");
    list(text, "listen", &[format!("127.0.0.1:{port}")]);
    text.push('\n');
    comment(
        text,
        match address {
            Some(_) => "The first of the document's servers. Write the address at which ifmatch reaches the backend.",
            None => "The document names no host. Write the address at which ifmatch reaches the backend.",
        },
    );
    text.push_str("[upstreams.api]\n");
    list(text, "servers", &[address.unwrap_or(UNKNOWN_BACKEND).to_owned()]);
}

fn add_defaults(text: &mut String, paths: &Paths<'_>) {
    let Credentials { fields, parameters, cookies, for_one_request } = Credentials::of(paths.document);
    text.push_str("\n[defaults]\n");
    key(text, "upstream", "api");
    key(text, "policy", "optimistic");
    let reason = |text: &mut String, names: &[String]| {
        let names = names.iter().map(|name| printable(name)).collect::<Vec<_>>().join(", ");
        comment(text, &format!("Clients authenticate with {names} (securitySchemes)."));
    };
    if !fields.is_empty() {
        reason(text, &fields);
        list(text, "identity_headers", &[KNOWN_FIELDS.map(str::to_owned).to_vec(), fields].concat());
    }
    if !parameters.is_empty() {
        reason(text, &parameters);
        list(text, "identity_query", &[CREDENTIAL_PARAMETERS.map(str::to_owned).to_vec(), parameters].concat());
    }
    if !cookies.is_empty() {
        reason(text, &cookies);
        list(text, "identity_cookies", &cookies);
    }
    if !for_one_request.is_empty() {
        let names = for_one_request.iter().map(|name| printable(name)).collect::<Vec<_>>().join(", ");
        comment(
            text,
            &format!(
                "Credentials of {names} hold for one request, so a probe cannot use them. Write probe_auth = \"field\" and \
                 probe_field_file, or probe_auth = \"none\" if all clients may read."
            ),
        );
    }
}

fn add_route(text: &mut String, decided: &DecidedPath<'_>) {
    text.push('\n');
    let reasons = decided.reasons.iter().chain(&decided.tag.reason).cloned().collect::<Vec<_>>().join(" ");
    let wide = if decided.path.is_open { " The last name may hold slashes." } else { "" };
    if decided.role == PathRole::Unguarded {
        comment(text, &format!("Not guarded: without this route, another one would take its requests. {reasons}"));
    } else {
        comment(text, &format!("{reasons}{wide}"));
    }
    text.push_str("[[routes]]\n");
    key(text, "path", &decided.path.spelled);
    if let Some(etag) = &decided.tag.etag {
        key(text, "etag", etag);
    }
    if !decided.tag.precondition.is_empty() {
        list(text, "precondition", &decided.tag.precondition);
    }
    if decided.post.is_some() {
        list(text, "append_methods", &[]);
    }
    if decided.post == Some(PostOfResource::Updates) {
        let methods = ["PUT", "PATCH", "DELETE", "COPY", "MOVE", "POST"].map(str::to_owned);
        list(text, "require_methods", &methods);
    }
    if let Some(path) = &decided.also_changes {
        list(text, "also_changes", slice::from_ref(path));
    }
    match &decided.role {
        PathRole::Resource | PathRole::Collection { writes_to: None } => {}
        PathRole::Collection { writes_to: Some(member) } => key(text, "writes_to", member),
        PathRole::Action { changes } => {
            key(text, "require", "never");
            list(text, "also_changes", slice::from_ref(changes));
        }
        PathRole::Unguarded => key(text, "policy", "last-writer-wins"),
    }
    if !decided.locks.is_empty() {
        let locks = decided.locks.iter().map(|operation| operation.label()).collect::<Vec<_>>().join(", ");
        let advice = "The backend has locks of its own, which pass unguarded";
        comment(text, &format!("{advice}: {locks}. To have ifmatch grant leases instead (docs/leases.md), write:"));
        text.push_str("# ");
        key(text, "policy", "pessimistic");
    }
}

fn add_next_members(text: &mut String, plan: &RoutePlan<'_>) {
    let collections = plan.decided.iter();
    let mut nexts =
        collections.filter_map(|decided| Some((&decided.path.spelled, decided.next_member.as_ref()?))).peekable();
    if nexts.peek().is_none() {
        return;
    }
    text.push_str("\n# What could be added:\n#\n");
    comment(
        text,
        "Clients that share work can take the next free member of these collections (docs/how-to/queue.md). Write the two \
         keys on the route of the collection, and policy = \"pessimistic\" and lease.acquire_on_read = true on that of its \
         members. If a list has several pages, only the first one counts.",
    );
    for (path, next) in nexts {
        let [members, index] = [&next.members, &next.index].map(|value| Value::from(value.as_str()));
        text.extend(["#   ", path, ": members = ", &members.to_string(), ", index = ", &index.to_string(), "\n"]);
    }
}

fn add_open(text: &mut String, paths: &Paths<'_>, plan: &RoutePlan<'_>) {
    let mut by_question: BTreeMap<UndecidedPoint, Vec<&ApiOperation<'_>>> = BTreeMap::new();
    for (open, operation) in &plan.open {
        by_question.entry(*open).or_default().push(operation);
    }
    let is_partial = paths.document.has_external_references();
    if by_question.is_empty() && !is_partial {
        return;
    }
    text.push_str("\n# What the document does not tell:\n");
    if is_partial {
        comment(text, "");
        comment(
            text,
            "Parts of it are in other files, which are not read. Bundle it first: npx @redocly/cli bundle FILE.",
        );
    }
    for (open, operations) in by_question {
        comment(text, "");
        comment(text, open.text());
        for operation in operations {
            text.extend(["#   ", &operation.label(), "\n"]);
        }
    }
}
