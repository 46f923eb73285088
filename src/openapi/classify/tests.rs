//! The roles of paths, by their forms.

use super::{DecidedPath, PathRole, plan};
use crate::openapi::{document::ApiDocument, paths::Paths};

/// Returns each route of these paths with its role, and the open decisions with their operations.
fn decided(paths: &str) -> (Vec<String>, Vec<String>) {
    let document = ApiDocument::parse("d", &format!("openapi: 3.1.0\npaths:\n{paths}")).expect("a document");
    let paths = Paths::of(&document).expect("paths");
    let plan = plan(&paths);
    let shown = plan.decided.iter().map(|decided| {
        let role = match &decided.role {
            PathRole::Resource => format!("resource {:?} {:?}", decided.post, decided.also_changes),
            PathRole::Collection { writes_to } => format!("collection {writes_to:?}"),
            PathRole::Action { changes } => format!("action on {changes}"),
            PathRole::Unguarded => "unguarded".to_owned(),
        };
        format!("{}: {role}", decided.path.spelled)
    });
    let open = plan.open.iter().map(|(open, operation)| format!("{open:?} {}", operation.label()));
    (shown.collect(), open.collect())
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn operations_tell_what_a_path_is() {
    for (paths, routes, open) in [
        ("  /a: {get: {}}\n", &[][..], &[][..]),
        ("  /a/{id}: {get: {}, put: {}}\n", &["/a/{id}: resource None None"], &[]),
        ("  /a/{id}: {head: {}, delete: {}}\n", &["/a/{id}: resource None None"], &[]),
        ("  /settings: {get: {}, patch: {}}\n", &["/settings: resource None None"], &[]),
        ("  /a/{id}: {get: {}, post: {}}\n", &["/a/{id}: resource Some(Updates) None"], &[]),
        (
            "  /a/{id}: {get: {}, put: {}, post: {}}\n",
            &["/a/{id}: resource Some(BesideOthers) None"],
            &["PostBesideOthers POST /a/{id}"],
        ),
        (
            "  /a: {get: {}, post: {}}\n  /a/{id}: {get: {}, put: {}}\n",
            &["/a: collection None", "/a/{id}: resource None None"],
            &[],
        ),
        (
            "  /a: {get: {}, delete: {}}\n  /a/{id}: {get: {}, put: {}}\n",
            &["/a: collection None", "/a/{id}: resource None Some(\"/a\")"],
            &["ChangesMembers DELETE /a"],
        ),
        ("  /a: {get: {}, post: {responses: {'201': {}}}}\n", &["/a: collection None"], &[]),
        (
            "  /a: {get: {responses: {'200': {content: {application/json: {schema: {type: array}}}}}}, post: {}}\n",
            &["/a: collection None"],
            &[],
        ),
        ("  /a: {get: {}, post: {}}\n", &[], &["AppendsOrReplaces POST /a"]),
        (
            "  /a/{id}: {get: {}, put: {}}\n  /a/{id}/send: {post: {}}\n  /a/{id}/parts/{part}: {delete: {}}\n",
            &[
                "/a/{id}: resource None None",
                "/a/{id}/parts/{part}: action on /a/{id}",
                "/a/{id}/send: action on /a/{id}",
            ],
            &[],
        ),
        ("  /a/{id}: {get: {}}\n  /a/{id}/send: {post: {}}\n", &[], &["NamesNoResource POST /a/{id}/send"]),
        ("  /a/{id}: {get: {}, put: {}}\n  /a/{id}/{revision}: {get: {}}\n", &["/a/{id}: resource None None"], &[]),
        (
            "  /a/{id}: {get: {}, post: {}}\n  /a/{id}/{part}: {get: {}, put: {}}\n",
            &["/a/{id}: collection None", "/a/{id}/{part}: resource None None"],
            &[],
        ),
        (
            "  /a: {post: {}}\n  /a/{id}: {get: {}, delete: {}}\n",
            &["/a/{id}: resource None None"],
            &["Creates POST /a"],
        ),
        (
            "  /t/{id}.json: {get: {}, put: {}}\n  /t/{id}/close.json: {put: {}}\n  /t.json: {get: {}, post: {}, delete: {}}\n",
            &[
                "/t.json: collection None",
                "/t/{id}.json: resource None Some(\"/t.json\")",
                "/t/{id}/close.json: action on /t/{id}.json",
            ],
            &["ChangesMembers DELETE /t.json"],
        ),
        ("  /login: {post: {}}\n", &[], &["NamesNoResource POST /login"]),
    ] {
        let (found, left) = decided(paths);
        assert_eq!((found, left), (owned(routes), owned(open)));
    }
}

#[test]
fn names_tell_what_stays_open() {
    for (path, method, open) in [
        ("/batch", "post", "Batch"),
        ("/a/$batch", "post", "Batch"),
        ("/_bulk", "put", "Batch"),
        ("/a:batch", "post", "Batch"),
        ("/a/GraphQL", "post", "Batch"),
        ("/jsonrpc/x", "post", "Batch"),
        ("/a/bulk-delete", "delete", "Batch"),
        ("/a/search.json", "post", "ReadsByPost"),
        ("/a/check-runs", "post", "NamesNoResource"),
        ("/a/{id}/lock.json", "put", "BackendLocks"),
        ("/a/search", "post", "ReadsByPost"),
        ("/a/{id}:validate", "post", "ReadsByPost"),
        ("/a/{id}/lock", "put", "BackendLocks"),
        ("/a/{id}/checkout", "post", "NamesNoResource"),
        ("/flats/{id}/lease", "post", "NamesNoResource"),
        ("/a/{id}:unlock", "post", "BackendLocks"),
        ("/a/search", "put", "NamesNoResource"),
        ("/batches", "post", "NamesNoResource"),
    ] {
        let (_, left) = decided(&format!("  '{path}': {{{method}: {{}}}}\n"));
        assert_eq!(left, [format!("{open} {} {path}", method.to_uppercase())]);
    }
}

#[test]
fn the_body_of_a_write_may_name_the_member() {
    let body = |media_type: &str| {
        format!("{{requestBody: {{content: {{{media_type}: {{schema: {{properties: {{id: {{type: integer}}}}}}}}}}}}}}")
    };
    let member = "  /pet/{petId}: {get: {}, delete: {}}\n";
    let (routes, open) = decided(&format!("  /pet: {{put: {}, post: {{}}}}\n{member}", body("application/json")));
    assert_eq!(routes[0], "/pet: collection Some(\"/pet/{json./id}\")");
    assert_eq!(open, Vec::<String>::new());
    let (routes, _) = decided(&format!("  /pet: {{get: {{}}, put: {}}}\n{member}", body("application/json")));
    assert_eq!(routes[0], "/pet: collection Some(\"/pet/{json./id}\")");
    let both = body("application/json").replace("{content: {", "{content: {application/xml: {}, ");
    let (_, open) = decided(&format!("  /pet: {{put: {both}}}\n{member}"));
    assert_eq!(open, ["OtherBodies PUT /pet"]);
    let (routes, open) = decided(&format!("  /pet: {{put: {{}}}}\n{member}"));
    assert_eq!((routes.len(), open[0].as_str()), (1, "NamesNoResource PUT /pet"));
}

#[test]
fn guarded_operations_have_remarks() {
    let list = "requestBody: {content: {application/json: {schema: {type: array}}}}";
    let form = "requestBody: {content: {multipart/form-data: {}}}";
    let file = "requestBody: {content: {application/octet-stream: {}}}";
    let stream = "responses: {'200': {content: {text/event-stream: {}}}}";
    for (operation, open) in [(list, "ListOfBodies"), (form, "Multipart"), (file, "File"), (stream, "Streams")] {
        let (_, left) = decided(&format!("  /a/{{id}}: {{get: {{}}, patch: {{{operation}}}}}\n"));
        assert_eq!(left, [format!("{open} PATCH /a/{{id}}")]);
    }
    let (_, left) = decided("  /a/{x}-{y}: {get: {}, put: {}}\n");
    assert_eq!(left, ["Wider PUT /a/{x}-{y}"]);
}

#[test]
fn other_servers_and_impossible_paths_are_told() {
    let (routes, open) =
        decided("  /a/../b: {put: {}}\n  /c/{id}: {get: {}, put: {servers: [{url: 'https://c.example'}]}}\n");
    assert_eq!(routes, Vec::<String>::new());
    assert_eq!(open, ["NoRoute PUT /a/../b", "Elsewhere PUT /c/{id}"]);
}

/// Each resource with the operations by which the backend locks it.
fn locked(paths: &str) -> Vec<String> {
    let document = ApiDocument::parse("d", &format!("openapi: 3.1.0\npaths:\n{paths}")).expect("a document");
    let paths = Paths::of(&document).expect("paths");
    let locked = plan(&paths).decided;
    let label = |decided: &DecidedPath<'_>| {
        let locks: Vec<String> = decided.locks.iter().map(|operation| operation.label()).collect();
        format!("{}: {}", decided.path.spelled, locks.join(", "))
    };
    locked.iter().filter(|decided| !decided.locks.is_empty()).map(label).collect()
}

