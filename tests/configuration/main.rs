//! The configuration as a user meets it: the meaning of a file, and all messages about a wrong one (DESIGN, section 9).

use std::{fs, time::Duration};

use ifmatch::{
    config::{self, Config, Listen, Loaded, Word},
    core::policy::{AbsentLease, Compare, Dialect, LeaseAuth, OnWrite, Policy, Require, TagSource},
};

const MISTAKES: &str = include_str!("mistakes.toml");
const MISTAKES_REPORTED: &str = include_str!("mistakes.txt");

mod admin;
mod careless;
#[path = "../certificates/mod.rs"]
mod certificates;
mod clients;
mod leases;
mod limits;
mod locks;
mod members;
mod messages;
mod one_key;
mod states;
mod stores;
mod tags;
mod telemetry;
mod tls;
mod unseen;
mod upstreams;
mod watch;
mod writes_to;

/// Two upstreams and a route, to which a test adds what it is about.
const BASE: &str = r#"
[upstreams.docs]
servers = ["127.0.0.1:9000"]
[upstreams.files]
servers = ["127.0.0.1:9001"]
[[routes]]
name = "documents"
path = "/documents/{id}"
upstream = "docs"
policy = "optimistic"
"#;

fn loaded(text: &str) -> Loaded {
    config::parse("test.toml", text).unwrap_or_else(|problems| panic!("{problems}\nin\n{text}"))
}

fn config(text: &str) -> Config {
    loaded(text).config
}

/// The messages of all problems that a text has.
fn problems(text: &str) -> Vec<String> {
    match config::parse("test.toml", text) {
        Ok(_) => Vec::new(),
        Err(problems) => problems.iter().map(|problem| problem.message().to_owned()).collect(),
    }
}

fn warnings(text: &str) -> Vec<String> {
    loaded(text).warnings.iter().map(|warning| warning.message().to_owned()).collect()
}

#[test]
fn one_run_reports_every_mistake_with_place_excerpt_and_hint() {
    let problems = config::parse("mistakes.toml", MISTAKES).expect_err("the file is full of mistakes");
    assert_eq!(format!("{problems}\n"), MISTAKES_REPORTED);
}

#[test]
fn every_unknown_key_is_reported_wherever_it_stands() {
    let text = format!(
        "{BASE}claim = {{ max_wiat = \"1s\" }}\nlisten = 1\n[serer]\n[server]\nlist = []\n[store]\nx = 1\n[defaults]\ny = 2\n"
    );
    let expected = ["max_wiat", "listen", "serer", "list", "x", "y"].map(|key| format!("unknown key `{key}`"));
    assert_eq!(problems(&text), expected);
}

/// Each costs two swaps in the store on every write.
#[test]
fn what_one_write_touches_is_bounded() {
    let paths =
        |count: usize| (0..count).map(|number| format!("\"/documents/{number}\"")).collect::<Vec<_>>().join(", ");
    assert_eq!(problems(&format!("{BASE}also_changes = [{}]\n", paths(16))), [""; 0]);
    let expected = ["also_changes names 17 resources, the limit is 16"];
    assert_eq!(problems(&format!("{BASE}also_changes = [{}]\n", paths(17))), expected);
}

/// A resource that a write changes beside its target, by its configuration, must be a guarded one.
#[test]
fn each_touch_that_cannot_be_meant_is_one_problem() {
    let cases: &[(&str, &str)] = &[
        ("also_changes = [\"/nowhere/{id}\"]", "also_changes names /nowhere/{id}, which no guarded route matches"),
        ("also_changes = [\"/documents/{di}\"]", "{di} stands for nothing here"),
        ("also_changes = [\"documents/{id}\"]", "a path begins with \"/\""),
        ("also_changes = [\"/documents/1\", \"/documents/1\"]", "\"/documents/1\" stands twice in the list"),
        (
            "also_changes = [\"/views/{id}\"]\n[[routes]]\npath = \"/views/{id}\"\nupstream = \"docs\"\n\
             policy = \"optimistic\"\nkey = \"{query.id}\"",
            "also_changes names /views/{id}, and route \"/views/{id}\" names its resources by the query",
        ),
        (
            "also_changes = [\"/open/{id}\"]\n[[routes]]\npath = \"/open/{id}\"\nupstream = \"docs\"\n\
             policy = \"last-writer-wins\"",
            "also_changes names /open/{id}, which no guarded route matches",
        ),
        ("[defaults]\nalso_changes = []", "`also_changes` belongs to one route: it cannot be a default"),
    ];
    for (added, expected) in cases {
        assert_eq!(problems(&format!("{BASE}{added}\n")), [*expected], "added:\n{added}");
    }
}

