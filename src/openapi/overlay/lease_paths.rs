//! The operations on leases, as an overlay adds them: a path beside that of each resource whose route grants leases.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{
    Guarded,
    components::{Components, field},
};

/// The path of the leases of a resource, and its operations. `None` if its route has no such path.
pub(super) fn item(guarded: &Guarded<'_, '_>, components: &mut Components<'_>) -> Option<(String, Value)> {
    let rules = guarded.rules.lease.as_ref().filter(|_| guarded.rules.quirks.leases_have_paths)?;
    let (server, template) = (&guarded.paths.server, guarded.operation.path);
    let path = format!("{}{}{template}", rules.prefix, server.base);
    let mut operation = |summary: &str, status: &str, description: &str, fields: &[&'static str]| {
        let parameters: Vec<Value> = fields.iter().map(|name| components.reference("parameters", name)).collect();
        let mut responses = Map::from_iter([(status.to_owned(), json!({"description": description}))]);
        for (status, name) in [("409", "WriteInFlight"), ("412", "PreconditionFailed")] {
            responses.insert(status.to_owned(), components.reference("responses", name));
        }
        json!({"summary": summary, "parameters": parameters, "responses": responses})
    };
    let acquire = ["LeaseDuration", "LeaseIdOfChoice", "LeaseHolder", "LeaseWait"];
    let mut acquired = operation("Acquire the lease", "201", "The lease is the client's.", &acquire);
    if let Some(response) = acquired.pointer_mut("/responses/201").and_then(Value::as_object_mut) {
        response.insert("headers".to_owned(), granted());
    }
    let renew = operation("Renew the lease", "200", "The lease lasts longer.", &["LeaseIdRequired", "LeaseDuration"]);
    let change = ["LeaseIdRequired", "ProposedLeaseId"];
    let mut item = json!({
        "get": operation("Show the lease", "200", "The state of the lease, without its id.", &[]),
        "post": acquired,
        "put": renew,
        "patch": operation("Change the id of the lease", "200", "The lease has another id.", &change),
        "delete": operation("Release the lease", "204", "The lease has ended.", &["LeaseIdRequired"]),
        "parameters": path_parameters(guarded),
    });
    // Paths of leases are not below the path of the server.
    if let Some(item) = item.as_object_mut().filter(|_| !server.base.is_empty()) {
        item.insert("servers".to_owned(), json!([{"url": format!("{}/", server.origin())}]));
    }
    Some((path, item))
}

/// The fields of the answer to an acquisition.
fn granted() -> Value {
    json!({
        "Lease-Id": field("The id of the lease. It is a secret: it proves who holds the lease."),
        "Lease-Duration": field("The time that the lease lasts, in seconds, or infinite."),
        "Fencing-Token": field("A number that grows with each lease."),
    })
}

/// The descriptions of the names in the path, as the document has them.
fn path_parameters(guarded: &Guarded<'_, '_>) -> Vec<Value> {
    let (operation, document) = (guarded.operation, guarded.paths.document);
    let lists = [operation.value, operation.item].into_iter().filter_map(|owner| owner.get("parameters"));
    let known: Vec<&Value> = lists.filter_map(Value::as_array).flatten().collect();
    let names: BTreeSet<&str> =
        operation.path.split('{').skip(1).filter_map(|rest| Some(rest.split_once('}')?.0)).collect();
    let described = |name: &&str| {
        let is_it = |parameter: &&&Value| {
            let text = |member| document.resolved(parameter)?.get(member)?.as_str();
            text("name") == Some(*name) && text("in") == Some("path")
        };
        let made = json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}});
        known.iter().find(is_it).map_or(made, |parameter| (*parameter).clone())
    };
    names.iter().map(described).collect()
}
