//! The changes of a write beside its target: lists and batches, which `check` reports only if the file names them.

use super::warnings;

/// Two routes to one upstream. Both are optimistic unless they say otherwise.
fn two(first: &str, second: &str) -> String {
    format!(
        "[upstreams.app]\nservers = [\"127.0.0.1:9000\"]\n[upstreams.other]\nservers = [\"127.0.0.1:9001\"]\n\
         [defaults]\nupstream = \"app\"\npolicy = \"optimistic\"\n\
         [[routes]]\nname = \"first\"\n{first}\n[[routes]]\nname = \"second\"\n{second}\n"
    )
}

const ALL: &str = "path = \"/{*rest}\"\nother_writers = false";
const LIST: &str = "path = \"/notes\"\nother_writers = false";
const NOTE: &str = "path = \"/notes/{id}\"";

/// B6: the list's tag does not change with its members, so that a 304 from memory is stale.
#[test]
fn a_list_that_is_answered_from_memory_is_told_of_if_its_members_have_a_route() {
    let message = |list: &str| {
        let route = "route \"first\" (line 10) answers from memory";
        vec![format!("a write on route \"second\" may change the list at {list}, which {route}")]
    };
    for (first, second, list) in [
        (ALL, NOTE, "/notes"),
        (LIST, NOTE, "/notes"),
        (LIST, "path = \"/notes/{id}.json\"", "/notes"),
        (LIST, "path = \"/notes/{id}\"\npolicy = \"pessimistic\"", "/notes"),
        ("path = \"/api/{*rest}\"\nother_writers = false", "path = \"/api/{team}/notes/{id}\"", "/api/{team}/notes"),
        (LIST, "path = \"/notes/{id}\"\nalso_changes = [\"/notes/{id}\"]", "/notes"),
    ] {
        assert_eq!(warnings(&two(first, second)), message(list), "{first}\n{second}");
    }
}

/// Neither our examples nor what an operator has answered already.
#[test]
fn other_lists_are_not_told_of() {
    for (first, second) in [
        (ALL, "path = \"/notes/{id}\"\nalso_changes = [\"/notes\"]"),
        (ALL, "path = \"/{id}\""),
        (ALL, "path = \"/notes/{*rest}\""),
        (ALL, "path = \"/notes/{id}\"\nupstream = \"other\""),
        (ALL, "path = \"/notes/{id}\"\nobserve = true"),
        (ALL, "host = \"a.example\"\npath = \"/files/x\""),
        ("path = \"/{*rest}\"", NOTE),
        ("path = \"/notes\"", NOTE),
        ("path = \"/lists/{*rest}\"\nother_writers = false", NOTE),
        ("path = \"/notes\"\nkey = \"notes\"\nother_writers = false", "path = \"/notes/{id}\"\nkey = \"notes\""),
        (
            ALL,
            "path = \"/blobs/{blob}\"\npolicy = \"pessimistic\"\ndialect = \"azure\"\netag = \"version\"\n\
             other_writers = false",
        ),
    ] {
        assert_eq!(warnings(&two(first, second)), [""; 0], "{first}\n{second}");
    }
}

/// B7: a path that says that its POST holds many changes.
#[test]
fn batches_are_told_of_if_a_path_names_them() {
    let guarded = "path = \"/{*rest}\"";
    for path in
        ["/graphql", "/api/v1/GraphQL", "/notes/batch", "/$batch", "/_bulk", "/bulk/{*rest}", "/rpc", "/notes:batch"]
    {
        let message = format!(
            "a POST on route \"second\" may change resources that {path} does not name: no tag and no lease covers them"
        );
        let route = format!("path = \"{path}\"");
        for told in ["", "observe = true"] {
            assert_eq!(warnings(&two(guarded, &format!("{route}\n{told}"))), [message.as_str()], "{path} {told}");
        }
        for answered in ["append_methods = []\nrequire_methods = [\"POST\"]", "also_changes = [\"/feed\"]"] {
            assert_eq!(warnings(&two(guarded, &format!("{route}\n{answered}"))), [""; 0], "{path} {answered}");
        }
        let open = two(guarded, &format!("{route}\npolicy = \"last-writer-wins\""));
        assert_eq!(warnings(&open), [""; 0], "{path}");
    }
    for path in ["/{batch}", "/batches/{id}", "/bulkhead", "/{*rest}"] {
        assert_eq!(warnings(&two("path = \"/a/{id}\"", &format!("path = \"{path}\""))), [""; 0], "{path}");
    }
}

/// Requests that pass unguarded change what another route answers from memory.
#[test]
fn batches_beside_routes_that_answer_from_memory_are_told_of() {
    let batch = "path = \"/graphql\"\npolicy = \"last-writer-wins\"";
    let exclusive = "path = \"/notes/{id}\"\nother_writers = false";
    let message =
        "a request on route \"second\" may change resources of route \"first\" (line 10), which answers from memory";
    assert_eq!(warnings(&two(exclusive, batch)), [message]);
    for (first, second) in [
        (NOTE, batch),
        (exclusive, "path = \"/graphql\"\npolicy = \"last-writer-wins\"\nupstream = \"other\""),
        (exclusive, "path = \"/graphics\"\npolicy = \"last-writer-wins\""),
        ("path = \"/notes/{id}\"\nother_writers = false\nobserve = true", batch),
    ] {
        assert_eq!(warnings(&two(first, second)), [""; 0], "{first}\n{second}");
    }
}

/// A key that changes nothing is one that its operator relies on in vain.
#[test]
fn collections_without_an_effect_are_told_of() {
    let message = ["collections has no effect on route \"second\""];
    let other = "path = \"/other/{*rest}\"";
    for (second, is_told) in [
        ("path = \"/notes/{id}\"\ncollections = \"webdav\"", true),
        ("path = \"/notes/{id}\"\ncollections = \"detect\"", true),
        ("path = \"/notes/{*rest}\"\ncollections = \"webdav\"", false),
        ("path = \"/other\"\ncollections = \"none\"", false),
        ("path = \"/notes/{id}\"", false),
    ] {
        let found = warnings(&two(other, second));
        assert_eq!(found, if is_told { message.map(str::to_owned).to_vec() } else { Vec::new() }, "{second}");
    }
}