/// A table: what is added to the valid file, and the one message that it must lead to.
#[test]
fn each_broken_rule_is_one_problem() {
    let cases: &[(&str, &str)] = &[
        ("etag = \"contents\"", "etag cannot be \"contents\""),
        ("etag = \"header:\"", "etag cannot be \"header:\""),
        ("etag = \"header:a b\"", "etag cannot be \"header:a b\""),
        ("compare = \"weak\"", "compare cannot be \"weak\""),
        ("etag = \"version\"", "etag = \"version\" needs other_writers = false"),
        ("host = \"a:80\"", "a host is matched without its port"),
        ("key = \"{nobody}\"", "{nobody} stands for nothing here"),
        ("claim = { max_wiat = \"1s\" }", "unknown key `max_wiat`"),
        ("probe = { timeuot = \"1s\" }", "unknown key `timeuot`"),
        ("hash_wait = \"61s\"", "hash_wait is 1m 1s, the limit is 1m"),
        ("max_hash_size = \"1B\"", "max_hash_size is 1B, the least is 1KiB"),
        ("max_hash_size = \"1\"", "max_hash_size is \"1\", which is no size"),
        ("claim = { max_waiters = -1 }", "claim.max_waiters is -1, it is from 0 to 100000"),
        ("probe = { timeout = \"0s\" }", "probe.timeout is 0s, the least is 10ms"),
        ("identity_headers = [\"a b\"]", "identity_headers: \"a b\" is not a field name"),
        ("identity_headers = [\"Cookie\", \"cookie\"]", "\"cookie\" stands twice in the list"),
        ("identity_query = [\"\"]", "identity_query: a parameter has a name"),
        ("identity_query = [\"a\", \"a\"]", "\"a\" stands twice in the list"),
        ("require_methods = [\"GET\"]", "GET is not a write: it cannot be in require_methods"),
        ("safe_methods = [\"DELETE\"]", "DELETE changes the resource: it cannot be in safe_methods"),
        ("safe_methods = [\"COPY\"]", "the meaning of COPY is fixed: it cannot be in safe_methods"),
        ("safe_methods = [\"QUERY\"]\nappend_methods = [\"QUERY\"]", "QUERY is in safe_methods and in append_methods"),
        ("observe = \"yes\"", "`observe` takes true or false, not string \"yes\""),
        ("[server]\nlisten = []", "listen is empty"),
        ("[server]\nlisten = [\"unix:run/socket\"]", "listen address \"unix:run/socket\" has no absolute path"),
        ("[server]\nspool_dir = \"tmp\"", "spool_dir is \"tmp\", which is no absolute path"),
        ("[server]\ncontrol_socket = \"run/x\"", "control_socket is \"run/x\", which is no absolute path"),
        ("[server]\nthreads = 2000", "threads is 2000, it is from 0 to 1024"),
        (
            "[server]\nmax_body_memory = \"512MiB\"",
            "max_body_memory is 512MiB for one request, and max_body_memory_total 256MiB for all",
        ),
        (
            "[server]\nmax_spool_size = \"1MiB\"",
            "max_body_size is 1GiB for one request, and max_spool_size 1MiB for all",
        ),
        ("[store]\npath = \"/x\"", "path is the file of the disk store, but this is another kind"),
        ("[store]\nkind = \"disk\"", "kind = \"disk\" needs a path"),
        ("[store]\nkind = \"disk\"\npath = \"x\"", "path is \"x\", which is no absolute path"),
        ("[routes.lease]\nmin = \"15s\"", "`lease` has no effect on an optimistic route"),
        ("[defaults.lease]\nmin = \"15\"", "lease.min is \"15\", which is no duration"),
        ("[defaults]\npath = \"/\"", "`path` belongs to one route: it cannot be a default"),
        ("[defaults]\nhash_wait = \"5\"", "hash_wait is \"5\", which is no duration"),
        ("[defaults]\nupstream = \"nowhere\"", "there is no upstream \"nowhere\""),
        ("[upstreams.bare]\nservers = [\"localhost\"]", "server \"localhost\" has no port"),
        (
            "[upstreams.bare]\nservers = [\"localhost:0\"]",
            "server \"localhost:0\" has port 0, on which no server can listen",
        ),
        ("[upstreams.bare]\nservers = [\"localhost:70000\"]", "server \"localhost:70000\" has no port from 0 to 65535"),
        ("[upstreams.bare]\nservers = []", "upstream \"bare\" has no server in its list"),
        ("[upstreams.bare]\n", "upstream \"bare\" has no servers"),
        ("[upstreams.bare]\nservres = [\"localhost:80\"]", "unknown key `servres`"),
        (
            "[upstreams.\"a b\"]\nservers = [\"localhost:80\"]",
            "the upstream's name is \"a b\": a name has no blanks and is not empty",
        ),
        (
            "[upstreams.again]\nservers = [\"127.0.0.1:9001\"]",
            "server \"127.0.0.1:9001\" is also one of upstream \"files\" (line 5)",
        ),
        (
            "[[routes]]\npath = \"/documents/{name}\"\nupstream = \"docs\"\npolicy = \"last-writer-wins\"",
            "route \"/documents/{name}\" matches the same requests as route \"documents\" (line 8)",
        ),
        (
            "[[routes]]\npath = \"/{kind}/new\"\nupstream = \"docs\"\npolicy = \"optimistic\"",
            "routes \"/{kind}/new\" and \"documents\" (line 8) match common requests",
        ),
        (
            "[[routes]]\nname = \"documents\"\npath = \"/\"\nupstream = \"docs\"\npolicy = \"optimistic\"",
            "another route (line 7) is also named \"documents\"",
        ),
        (
            "[[routes]]\nname = \"a b\"\npath = \"/\"\nupstream = \"docs\"\npolicy = \"optimistic\"",
            "the route's name is \"a b\": a name has no blanks and is not empty",
        ),
        ("[[routes]]\nupstream = \"docs\"\npolicy = \"optimistic\"", "the route has no path"),
        ("[[routes]]\npath = \"/x\"\npolicy = \"optimistic\"", "the route has no upstream"),
        ("[[routes]]\npath = \"/x\"\nupstream = \"docs\"", "the route has no policy"),
        ("[[routes]]\npaht = \"/x\"\nupstream = \"docs\"\npolicy = \"optimistic\"", "unknown key `paht`"),
        (
            "[[routes]]\npath = \"/x\"\nupstream = 3\npolicy = \"optimistic\"",
            "`upstream` takes a string, not integer `3`",
        ),
        (
            "[[routes]]\npath = \"/x\"\nupstream = \"docs\"\npolicy = \"last-writer-wins\"\nobserve = true",
            "`observe` has no effect on a last-writer-wins route",
        ),
        (
            "[[routes]]\npath = \"/x\"\nupstream = \"docs\"\npolicy = \"last-writer-wins\"\nkey = \"{path}\"",
            "`key` has no effect on a last-writer-wins route",
        ),
    ];
    for (added, expected) in cases {
        assert_eq!(problems(&format!("{BASE}{added}\n")), [*expected], "added:\n{added}");
    }
}

