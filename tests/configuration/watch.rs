//! `watch`: which routes let their resources be watched, and where.

use super::{BASE, problems};

#[test]
fn a_watch_needs_a_backend_that_can_be_asked_for_each_client() {
    for (added, expected) in [
        ("dialect = \"s3\"", "watch has no place in dialect = \"s3\""),
        ("dialect = \"azure-table\"", "watch has no place in dialect = \"azure-table\""),
        ("probe_auth = \"sigv4\"", "watch and probe_auth = \"sigv4\" do not go together"),
        (
            "probe_auth = \"field\"\nprobe_field_file = \"/nowhere\"",
            "watch and probe_auth = \"field\" do not go together",
        ),
        ("observe = true", "watch and observe do not go together"),
        ("watch_prefix = \"/\"", "watch_prefix is \"/\", where the resources themselves are"),
        ("watch_probe = \"1ms\"", "watch_probe"),
    ] {
        let found = problems(&format!("{BASE}{added}\nwatch = true\n"));
        assert!(found.iter().any(|problem| problem.contains(expected)), "added:\n{added}\n{found:?}");
    }
    assert!(problems(&format!("{BASE}watch = true\n")).is_empty());
}

#[test]
fn leases_and_watches_lie_apart() {
    let text = format!("{}watch = true\nwatch_prefix = \"/.leases\"\n", BASE.replace("optimistic", "pessimistic"));
    let found = problems(&text);
    assert!(found.iter().any(|problem| problem.contains("match common requests")), "{found:?}");
}
