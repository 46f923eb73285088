//! What is configured for certain clients: dialects, keys of retries, signatures.

use ifmatch::config;

use super::{BASE, problems};

#[test]
fn each_broken_rule_for_certain_clients_is_one_problem() {
    let cases: &[(&str, &str)] = &[
        ("dialect = \"S3\"", "dialect cannot be \"S3\""),
        ("dialect = \"s3\"\nprobe_auth = \"none\"", "dialect = \"s3\" needs etag = \"upstream\" or \"delegate\""),
        ("dialect = \"s3\"\netag = \"upstream\"", "dialect = \"s3\" cannot probe with the client's credentials"),
        ("dialect = \"azure\"", "dialect = \"azure\" needs policy = \"pessimistic\""),
        ("probe_region = \"a b\"", "probe_region is \"a b\": a name has no blanks and is not empty"),
        ("idempotency = \"on\"", "idempotency cannot be \"on\""),
        ("idempotency_ttl = \"0s\"", "idempotency_ttl is 0s, the least is 1s"),
    ];
    for (added, expected) in cases {
        assert_eq!(problems(&format!("{BASE}{added}\n")), [*expected], "added:\n{added}");
    }
    let delegated =
        |require: &str| problems(&format!("{BASE}dialect = \"s3\"\netag = \"delegate\"\nrequire = {require:?}\n"));
    assert_eq!(delegated("never"), Vec::<String>::new(), "nothing is probed");
    assert_eq!(delegated("existing"), ["dialect = \"s3\" cannot probe with the client's credentials"]);
}

/// An old name is a problem with the new one as its hint.
#[test]
fn an_old_name_leads_to_the_new_one() {
    for (added, new) in [
        ("errors = \"s3\"", "dialect"),
        ("lease.dialect = \"azure\"", "dialect, a key of the route"),
        ("writers = \"shared\"", "other_writers = true for \"shared\", other_writers = false for \"exclusive\""),
        ("hash_max = \"1KiB\"", "max_hash_size"),
        ("[defaults]\nhash_max = \"1KiB\"", "max_hash_size"),
        ("lease.hold_max = \"1h\"", "max_hold_time"),
        ("[server]\nbody_max = \"1KiB\"", "max_body_size"),
        ("[upstreams.other]\nservers = [\"127.0.0.1:1\"]\nlate_max = \"1s\"", "late_write_window"),
    ] {
        let problems = config::parse("old.toml", &format!("{BASE}{added}\n")).expect_err("an old name").to_string();
        assert!(problems.contains(&format!("hint: it has a new name: write {new}\n")), "{problems}");
    }
}
