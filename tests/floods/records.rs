//! Requests that each leave something to remember.

use std::collections::BTreeMap;

use crate::{
    arena::{Arena, Ceiling, HONEST_WAIT, times},
    requests::{request, requests},
    support::backend::Answer,
};

/// The longest path that is taken: what is kept of it is kept in each record.
fn long(number: usize) -> String {
    format!("/flood/{number:0>8000}")
}

/// Without any rights: the backend refuses each of them. All were remembered for a day.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_writes_leave_nothing() {
    let arena = Arena::start("").await;
    arena.backend.always_where(|request| request.target.starts_with("/flood/"), |_| Answer::status(403));
    let count = times(3_000, 40_000);
    let ceiling = Ceiling { resident_mib: 14, descriptors: 60, honest_wait: HONEST_WAIT };
    let flood = requests(arena.addr(), count, |number| request("POST", &long(number), "", "x"));
    let (answers, _) = arena.flood("refused writes with paths of 8 KB", ceiling, flood).await;
    assert_eq!(answers, BTreeMap::from([(403, count)]));
}

/// Each of them is applied, and remembered as long as there is room.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_have_a_total() {
    let arena = Arena::before("", |setup| setup.store("max_size = \"4MiB\""), "", None).await;
    let count = times(2_500, 40_000);
    let ceiling = Ceiling { resident_mib: 16, descriptors: 60, honest_wait: HONEST_WAIT };
    let flood = requests(arena.addr(), count, |number| request("PUT", &long(number), "If-None-Match: *\r\n", "x"));
    let (answers, _) = arena.flood("writes with paths of 8 KB", ceiling, flood).await;
    assert_eq!(answers, BTreeMap::from([(201, count)]));
}

/// Longer ones are refused before anything is remembered of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn targets_that_are_too_long_leave_nothing() {
    let arena = Arena::start("").await;
    let count = times(1_000, 20_000);
    let ceiling = Ceiling { resident_mib: 10, descriptors: 60, honest_wait: HONEST_WAIT };
    let flood = requests(arena.addr(), count, |number| request("PUT", &format!("/{number:0>30000}"), "", "x"));
    let (answers, _) = arena.flood("targets of 30 KB", ceiling, flood).await;
    assert_eq!(answers, BTreeMap::from([(414, count)]));
}