#[test]
fn a_rule_over_two_keys_looks_at_what_the_route_says_too() {
    let text = format!("{BASE}other_writers = false\n[defaults]\netag = \"version\"\n");
    assert_eq!(problems(&text), Vec::<String>::new());
    assert_eq!(
        problems(&format!("{BASE}[defaults]\netag = \"version\"\n")),
        ["etag = \"version\" needs other_writers = false"]
    );
}

#[test]
fn routes_without_names_that_match_the_same_are_one_problem() {
    let route = "[[routes]]\npath = \"/x\"\nupstream = \"docs\"\npolicy = \"optimistic\"\n";
    let expected = "route \"/x\" matches the same requests as route \"/x\" (line 12)";
    assert_eq!(problems(&format!("{BASE}{route}{route}")), [expected]);
}

#[test]
fn a_file_without_upstreams_and_routes_says_so() {
    assert_eq!(problems(""), ["there is no route", "there is no upstream"]);
    let one_wrong_table = BASE.replace("[upstreams.docs]", "[upstreams]\nother = 1\n[upstreams.docs]");
    assert_eq!(problems(&one_wrong_table), ["`upstreams` takes a table, not integer `1`"]);
}

#[test]
fn syntax_errors_are_reported_alone() {
    let text = "[server]\nlisten = [\"127.0.0.1:8080\"\nthreads = 3\n[server]\nunknown = 5s\n";
    let problems = problems(text);
    assert!(!problems.is_empty());
    assert!(!problems.iter().any(|problem| problem.contains("unknown key")), "{problems:?}");
}

