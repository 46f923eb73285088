//! Where tags come from, and what has no meaning together.

use super::{BASE, problems};

#[test]
fn each_broken_rule_of_tags_is_one_problem() {
    let cases: &[(&str, &str)] = &[
        (
            "compare = \"opaque\"",
            "compare = \"opaque\" needs etag = \"upstream\", \"header:NAME\" or \"json:/pointer\"",
        ),
        ("etag = \"json:\"", "etag cannot be \"json:\""),
        ("etag = \"json:version\"", "etag cannot be \"json:version\""),
        ("etag = \"json:/a~2\"", "etag cannot be \"json:/a~2\""),
        (
            "etag = \"delegate\"\nwriters = \"exclusive\"",
            "writers = \"exclusive\" has no effect with etag = \"delegate\"",
        ),
        ("etag_suffixes = [\"gzip\"]", "etag_suffixes: \"gzip\" is no suffix of a tag"),
        ("etag_suffixes = [\"\"]", "etag_suffixes: \"\" is no suffix of a tag"),
        ("etag_suffixes = [\"-a b\"]", "etag_suffixes: \"-a b\" is no suffix of a tag"),
        ("etag_suffixes = [\"-br\", \"-br\"]", "\"-br\" stands twice in the list"),
        ("ignore_json = [\"now\"]", "ignore_json: \"now\" is no JSON pointer"),
        ("etag = \"upstream\"\nignore_json = [\"/now\"]", "ignore_json needs etag = \"content\""),
        ("mirror_header = \"a b\"", "mirror_header cannot be \"a b\""),
        ("mirror_header = \"ETag\"", "mirror_header cannot be \"ETag\""),
        (
            "etag = \"upstream\"\ncompare = \"opaque\"\naccept_weak_own = true",
            "accept_weak_own has no effect with compare = \"opaque\"",
        ),
    ];
    for (added, message) in cases {
        assert_eq!(problems(&format!("{BASE}{added}\n")), [*message], "{added}");
    }
}
