//! `ifmatch leases`: the same from the command line.

use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::support::{
    admin::{start, start_with, without_end},
    backend::Backend,
    leases::{acquire, fence, lease, put_with},
    proxy::Proxy,
    raw::{get, put_if_match, send},
    wait::until,
};

async fn leases(admin: &str, arguments: &[&str], token: Option<&str>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ifmatch"));
    command.arg("leases").args(["--admin", admin]).args(arguments).env_remove("IFMATCH_ADMIN_TOKEN");
    command.envs(token.map(|token| ("IFMATCH_ADMIN_TOKEN", token)));
    tokio::task::spawn_blocking(move || command.output().expect("ifmatch runs")).await.expect("no panic")
}

#[track_caller]
fn printed(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    String::from_utf8(output.stdout.clone()).expect("text")
}

#[tokio::test]
async fn leases_are_listed_and_broken() {
    let backend = Backend::start().await;
    let (proxy, admin) = start(&without_end(&backend)).await;
    let (addr, url) = (proxy.addr(), format!("http://{admin}"));
    let nothing = leases(&url, &["list"], None).await;
    assert_eq!((nothing.status.code(), nothing.stdout.as_slice()), (Some(0), &b""[..]));
    let grant = acquire(addr, "/b", "infinite").await;
    let fields = [("Lease-Duration", "60"), ("Lease-Holder", "ann's desk")];
    assert_eq!(lease(addr, "POST", "/a", &fields).await.status, 201);
    let table = printed(&leases(&url, &["list"], None).await);
    let lines: Vec<Vec<&str>> =
        table.lines().map(|line| line.split("  ").filter(|cell| !cell.is_empty()).collect()).collect();
    assert_eq!(
        lines[0].iter().map(|cell| cell.trim()).collect::<Vec<_>>()[..5],
        ["KEY", "STATE", "HOLDER", "AGE", "REMAINING"]
    );
    assert_eq!((lines[1][0], lines[1][2]), ("backend:/a", "ann's desk"));
    assert_eq!(lines[2][0], "backend:/b");
    assert!(table.contains("for ever") && !table.contains(&grant.id), "{table}");
    let filtered = printed(&leases(&url, &["list", "--json", "--holder", "desk"], None).await);
    let filtered: Value = serde_json::from_str(&filtered).expect("JSON");
    assert_eq!(filtered["leases"].as_array().expect("a list").len(), 1);
    let done = printed(&leases(&url, &["break", "backend:/b"], None).await);
    assert_eq!(done, "the lease of backend:/b is broken\n");
    let again = printed(&leases(&url, &["break", "backend:/b"], None).await);
    assert_eq!(again, "the lease of backend:/b was already broken\n");
    put_with(addr, "/b", &grant.id, "too late").await.refused(412, "lease-lost");
    let given = printed(&leases(&url, &["break", "backend:/a", "--period", "20s"], None).await);
    assert!(given.starts_with("the lease of backend:/a ends in "), "{given}");
    assert!(printed(&leases(&url, &["list", "--state", "broken"], None).await).contains("backend:/b"));
}

#[tokio::test]
async fn shared_leases_are_broken_one_by_one_or_together() {
    let backend = Backend::start().await;
    let (proxy, admin) = start(&without_end(&backend).route("lease.shared = true")).await;
    let mut fences = Vec::new();
    for _ in 0..2 {
        let fields = [("Lease-Mode", "shared"), ("Lease-Duration", "60")];
        fences.push(fence(&lease(proxy.addr(), "POST", "/a", &fields).await).to_string());
    }
    let url = format!("http://{admin}");
    let one = leases(&url, &["break", "backend:/a", "--fence", &fences[0]], None).await;
    assert_eq!(printed(&one), "the lease of backend:/a is broken\n");
    let all = leases(&url, &["break", "backend:/a", "--period", "20s"], None).await;
    assert!(printed(&all).starts_with("the 2 leases of backend:/a end in "), "{}", printed(&all));
    let neither = leases(&url, &["break", "backend:/a", "--fence", "1000000"], None).await;
    assert_eq!(neither.status.code(), Some(1));
}

