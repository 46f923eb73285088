//! `ifmatch health`: the health of a process from the command line.

use std::{net::SocketAddr, process::Command};

use crate::support::{
    admin::{start, start_with},
    backend::{Answer, Backend},
    proxy::Proxy,
    raw::get,
    wait::until,
};

/// The exit code, standard output and standard error of the command.
async fn health(admin: &str, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ifmatch"));
    command.arg("health").args(["--admin", admin]).args(arguments).env_remove("IFMATCH_ADMIN_TOKEN");
    let run = tokio::task::spawn_blocking(move || command.output().expect("ifmatch runs"));
    let output = run.await.expect("no panic");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn url(admin: SocketAddr) -> String {
    format!("http://{admin}")
}

#[tokio::test]
async fn a_proxy_that_serves_is_healthy_without_a_token() {
    let backend = Backend::start().await;
    let token = [("IFMATCH_ADMIN_TOKEN", "sesame-for-operators")];
    let (_proxy, admin) = start_with(&Proxy::to(backend.addr()), "token_env = \"IFMATCH_ADMIN_TOKEN\"", &token).await;
    assert_eq!(health(&url(admin), &[]).await, (Some(0), "alive\n".to_owned(), String::new()));
    assert_eq!(health(&url(admin), &["--ready"]).await, (Some(0), "ready\n".to_owned(), String::new()));
    assert_eq!(health(&url(admin), &["--writes"]).await, (Some(0), "accepts writes\n".to_owned(), String::new()));
    assert_eq!(health(&url(admin), &["--ready", "--writes"]).await.0, Some(64));
}

#[tokio::test]
async fn a_proxy_that_ends_is_alive_and_not_ready() {
    let backend = Backend::start().await;
    let (mut proxy, admin) = start(&Proxy::to(backend.addr())).await;
    let addr = proxy.addr();
    let held = backend.hold("GET", "/slow");
    let reader = tokio::spawn(async move { get(addr, "/slow").await });
    let read = held.arrived().await;
    proxy.signal("TERM");
    until("the signal to be seen", || proxy.log().contains("asked to stop")).await;
    assert_eq!(health(&url(admin), &[]).await.0, Some(0));
    let expected = "ifmatch: not ready: the process is about to end\n";
    assert_eq!(health(&url(admin), &["--ready"]).await, (Some(1), String::new(), expected.to_owned()));
    read.answer(Answer::status(204)).await;
    assert_eq!(reader.await.expect("no panic").status, 204);
    assert!(proxy.exit_status().await.success());
}

#[tokio::test]
async fn what_is_no_admin_listener_is_not_healthy() {
    let backend = Backend::start().await;
    backend.put("/livez", "I am well");
    for (admin, code, reason) in [
        (url(backend.addr()), 1, "not that of an admin listener"),
        ("http://127.0.0.1:9".to_owned(), 1, "cannot be reached"),
        ("https://localhost".to_owned(), 64, "not the address of an admin listener"),
    ] {
        let (exit, _, complaint) = health(&admin, &[]).await;
        assert_eq!(exit, Some(code), "{admin}: {complaint}");
        assert!(complaint.contains(reason), "{admin}: {complaint}");
    }
}
