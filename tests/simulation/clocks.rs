//! Settings of a shared store whose wall clock is set back, as a failover or a correction of the time does it.

use std::{sync::atomic::Ordering, time::Duration};

use fastrand::Rng;
use tokio::time::advance;

use crate::{
    combined,
    generate::setting_of,
    late_deletes,
    process::Keeping,
    run::{Run, Setting},
    schedule::Faults,
};

/// How far the clock can be set back, in seconds: less than a lease, about as long as one, and longer than every mark.
pub const STEPS_SECONDS: [u64; 3] = [3, 30, 150];

/// The largest number of steps. All of them together stay below the beginning of the clock.
const STEPS_MAX: u32 = 3;

const FAULTS_MAX: u32 = 4;

/// Builds a setting from a seed: leases, doubts, deletes that wait, streams, trees, queues and the next member.
pub fn setting(random: &mut Rng) -> Setting {
    let setting = match random.u32(..4) {
        0 => setting_of(random, Keeping::Shared, |options| options).1,
        1 => late_deletes::setting_with(random, Keeping::Shared),
        _ => combined::drawn(random, Keeping::Shared).2,
    };
    let faults = Faults { left: random.u32(..=FAULTS_MAX), ..setting.faults };
    Setting { clock_steps: random.u32(1..=STEPS_MAX), faults, ..setting }
}

impl Run {
    /// Sets the clock of the store back.
    pub fn set_back(&mut self, seconds: u64) {
        self.clock_steps_left -= 1;
        self.world.set_back.fetch_add(seconds * 1_000, Ordering::Relaxed);
        self.world.lock().ledger.is_faulty = true;
    }

    /// Lets the time pass for which leases, marks and doubts last longer because the clock was set back.
    pub async fn clock_catches_up(&self) {
        advance(Duration::from_millis(self.world.set_back.load(Ordering::Relaxed))).await;
    }
}