/// The defaults of DESIGN, sections 5, 6, 8 and 9.
#[test]
fn what_is_not_said_has_its_default() {
    let config = config(BASE);
    assert_eq!(config.server.listen, [Listen::Tcp("127.0.0.1:8080".to_owned())]);
    assert!(config.server.threads > 0);
    assert_eq!(config.server.max_body_memory_bytes, 1 << 20);
    assert_eq!(config.server.max_body_memory_total_bytes, 256 << 20);
    assert_eq!(config.server.max_body_size_bytes, 1 << 30);
    assert_eq!(config.server.max_spool_size_bytes, 10 << 30);
    assert_eq!(config.server.max_claim_waiters, 10_000);
    assert_eq!((config.server.header_timeout, config.server.max_header_bytes), (Duration::from_secs(15), 32 << 10));
    assert_eq!(config.server.max_header_memory_bytes, 64 << 20);
    assert_eq!((config.server.max_connections, config.server.max_connections_per_client), (10_000, 1_000));
    assert_eq!(config.store.capacity, 1_000_000);
    assert_eq!(config.store.start_grace, Duration::ZERO);
    let route = &config.routes[0];
    assert_eq!(route.host.to_string(), "*");
    assert_eq!(route.upstream.identity, "docs");
    assert_eq!(route.upstream.late_write_window, Duration::from_secs(30));
    let guard = route.guard.as_ref().expect("an optimistic route is guarded");
    assert_eq!((&guard.etag, guard.require, guard.on_write), (&TagSource::Content, Require::Always, OnWrite::Probe));
    assert_eq!(guard.require_methods, ["PUT", "PATCH", "DELETE", "COPY", "MOVE"]);
    assert_eq!(guard.append_methods, ["POST"]);
    assert_eq!(guard.identity_headers, ["authorization", "cookie", "x-api-key", "api-key"]);
    let parameters =
        ["access_token", "token", "api_key", "key", "sig", "signature", "X-Amz-Signature", "X-Goog-Signature"];
    assert_eq!(guard.identity_query, parameters);
    assert_eq!((guard.max_hash_size_bytes, guard.hash_wait), (1 << 20, None));
    assert_eq!((guard.claim.max_wait, guard.claim.max_waiters), (Duration::from_secs(30), 64));
    assert_eq!(guard.probe.timeout, Duration::from_secs(5));
}

#[test]
fn what_clients_may_cost_has_a_least_and_a_most() {
    let server = "header_timeout = \"0s\"\nmax_header_size = \"2MiB\"\nmax_header_memory_total = \"1KiB\"\n\
                  max_connections = 0\nmax_connections_per_client = -1";
    assert_eq!(
        problems(&format!("[server]\n{server}\n{BASE}")),
        [
            "header_timeout is 0s, the least is 1s",
            "max_header_size is 2MiB, the limit is 1023KiB",
            "max_header_memory_total is 1KiB, the least is 1MiB",
            "max_connections is 0, it is from 1 to 1000000",
            "max_connections_per_client is -1, it is from 1 to 1000000",
        ]
    );
}

#[test]
fn opaque_comparison_is_for_tags_of_the_upstream() {
    for etag in ["upstream", "header:X-Version", "json:/version", "delegate"] {
        let config = config(&format!("{BASE}etag = {etag:?}\ncompare = \"opaque\"\n"));
        assert_eq!(config.routes[0].guard.as_ref().map(|guard| guard.compare), Some(Compare::Opaque), "{etag}");
    }
}

/// DESIGN, section 6: a re-read is the default only if the tag is made of what is read.
#[test]
fn a_tag_that_is_made_of_what_is_read_is_read_again_after_a_write() {
    for (added, expected) in [
        ("", OnWrite::Probe),
        ("etag = \"upstream\"", OnWrite::Omit),
        ("etag = \"version\"\nother_writers = false", OnWrite::Omit),
        ("etag = \"upstream\"\non_write = \"probe\"", OnWrite::Probe),
        ("etag = \"header:X-Version\"", OnWrite::Probe),
        ("etag = \"json:/version\"", OnWrite::Probe),
        ("etag = \"delegate\"", OnWrite::Omit),
    ] {
        let config = config(&format!("{BASE}{added}\n"));
        assert_eq!(config.routes[0].guard.as_ref().map(|guard| guard.on_write), Some(expected), "{added}");
    }
}

#[test]
fn a_route_goes_before_the_defaults_key_by_key() {
    let text = format!(
        "{BASE}require = \"never\"\nclaim = {{ max_wait = \"1s\" }}\n\
         [[routes]]\npath = \"/static\"\npolicy = \"last-writer-wins\"\n\
         [defaults]\nupstream = \"files\"\nrequire = \"existing\"\nhash_wait = \"7ms\"\nclaim = {{ max_waiters = 3, max_wait = \"2s\" }}\n"
    );
    let config = config(&text);
    let guard = config.routes[0].guard.as_ref().expect("an optimistic route is guarded");
    assert_eq!(config.routes[0].upstream.name, "docs");
    assert_eq!((guard.require, guard.hash_wait), (Require::Never, Some(Duration::from_millis(7))));
    assert_eq!((guard.claim.max_wait, guard.claim.max_waiters), (Duration::from_secs(1), 3));
    assert_eq!((config.routes[1].policy, config.routes[1].upstream.name.as_str()), (Policy::LastWriterWins, "files"));
    assert!(config.routes[1].guard.is_none());
}

