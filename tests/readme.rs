//! Every command and every configuration in README.md, tried.
//!
//! | block | what is done with it |
//! |---|---|
//! | `console` | each `$ command` is run by bash; the lines below it must be among what it prints, in that order |
//! | `sh` | what does not end by itself, or would run this test again: it is looked at as far as that goes |
//! | `toml` | it is loaded |
//! | `json` | it is compared with the answer that the proxy gives |
//!
//! The addresses of the document stand for those of an nginx and of a proxy with `config/quickstart.toml`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    missing_docs,
    unreachable_pub,
    reason = "a test stops at the first surprise, and nothing outside this binary can name its parts"
)]

use std::{
    env, fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use support::{
    backend::{Answer, Backend},
    child::Child,
    nginx::Nginx,
    ports,
    proxy::Proxy,
    raw::{get, send},
};

#[path = "proxy/support/mod.rs"]
mod support;

const README: &str = include_str!("../README.md");
const QUICKSTART: &str = include_str!("../config/quickstart.toml");
/// Where the document says that the proxy listens.
const PROXY: &str = "127.0.0.1:8080";
/// Where the document says that the backend listens.
const BACKEND: &str = "127.0.0.1:9000";

/// The texts of all fenced blocks of a kind, in their order.
fn blocks(kind: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut open: Option<&str> = None;
    for line in README.lines() {
        match (line.strip_prefix("```"), open) {
            (Some(of), None) => {
                open = Some(of);
                found.extend((of == kind).then(String::new));
            }
            (Some(_), Some(_)) => open = None,
            (None, Some(of)) if of == kind => {
                let block = found.last_mut().expect("it was begun");
                block.push_str(line);
                block.push('\n');
            }
            (None, _) => {}
        }
    }
    assert!(!found.is_empty(), "README.md has no `{kind}` block");
    found
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A shell command where `ifmatch` and `config/` are at hand, and no `make` around the tests is noticed.
fn shell(command: &str, directory: &Path) -> Command {
    let program = Path::new(env!("CARGO_BIN_EXE_ifmatch")).parent().expect("a directory");
    let path = env::join_paths([program.to_owned()].into_iter().chain(env::split_paths(&env::var_os("PATH").unwrap())));
    let mut shell = Command::new("bash");
    shell.args(["-euo", "pipefail", "-c", command]).current_dir(directory).env("PATH", path.unwrap());
    for variable in ["MAKEFLAGS", "MFLAGS", "MAKELEVEL", "RUST_LOG"] {
        shell.env_remove(variable);
    }
    shell
}

/// A working directory with the repository's `config/` in it.
fn directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    std::os::unix::fs::symlink(root().join("config"), directory.path().join("config")).expect("a link");
    directory
}

#[test]
fn configurations_load_without_warnings() {
    for text in blocks("toml") {
        let loaded = ifmatch::config::parse("README.md", &text).unwrap_or_else(|problems| panic!("{problems}"));
        assert_eq!(loaded.warnings, [], "{text}");
    }
}

#[test]
fn the_first_configuration_is_the_quickstart() {
    let settings = QUICKSTART.lines().skip_while(|line| line.is_empty() || line.starts_with('#'));
    assert_eq!(blocks("toml")[0].lines().collect::<Vec<_>>(), settings.collect::<Vec<_>>());
}

#[tokio::test]
async fn commands_print_what_is_shown() {
    let backend = Nginx::start().await;
    let proxy = proxy_before(backend.addr()).await;
    let directory = directory();
    for block in blocks("console") {
        for (command, shown) in steps(&block) {
            let real = command.replace(PROXY, &proxy.addr().to_string()).replace(BACKEND, &backend.addr().to_string());
            // What is told of a file does not depend on where the servers are.
            let real = if command.starts_with("ifmatch ") { command.to_owned() } else { real };
            let output = shell(&real, directory.path()).output().expect("bash starts");
            assert!(output.status.success(), "{command}: {}\n{}", output.status, text(&output));
            assert_holds(&String::from_utf8_lossy(&output.stdout), &shown, command);
        }
    }
}

/// The proxy of `config/quickstart.toml`, in front of this backend.
async fn proxy_before(backend: SocketAddr) -> Proxy {
    let file = QUICKSTART.replace(&format!("listen = [\"{PROXY}\"]"), "{listen}");
    Proxy::start(&file.replace(BACKEND, &backend.to_string())).await
}

/// The commands of a block, each with the lines that are shown below it.
fn steps(block: &str) -> Vec<(&str, Vec<&str>)> {
    let mut steps: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in block.lines() {
        match (line.strip_prefix("$ "), steps.last_mut()) {
            (Some(command), _) => steps.push((command, Vec::new())),
            (None, Some((_, shown))) => shown.push(line),
            (None, None) => panic!("a console block begins with a command, not with {line:?}"),
        }
    }
    steps
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Each shown line must be among the printed ones, after the one shown before it. A shown document may leave out
/// members.
#[track_caller]
fn assert_holds(printed: &str, shown: &[&str], command: &str) {
    let mut lines = printed.lines();
    for expected in shown {
        assert!(
            lines.any(|line| line == *expected || has_members(line, expected)),
            "{command}\nis said to print\n{expected}\nand prints\n{printed}"
        );
    }
}

/// Whether both texts are JSON objects, and the first has all members of the second: a refusal also has an id, which is
/// never the same twice.
fn has_members(printed: &str, shown: &str) -> bool {
    let object = |text: &str| serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(text).ok();
    let (Some(printed), Some(shown)) = (object(printed), object(shown)) else { return false };
    shown.iter().all(|(name, value)| printed.get(name) == Some(value))
}

#[tokio::test]
async fn commands_that_go_on_can_be_given() {
    for block in blocks("sh") {
        for command in block.lines() {
            match command.split_whitespace().find(|word| !word.contains('=')) {
                Some("make") => can_be_made(command),
                Some("ifmatch") => serves(command).await,
                Some("cargo") => names_what_exists(command),
                _ => panic!("nobody knows how to try {command:?}"),
            }
        }
    }
}

/// `make` would do it.
fn can_be_made(command: &str) {
    let output = shell(&command.replace("make ", "make -n "), root()).output().expect("bash starts");
    assert!(output.status.success(), "{command}: {}", text(&output));
    if let Some(upstream) = command.split_once("UPSTREAM=").and_then(|(_, rest)| rest.split_whitespace().next()) {
        let run = format!("run --upstream '{upstream}'");
        assert!(text(&output).contains(&run), "{command}: {}", text(&output));
    }
}

/// It serves at its address until it is asked to end.
async fn serves(command: &str) {
    let directory = directory();
    let (addr, nobody) = (ports::free(), ports::free());
    let move_to_free_ports = |text: &str| text.replace(BACKEND, &nobody.to_string()).replace(PROXY, &addr.to_string());
    let quickstart = directory.path().join("quickstart.toml");
    fs::write(&quickstart, move_to_free_ports(QUICKSTART)).expect("a file");
    let file = command.contains("config/quickstart.toml");
    let real = move_to_free_ports(command).replace("config/quickstart.toml", quickstart.to_str().expect("UTF-8"));
    // By default it listens where another program of this machine may do so already.
    let listen = if file || command.contains(PROXY) { String::new() } else { format!(" --listen {addr}") };
    let log: PathBuf = directory.path().join("log");
    let mut server = Child::spawn(command, &mut shell(&format!("exec {real}{listen}"), directory.path()), log);
    server.accepts(addr).await.unwrap_or_else(|status| panic!("{command}: {status}"));
    // It accepts connections before it handles signals, and answers them after that.
    assert_eq!(get(addr, "/").await.status, 502, "{command}");
    server.signal("TERM");
    assert_eq!(server.exit_status().await.code(), Some(0), "{command}");
}

/// The target of `cargo test --test BINARY MODULE` and `cargo +nightly fuzz run TARGET` is there.
fn names_what_exists(command: &str) {
    let words = command.split_whitespace().skip(1).collect::<Vec<_>>();
    let file = match words[..] {
        ["test", "--test", binary, module] => format!("tests/{binary}/{}.rs", module.replace("::", "/")),
        ["+nightly", "fuzz", "run", target] => format!("fuzz/fuzz_targets/{target}.rs"),
        _ => panic!("nobody knows how to try {command:?}"),
    };
    assert!(root().join(&file).is_file(), "{command}: there is no {file}");
}

#[tokio::test]
async fn the_doubt_that_is_shown_is_the_one_that_clients_get() {
    let backend = Backend::start().await;
    backend.always("PUT", "/notes/1", |_| Answer::never());
    let proxy = Proxy::to(backend.addr()).upstream("timeout = \"200ms\"").start().await;
    let doubt = send(proxy.addr(), "PUT", "/notes/1", &[("If-None-Match", "*")], "milk").await;
    assert_eq!(doubt.status, 504);
    for shown in blocks("json") {
        assert!(has_members(doubt.text(), &shown), "{shown}\nis said to be the answer, and it is\n{}", doubt.text());
    }
}

/// In the layout of the code, here and on the first page of the crate's documentation.
#[test]
fn places_in_the_code_exist() {
    let map = fs::read_to_string(root().join("src/lib.rs")).expect("the crate has a first page");
    for document in [README, &map] {
        let quoted = document.split('`').skip(1).step_by(2);
        let is_source = |text: &str| Path::new(text).extension().is_some_and(|extension| extension == "rs");
        let places = quoted.filter(|text| !text.starts_with('/') && (text.ends_with('/') || is_source(text)));
        let places = places.collect::<Vec<_>>();
        assert_ne!(places, [""; 0]);
        for place in places {
            let exists = root().join(place).exists() || root().join("src").join(place).exists();
            assert!(exists, "there is no {place}");
        }
    }
}

#[test]
fn files_that_are_linked_exist() {
    let targets = README.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
    let local = targets.filter(|target| !target.contains("://") && !target.starts_with('#'));
    let missing = local.filter(|target| !root().join(target).exists()).collect::<Vec<_>>();
    assert_eq!(missing, [""; 0]);
}

/// docs/dependencies.md lists each crate that is built in more than one version.
#[test]
fn crates_that_are_there_twice_are_listed() {
    let text = |line: &str, key: &str| Some(line.strip_prefix(key)?.trim_matches('"').to_owned());
    let mut versions = std::collections::BTreeMap::<String, Vec<String>>::new();
    let mut name = String::new();
    for line in include_str!("../Cargo.lock").lines() {
        if let Some(found) = text(line, "name = ") {
            name = found;
        } else if let Some(version) = text(line, "version = ").filter(|_| line.starts_with("version = \"")) {
            versions.entry(name.clone()).or_default().push(version);
        }
    }
    versions.retain(|_, versions| versions.len() > 1);
    let listed = include_str!("../docs/dependencies.md").lines().filter(|line| line.matches('|').count() == 4);
    let listed: Vec<String> = listed.filter(|line| line.starts_with("| `")).map(str::to_owned).collect();
    let expected = versions.iter().map(|(name, versions)| format!("| `{name}` | {} | ", versions.join(", ")));
    let expected: Vec<String> = expected.collect();
    assert_eq!(listed.len(), expected.len(), "{expected:#?}");
    for (line, beginning) in listed.iter().zip(&expected) {
        assert!(line.starts_with(beginning), "{line}\nand not\n{beginning}");
    }
}
