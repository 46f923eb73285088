//! Random settings of chains of restarts: one process after another on the same file, each with its own times.

use fastrand::Rng;

use crate::{
    generate::setting_of,
    options::Options,
    process::Keeping,
    run::{Setting, config},
    schedule::Faults,
};

/// The largest number of faults: a death with a write in flight, and restarts after it.
const FAULTS_MAX: u32 = 6;

/// Builds a setting from a seed.
pub fn setting(random: &mut Rng) -> Setting {
    let (options, setting) = setting_of(random, Keeping::Disk, |options| options);
    let successors = (0..random.usize(1..4)).map(|_| {
        let mut seconds = || (random.u64(1..20), random.u64(1..20));
        config(&Options { late_write_window: seconds(), timeout: seconds(), ..options }.text())
    });
    let successors = successors.collect();
    Setting { successors, faults: Faults { left: random.u32(2..=FAULTS_MAX), fails: false, kills: true }, ..setting }
}
