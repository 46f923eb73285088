//! The verdicts of judges of HTTP behaviour: the suite by which browsers and proxies are compared as caches, and
//! `REDbot`.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    path::PathBuf,
    process::{Command, Output},
};

use serde_json::Value;
use tempfile::TempDir;
use tokio::task::spawn_blocking;

use crate::support::{backend::Backend, child::Child, clients, proxy::Proxy, wait::until_some};

/// Tests that a client's conditional requests are answered well, and that pass with tags of the upstream's own where
/// every writer comes through the proxy. Without a proxy in front none of them does; `docs/verification.md` lists them.
const CONDITIONAL: [&str; 7] = [
    "conditional-304-etag",
    "conditional-etag-precedence",
    "conditional-etag-strong-respond",
    "conditional-etag-strong-respond-multiple-first",
    "conditional-etag-strong-respond-multiple-last",
    "conditional-etag-strong-respond-multiple-second",
    "conditional-etag-weak-respond",
];

/// Tests that begin with a `Last-Modified` of this very second. On routes that judge dates it is withheld, because a
/// write that relies on it could overwrite another of the same second.
const DATED_NOW: [&str; 15] = [
    "ccreq-ma0",
    "ccreq-ma1",
    "invalidate-DELETE",
    "invalidate-DELETE-cl",
    "invalidate-DELETE-location",
    "invalidate-M-SEARCH",
    "invalidate-M-SEARCH-cl",
    "invalidate-M-SEARCH-location",
    "invalidate-POST",
    "invalidate-POST-cl",
    "invalidate-POST-location",
    "invalidate-PUT",
    "invalidate-PUT-cl",
    "invalidate-PUT-location",
    "query-args-different",
];

/// Tests that the upstream sees the client's method and preconditions. A tag of the bytes needs the bytes, and the
/// upstream does not know it.
const NEED_THE_BYTES: [&str; 3] = ["conditional-etag-forward", "conditional-lm-stale", "head-writethrough"];

/// The suite's own server, and its client.
struct Suite {
    _server: Child,
    _directory: TempDir,
    package: PathBuf,
    addr: SocketAddr,
}

impl Suite {
    async fn start() -> Self {
        let package = clients::node_package("http-cache-tests");
        let directory = tempfile::tempdir().expect("a directory");
        let mut command = Command::new("node");
        command.current_dir(&package).arg("server/server.mjs");
        // It listens on all addresses, so the port must be one that no other program gets.
        command.env("npm_config_protocol", "http").env("npm_config_port", "0");
        command.env("npm_config_pidfile", directory.path().join("pid"));
        let server = Child::spawn("the suite's server", &mut command, directory.path().join("log"));
        let port = || {
            server
                .log()
                .lines()
                .find_map(|line| line.strip_prefix("Listening on http://[::]:")?.split('/').next()?.parse().ok())
        };
        let addr = SocketAddr::from(([127, 0, 0, 1], until_some("the suite's server to listen", port).await));
        Self { _server: server, _directory: directory, package, addr }
    }

    /// Runs one test, or all where none is named.
    async fn run(&self, base: SocketAddr, test: &str) -> Output {
        let mut command = Command::new("node");
        command.current_dir(&self.package).args(["--no-warnings", "cli.mjs"]);
        command.env("npm_config_base", format!("http://{base}")).env("npm_package_config_id", test);
        spawn_blocking(move || command.output()).await.expect("no panic").expect("node runs")
    }

    /// The tests that pass.
    async fn passing(&self, base: SocketAddr) -> BTreeSet<String> {
        let output = self.run(base, "").await;
        let results: BTreeMap<String, Value> = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
        assert!(results.len() > 300, "all tests were run: {}", results.len());
        results.into_iter().filter(|(_, result)| *result == Value::Bool(true)).map(|(test, _)| test).collect()
    }

    /// Whether a test passes alone: some of them measure seconds, and fail when a busy machine lets one go by.
    async fn passes_alone(&self, base: SocketAddr, test: &str) -> bool {
        let output = self.run(base, test).await;
        String::from_utf8_lossy(&output.stdout).lines().last().is_some_and(|line| line.starts_with('✅'))
    }
}

/// The judgement of the suite about a route before its server.
struct Judgement {
    passing: BTreeSet<String>,
    /// The tests that pass without the proxy alone.
    lost: BTreeSet<String>,
}

async fn judge(suite: &Suite, without: &BTreeSet<String>, route: &str) -> Judgement {
    let proxy = Proxy::to(suite.addr).route(&format!("require = \"never\"\n{route}")).start().await;
    let passing = suite.passing(proxy.addr()).await;
    let mut lost = BTreeSet::new();
    for test in without.difference(&passing) {
        if !suite.passes_alone(proxy.addr(), test).await {
            lost.insert(test.clone());
        }
    }
    Judgement { passing, lost }
}

fn assert_only(lost: &BTreeSet<String>, expected: &[&str]) {
    let unexpected: Vec<_> = lost.iter().filter(|test| !expected.contains(&test.as_str())).collect();
    assert!(unexpected.is_empty(), "these pass without the proxy: {unexpected:?}");
}

#[tokio::test]
async fn tests_of_caches_lose_nothing_to_the_proxy_but_what_is_named_here() {
    let suite = Suite::start().await;
    let without = suite.passing(suite.addr).await;
    let (delegate, upstream, content) = tokio::join!(
        judge(&suite, &without, "etag = \"delegate\""),
        judge(&suite, &without, "etag = \"upstream\"\nother_writers = false"),
        judge(&suite, &without, "etag = \"content\""),
    );
    assert_only(&delegate.lost, &[]);
    assert_only(&upstream.lost, &DATED_NOW);
    let missing: Vec<_> = CONDITIONAL.iter().filter(|test| !upstream.passing.contains(**test)).collect();
    assert!(missing.is_empty(), "{missing:?} do not pass");
    assert_only(&content.lost, &[&DATED_NOW[..], &NEED_THE_BYTES].concat());
}

#[tokio::test]
async fn redbot_finds_conditional_requests_on_a_backend_that_has_none() {
    let supported = "If-None-Match conditional requests are supported";
    let backend = Backend::start().await;
    backend.put("/doc", "a document of some length");
    let proxy = Proxy::to(backend.addr()).route("etag = \"content\"").start().await;
    let report = async |addr: SocketAddr| {
        let mut command = clients::python_program("redbot");
        command.args(["-o", "text", &format!("http://{addr}/doc")]);
        let output = spawn_blocking(move || command.output()).await.expect("no panic").expect("redbot runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let (without, with) = (report(backend.addr()).await, report(proxy.addr()).await);
    assert!(without.contains("HTTP/1.1 200 ") && !without.contains(supported), "{without}");
    assert!(with.contains(supported), "{with}");
}
