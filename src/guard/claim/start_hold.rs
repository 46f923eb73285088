//! The time after a start in which guarded writes and grants are held back.

use std::time::Duration;

use tokio::time::Instant;

use crate::core::time::StoreTime;

/// The time after a start in which a write of an earlier process may still arrive.
///
/// It is over when the clock of the store or that of this process says so. A wall clock that is set back must not hold all
/// writes back until it has caught up.
#[derive(Clone, Copy, Debug)]
pub struct StartHold {
    until: StoreTime,
    over: Instant,
}

impl StartHold {
    /// A hold that lasts for so long from this moment of the store on, which is the present one.
    pub fn from(now: StoreTime, lasts: Duration) -> Self {
        Self { until: now.plus(lasts), over: Instant::now() + lasts }
    }

    /// No hold.
    pub fn none() -> Self {
        Self::from(StoreTime::default(), Duration::ZERO)
    }

    /// Returns how much longer it lasts.
    pub(crate) fn remaining(self, now: StoreTime) -> Duration {
        now.until(self.until).min(self.over.saturating_duration_since(Instant::now()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_is_set_back_holds_writes_back_no_longer() {
        let (second, start) = (Duration::from_secs(1), StoreTime::from_milliseconds(100_000));
        let hold = StartHold::from(start, second * 5);
        assert_eq!(hold.remaining(start.plus(second * 2)), second * 3);
        assert_eq!(hold.remaining(start.plus(second * 5)), Duration::ZERO);
        let earlier = StoreTime::from_milliseconds(1);
        assert_eq!(hold.remaining(earlier), second * 5);
        assert_eq!(StartHold::none().remaining(earlier), Duration::ZERO);
        advance(second * 5).await;
        assert_eq!(hold.remaining(earlier), Duration::ZERO);
    }
}
