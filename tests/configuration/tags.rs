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
    ];
    for (added, message) in cases {
        assert_eq!(problems(&format!("{BASE}{added}\n")), [*message], "{added}");
    }
}
