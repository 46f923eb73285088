//! Routes whose writes name their resource in the body (`writes_to`).

use super::problems;

/// Routes of documents and of their list, each with these lines.
fn routes(documents: &str, list: &str) -> String {
    let upstream = |name: &str, port: u16| format!("[upstreams.{name}]\nservers = [\"127.0.0.1:{port}\"]\n");
    format!(
        "{}{}[defaults]\nupstream = \"docs\"\npolicy = \"optimistic\"\n[[routes]]\nname = \"documents\"\n\
         path = \"/documents/{{id}}\"\n{documents}\n[[routes]]\nname = \"list\"\npath = \"/documents\"\n{list}\n",
        upstream("docs", 9000),
        upstream("other", 9001),
    )
}

const NAMED: &str = "writes_to = \"/documents/{json./id}\"";

#[test]
fn a_route_that_guards_the_named_resources_is_enough() {
    assert_eq!(problems(&routes("", NAMED)), [""; 0]);
    assert_eq!(problems(&routes("", "writes_to = \"/documents/{json./meta/id}\"")), [""; 0]);
}

#[test]
fn resources_that_could_not_be_guarded_are_problems() {
    let unguarded = "writes_to names /documents/{json./id}, which no guarded route matches";
    for (documents, list, expected) in [
        ("observe = true", NAMED.to_owned(), unguarded),
        ("policy = \"last-writer-wins\"", NAMED.to_owned(), unguarded),
        ("", format!("{NAMED}\nobserve = true"), "writes_to has no effect with observe = true"),
        (
            "",
            format!("{NAMED}\npolicy = \"last-writer-wins\""),
            "`writes_to` has no effect on a last-writer-wins route",
        ),
        (
            "upstream = \"other\"",
            NAMED.to_owned(),
            "writes_to names resources of route \"documents\", which has another upstream",
        ),
        (
            "dialect = \"azure-table\"\netag = \"upstream\"",
            NAMED.to_owned(),
            "writes_to names resources of route \"documents\", whose dialect has no such write",
        ),
        (
            "",
            format!("{NAMED}\ndialect = \"azure-table\"\netag = \"upstream\""),
            "writes_to has no effect in this dialect",
        ),
        (
            "writes_to = \"/documents/{json./id}\"",
            String::new(),
            "writes_to leads from /documents/{id} back to its own route",
        ),
        ("", "writes_to = \"/documents/{id}\"".to_owned(), "writes_to takes no name from the body"),
        ("", "writes_to = \"/documents/{json.id}\"".to_owned(), "{json.id} is no member of a body"),
        ("", "writes_to = \"/documents/{di}/{json./id}\"".to_owned(), "{di} stands for nothing here"),
    ] {
        assert_eq!(problems(&routes(documents, &list)), [expected], "{documents} {list}");
    }
}

#[test]
fn the_key_belongs_to_one_route() {
    let defaults = routes("", "").replace("[defaults]\n", &format!("[defaults]\n{NAMED}\n"));
    assert_eq!(problems(&defaults), ["`writes_to` belongs to one route: it cannot be a default"]);
}
