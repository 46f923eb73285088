//! A leased resource stays as it is, and no client without its lease can read it by any request (DESIGN, section 3,
//! rule 18). Random requests, made to be read by some server in another way, go through the proxy to eleven servers.
//!
//! * `requests` makes them; `spellings` and `bodies` are their parts.
//! * `backends` runs the servers, with the applications in `apps`.
//! * `routes` is the configuration that their operator would write.
//! * `run` puts them together, and looks at each server what has become of the resource.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    missing_docs,
    unreachable_pub,
    reason = "a test stops at the first surprise, and nothing outside this binary can name its parts"
)]

mod backends;
mod bodies;
mod requests;
mod routes;
mod run;
mod spellings;
#[path = "../proxy/support/mod.rs"]
mod support;

/// How many requests `make test` makes; `make differential` makes 100,000.
const REQUESTS: usize = 2_200;

/// Rule 18: what a backend could read in another way does not reach a leased resource.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_reading_of_a_request_reaches_a_leased_resource() {
    let requests = std::env::var("IFMATCH_DIFFERENTIAL").map_or(REQUESTS, |count| count.parse().expect("a number"));
    let tally = run::run(requests).await;
    println!("{tally}");
    assert!(tally.breaks.is_empty(), "{tally}");
    for (server, counts) in &tally.servers {
        assert!(counts.forwarded > 0, "{server} was reached by no request: {tally}");
        assert!(counts.harmful > 0, "no request would have harmed {server} without the proxy: {tally}");
    }
}
