//! Every command and every configuration in the pages that show the running program, tried.
//!
//! | block | its treatment |
//! |---|---|
//! | `console` | each `$ command` is run by bash; the lines below it must be among what it prints, in that order |
//! | `sh` | a block that does not end, or would run this test again: it is checked up to that point |
//! | `toml` | it is loaded |
//! | `json` | it is compared with the answer that the proxy gives |
//!
//! The addresses of the pages stand for those of an nginx and of a proxy with `config/quickstart.toml`. Each page has
//! servers of its own.

use std::{fs, net::SocketAddr, path::Path};

use crate::{
    pages::{read, root},
    support::{
        backend::{Answer, Backend},
        child::Child,
        document::{assert_prints, blocks, has_members, shell, steps},
        nginx::Nginx,
        ports,
        proxy::Proxy,
        raw::{get, send},
    },
};

/// The pages whose blocks are tried. That of refusals has its own test.
const PAGES: [&str; 10] = [
    "README.md",
    "docs/commands.md",
    "docs/configuration.md",
    "docs/leases.md",
    "docs/policies.md",
    "docs/stores.md",
    "docs/keys.md",
    "docs/tags.md",
    "docs/unknown-outcomes.md",
    "docs/verification.md",
];
const QUICKSTART: &str = include_str!("../../config/quickstart.toml");
/// The address of the proxy in the pages.
const PROXY: &str = "127.0.0.1:8080";
/// The address of the backend in the pages.
const BACKEND: &str = "127.0.0.1:9000";

/// The texts of all blocks of a kind on a page, in their order.
fn texts(page: &str, kind: &str) -> Vec<String> {
    blocks(&read(page)).into_iter().filter(|block| block.kind == kind).map(|block| block.text).collect()
}

/// The pages that have a block of a kind, each with the texts of these blocks.
fn pages_with(kind: &str) -> Vec<(&'static str, Vec<String>)> {
    let found = PAGES.into_iter().map(|page| (page, texts(page, kind)));
    let found: Vec<_> = found.filter(|(_, blocks)| !blocks.is_empty()).collect();
    assert!(!found.is_empty(), "no page has a `{kind}` block");
    found
}

/// A working directory with the repository's `config/` in it.
fn directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    std::os::unix::fs::symlink(root().join("config"), directory.path().join("config")).expect("a link");
    directory
}

#[test]
fn each_page_has_a_block_to_try() {
    let is_tried = |page: &&str| ["console", "sh", "toml", "json"].iter().any(|kind| !texts(page, kind).is_empty());
    let without: Vec<&str> = PAGES.into_iter().filter(|page| !is_tried(page)).collect();
    assert_eq!(without, [""; 0]);
}

#[test]
fn configurations_load_without_warnings() {
    for (page, texts) in pages_with("toml") {
        for text in texts {
            let loaded = ifmatch::config::parse(page, &text).unwrap_or_else(|problems| panic!("{page}: {problems}"));
            assert_eq!(loaded.warnings, [], "{page}: {text}");
        }
    }
}

#[test]
fn the_first_configuration_is_the_quickstart() {
    let settings = QUICKSTART.lines().skip_while(|line| line.is_empty() || line.starts_with('#'));
    let first = &texts("docs/configuration.md", "toml")[0];
    assert_eq!(first.lines().collect::<Vec<_>>(), settings.collect::<Vec<_>>());
}

#[tokio::test]
async fn commands_print_what_is_shown() {
    for (_, texts) in pages_with("console") {
        let backend = Nginx::start().await;
        let proxy = proxy_before(backend.addr()).await;
        let directory = directory();
        for (command, shown) in texts.iter().flat_map(|text| steps(text)) {
            let real = command.replace(PROXY, &proxy.addr().to_string()).replace(BACKEND, &backend.addr().to_string());
            // The output about a file does not depend on the addresses of the servers.
            let real = if command.starts_with("ifmatch ") { command.to_owned() } else { real };
            assert_prints(&real, directory.path(), &shown);
        }
    }
}

/// The proxy of `config/quickstart.toml`, in front of this backend.
pub async fn proxy_before(backend: SocketAddr) -> Proxy {
    let file = QUICKSTART.replace(&format!("listen = [\"{PROXY}\"]"), "{listen}");
    Proxy::start(&file.replace(BACKEND, &backend.to_string())).await
}

#[tokio::test]
async fn commands_that_go_on_can_be_given() {
    for (page, texts) in pages_with("sh") {
        for command in texts.iter().flat_map(|text| text.lines()) {
            match command.split_whitespace().find(|word| !word.contains('=')) {
                Some("make") => can_be_made(command),
                Some("ifmatch") => serves(command).await,
                Some("cargo") => names_what_exists(command),
                _ => panic!("{page}: nobody knows how to try {command:?}"),
            }
        }
    }
}

/// `make` would do it.
fn can_be_made(command: &str) {
    let output = shell(&command.replace("make ", "make -n "), root()).output().expect("bash starts");
    let printed = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command}: {printed}");
    if let Some(upstream) = command.split_once("UPSTREAM=").and_then(|(_, rest)| rest.split_whitespace().next()) {
        let run = format!("run --upstream '{upstream}'");
        assert!(printed.contains(&run), "{command}: {printed}");
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
    let log = directory.path().join("log");
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
    assert!(Path::new(root()).join(&file).is_file(), "{command}: there is no {file}");
}

#[tokio::test]
async fn the_doubt_that_is_shown_is_the_one_that_clients_get() {
    let backend = Backend::start().await;
    backend.always("PUT", "/notes/1", |_| Answer::never());
    let proxy = Proxy::to(backend.addr()).upstream("timeout = \"200ms\"\nlate_write_window = \"30s\"").start().await;
    let doubt = send(proxy.addr(), "PUT", "/notes/1", &[("If-None-Match", "*")], "milk").await;
    assert_eq!(doubt.status, 504);
    let shown = pages_with("json");
    let [("docs/unknown-outcomes.md", shown)] = shown.as_slice() else {
        panic!("another page has a document: {shown:?}")
    };
    assert!(shown.iter().all(|shown| has_members(doubt.text(), shown)), "{shown:?} is not part of {}", doubt.text());
}
