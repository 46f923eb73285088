//! The clock behind the store's time.

use std::time::SystemTime;

use rustix::time::{ClockId, clock_gettime};

use crate::core::time::StoreTime;

/// The time source of a store on this machine. Tests supply their own.
pub trait Clock: Send + Sync {
    /// The current time.
    fn now(&self) -> StoreTime;
}

/// The source of dates. They are for what other programs read, and no lease or write depends on them.
pub type WallClock = fn() -> SystemTime;

/// Time since the machine started, including suspended time (`CLOCK_BOOTTIME`). A one-minute lease or doubt must not
/// still be running after a laptop has slept for an hour.
#[derive(Clone, Copy, Debug, Default)]
pub struct BootClock;

impl Clock for BootClock {
    fn now(&self) -> StoreTime {
        #[cfg(target_os = "linux")]
        const CLOCK: ClockId = ClockId::Boottime;
        #[cfg(not(target_os = "linux"))]
        const CLOCK: ClockId = ClockId::Monotonic;
        let time = clock_gettime(CLOCK);
        let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
        let milliseconds = u64::try_from(time.tv_nsec).unwrap_or_default() / 1_000_000;
        StoreTime::from_milliseconds(seconds.saturating_mul(1_000).saturating_add(milliseconds))
    }
}

/// The identifier of this boot of the machine, if there is one. If an earlier process saw a different one, the machine
/// has restarted since, and the connections of that process may never have been closed.
pub fn boot() -> Option<u128> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    u128::from_str_radix(&text.trim().replace('-', ""), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_start_of_the_machine_has_one_number() {
        assert!(boot().is_some_and(|number| number > 0));
        assert_eq!(boot(), boot());
    }

    #[test]
    fn time_does_not_run_backwards() {
        let earlier = BootClock.now();
        assert!(BootClock.now() >= earlier);
    }
}
