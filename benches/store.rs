//! The cost of the memory store for a request: one read for a read, and for a write two swaps, its mark and its end.

#![allow(clippy::expect_used, reason = "a benchmark stops at the first surprise")]

use std::{
    future::Future,
    hint::black_box,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use criterion::{Criterion, criterion_group, criterion_main};
use http::HeaderMap;
use ifmatch::{
    clock::BootClock,
    core::{
        http::request_target::{KeptInNames, normalize},
        records::{
            record::{Mark, Record, Revision, Snapshot},
            steps::{Outcome, Settlement, claim, settle},
        },
        resource::{KeyParts, KeyTemplate, ResourceKey},
        route::{HostPattern, PathPattern, RouteTable},
    },
    store::{
        Incarnation, Store as _, Swapped,
        memory::{MemoryStore, Room},
    },
};

const HOUR: Duration = Duration::from_secs(3_600);

/// The keys of so many documents.
fn keys(documents: usize) -> Vec<ResourceKey> {
    let pattern = PathPattern::parse("/documents/{id}").expect("a pattern");
    let table = RouteTable::new(vec![(HostPattern::Any, pattern)]);
    let template = KeyTemplate::parse("{path}", &[]).expect("a template");
    let headers = HeaderMap::new();
    let key = |number| {
        let path = normalize(format!("/documents/{number}").as_bytes(), KeptInNames::NOTHING).expect("a normal form");
        let captures = table.find("", &path).expect("a route").captures;
        let parts = KeyParts { host: "", path: &path, captures: &captures, query: None, headers: &headers };
        template.key("docs", &parts).expect("a key")
    };
    (0..documents).map(key).collect()
}

/// The memory store never waits.
fn at_once<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the memory store waits"),
    }
}

/// A whole write: its mark goes in, and comes out when it is applied. Where room for the mark was made by forgetting a
/// record of the same bucket the floor has risen, and it is tried again, as a writer would.
fn write(store: &MemoryStore, key: &ResourceKey) -> Snapshot {
    let (mark, marked) = loop {
        let read = at_once(store.read(key)).expect("a record");
        let mark =
            Mark { owner: 1, nonce: 1, deadline: read.now.plus(HOUR), late_write_window: HOUR, leaves_lease: false };
        let next = claim(&read, mark).expect("the resource is free");
        if let Swapped::Done(marked) = at_once(store.swap(key, read.revision, next)).expect("room") {
            break (mark, marked);
        }
    };
    let settlement = Settlement {
        mark,
        marked_at: marked.revision,
        outcome: Outcome::Applied,
        leaves: None,
        learned: None,
        shown: None,
        end: None,
    };
    let next = settle(&marked, settlement).expect("the mark is ours");
    match at_once(store.swap(key, marked.revision, next)).expect("room") {
        Swapped::Done(settled) => settled,
        Swapped::Conflict(_) => panic!("nobody else writes"),
    }
}

fn store(capacity: usize) -> MemoryStore {
    MemoryStore::new(Arc::new(BootClock), Incarnation(1), Room { records: capacity, bytes: u64::MAX }, HOUR)
}

fn reads(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("store read");
    let (store, keys) = (store(100_000), keys(100_001));
    let (absent, keys) = keys.split_last().expect("some keys");
    for key in keys {
        drop(write(&store, key));
    }
    let mut all = keys.iter().cycle();
    group.bench_function("of 100000", |bencher| bencher.iter(|| at_once(store.read(all.next().expect("a key")))));
    group.bench_function("absent", |bencher| bencher.iter(|| at_once(store.read(black_box(absent)))));
    group.finish();
}

fn swaps(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("store swap, mark and end");
    let keys = keys(100_000);
    for (name, capacity) in [("of 100000", 100_000), ("each forgets another", 1_000)] {
        let store = store(capacity);
        let mut all = keys.iter().cycle();
        for key in &keys {
            drop(write(&store, key));
        }
        group.bench_function(name, |bencher| bencher.iter(|| write(&store, all.next().expect("a key"))));
    }
    let key = keys.first().expect("a key");
    let store = store(1);
    group.bench_function("of one", |bencher| bencher.iter(|| write(&store, black_box(key))));
    let record = at_once(store.read(key)).expect("a record").record;
    group.bench_function("conflict", |bencher| {
        bencher.iter(|| at_once(store.swap(black_box(key), Revision(0), Record::clone(&record))));
    });
    group.finish();
}

criterion_group!(benches, reads, swaps);
criterion_main!(benches);
