//! The additions of an overlay to each operation.

use serde_json::{Value, json};

use crate::{
    config,
    openapi::{ApiDocument, Paths, overlay},
};

/// The actions of the overlay of `/a/{id}` with these operations, for a route with these keys.
fn actions(operations: &str, keys: &str) -> Vec<Value> {
    let text = format!(
        "openapi: 3.1.0\ninfo: {{title: t, version: '1'}}\nservers: [{{url: 'https://a.example/v1'}}]\npaths:\n  /a/{{id}}:\n\
         {operations}\ncomponents:\n  parameters: {{IfMatch: {{}}}}\n  responses: {{Ok: {{description: ok}}}}\n"
    );
    let document = ApiDocument::parse("d", &text).expect("a document");
    let paths = Paths::of(&document).expect("paths");
    let route = "[upstreams.a]\nservers = [\"127.0.0.1:1\"]\n[[routes]]\npath = \"/v1/a/{id}\"\nupstream = \"a\"\n";
    let loaded = config::parse("c", &format!("{route}{keys}")).expect("a configuration");
    let whole: Value = overlay(&paths, &loaded.config.routes).parse().expect("it is JSON");
    whole["actions"].as_array().expect("a list").clone()
}

/// The names of the components that an action adds to an operation as parameters.
fn parameters(operations: &str, keys: &str, method: &str) -> Vec<String> {
    let target = format!("$['paths']['/a/{{id}}']['{method}']");
    let all = actions(operations, keys);
    let found = all.iter().find(|action| action["target"] == target && action["update"]["parameters"].is_array());
    let list =
        found.map(|action| action["update"]["parameters"].as_array().expect("a list").clone()).unwrap_or_default();
    let name =
        |reference: &Value| reference["$ref"].as_str().and_then(|text| text.rsplit('/').next()).map(str::to_owned);
    list.iter().filter_map(name).collect()
}

const OPTIMISTIC: &str = "policy = \"optimistic\"\n";

#[test]
fn if_match_is_required_where_the_route_refuses_each_request_without_it() {
    let all = "    get: {}\n    put: {}\n    patch: {}\n    post: {}\n    delete: {}\n";
    for (keys, method, expected) in [
        ("", "get", &["IfNoneMatch"][..]),
        ("", "put", &["IfMatchRequired", "IfNoneMatchToCreate"]),
        ("", "patch", &["IfMatchRequired"]),
        ("", "delete", &["IfMatchRequired"]),
        ("", "post", &["IfMatchIfmatch1"]),
        ("require = \"existing\"\n", "put", &["IfMatchIfmatch1", "IfNoneMatchToCreate"]),
        ("require = \"existing\"\n", "patch", &["IfMatchRequired"]),
        ("require = \"never\"\n", "delete", &["IfMatchIfmatch1"]),
        ("precondition = [\"json:/rev\"]\n", "patch", &["IfMatchIfmatch1"]),
        ("observe = true\n", "put", &[]),
    ] {
        assert_eq!(parameters(all, &format!("{OPTIMISTIC}{keys}"), method), expected, "{keys} {method}");
    }
    let creates = "    put: {responses: {'201': {description: new}}}\n";
    assert_eq!(parameters(creates, OPTIMISTIC, "put"), ["IfMatchIfmatch1", "IfNoneMatchToCreate"]);
    assert_eq!(actions(all, "policy = \"last-writer-wins\"\n"), Vec::<Value>::new());
}

#[test]
fn what_an_operation_has_is_left_as_it_is() {
    let operation = "    put: {parameters: [{name: if-match, in: header}], responses: {'200': {description: d, headers: {Etag: {}}}, \
                     '412': {description: own}, '409': {description: own}, '428': {description: own}}}\n";
    let all = actions(operation, OPTIMISTIC);
    let added: Vec<&Value> = all.iter().skip(1).collect();
    let target = "$['paths']['/a/{id}']['put']";
    let own = json!({"name": "if-match", "in": "header"});
    let reference = json!({"$ref": "#/components/parameters/IfNoneMatchToCreate"});
    let remove = json!({"target": format!("{target}['parameters']"), "remove": true});
    assert_eq!(added, [&remove, &json!({"target": target, "update": {"parameters": [own, reference]}})]);
}

#[test]
fn a_shared_answer_is_replaced_by_a_copy() {
    let all = actions("    get: {responses: {'200': {$ref: '#/components/responses/Ok'}}}\n", OPTIMISTIC);
    let responses = "$['paths']['/a/{id}']['get']['responses']";
    let copy = json!({"200": {"description": "ok", "headers": {"ETag": {"$ref": "#/components/headers/ETag"}}}});
    assert!(all.contains(&json!({"target": format!("{responses}['200']"), "remove": true})), "{all:#?}");
    assert!(all.contains(&json!({"target": responses, "update": copy})), "{all:#?}");
}

#[test]
fn refusals_are_those_of_the_route() {
    let statuses = |keys: &str| {
        let all = actions("    delete: {responses: {}}\n", keys);
        let added = all.iter().find_map(|action| action["update"]["responses"].as_object());
        added.expect("there are refusals").keys().cloned().collect::<Vec<_>>()
    };
    assert_eq!(statuses(OPTIMISTIC), ["409", "412", "428"]);
    assert_eq!(statuses("policy = \"optimistic\"\nrequire = \"never\"\n"), ["409", "412"]);
    assert_eq!(statuses("policy = \"pessimistic\"\ndialect = \"webdav\"\n"), ["409", "412", "423"]);
}

#[test]
fn leases_have_paths_of_their_own() {
    let operations =
        "    parameters: [{name: id, in: path, required: true, schema: {type: integer}}]\n    get: {}\n    put: {}\n";
    let pessimistic = "policy = \"pessimistic\"\n[routes.lease]\nrequired = true\n";
    assert_eq!(
        parameters(operations, pessimistic, "put"),
        ["IfMatchIfmatch1", "IfNoneMatchToCreate", "LeaseIdRequired"]
    );
    assert_eq!(parameters(operations, pessimistic, "get"), ["IfNoneMatch"]);
    let all = actions(operations, pessimistic);
    let leases = &all.last().expect("an action")["update"]["/.leases/v1/a/{id}"];
    assert_eq!(leases["servers"], json!([{"url": "https://a.example/"}]));
    assert_eq!(leases["parameters"][0]["schema"]["type"], "integer", "as the document has it");
    for method in ["get", "post", "put", "patch", "delete"] {
        assert!(leases[method]["responses"]["409"].is_object(), "{method}");
    }
    let reading = parameters(operations, "policy = \"pessimistic\"\n[routes.lease]\nguards = [\"read\"]\n", "get");
    assert_eq!(reading, ["IfNoneMatch", "LeaseId"]);
}

#[test]
fn paths_of_json_are_quoted() {
    assert_eq!(super::json_path("/paths/~1a'b~1{id}/get"), "$['paths']['/a\\'b/{id}']['get']");
}
