//! The fate of odd unguarded requests: the real program stands between clients and backends of HTTP/1.1 and of HTTP/2,
//! and each exchange is a case whose steps are known.
//!
//! * `families` are the cases: several hundred, by the odd part in them.
//! * `script` has the parts of a case; `stage` keeps what both sides have seen of it.
//! * `client`, `client_http2`, `backend` and `backend_http2` play it; `output` writes HTTP/1.1.
//! * `invariants` must hold for each; `known` lists the cases that break them.
//! * `report` is the result as text, and `run` puts all together.
//!
//! With `IFMATCH_FORWARDING` naming a file, all that was seen is written there; with `IFMATCH_PROGRAM` naming another
//! build, that one runs. `diff` of two such files shows each difference of two builds (with one `IFMATCH_SEED`).

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    missing_docs,
    unreachable_pub,
    reason = "a test stops at the first surprise, and nothing outside this binary can name its parts"
)]

mod backend;
mod backend_http2;
mod client;
mod client_http2;
mod families;
mod invariants;
mod known;
mod output;
mod report;
mod run;
mod script;
mod stage;
#[path = "../proxy/support/mod.rs"]
mod support;

/// Rule 9: a route without a guard forwards what comes, both ways.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_forwarded_keeps_its_meaning() {
    let findings = run::run(families::all()).await;
    if let Ok(file) = std::env::var("IFMATCH_FORWARDING") {
        let texts: String = findings.texts.values().cloned().collect();
        std::fs::write(file, texts).expect("a file");
    }
    println!("{} exchanges", findings.texts.len());
    assert!(findings.texts.len() >= 500, "{} exchanges", findings.texts.len());
    known::compare(&findings);
}