#[test]
fn every_word_is_read_back_as_it_is_shown() {
    fn check<T: Word + std::fmt::Debug>() {
        for (word, value) in T::WORDS {
            assert_eq!((value.word(), T::of(word)), (*word, Some(value.clone())));
        }
    }
    check::<Policy>();
    check::<Require>();
    check::<TagSource>();
    check::<OnWrite>();
    check::<Compare>();
    check::<Dialect>();
    check::<LeaseAuth>();
    check::<AbsentLease>();
}

/// A target with two readings is refused where it could reach what is guarded; only watching guards nothing.
#[test]
fn a_route_knows_whether_something_is_guarded_at_its_backend() {
    let beside = |policy_of_documents: &str, upstream_of_static: &str, identity: &str| {
        let text = BASE
            .replace("policy = \"optimistic\"", policy_of_documents)
            .replace("[upstreams.files]", &format!("[upstreams.files]\n{identity}"));
        let added = format!(
            "[[routes]]\npath = \"/static\"\nupstream = {upstream_of_static:?}\npolicy = \"last-writer-wins\"\n"
        );
        config(&format!("{text}{added}")).routes[1].beside_guarded
    };
    assert!(beside("policy = \"optimistic\"", "docs", ""));
    assert!(!beside("policy = \"optimistic\"", "files", ""));
    assert!(beside("policy = \"optimistic\"", "files", "identity = \"docs\""));
    assert!(!beside("policy = \"last-writer-wins\"", "docs", ""));
    assert!(!beside("policy = \"optimistic\"\nobserve = true", "docs", ""));
}

#[test]
fn a_common_identity_allows_one_server_under_two_names() {
    let text = BASE.replace("9001\"]", "9000\"]\nidentity = \"docs\"");
    assert_eq!(problems(&text), Vec::<String>::new());
}

#[test]
fn an_unguarded_way_around_a_guard_is_warned_of() {
    let with = |host: &str, path: &str, upstream: &str| {
        warnings(&format!(
            "{BASE}[[routes]]\nname = \"open\"\n{host}\npath = {path:?}\nupstream = {upstream:?}\npolicy = \"last-writer-wins\"\n"
        ))
    };
    let warning = ["route \"open\" is not guarded and reaches what route \"documents\" (line 8) guards"];
    let host = "host = \"other.example.com\"";
    assert_eq!(with(host, "/{*rest}", "docs"), warning);
    assert_eq!(with(host, "/documents/{id}", "docs"), warning);
    assert_eq!(with(host, "/static/{*rest}", "docs"), Vec::<String>::new());
    assert_eq!(with(host, "/{*rest}", "files"), Vec::<String>::new());
    // Under one host the more specific route takes all that both match.
    assert_eq!(with("", "/{*rest}", "docs"), Vec::<String>::new());
}

#[test]
fn a_file_that_guards_nothing_is_warned_of() {
    let text = BASE.replace("optimistic", "last-writer-wins");
    assert_eq!(warnings(&text), ["no route is guarded: every write passes"]);
}

#[test]
fn the_example_files_load_without_warnings() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/config");
    let files =
        fs::read_dir(directory).expect("the directory of examples").map(|entry| entry.expect("an entry").path());
    let files = files.collect::<Vec<_>>();
    assert!(!files.is_empty());
    for file in files {
        let loaded = config::load(&file).unwrap_or_else(|problems| panic!("{problems}"));
        let warnings = loaded.warnings.iter().map(config::Problem::message).collect::<Vec<_>>();
        // Its point is that it guards nothing.
        let expected = if file.ends_with("last-writer-wins.toml") {
            &["no route is guarded: every write passes"][..]
        } else {
            &[]
        };
        assert_eq!(warnings, expected, "{}", file.display());
        assert_eq!(loaded.config.server.listen, [Listen::Tcp("127.0.0.1:8080".to_owned())]);
        assert!(
            loaded
                .config
                .routes
                .iter()
                .all(|route| ["127.0.0.1:9000", "127.0.0.1:9001"].contains(&&*route.upstream.servers[0]))
        );
    }
}
