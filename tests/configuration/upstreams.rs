//! Servers, their checks and limits, and the changes of a route to paths.

use std::time::Duration;

use ifmatch::config::{Forwarded, HealthProbe, HostHeader};

use super::{BASE, config, loaded, problems, warnings};

/// The base with these lines in the table of its first upstream.
fn with_upstream(lines: &str) -> String {
    BASE.replace("servers = [\"127.0.0.1:9000\"]", &format!("servers = [\"127.0.0.1:9000\"]\n{lines}"))
}

#[test]
fn each_broken_rule_of_upstreams_is_one_problem() {
    let cases: &[(&str, &str)] = &[
        ("weights = { \"127.0.0.1:9001\" = 2 }", "weights names \"127.0.0.1:9001\", which is not one of the servers"),
        ("weights = { \"127.0.0.1:9000\" = 0 }", "weights is 0, it is from 1 to 100"),
        ("balance = \"random\"", "balance cannot be \"random\""),
        ("hash_by = \"client\"", "hash_by has no effect on servers that take turns"),
        ("balance = \"consistent-hash\"\nhash_by = \"header:\"", "hash_by cannot be \"header:\""),
        ("max_connections = 0", "max_connections is 0, it is from 1 to 1000000"),
        ("queue = { max_wait = \"1h\" }", "queue.max_wait is 1h, the limit is 5m"),
        ("queue = { max_waiters = -1 }", "queue.max_waiters is -1, it is from 0 to 100000"),
        ("read_timeout = \"1ms\"", "read_timeout is 1ms, the least is 10ms"),
        ("host_header = \"preserved\"", "host_header cannot be \"preserved\""),
        ("host_header = \"a@b.test\"", "host_header cannot be \"a@b.test\""),
        ("forwarded = \"x-forwarded-for\"", "forwarded cannot be \"x-forwarded-for\""),
        ("health = { check = \"tcp\" }", "health.check cannot be \"tcp\""),
        ("health = { path = \"/healthz\" }", "health.path has no effect if health.check is \"off\""),
        (
            "health = { check = \"connect\", status = \"204\" }",
            "health.status has no effect if health.check is \"connect\"",
        ),
        ("health = { check = \"http\", path = \"healthz\" }", "health.path is \"healthz\", which is not a path"),
        ("health = { check = \"http\", status = \"fine\" }", "health.status is \"fine\""),
        ("health = { check = \"http\", healthy_after = 0 }", "health.healthy_after is 0, it is from 1 to 100"),
        ("health = { check = \"http\", interval = \"1ms\" }", "health.interval is 1ms, the least is 50ms"),
    ];
    for (added, message) in cases {
        assert_eq!(problems(&with_upstream(added)), [*message], "{added}");
    }
}

#[test]
fn each_broken_rule_of_prefixes_is_one_problem() {
    let cases: &[(&str, &str)] = &[
        ("strip_prefix = \"/api\"", "the path /documents/{id} does not begin with strip_prefix \"/api\""),
        ("strip_prefix = \"documents\"", "strip_prefix is \"documents\", which is no path to put before others"),
        ("add_prefix = \"/\"", "add_prefix is \"/\", which is no path to put before others"),
        ("add_prefix = \"/{id}\"", "add_prefix is \"/{id}\", which is no path to put before others"),
        ("add_prefix = \"/v1/\"", "add_prefix is \"/v1/\", which is not in normal form"),
        ("add_prefix = \"/%761\"", "add_prefix is \"/%761\", which is not in normal form"),
    ];
    for (added, message) in cases {
        assert_eq!(problems(&format!("{BASE}{added}\n")), [*message], "{added}");
    }
}

#[test]
fn what_is_no_network_is_no_trusted_proxy() {
    let text =
        format!("{BASE}[server]\ntrusted_proxies = [\"10.0.0.0/8\", \"unix\", \"proxy.test\", \"10.0.0.0/33\"]\n");
    let expected =
        ["\"proxy.test\"", "\"10.0.0.0/33\""].map(|each| format!("trusted_proxies: {each} is not a network"));
    assert_eq!(problems(&text), expected);
}

