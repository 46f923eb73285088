//! The checks of fuzz targets, on their seeds and on random changes of them.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    missing_docs,
    unreachable_pub,
    reason = "a test stops at the first surprise"
)]

use std::{fs, path::Path};

use fastrand::Rng;

#[path = "../fuzz/checks/azure_queue.rs"]
mod azure_queue;

/// How many changes of each seed are tried.
const CHANGES: u64 = 20_000;

#[test]
fn no_input_of_azure_queues_is_misread() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds/azure_queue");
    let mut seeds: Vec<_> = fs::read_dir(folder).unwrap().map(|file| fs::read(file.unwrap().path()).unwrap()).collect();
    seeds.sort_unstable();
    assert!(seeds.len() > 4);
    for (place, seed) in seeds.iter().enumerate() {
        azure_queue::check(seed);
        for number in 0..CHANGES {
            let random = &mut Rng::with_seed(number);
            let mut input = seed.clone();
            for _ in 0..random.usize(1..6) {
                let at = random.usize(..input.len());
                match random.u32(..3) {
                    0 => input[at] = random.u8(..),
                    1 => input.truncate(at.max(1)),
                    _ => input.extend_from_within(..at),
                }
            }
            let outcome = std::panic::catch_unwind(|| azure_queue::check(&input));
            assert!(outcome.is_ok(), "change {number} of seed {place}: {:?}", String::from_utf8_lossy(&input));
        }
    }
}
