//! litmus, the test suite for servers of `WebDAV`, as it is.

use std::{net::SocketAddr, process::Command};

use super::Share;

/// The report of one suite: the number of tests that ran, and the names of those that failed.
pub(super) struct Report {
    pub(super) ran: usize,
    pub(super) failed: Vec<String>,
    pub(super) text: String,
}

pub(super) async fn run(server: SocketAddr, suite: &str) -> Report {
    let url = format!("http://{server}/");
    let suite = suite.to_owned();
    let directory = tempfile::tempdir().expect("its logs have a place");
    let output = tokio::task::spawn_blocking(move || {
        let mut command = Command::new("litmus");
        command.env("TESTS", suite).arg("--keep-going").arg(url).current_dir(directory.path());
        command.output().expect("litmus is missing: run `make setup-test`")
    });
    let output = output.await.expect("it ends");
    // A test that fails writes its line anew.
    let text = String::from_utf8_lossy(&output.stdout).replace('\r', "\n");
    let ran = text.lines().find_map(|line| {
        let (_, rest) = line.split_once("': of ")?;
        rest.split_once(" tests run")?.0.parse().ok()
    });
    let failed = text.lines().filter_map(|line| {
        let (name, _) = line.split_once(" FAIL")?;
        Some(name.trim().trim_end_matches('.').rsplit(' ').next()?.to_owned())
    });
    Report { ran: ran.unwrap_or_else(|| panic!("no summary:\n{text}")), failed: failed.collect(), text }
}

#[tokio::test]
async fn basic() {
    assert_fails("basic", 16, &[]).await;
}

#[tokio::test]
async fn copies_and_moves() {
    assert_fails("copymove", 13, &[]).await;
}

#[tokio::test]
async fn properties() {
    assert_fails("props", 30, &[]).await;
}

#[tokio::test]
async fn locks() {
    assert_fails("locks", 41, &[]).await;
}

async fn assert_fails(suite: &str, ran: usize, failed: &[&str]) {
    assert_fails_at(Share::start().await.addr(), suite, ran, failed).await;
}

/// Checks which tests of a suite fail at a server, of how many.
pub(super) async fn assert_fails_at(server: SocketAddr, suite: &str, ran: usize, failed: &[&str]) {
    let report = run(server, suite).await;
    let found: Vec<&str> = report.failed.iter().map(String::as_str).collect();
    assert_eq!((report.ran, &found[..]), (ran, failed), "{}", report.text);
}