/// Rule 14: one server under two addresses would have two records of one resource.
#[test]
fn one_server_has_one_name_however_it_is_addressed() {
    let pair = |one: &str, other: &str, lines: &str| {
        let text = BASE.replace("127.0.0.1:9000", one);
        problems(&text.replace("\"127.0.0.1:9001\"]", &format!("{other:?}]\n{lines}")))
    };
    for (one, other) in [
        ("127.0.0.1:9000", "localhost:9000"),
        ("localhost:9000", "[::1]:9000"),
        ("127.0.0.1:9000", "[::1]:9000"),
        ("127.0.0.1:9000", "[::ffff:127.0.0.1]:9000"),
        ("127.0.0.1:9000", "0.0.0.0:9000"),
        ("127.0.0.1:9000", "[::]:9000"),
        ("localhost:9000", "LOCALHOST.:9000"),
        ("backend.invalid:80", "Backend.invalid.:80"),
        ("unix:/dev/null", "unix:/dev/../dev/null"),
    ] {
        for (one, other) in [(one, other), (other, one)] {
            let written = [one, other].map(str::to_ascii_lowercase);
            let as_what = if written[0] == written[1] { String::new() } else { format!(", as {:?}", written[0]) };
            let message = format!("server {:?} is also one of upstream \"docs\" (line 3{as_what})", written[1]);
            assert_eq!(pair(one, other, ""), [message], "{one} {other}");
            assert_eq!(pair(one, other, "identity = \"docs\""), [""; 0], "{one} {other}");
        }
    }
    for (one, other) in [
        ("127.0.0.1:9000", "localhost:9001"),
        ("127.0.0.1:9000", "127.0.0.2:9000"),
        ("unknown.invalid:80", "other.invalid:80"),
        ("192.0.2.1:80", "[2001:db8::1]:80"),
        ("unix:/dev/null", "unix:/dev/zero"),
    ] {
        assert_eq!(pair(one, other, ""), [""; 0], "{one} {other}");
    }
}

/// An ingress has one address for many hosts; this machine has many names for one server.
#[test]
fn hosts_behind_one_address_are_told_apart_by_what_they_are_sent() {
    let pair = |address: &str, host: &str| {
        let text = with_upstream("host_header = \"a.test\"").replace("127.0.0.1:9000", &format!("{address}:80"));
        problems(&text.replace("\"127.0.0.1:9001\"]", &format!("\"[::ffff:{address}]:80\"]\nhost_header = {host:?}")))
    };
    assert_eq!(pair("192.0.2.1", "b.test"), [""; 0]);
    assert_eq!((pair("192.0.2.1", "A.test").len(), pair("192.0.2.1", "preserve").len()), (1, 1));
    assert_eq!(pair("127.0.0.1", "b.test").len(), 1);
}

/// The text of a problem goes to terminals and logs.
#[test]
fn a_server_has_no_password_and_none_is_repeated() {
    let of = |server: &str| problems(&format!("{BASE}[upstreams.bare]\nservers = [{server:?}]\n"));
    assert_eq!(of("u@localhost:80"), ["server \"u@localhost:80\" holds a user or a password"]);
    assert_eq!(of("https://app:secret@localhost"), ["server \"app:******@localhost:443\" holds a user or a password"]);
}

#[test]
fn underscores_are_kept_or_dropped() {
    let of = |word: &str| problems(&format!("{BASE}[server]\nunderscores = {word:?}\n"));
    assert_eq!((of("keep"), of("drop")), (Vec::<String>::new(), Vec::new()));
    assert_eq!(of("dorp"), ["underscores cannot be \"dorp\""]);
}

#[test]
fn a_signature_needs_a_host_that_is_known_before_the_server() {
    let signed = "dialect = \"s3\"\netag = \"upstream\"\nprobe_auth = \"sigv4\"\nprobe_region = \"eu-central-1\"\n";
    let text = format!("{}{signed}", with_upstream("host_header = \"upstream\""));
    assert_eq!(problems(&text), ["probes are signed for a host, and upstream \"docs\" has host_header = \"upstream\""]);
    let text = format!("{}{signed}", with_upstream("host_header = \"s3.example.com\""));
    assert_eq!(problems(&text), [""; 0]);
}