/// Exit codes (DESIGN, section 9).
#[tokio::test]
async fn what_goes_wrong_is_told_by_text_and_exit_code() {
    let backend = Backend::start().await;
    let (_proxy, admin) = start(&without_end(&backend)).await;
    let url = format!("http://{admin}");
    let nowhere = "http://127.0.0.1:9";
    for (admin, arguments, code, text) in [
        (url.as_str(), &["break", "backend:/none"][..], 1, "lease-not-present"),
        (&url, &["break", "backend:/none", "--period", "soon"], 1, "malformed-request"),
        (nowhere, &["list"], 1, "cannot be reached"),
        ("ftp://a", &["list"], 64, "not the address"),
        (&url, &["forget"], 64, "required"),
        (&url, &["brake", "a"], 64, "break"),
    ] {
        let output = leases(admin, arguments, None).await;
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {told}");
        assert!(told.contains(text), "{arguments:?}: {told}");
    }
}

#[tokio::test]
async fn records_are_shown_and_forgotten() {
    let backend = Backend::start().await;
    backend.put("/doc", "one");
    let setup = Proxy::to(backend.addr()).route("etag = \"version\"\nother_writers = false");
    let (proxy, admin) = start(&setup).await;
    let (addr, url) = (proxy.addr(), format!("http://{admin}"));
    for arguments in [["forget", "backend:/doc"], ["forget", "--prefix=backend:"]] {
        let tag = get(addr, "/doc").await.etag();
        let shown = printed(&leases(&url, &["show", "backend:/doc", "--json"], None).await);
        let shown: Value = serde_json::from_str(&shown).expect("JSON");
        assert_eq!(shown["key"], "backend:/doc");
        assert_eq!(printed(&leases(&url, &arguments, None).await), "forgotten: 1 record\n");
        put_if_match(addr, "/doc", &tag, "lost").await.refused(412, "precondition-failed");
    }
}

#[tokio::test]
async fn a_unix_socket_and_a_token_are_no_hindrance() {
    let backend = Backend::start().await;
    let directory = tempfile::tempdir().unwrap();
    let socket = format!("unix:{}", directory.path().join("admin").display());
    let table = format!("\n[admin]\nlisten = \"{socket}\"\n");
    let proxy = Proxy::start(&(without_end(&backend).configuration() + &table)).await;
    until("the admin listener to be told of", || proxy.log().contains("admin listener")).await;
    acquire(proxy.addr(), "/doc", "60").await;
    assert!(printed(&leases(&socket, &["list"], None).await).contains("backend:/doc"));
    let secret = "correct-horse-battery";
    let (_guarded, admin) = start_with(&without_end(&backend), "token_env = \"ADMIN\"", &[("ADMIN", secret)]).await;
    let url = format!("http://{admin}");
    let denied = leases(&url, &["list"], None).await;
    assert_eq!(denied.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&denied.stderr).contains("token-required"), "{denied:?}");
    printed(&leases(&url, &["list"], Some(secret)).await);
    let file = directory.path().join("token");
    std::fs::write(&file, format!("{secret}\n")).unwrap();
    printed(&leases(&url, &["list", "--token-file", file.to_str().unwrap()], None).await);
}

/// More leases than one answer holds.
#[tokio::test]
async fn a_list_is_whole_however_many_pages_it_has() {
    let backend = Backend::start().await;
    let (proxy, admin) =
        start(&without_end(&backend).route("lease.max_per_principal = 5000\nlease.auth = \"none\"")).await;
    for number in 0..1_005 {
        let fields = [("Lease-Duration", "infinite")];
        assert_eq!(send(proxy.addr(), "POST", &format!("/.leases/{number}"), &fields, "").await.status, 201);
    }
    let all = printed(&leases(&format!("http://{admin}"), &["list", "--json"], None).await);
    let all: Value = serde_json::from_str(&all).expect("JSON");
    assert_eq!(all["leases"].as_array().map(Vec::len), Some(1_005));
    assert_eq!(all["leases"][0]["remaining_ms"], json!(null));
}
