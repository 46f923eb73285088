//! Load through reloads and an end: no request without an answer, no lost update, no leaked connection; and the same for
//! a long time (`make soak`), with memory and file descriptors looked at.
//!
//! ```text
//! clients   what clients do, what counts as a request, and what they were told
//! aborts    clients that go away
//! soak      all of it for a long time
//! process   what the proxy holds, as the kernel tells it
//! stage     nginx, the proxy before it, and the two files between which reloads change
//! ```

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    missing_docs,
    unreachable_pub,
    reason = "a test stops at the first surprise, and nothing outside this binary can name its parts"
)]

mod aborts;
mod clients;
#[allow(dead_code, reason = "the floods look at more of a process")]
mod process;
mod soak;
mod stage;
#[path = "../proxy/support/mod.rs"]
mod support;

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use clients::Tally;
use stage::Stage;

/// Requests in all, of which so many are sent while the process ends.
const REQUESTS: usize = 10_000;
const REQUESTS_AT_THE_END: usize = 1_000;
/// Reloads in the time of the others, one a second.
const RELOADS: usize = 5;

/// Reads, read-modify-writes with retry and leases, over kept and fresh connections, while the file changes every
/// second and back: keys, limits, routes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_load_through_reloads_and_an_end_loses_nothing() {
    let mut stage = Stage::start("ifmatch=info").await;
    let (addr, tally) = (stage.addr(), Arc::new(Tally::default()));
    let clients = tokio::spawn({
        let tally = Arc::clone(&tally);
        async move { clients::run(addr, &tally, "before the end").await }
    });
    let mut reloads = 0;
    while reloads < RELOADS || tally.answers.load(Ordering::SeqCst) < REQUESTS - REQUESTS_AT_THE_END {
        assert!(!clients.is_finished(), "a client has ended");
        stage.reload().await;
        reloads += 1;
    }
    tally.stop.store(true, Ordering::SeqCst);
    clients.await.expect("all clients end well");
    stage.assert_counts(&tally);
    stage.no_connection_is_left().await;

    tally.stop.store(false, Ordering::SeqCst);
    let before = tally.answers.load(Ordering::SeqCst);
    let clients = tokio::spawn({
        let tally = Arc::clone(&tally);
        async move { clients::run(addr, &tally, "at the end").await }
    });
    while tally.answers.load(Ordering::SeqCst) - before < REQUESTS_AT_THE_END {
        assert!(!clients.is_finished(), "a client has ended");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    tally.ends.store(true, Ordering::SeqCst);
    stage.end().await;
    clients.await.expect("all clients end well");
    let answers = tally.answers.load(Ordering::SeqCst);
    println!("{answers} answers through {reloads} reloads, {:?} requests that nobody took", tally.not_taken);
    println!("{:?}", tally.statuses.lock().unwrap());
    assert!(answers >= REQUESTS);
    stage.assert_counts(&tally);
    assert_eq!(stage.requests_logged(), answers, "each request that was taken was answered, and no other");
}
