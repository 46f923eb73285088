//! The configuration as a user meets it: what a file means, and everything that is said about one that is wrong
//! (DESIGN, section 9).

use std::{fs, time::Duration};

use ifmatch::{
    config::{self, Config, Listen, Loaded, Word},
    core::policy::{
        AbsentLease, Compare, Dialect, LeaseAuth, LeaseGuards, LeaseRules, OnWrite, Policy, Require, TagSource,
    },
};

const MISTAKES: &str = include_str!("configuration/mistakes.toml");
const MISTAKES_REPORTED: &str = include_str!("configuration/mistakes.txt");

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

/// [`BASE`] with leases on its route.
fn leased(added: &str) -> String {
    format!("{}{added}\n", BASE.replace("optimistic", "pessimistic"))
}

/// The lease rules of the first route.
fn lease_rules(text: &str) -> LeaseRules {
    let guard = config(text).routes[0].guard.clone().expect("the route is guarded");
    guard.lease.expect("a pessimistic route has leases")
}

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

/// A table: what is added to the valid file, and the one message that it must lead to.
#[test]
fn each_broken_rule_is_one_problem() {
    let cases: &[(&str, &str)] = &[
        ("etag = \"contents\"", "etag cannot be \"contents\""),
        ("etag = \"header:\"", "etag cannot be \"header:\""),
        ("etag = \"header:a b\"", "etag cannot be \"header:a b\""),
        ("compare = \"weak\"", "compare cannot be \"weak\""),
        ("compare = \"opaque\"", "compare = \"opaque\" needs etag = \"upstream\" or \"header:NAME\""),
        ("etag = \"json:/version\"", "etag = \"json:/version\" is not in this version of ifmatch"),
        ("etag = \"delegate\"", "etag = \"delegate\" is not in this version of ifmatch"),
        ("etag = \"version\"", "etag = \"version\" needs writers = \"exclusive\""),
        ("probe_auth = \"sigv4\"", "probe_auth = \"sigv4\" is not in this version of ifmatch"),
        ("host = \"a:80\"", "a host is matched without its port"),
        ("key = \"{nobody}\"", "{nobody} stands for nothing here"),
        ("claim = { max_wiat = \"1s\" }", "unknown key `max_wiat`"),
        ("probe = { timeuot = \"1s\" }", "unknown key `timeuot`"),
        ("hash_wait = \"61s\"", "hash_wait is 1m 1s, the limit is 1m"),
        ("hash_max = \"1B\"", "hash_max is 1B, the least is 1KiB"),
        ("hash_max = \"1\"", "hash_max is \"1\", which is no size"),
        ("claim = { max_waiters = -1 }", "claim.max_waiters is -1, it is from 0 to 100000"),
        ("probe = { timeout = \"0s\" }", "probe.timeout is 0s, the least is 10ms"),
        ("identity_headers = [\"a b\"]", "identity_headers: \"a b\" is no field name"),
        ("identity_headers = [\"Cookie\", \"cookie\"]", "\"cookie\" stands twice in the list"),
        ("require_methods = [\"GET\"]", "GET is no write: it cannot be in require_methods"),
        ("safe_methods = [\"DELETE\"]", "DELETE changes the resource: it cannot be in safe_methods"),
        ("safe_methods = [\"COPY\"]", "what COPY does is fixed: it cannot be in safe_methods"),
        (
            "safe_methods = [\"QUERY\"]\nunclaimed_methods = [\"QUERY\"]",
            "QUERY is in safe_methods and in unclaimed_methods",
        ),
        ("observe = \"yes\"", "`observe` takes true or false, not string \"yes\""),
        ("[server]\nlisten = []", "listen is empty"),
        ("[server]\nlisten = [\"unix:run/socket\"]", "listen address \"unix:run/socket\" has no absolute path"),
        ("[server]\nspool_dir = \"tmp\"", "spool_dir is \"tmp\", which is no absolute path"),
        ("[server]\nthreads = 2000", "threads is 2000, it is from 0 to 1024"),
        (
            "[server]\nbody_memory = \"512MiB\"",
            "body_memory is 512MiB for one request, and body_memory_total 256MiB for all",
        ),
        ("[server]\nspool_total = \"1MiB\"", "body_max is 1GiB for one request, and spool_total 1MiB for all"),
        ("[store]\nkind = \"redis\"", "kind = \"redis\" is not in this version of ifmatch"),
        ("[store]\npath = \"/x\"", "`path` is not in this version of ifmatch"),
        ("[admin]\nlisten = \"127.0.0.1:9901\"", "`admin` is not in this version of ifmatch"),
        ("[routes.lease]\nmin = \"15s\"", "`lease` has no effect on an optimistic route"),
        ("touches = []", "`touches` is not in this version of ifmatch"),
        ("[defaults.lease]\nmin = \"15\"", "lease.min is \"15\", which is no duration"),
        ("[defaults]\npath = \"/\"", "`path` belongs to one route: it cannot be a default"),
        ("[defaults]\nhash_wait = \"5\"", "hash_wait is \"5\", which is no duration"),
        ("[defaults]\nupstream = \"nowhere\"", "there is no upstream \"nowhere\""),
        ("[upstreams.bare]\nservers = [\"localhost\"]", "server \"localhost\" has no port"),
        (
            "[upstreams.bare]\nservers = [\"localhost:0\"]",
            "server \"localhost:0\" has the port 0, which nothing listens on",
        ),
        ("[upstreams.bare]\nservers = [\"localhost:70000\"]", "server \"localhost:70000\" has no port from 0 to 65535"),
        ("[upstreams.bare]\nservers = [\"u@localhost:80\"]", "server \"u@localhost:80\" is not host:port"),
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
            "another route (line 7) has the name \"documents\" too",
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

/// The same for a route with leases.
#[test]
fn each_broken_rule_about_leases_is_one_problem() {
    let cases: &[(&str, &str)] = &[
        ("observe = true", "a pessimistic route cannot only be watched: nobody holds a lease that is not granted"),
        ("lease = true", "`lease` takes a table, not boolean `true`"),
        ("[routes.lease]\nmaks = \"15s\"", "unknown key `maks`"),
        ("[routes.lease]\ninfinite = \"yes\"", "`infinite` takes true or false, not string \"yes\""),
        ("[routes.lease]\ndialect = \"webdav\"", "lease.dialect = \"webdav\" is not in this version of ifmatch"),
        ("[routes.lease]\ndialect = \"azur\"", "lease.dialect cannot be \"azur\""),
        ("[routes.lease]\nauth = \"client\"", "lease.auth cannot be \"client\""),
        ("[routes.lease]\nabsent = \"create\"", "lease.absent cannot be \"create\""),
        ("[routes.lease]\nguards = []", "lease.guards cannot be []"),
        ("[routes.lease]\nguards = [\"read\"]", "lease.guards cannot be [\"read\"]"),
        ("[routes.lease]\nguards = [\"write\", \"write\"]", "lease.guards cannot be [\"write\", \"write\"]"),
        (
            "[routes.lease]\nprefix = \"leases\"",
            "lease.prefix is \"leases\": the target is no path; send a path that begins with \"/\"",
        ),
        ("[routes.lease]\nprefix = \"/\"", "lease.prefix is \"/\", where the resources themselves are"),
        (
            "[routes.lease]\nprefix = \"/.leases/\"",
            "lease.prefix is \"/.leases/\", which is not how ifmatch spells that path",
        ),
        ("[routes.lease]\nmin = \"0s\"", "lease.min is 0s, the least is 1s"),
        ("[routes.lease]\nmax = \"8d\"", "lease.max is 8days, the limit is 7days"),
        ("[routes.lease]\ndefault = \"20500ms\"", "lease.default is 20s 500ms, and leases last whole seconds"),
        ("[routes.lease]\nmin = \"40s\"", "lease.min is 40s, and lease.default is 30s"),
        ("[routes.lease]\nmax = \"20s\"", "lease.default is 30s, and lease.max is 20s"),
        ("[routes.lease]\nmax = \"2h\"", "lease.max is 2h, and lease.hold_max is 1h"),
        ("[routes.lease]\nhold_max = \"30s\"", "lease.max is 1m, and lease.hold_max is 30s"),
        ("[routes.lease]\nremember = \"8d\"", "lease.remember is 8days, the limit is 7days"),
        ("[routes.lease]\nmax_wait = \"2h\"", "lease.max_wait is 2h, the limit is 1h"),
        ("[routes.lease]\nmax_waiters = -1", "lease.max_waiters is -1, it is from 0 to 100000"),
        ("[routes.lease]\nmax_per_principal = 0", "lease.max_per_principal is 0, it is from 1 to 1000000"),
        (
            "[routes.lease]\ndialect = \"azure\"\nmin = \"10s\"",
            "lease.min is 10s, the least in the azure dialect is 15s",
        ),
        (
            "[routes.lease]\ndialect = \"azure\"\nmax = \"61s\"",
            "lease.max is 1m 1s, the limit in the azure dialect is 1m",
        ),
        (
            "[routes.lease]\ndialect = \"azure\"\nprefix = \"/.leases\"",
            "lease.prefix has no effect in the azure dialect",
        ),
        (
            "[routes.lease]\ndialect = \"azure\"\nacquire_on_read = true",
            "the azure dialect cannot acquire a lease with a read",
        ),
        (
            "[[routes]]\npath = \"/static\"\nupstream = \"files\"\npolicy = \"last-writer-wins\"\n[routes.lease]\n",
            "`lease` has no effect on a last-writer-wins route",
        ),
    ];
    for (added, expected) in cases {
        assert_eq!(problems(&leased(added)), [*expected], "added:\n{added}");
    }
}

#[test]
fn a_rule_over_two_keys_looks_at_what_the_route_says_too() {
    let text = format!("{BASE}writers = \"exclusive\"\n[defaults]\netag = \"version\"\n");
    assert_eq!(problems(&text), Vec::<String>::new());
    assert_eq!(
        problems(&format!("{BASE}[defaults]\netag = \"version\"\n")),
        ["etag = \"version\" needs writers = \"exclusive\""]
    );
    let rules = lease_rules(&leased("[routes.lease]\nmin = \"2m\"\n[defaults.lease]\ndefault = \"3m\"\nmax = \"4m\""));
    assert_eq!((rules.min, rules.default, rules.max), (minutes(2), minutes(3), minutes(4)));
}

fn minutes(count: u64) -> Duration {
    Duration::from_secs(60 * count)
}

/// A lease lies where no other route, and no other lease, is: `/.leases/documents/{id}` here.
#[test]
fn a_lease_that_another_route_would_take_is_one_problem() {
    let beside =
        |route: &str| problems(&leased(&format!("[[routes]]\nname = \"other\"\nupstream = \"files\"\n{route}")));
    let message = |what: &str| vec![format!("the leases of route \"documents\" and {what} match common requests")];
    let unguarded = |path: &str| beside(&format!("path = {path:?}\npolicy = \"last-writer-wins\""));
    assert_eq!(unguarded("/.leases/documents/{name}"), message("route \"other\" (line 12)"));
    assert_eq!(unguarded("/.leases/documents/new"), message("route \"other\" (line 12)"));
    assert_eq!(unguarded("/{any}/documents/new"), message("route \"other\" (line 12)"));
    // The lease is the more specific of the two.
    assert_eq!(unguarded("/{*rest}"), Vec::<String>::new());
    assert_eq!(unguarded("/.leases/{*rest}"), Vec::<String>::new());
    assert_eq!(unguarded("/.leases/drawings/{id}"), Vec::<String>::new());
    // A narrower host goes before a more specific path; one that takes the documents too leaves no leases there.
    let elsewhere = |path: &str| {
        beside(&format!("host = \"a.example.com\"\npath = {path:?}\npolicy = \"optimistic\"\netag = \"upstream\""))
    };
    assert_eq!(elsewhere("/.leases/{*rest}"), message("route \"other\" (line 13)"));
    assert_eq!(elsewhere("/{*rest}"), Vec::<String>::new());
}

#[test]
fn two_routes_may_share_a_prefix_but_not_a_lease() {
    let beside = |path: &str, prefix: &str| {
        let route =
            format!("[[routes]]\nname = \"other\"\nupstream = \"files\"\npolicy = \"pessimistic\"\npath = {path:?}");
        problems(&leased(&format!("{route}\n[routes.lease]\nprefix = {prefix:?}")))
    };
    let shared = "the leases of route \"other\" and the leases of route \"documents\" (line 8) match common requests";
    assert_eq!(beside("/{id}", "/.leases/documents"), [shared]);
    assert_eq!(beside("/{*rest}", "/.leases/documents"), [shared]);
    assert_eq!(beside("/documents/{id}/text", "/.leases"), Vec::<String>::new());
    assert_eq!(beside("/{*rest}", "/.leases"), Vec::<String>::new());
    assert_eq!(beside("/{*rest}", "/.locks"), Vec::<String>::new());
}

/// Of `/p/x/x/1` nobody can say whether it is the lease of `/x/x/1` or a resource.
#[test]
fn a_lease_that_could_be_a_resource_of_its_own_route_is_one_problem() {
    let text = leased("[routes.lease]\nprefix = \"/p\"").replace("/documents/{id}", "/{a}/x/{*rest}");
    let expected = "the leases of route \"documents\" and route \"documents\" (line 8) match common requests";
    assert_eq!(problems(&text), [expected]);
    let text = leased("").replace("/documents/{id}", "/{*rest}");
    assert_eq!(problems(&text), Vec::<String>::new());
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
    assert_eq!(config.server.body_memory_bytes, 1 << 20);
    assert_eq!(config.server.body_memory_total_bytes, 256 << 20);
    assert_eq!(config.server.body_max_bytes, 1 << 30);
    assert_eq!(config.server.spool_total_bytes, 10 << 30);
    assert_eq!(config.server.claim_waiters_max, 10_000);
    assert_eq!(config.store.capacity, 1_000_000);
    assert_eq!(config.store.start_grace, Duration::ZERO);
    let route = &config.routes[0];
    assert_eq!(route.host.to_string(), "*");
    assert_eq!(route.upstream.identity, "docs");
    assert_eq!(route.upstream.late_max, Duration::from_secs(5));
    let guard = route.guard.as_ref().expect("an optimistic route is guarded");
    assert_eq!((&guard.etag, guard.require, guard.on_write), (&TagSource::Content, Require::Always, OnWrite::Probe));
    assert_eq!(guard.require_methods, ["PUT", "PATCH", "DELETE"]);
    assert_eq!(guard.unclaimed_methods, ["POST"]);
    assert_eq!(guard.identity_headers, ["authorization", "cookie", "x-api-key", "api-key"]);
    assert_eq!((guard.hash_max_bytes, guard.hash_wait), (1 << 20, Duration::from_millis(50)));
    assert_eq!((guard.claim_max_wait, guard.claim_max_waiters), (Duration::from_secs(30), 64));
    assert_eq!(guard.probe_timeout, Duration::from_secs(5));
}

/// The defaults of DESIGN, sections 5, 8 and 9, for leases.
#[test]
fn what_is_not_said_about_leases_has_its_default() {
    let config = config(&leased(""));
    let guard = config.routes[0].guard.as_ref().expect("a pessimistic route is guarded");
    assert_eq!(
        (config.routes[0].policy, guard.require, guard.compare),
        (Policy::Pessimistic, Require::Never, Compare::Strong)
    );
    let expected = LeaseRules {
        dialect: Dialect::Native,
        prefix: "/.leases".to_owned(),
        guards: LeaseGuards::Write,
        auth: LeaseAuth::Probe,
        bind: true,
        acquire_on_read: false,
        client_break: false,
        absent: AbsentLease::Refuse,
        remember: minutes(10),
        max_per_principal: 100,
        default: Duration::from_secs(30),
        min: Duration::from_secs(15),
        max: minutes(1),
        infinite: false,
        required: false,
        max_wait: Duration::from_secs(30),
        max_waiters: 64,
        hold_max: minutes(60),
    };
    assert_eq!(guard.lease.as_ref(), Some(&expected));
}

#[test]
fn what_is_said_about_leases_is_what_they_are() {
    let text = "[routes.lease]\nprefix = \"/locks/v1\"\nguards = [\"write\", \"read\"]\nauth = \"none\"\nbind = false\n\
                acquire_on_read = true\nclient_break = true\nabsent = \"allow\"\nremember = \"0s\"\nmax_per_principal = 7\n\
                default = \"2s\"\nmin = \"1s\"\nmax = \"3s\"\ninfinite = true\nrequired = true\nmax_wait = \"4s\"\n\
                max_waiters = 5\nhold_max = \"6s\"";
    let expected = LeaseRules {
        dialect: Dialect::Native,
        prefix: "/locks/v1".to_owned(),
        guards: LeaseGuards::ReadAndWrite,
        auth: LeaseAuth::None,
        bind: false,
        acquire_on_read: true,
        client_break: true,
        absent: AbsentLease::Allow,
        remember: Duration::ZERO,
        max_per_principal: 7,
        default: Duration::from_secs(2),
        min: Duration::from_secs(1),
        max: Duration::from_secs(3),
        infinite: true,
        required: true,
        max_wait: Duration::from_secs(4),
        max_waiters: 5,
        hold_max: Duration::from_secs(6),
    };
    assert_eq!(lease_rules(&leased(text)), expected);
}

#[test]
fn opaque_comparison_is_for_tags_of_the_upstream() {
    for etag in ["upstream", "header:X-Version"] {
        let config = config(&format!("{BASE}etag = {etag:?}\ncompare = \"opaque\"\n"));
        assert_eq!(config.routes[0].guard.as_ref().map(|guard| guard.compare), Some(Compare::Opaque), "{etag}");
    }
}

/// DESIGN, section 6: a re-read is the default only where the tag is made of what is read.
#[test]
fn tags_that_are_not_made_of_bytes_are_not_read_again_after_a_write() {
    for (added, expected) in [
        ("", OnWrite::Probe),
        ("etag = \"upstream\"", OnWrite::Omit),
        ("etag = \"version\"\nwriters = \"exclusive\"", OnWrite::Omit),
        ("etag = \"upstream\"\non_write = \"probe\"", OnWrite::Probe),
        ("etag = \"header:X-Version\"", OnWrite::Probe),
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
    assert_eq!((guard.require, guard.hash_wait), (Require::Never, Duration::from_millis(7)));
    assert_eq!((guard.claim_max_wait, guard.claim_max_waiters), (Duration::from_secs(1), 3));
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
        assert!(loaded.config.routes.iter().all(|route| route.upstream.servers == ["127.0.0.1:9000"]));
    }
}
