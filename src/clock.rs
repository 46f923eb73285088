//! The clock behind the store's time.

use rustix::time::{ClockId, clock_gettime};

use crate::core::time::StoreTime;

/// Where a store on this machine takes its time from; tests bring one of their own.
pub trait Clock: Send + Sync {
    /// The moment it is.
    fn now(&self) -> StoreTime;
}

/// Time since the machine started, suspended time included (`CLOCK_BOOTTIME`): a laptop that sleeps for an hour must
/// not find a lease or a doubt of a minute still running.
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

/// The number of this start of the machine, if it tells one: another one than an earlier process has seen says that the
/// machine was started since, and that nobody may have closed the connections of that process.
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
