//! The client of `make bench-resources`: the memory that a resource takes in the memory store, and the time of a write
//! among many of them.
//!
//! ```text
//! record_load COUNT    writes COUNT resources, and then writes among them all
//! ```
//!
//! The output is the bytes of resident memory that a resource takes with its key of 24 bytes, and the nanoseconds of a
//! read and of a write: first among a thousand resources, then among all of them.

#![allow(clippy::expect_used, reason = "a benchmark stops at the first surprise, and its numbers are small")]

use std::{
    env, fs,
    hint::black_box,
    sync::Arc,
    time::{Duration, Instant},
};

use ifmatch::{
    clock::BootClock,
    core::{
        records::{
            record::{Known, Mark, VariantName},
            steps::{Outcome, Settlement, claim, settle},
        },
        resource::ResourceKey,
        tags::validators::{Representation, Validators},
    },
    store::{
        Incarnation, Store as _, Swapped,
        memory::{MemoryStore, Room},
    },
};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const HOUR: Duration = Duration::from_secs(3_600);
const FEW: u64 = 1_000;
/// The number of reads, and of writes, of a measurement.
const REPEATS: u64 = 1_000_000;
/// The distance between the numbers of two resources that are written in succession. It has no factor in common with a
/// count of resources, and no cache holds the next one.
const STRIDE: u64 = 7_368_787;

fn key(number: u64) -> ResourceKey {
    ResourceKey::from_text(&format!("docs:/documents/{number:08}"))
}

/// A whole write: its mark is set, and removed when the write is applied.
async fn write(store: &MemoryStore, key: &ResourceKey) {
    let read = store.read(key).await.expect("a record");
    let mark = Mark { owner: 1, nonce: 1, deadline: read.now.plus(HOUR), late_write_window: HOUR, leaves_lease: false };
    let next = claim(&read, mark).expect("the resource is free");
    let Swapped::Done(marked) = store.swap(key, read.revision, next).await.expect("room") else {
        panic!("nobody else writes");
    };
    let representation = Representation::Present(Validators::default());
    let settlement = Settlement {
        mark,
        marked_at: marked.revision,
        outcome: Outcome::Applied,
        leaves: None,
        learned: Some(Known { variant: VariantName([0; 16]), representation }),
        shown: None,
        end: None,
    };
    let next = settle(&marked, settlement).expect("the mark is ours");
    let swapped = store.swap(key, marked.revision, next).await.expect("room");
    assert!(matches!(swapped, Swapped::Done(_)), "nobody else writes");
}

/// The nanoseconds of a read and of a write among the first `count` resources.
async fn nanoseconds(store: &MemoryStore, count: u64) -> (u128, u128) {
    let begun = Instant::now();
    for place in 0..REPEATS {
        black_box(store.read(&key(place * STRIDE % count)).await.expect("a record"));
    }
    let read = begun.elapsed();
    let begun = Instant::now();
    for place in 0..REPEATS {
        write(store, &key(place * STRIDE % count)).await;
    }
    (read.as_nanos() / u128::from(REPEATS), begun.elapsed().as_nanos() / u128::from(REPEATS))
}

fn resident_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux tells");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("the resident memory");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1_024
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let count: u64 = env::args().nth(1).and_then(|count| count.parse().ok()).expect("a number of resources");
    let room = Room { records: usize::MAX, bytes: u64::MAX };
    let store = MemoryStore::new(Arc::new(BootClock), Incarnation(7), room, HOUR);
    for number in 0..FEW {
        write(&store, &key(number)).await;
    }
    let (read, written) = nanoseconds(&store, FEW).await;
    let before = resident_bytes();
    for number in FEW..count {
        write(&store, &key(number)).await;
    }
    let bytes = (resident_bytes() - before) / (count - FEW);
    let (read_among_all, written_among_all) = nanoseconds(&store, count).await;
    println!("{bytes} {read} {written} {read_among_all} {written_among_all}");
}
