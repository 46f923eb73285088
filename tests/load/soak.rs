//! The same load for a long time, with clients that go away: the memory and descriptors of the process must not grow.
//!
//! # How flat is flat
//!
//! The keys are the same all the time, so all that is remembered has its size after a moment. The time is cut into ten
//! parts. The memory in the last one is compared with that in the second, in which everything has been used already. In
//! ten minutes, with parts of a minute, 5 % may lie between them: a leak of 100 bytes a request would be ten times as
//! much. In the short run a part is two seconds with two samples. A busy machine then decides how many connections and
//! buffers there are at such a moment: a quarter more or less was seen. So the limit there is that of a leak that must
//! be found, like a connection or a body that is never given back. It is 2 KiB for each answer, and a descriptor for
//! each hundred.

use std::{
    env, fs,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::time::Instant;

use crate::{aborts, clients, clients::Tally, stage::Stage};

/// How long it takes where `SOAK_SECONDS` says nothing.
const SHORT: Duration = Duration::from_secs(20);
/// From here on a run is long enough for the narrow bound.
const LONG: Duration = Duration::from_secs(300);
const PARTS: u32 = 10;
/// Answers before the first part: as many as the others wait for.
const WARM_UP: usize = 500;
/// More descriptors than this are no noise: as many as there are clients.
const DESCRIPTORS: f64 = 20.0;
/// The leaks for each answer that a short run must find.
const LEAK_KIB: f64 = 2.0;
const LEAK_DESCRIPTORS: f64 = 0.01;

/// The results of one part of the time: means over its samples.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    answers: usize,
    resident_kib: f64,
    descriptors: f64,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_process_holds_does_not_grow() {
    let seconds = env::var("SOAK_SECONDS").ok().map(|seconds| seconds.parse().expect("SOAK_SECONDS is a number"));
    let time = seconds.map_or(SHORT, Duration::from_secs);
    let mut stage = Stage::start("warn").await;
    for directory in ["docs", "open"] {
        fs::write(stage.file(&format!("{directory}/{}", aborts::LARGE)), vec![b'x'; 4 << 20]).expect("a file");
    }
    fs::write(stage.file(&format!("docs/{}", aborts::ABANDONED)), "x").expect("a file");
    let before = stage.process().descriptors();
    let (addr, tally) = (stage.addr(), Arc::new(Tally::default()));
    let load = tokio::spawn({
        let tally = Arc::clone(&tally);
        async move { tokio::join!(clients::run(addr, &tally, "soak"), aborts::run(addr, Arc::clone(&tally))).1 }
    });
    // Everything is used, and everything that is remembered has its size.
    while tally.answers.load(Ordering::SeqCst) < WARM_UP && !load.is_finished() {
        stage.reload().await;
    }
    let mut parts = Vec::new();
    for _ in 0..PARTS {
        assert!(!load.is_finished(), "a client has seen what must not be");
        parts.push(watch(&mut stage, &tally, time / PARTS).await);
        print_row(parts.len(), parts.last().expect("one"), time / PARTS);
    }
    tally.stop.store(true, Ordering::SeqCst);
    let gone = load.await.expect("all clients end well");
    stage.no_connection_is_left().await;
    let after = stage.process().descriptors();
    println!(
        "{} answers, {gone} clients that went away, descriptors {before} before and {after} after",
        tally.answers.load(Ordering::SeqCst)
    );
    stage.assert_counts(&tally);
    let (second, last) = (parts[1], parts[parts.len() - 1]);
    let (more_kib, more_descriptors) = if time >= LONG {
        (second.resident_kib * 0.05, DESCRIPTORS)
    } else {
        let answers = parts[2..].iter().map(|part| part.answers).sum::<usize>() as f64;
        (answers * LEAK_KIB, answers * LEAK_DESCRIPTORS)
    };
    assert!(last.resident_kib <= second.resident_kib + more_kib, "memory grows: {second:?}, {last:?}");
    assert!(last.descriptors <= second.descriptors + more_descriptors, "descriptors grow: {second:?}, {last:?}");
    assert!(after <= before + 4, "descriptors are left: {before} before, {after} after");
}

/// Reloads every second for this long, and looks at the process at each.
async fn watch(stage: &mut Stage, tally: &Tally, time: Duration) -> Part {
    let (end, before) = (Instant::now() + time, tally.answers.load(Ordering::SeqCst));
    let (mut part, mut samples) = (Part::default(), 0.0);
    while samples < 1.0 || Instant::now() < end {
        stage.reload().await;
        part.resident_kib += stage.process().resident_kib() as f64;
        part.descriptors += stage.process().descriptors() as f64;
        samples += 1.0;
    }
    part.answers = tally.answers.load(Ordering::SeqCst) - before;
    Part { resident_kib: part.resident_kib / samples, descriptors: part.descriptors / samples, ..part }
}

fn print_row(number: usize, part: &Part, time: Duration) {
    if number == 1 {
        println!("| part | answers/s | resident MiB | descriptors |\n|---|---|---|---|");
    }
    let rate = part.answers as f64 / time.as_secs_f64();
    println!("| {number} | {rate:.0} | {:.1} | {:.0} |", part.resident_kib / 1024.0, part.descriptors);
}