#[test]
fn what_is_written_of_an_upstream_is_what_it_gets() {
    let text = with_upstream(
        "timeout = \"7s\"\nwrite_timeout = \"2s\"\nforwarded = \"both\"\nhost_header = \"docs.internal\"\n\
         health = { check = \"http\", path = \"/healthz?deep\", status = \"204\" }",
    );
    let config = config(&text);
    let upstream = &config.routes[0].upstream;
    assert_eq!((upstream.read_timeout, upstream.write_timeout), (Duration::from_secs(7), Duration::from_secs(2)));
    assert_eq!(upstream.forwarded, Forwarded::Both);
    assert_eq!(upstream.host_header, HostHeader::Named("docs.internal".to_owned()));
    let health = &upstream.health;
    assert_eq!(
        (health.check, health.path.as_str(), &health.status),
        (HealthProbe::Http, "/healthz?deep", &(204..=204))
    );
}

/// DESIGN, section 9: the paths that the backend gets are compared, not those that clients send.
#[test]
fn an_unguarded_route_that_reaches_a_guarded_one_by_its_prefix_is_warned_of() {
    let open = |lines: &str| {
        format!("{BASE}[[routes]]\nname = \"open\"\nupstream = \"docs\"\npolicy = \"last-writer-wins\"\n{lines}\n")
    };
    let reaches = "route \"open\" is not guarded and reaches what route \"documents\" (line 8) guards";
    for (lines, expected) in [
        ("path = \"/raw/{*rest}\"\nstrip_prefix = \"/raw\"", &[reaches][..]),
        ("path = \"/{id}\"\nadd_prefix = \"/documents\"", &[reaches]),
        ("path = \"/raw/{*rest}\"", &[]),
        ("path = \"/raw/{*rest}\"\nstrip_prefix = \"/raw\"\nadd_prefix = \"/other\"", &[]),
        ("path = \"/{*rest}\"", &[]),
    ] {
        assert_eq!(warnings(&open(lines)), expected, "{lines}");
    }
    // Both have the prefix: the more specific one takes what both match.
    let both = loaded(&format!("{}[defaults]\nadd_prefix = \"/v1\"\n", open("path = \"/{*rest}\"")));
    assert_eq!(both.warnings, []);
}

/// Rule 18: what one upstream takes for one resource must not have two keys, or two routes that could both win.
#[test]
fn letter_case_that_is_ignored_makes_conflicts_of_paths_and_identities() {
    let route = |path: &str| format!("[[routes]]\npath = \"{path}\"\nupstream = \"docs\"\npolicy = \"optimistic\"\n");
    let ignoring = with_upstream("ignore_case = true");
    for (path, message) in [
        ("/Documents/{name}", "route \"/Documents/{name}\" matches the same requests as route \"documents\" (line 9)"),
        ("/{kind}/NEW", "routes \"/{kind}/NEW\" and \"documents\" (line 9) match common requests"),
    ] {
        assert_eq!(problems(&format!("{ignoring}{}", route(path))), [message]);
    }
    assert_eq!(problems(&format!("{BASE}{}", route("/Documents/{name}"))), [""; 0]);
    assert_eq!(problems(&format!("{ignoring}{}", route("/documents/NEW"))), [""; 0]);
    let shared = ignoring.replace("9001\"]", "9001\"]\nidentity = \"docs\"");
    let message = "upstreams \"docs\" and \"files\" have the identity \"docs\", and differ in ignore_case";
    assert_eq!(problems(&shared), [message]);
    assert_eq!(problems(&shared.replace("identity", "ignore_case = true\nidentity")), [""; 0]);
}

/// Rule 18: the end of a segment takes part in what is more specific, and in conflicts.
#[test]
fn ends_of_segments_are_compared_with_other_patterns() {
    let route =
        |path: &str| format!("{BASE}[[routes]]\npath = \"{path}\"\nupstream = \"docs\"\npolicy = \"optimistic\"\n");
    for path in ["/documents/{id}.json", "/documents/new.json", "/documents/{id}:publish"] {
        assert_eq!(problems(&route(path)), [""; 0], "{path}");
    }
    let twice = format!(
        "{}[[routes]]\npath = \"/documents/{{a}}.json\"\nupstream = \"docs\"\npolicy = \"optimistic\"\n",
        route("/documents/{id}.json")
    );
    let message = "route \"/documents/{a}.json\" matches the same requests as route \"/documents/{id}.json\" (line 12)";
    assert_eq!(problems(&twice), [message]);
    let crossing = format!(
        "{}[[routes]]\npath = \"/{{kind}}/new.json\"\nupstream = \"docs\"\npolicy = \"optimistic\"\n",
        route("/documents/{id}.json")
    );
    assert_eq!(problems(&crossing).len(), 2);
}