#[test]
fn a_resource_knows_the_locks_of_the_backend() {
    let resource = "  /a/{id}: {get: {}, put: {}}\n";
    for (locks, expected) in [
        ("  /a/{id}/lock: {put: {}, delete: {}}\n", Some("/a/{id}: PUT /a/{id}/lock, DELETE /a/{id}/lock")),
        (
            "  /a/{key}/Checkout: {post: {}}\n  /a/{id}/checkIn: {post: {}}\n",
            Some("/a/{id}: POST /a/{id}/checkIn, POST /a/{key}/Checkout"),
        ),
        (
            "  /a/{id}:acquire: {post: {}}\n  /a/{id}:release: {post: {}}\n",
            Some("/a/{id}: POST /a/{id}:acquire, POST /a/{id}:release"),
        ),
        ("  /a/{id}/checkout: {post: {}}\n", None),
        ("  /a/{id}/checkout: {post: {}}\n  /b/{id}/checkin: {post: {}}\n", None),
        ("  /a/lock: {post: {}}\n", None),
    ] {
        assert_eq!(locked(&format!("{resource}{locks}")), owned(&expected.into_iter().collect::<Vec<_>>()), "{locks}");
    }
}

/// Each collection whose next member clients could take, with the two keys.
fn next_members(schema: &str, paths: &str) -> Vec<String> {
    let list = format!("get: {{responses: {{'200': {{content: {{application/json: {{schema: {schema}}}}}}}}}}}");
    let text = format!("openapi: 3.1.0\npaths:\n{}", paths.replace("LIST", &list));
    let document = ApiDocument::parse("d", &text).expect("a document");
    let paths = Paths::of(&document).expect("paths");
    let nexts = plan(&paths).decided.into_iter().filter_map(|decided| decided.next_member);
    nexts.map(|next| format!("{} {}", next.members, next.index)).collect()
}

#[test]
fn clients_could_take_the_members_of_a_list_with_their_names() {
    let named = "{items: {properties: {id: {type: string}}}}";
    let page = format!("{{properties: {{data: {named}}}}}");
    let plain = "  /a: {LIST, post: {}}\n  /a/{key}: {get: {}, put: {}}\n";
    let below = "  /p/{x}/a.json: {LIST, post: {}}\n  /p/{y}/a/{id}.json: {get: {}, delete: {}}\n";
    let read = "  /a: {LIST, post: {}}\n  /a/{key}: {get: {}}\n  /a/{key}/send: {post: {}}\n";
    for (schema, paths, expected) in [
        (named, plain, Some("/a/{key} json:/*/id")),
        (&page, plain, Some("/a/{key} json:/data/*/id")),
        (named, below, Some("/p/{x}/a/{id}.json json:/*/id")),
        ("{items: {type: string}}", plain, None),
        (named, read, None),
    ] {
        assert_eq!(next_members(schema, paths), owned(&expected.into_iter().collect::<Vec<_>>()), "{schema} {paths}");
    }
}
