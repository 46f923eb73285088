//! The debt of the process at each moment.

use std::time::Duration;

use parking_lot::Mutex;

use crate::core::{records::owed::Owed, time::StoreTime};

/// The debt of the process: the time owed for its own writes, and the rest of the time for those of earlier processes.
#[derive(Debug)]
pub(super) struct Debt {
    by_writes: Mutex<Owed>,
    held_until: StoreTime,
}

impl Debt {
    /// Returns the debt of a process that owes `by_writes` for its writes, and holds writes back until then.
    pub(super) const fn new(by_writes: Owed, held_until: StoreTime) -> Self {
        Self { by_writes: Mutex::new(by_writes), held_until }
    }

    /// Adds the time owed for writes under another configuration. Earlier writes may still be in flight, so nothing
    /// ends.
    pub(super) fn add(&self, by_writes: Owed) {
        let mut own = self.by_writes.lock();
        *own = own.and(by_writes);
    }

    /// Returns the debt of a process that ends now, with its writes in flight.
    pub(super) fn at(&self, now: StoreTime) -> Owed {
        self.by_writes.lock().and(Owed::by_hold(self.left(now)))
    }

    /// Returns the debt of a process that ends now, without a write in flight or in doubt.
    pub(super) fn without_writes(&self, now: StoreTime) -> Owed {
        Owed::by_hold(self.left(now))
    }

    fn left(&self, now: StoreTime) -> Duration {
        now.until(self.held_until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn at(seconds: u64) -> StoreTime {
        StoreTime::from_milliseconds(1_000 * seconds)
    }

    #[test]
    fn the_rest_of_the_hold_is_owed_until_it_is_over() {
        let debt = Debt::new(Owed::by_writes(seconds(10), seconds(5)), at(60));
        assert_eq!(debt.at(at(0)), Owed::by_hold(seconds(60)));
        assert_eq!(debt.without_writes(at(20)), Owed::by_hold(seconds(40)));
        let both = Owed { after_death: seconds(10), after_power_loss: seconds(15) };
        assert_eq!(debt.at(at(50)), both, "the longer one counts, in each case");
        assert_eq!(debt.at(at(60)), Owed::by_writes(seconds(10), seconds(5)));
        assert_eq!(debt.without_writes(at(60)), Owed::NONE);
    }

    #[test]
    fn another_configuration_shortens_nothing() {
        let debt = Debt::new(Owed::by_writes(seconds(10), seconds(5)), at(0));
        debt.add(Owed::by_writes(seconds(1), seconds(1)));
        assert_eq!(debt.at(at(0)), Owed::by_writes(seconds(10), seconds(5)));
        debt.add(Owed::by_writes(seconds(10), seconds(20)));
        assert_eq!(debt.at(at(0)), Owed::by_writes(seconds(10), seconds(20)));
        assert_eq!(debt.without_writes(at(0)), Owed::NONE, "its own writes have ended");
    }
}
