//! The time that a process owes after its end (DESIGN, section 3, rule 20). Until it is over, a write that the process
//! has sent may still be applied.
//!
//! # Design
//!
//! *Why does the last process state this time, and not the next one?* The next one may have another configuration. The
//! time within which a write may arrive late depends on its upstream, and on the limits under which it was sent.
//!
//! *Why durations, and no moments?* A moment of this machine's clock means nothing after its restart. A process that
//! ends while it holds writes back passes on the rest of that time. The time may be counted again, and is never
//! shortened.

use std::time::Duration;

/// The time for which the next process must hold writes and grants back, by the way in which this one ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Owed {
    /// After its death: its connections were closed with it.
    pub after_death: Duration,
    /// After a restart of the machine: its connections may never have been closed.
    pub after_power_loss: Duration,
}

impl Owed {
    /// Nothing: no write can come any more.
    pub const NONE: Self = Self { after_death: Duration::ZERO, after_power_loss: Duration::ZERO };

    /// Returns the time owed for writes to an upstream with these limits. After a loss of power the upstream may still
    /// wait for the rest of a write, or process it, as if its client were connected.
    pub const fn by_writes(timeout: Duration, late_write_window: Duration) -> Self {
        Self { after_death: late_write_window, after_power_loss: timeout.saturating_add(late_write_window) }
    }

    /// Returns the rest of the time for which a process holds writes back because of earlier ones. The connections of
    /// those are closed, or that time takes them into account.
    pub const fn by_hold(remaining: Duration) -> Self {
        Self { after_death: remaining, after_power_loss: remaining }
    }

    /// The longer of both, in each case.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            after_death: self.after_death.max(other.after_death),
            after_power_loss: self.after_power_loss.max(other.after_power_loss),
        }
    }

    /// How long a process that starts now must hold back, if the machine has run since, or has not.
    pub fn hold(self, has_run_since: bool) -> Duration {
        if has_run_since { self.after_death } else { self.after_power_loss }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_loss_of_power_adds_the_time_of_the_write() {
        let owed = Owed::by_writes(seconds(30), seconds(5));
        assert_eq!((owed.hold(true), owed.hold(false)), (seconds(5), seconds(35)));
        assert_eq!(Owed::by_writes(Duration::MAX, seconds(5)).hold(false), Duration::MAX);
    }

    #[test]
    fn the_rest_of_a_hold_is_owed_however_the_process_ends() {
        let owed = Owed::by_hold(seconds(7));
        assert_eq!((owed.hold(true), owed.hold(false)), (seconds(7), seconds(7)));
    }

    #[test]
    fn the_longest_counts_in_each_case() {
        let (long_window, long_timeout) =
            (Owed::by_writes(seconds(1), seconds(9)), Owed::by_writes(seconds(20), seconds(3)));
        for both in [long_window.and(long_timeout), long_timeout.and(long_window)] {
            assert_eq!((both.hold(true), both.hold(false)), (seconds(9), seconds(23)));
        }
        assert_eq!(long_window.and(Owed::NONE), long_window);
    }
}
