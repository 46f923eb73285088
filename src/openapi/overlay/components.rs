//! The components that an overlay adds to a document: parameters, fields, answers, and the schema of refusals.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::openapi::document::ApiDocument;

/// The parameters of operations on leases: the component, its field, whether it is required, and its meaning.
const LEASE_PARAMETERS: [(&str, &str, bool, &str); 7] = [
    ("LeaseId", "Lease-Id", false, "The id of the lease that the client holds."),
    ("LeaseIdRequired", "Lease-Id", true, "The id of the lease that the client holds."),
    (
        "LeaseIdOfChoice",
        "Lease-Id",
        false,
        "A random UUID of version 4, so that a repeated request gets the same lease.",
    ),
    ("LeaseDuration", "Lease-Duration", false, "The time that the lease lasts, in seconds, or infinite."),
    ("LeaseHolder", "Lease-Holder", false, "The name that others are shown."),
    ("ProposedLeaseId", "Proposed-Lease-Id", true, "The id that the lease has from now on, a UUID of version 4."),
    ("LeaseWait", "Prefer", false, "wait=N waits up to N seconds for a lease that another client holds."),
];

/// The components that an overlay adds, each with a name that the document does not have.
pub(super) struct Components<'d> {
    root: &'d Value,
    used: BTreeSet<(&'static str, &'static str)>,
}

impl<'d> Components<'d> {
    /// Begins with none.
    pub(super) fn of(document: &'d ApiDocument) -> Self {
        Self { root: document.root(), used: BTreeSet::new() }
    }

    /// A reference to a component, which the overlay then defines.
    pub(super) fn reference(&mut self, kind: &'static str, name: &'static str) -> Value {
        self.used.insert((kind, name));
        json!({"$ref": format!("#/components/{kind}/{}", self.name(kind, name))})
    }

    /// The name of a component: its own, unless the document has it already.
    fn name(&self, kind: &str, name: &str) -> String {
        let is_free = |name: &String| self.root.pointer(&format!("/components/{kind}/{name}")).is_none();
        let mut names = (1_usize..).map(|count| format!("{name}Ifmatch{count}"));
        let own = Some(name.to_owned()).filter(is_free);
        own.or_else(|| names.find(is_free)).unwrap_or_default()
    }

    /// The definitions of all components that are referred to.
    pub(super) fn definitions(mut self) -> Option<Value> {
        if self.used.iter().any(|(kind, _)| *kind == "responses") {
            self.used.insert(("schemas", "Problem"));
        }
        let mut kinds: Map<String, Value> = Map::new();
        for &(kind, name) in &self.used {
            let own = self.name(kind, name);
            let of_kind = kinds.entry(kind).or_insert_with(|| json!({}));
            merge(of_kind, json!({own: self.definition(kind, name)}));
        }
        (!kinds.is_empty()).then_some(Value::Object(kinds))
    }

    fn definition(&self, kind: &str, name: &str) -> Value {
        match (kind, name) {
            ("headers", "ETag") => {
                field("The version of the resource. Send it in If-Match to change this version alone.")
            }
            ("parameters", "IfMatch") => {
                parameter("If-Match", false, "The ETag of the version that the request is based on.")
            }
            ("parameters", "IfMatchRequired") => {
                parameter("If-Match", true, "The ETag of the version that the request is based on.")
            }
            ("parameters", "IfNoneMatch") => {
                parameter("If-None-Match", false, "The ETag that the client has. If it is current, the answer is 304.")
            }
            ("parameters", "IfNoneMatchToCreate") => {
                parameter("If-None-Match", false, "Send * to create the resource, and to change nothing if it exists.")
            }
            ("responses", "NotModified") => json!({"description": "The client has the current version."}),
            ("responses", "PreconditionFailed") => {
                self.refusal("The resource has another version than the request names. Read it again.")
            }
            ("responses", "PreconditionRequired") => {
                self.refusal("The request names no version. Send If-Match with the ETag.")
            }
            ("responses", "WriteInFlight") => {
                self.refusal("Another write or lease is in the way. Wait for Retry-After, and try again.")
            }
            ("responses", "Locked") => json!({"description": "Another client has locked the resource."}),
            ("schemas", "Problem") => problem(),
            _ => of_leases(name),
        }
    }

    fn refusal(&self, description: &str) -> Value {
        let schema = format!("#/components/schemas/{}", self.name("schemas", "Problem"));
        json!({"description": description, "content": {"application/problem+json": {"schema": {"$ref": schema}}}})
    }
}

/// The description of a field of an answer.
pub(super) fn field(description: &str) -> Value {
    json!({"description": description, "schema": {"type": "string"}})
}

/// The parameter of an operation on leases.
fn of_leases(name: &str) -> Value {
    let found = LEASE_PARAMETERS.iter().find(|(component, ..)| *component == name);
    found.map_or(Value::Null, |(_, field, required, text)| parameter(field, *required, text))
}

/// Adds members to an object.
pub(super) fn merge(into: &mut Value, members: Value) {
    if let (Some(into), Value::Object(members)) = (into.as_object_mut(), members) {
        into.extend(members);
    }
}

fn parameter(name: &str, required: bool, description: &str) -> Value {
    let schema = json!({"type": "string"});
    json!({"name": name, "in": "header", "required": required, "description": description, "schema": schema})
}

/// The schema of refusals (RFC 9457).
fn problem() -> Value {
    let (text, number) = (json!({"type": "string"}), json!({"type": "integer"}));
    json!({
        "type": "object",
        "description": "A refusal by ifmatch (RFC 9457).",
        "required": ["type", "title", "status", "detail", "code"],
        "properties": {
            "type": text, "title": text, "status": number, "detail": text, "code": text, "instance": text,
            "holder": text, "retry_after": number, "reason": text, "sent_tag": text, "current_tag": text,
            "in_doubt": {"type": "boolean"},
        },
    })
}
