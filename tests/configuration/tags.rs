//! The sources of tags, and settings that have no meaning together.

use ifmatch::core::policy::Dialect;

use super::{BASE, config, problems};

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
        ("etag = \"delegate\"\nother_writers = false", "other_writers = false has no effect with etag = \"delegate\""),
        ("etag_suffixes = [\"gzip\"]", "etag_suffixes: \"gzip\" is no suffix of a tag"),
        ("etag_suffixes = [\"\"]", "etag_suffixes: \"\" is no suffix of a tag"),
        ("etag_suffixes = [\"-a b\"]", "etag_suffixes: \"-a b\" is no suffix of a tag"),
        ("etag_suffixes = [\"-br\", \"-br\"]", "\"-br\" stands twice in the list"),
        ("ignore_json = [\"now\"]", "ignore_json: \"now\" is not a JSON pointer"),
        ("etag = \"upstream\"\nignore_json = [\"/now\"]", "ignore_json needs etag = \"content\""),
        (
            "unique_tags = true",
            "unique_tags needs etag = \"upstream\", \"header:NAME\", \"json:/pointer\" or \"delegate\"",
        ),
        ("tag_member = \"_etag\"", "tag_member cannot be \"_etag\""),
        ("mirror_header = \"a b\"", "mirror_header cannot be \"a b\""),
        ("metadata_suffix = \".meta\"", "metadata_suffix has no effect with dialect = \"native\""),
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

/// The metadata of a blob or container are part of its state, and only its version counts them.
#[test]
fn metadata_need_version_tags() {
    let azure = |lines: &str| {
        let base = BASE.replace("optimistic", "pessimistic");
        format!("{base}dialect = \"azure\"\nmetadata_suffix = \".meta\"\n{lines}\n")
    };
    assert_eq!(problems(&azure("etag = \"content\"")), ["metadata_suffix needs etag = \"version\""]);
    let suffix = |text: &str| {
        let config = config(text);
        let guard = config.routes[0].guard.as_ref().expect("a guarded route");
        guard.metadata_suffix.as_deref().map(str::to_owned)
    };
    let version = "etag = \"version\"\nother_writers = false";
    assert_eq!(suffix(&azure(version)).as_deref(), Some(".meta"));
    let containers = format!("{version}\nlease.guards = [\"delete\"]");
    assert_eq!(suffix(&azure(&containers)).as_deref(), Some(".meta"));
    assert_eq!(problems(&azure("lease.guards = [\"delete\"]")), ["metadata_suffix needs etag = \"version\""]);
    assert_eq!(suffix(&azure(version).replace(".meta", "")), None);
    for wrong in ["meta", ".m%20", ".."] {
        let message = format!("metadata_suffix cannot be {wrong:?}");
        assert_eq!(problems(&azure(version).replace(".meta", wrong)), [message]);
    }
    let elsewhere = BASE.replace("[[routes]]", "[defaults]\nmetadata_suffix = \".meta\"\n\n[[routes]]");
    assert_eq!(suffix(&elsewhere), None, "it may stand in [defaults] for the routes that can keep metadata");
}

/// A server of S3 never gives one tag to two states. For any other server, the operator has to say so.
#[test]
fn tags_of_the_backend_may_repeat_unless_a_route_says_otherwise() {
    for (added, is_coarse) in [
        ("etag = \"content\"", false),
        ("etag = \"version\"\nother_writers = false", false),
        ("etag = \"upstream\"", true),
        ("etag = \"header:X-Version\"", true),
        ("etag = \"json:/version\"", true),
        ("etag = \"delegate\"", true),
        ("etag = \"upstream\"\nunique_tags = true", false),
        ("etag = \"upstream\"\ndialect = \"s3\"\nprobe_auth = \"none\"", false),
        ("etag = \"upstream\"\ndialect = \"s3\"\nprobe_auth = \"none\"\nunique_tags = false", true),
    ] {
        let config = config(&format!("{BASE}{added}\n"));
        let guard = config.routes[0].guard.as_ref().expect("a guarded route");
        assert_eq!(guard.has_coarse_tags(false), is_coarse, "{added}");
        assert_eq!(guard.dialect == Dialect::S3, added.contains("s3"), "{added}");
    }
}
