//! The store's time: the only clock that decides anything (DESIGN, section 7).

use std::time::Duration;

/// A moment of the store's clock, in milliseconds since a moment of the store's own choosing.
///
/// Moments of two stores cannot be compared with each other, nor with a date.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoreTime {
    milliseconds: u64,
}

impl StoreTime {
    /// The moment `milliseconds` after the store's first.
    pub const fn from_milliseconds(milliseconds: u64) -> Self {
        Self { milliseconds }
    }

    /// Milliseconds since the store's first moment.
    pub const fn milliseconds(self) -> u64 {
        self.milliseconds
    }

    /// The moment that is `after` later, rounded up to a millisecond; at most the last moment there is.
    #[must_use]
    pub fn plus(self, after: Duration) -> Self {
        let whole = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
        let rounded = whole.saturating_add(u64::from(!after.subsec_nanos().is_multiple_of(1_000_000)));
        Self { milliseconds: self.milliseconds.saturating_add(rounded) }
    }

    /// The time until `later`; zero if that has passed.
    pub const fn until(self, later: Self) -> Duration {
        Duration::from_millis(later.milliseconds.saturating_sub(self.milliseconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_never_rounded_down() {
        let start = StoreTime::from_milliseconds(5);
        assert_eq!(start.plus(Duration::from_micros(1_001)), StoreTime::from_milliseconds(7));
        assert_eq!(start.plus(Duration::from_millis(2)), StoreTime::from_milliseconds(7));
    }

    #[test]
    fn the_end_of_time_is_not_passed() {
        assert_eq!(StoreTime::from_milliseconds(1).plus(Duration::MAX).milliseconds(), u64::MAX);
    }

    #[test]
    fn what_has_passed_is_no_wait() {
        assert_eq!(StoreTime::from_milliseconds(9).until(StoreTime::from_milliseconds(4)), Duration::ZERO);
    }
}
