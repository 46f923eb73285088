//! Settings for certain clients: dialects, keys of retries, signatures.

use super::{BASE, problems};

#[test]
fn each_broken_rule_for_certain_clients_is_one_problem() {
    let cases: &[(&str, &str)] = &[
        ("dialect = \"S3\"", "dialect cannot be \"S3\""),
        ("dialect = \"s3\"\nprobe_auth = \"none\"", "dialect = \"s3\" needs etag = \"upstream\" or \"delegate\""),
        ("dialect = \"s3\"\netag = \"upstream\"", "dialect = \"s3\" cannot probe with the client's credentials"),
        ("dialect = \"azure\"", "dialect = \"azure\" needs policy = \"pessimistic\""),
        ("dialect = \"azure-queue\"", "dialect = \"azure-queue\" needs all paths below one"),
        ("probe_auth = \"field\"", "probe_auth = \"field\" needs probe_field_file"),
        ("probe_field_file = \"/nowhere\"", "probe_field_file has no use here"),
        ("probe_region = \"a b\"", "probe_region is \"a b\": a name has no blanks and is not empty"),
        ("idempotency = \"on\"", "idempotency cannot be \"on\""),
        ("idempotency_ttl = \"0s\"", "idempotency_ttl is 0s, the least is 1s"),
    ];
    for (added, expected) in cases {
        assert_eq!(problems(&format!("{BASE}{added}\n")), [*expected], "added:\n{added}");
    }
    let queues = format!("{BASE}dialect = \"azure-queue\"\nindex = \"s3\"\n").replace("{id}", "{*rest}");
    assert_eq!(problems(&queues), Vec::<String>::new(), "the queues are listed, though the route names no members");
    for (added, expected) in [
        ("require = \"always\"", "require has no effect in the azure-queue dialect"),
        ("websocket = true", "websocket has no effect in the azure-queue dialect"),
    ] {
        assert_eq!(problems(&format!("{queues}{added}\n")), [expected]);
    }
    let pessimistic = queues.replace("policy = \"optimistic\"", "policy = \"pessimistic\"");
    assert_eq!(problems(&pessimistic), ["dialect = \"azure-queue\" needs policy = \"optimistic\""]);
    let delegated =
        |require: &str| problems(&format!("{BASE}dialect = \"s3\"\netag = \"delegate\"\nrequire = {require:?}\n"));
    assert_eq!(delegated("never"), Vec::<String>::new(), "nothing is probed");
    assert_eq!(delegated("existing"), ["dialect = \"s3\" cannot probe with the client's credentials"]);
}
