//! nginx, Apache, Node.js and Python read alike what `ifmatch` forwards (docs/http.md). Random requests, most of them
//! odd, go through the proxy. The bytes that come out go to the four servers, and each reports its reading.
//!
//! * `heads` makes the requests.
//! * `capture` is the backend that keeps the bytes.
//! * `reading` is a server's reading of them, and the differences.
//! * `servers` runs the four; `scgi` is the application behind nginx and Apache.
//! * `run` puts them together.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    missing_docs,
    unreachable_pub,
    reason = "a test stops at the first surprise, and nothing outside this binary can name its parts"
)]

mod capture;
mod heads;
mod reading;
mod run;
mod scgi;
mod servers;
#[path = "../proxy/support/mod.rs"]
mod support;

/// How many requests `make test` makes; `make differential` makes 100,000.
const REQUESTS: usize = 400;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_servers_read_alike_what_is_forwarded() {
    let requests = std::env::var("IFMATCH_DIFFERENTIAL").map_or(REQUESTS, |count| count.parse().expect("a number"));
    let tally = run::run(requests).await;
    println!("{tally}");
    assert!(tally.differences.is_empty(), "{tally}");
    assert!(tally.forwarded > requests / 4 && tally.refused > requests / 20, "{tally}");
    for server in servers::NAMES {
        assert!(tally.alike[server] > tally.forwarded / 2, "{server}: {tally}");
    }
}
