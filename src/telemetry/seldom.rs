//! Limits log lines that every request could cause, because a flood of requests would fill the disk with them.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use parking_lot::Mutex;

/// The usual time between two lines. One line shows that the cause persists; the access log has a line for each request.
const PAUSE: Duration = Duration::from_secs(10);

/// Decides when a line is due.
#[derive(Debug)]
pub struct Seldom {
    pause: Duration,
    told: Mutex<LastReport>,
}

#[derive(Debug)]
struct LastReport {
    last: Option<Instant>,
    left_out: u64,
}

impl Seldom {
    /// Creates a limit with the usual time, under which the first line is due at once.
    pub const fn usual() -> Self {
        Self::every(PAUSE)
    }

    /// Creates a limit with this time between two lines, under which the first line is due at once.
    pub const fn every(pause: Duration) -> Self {
        Self { pause, told: Mutex::new(LastReport { last: None, left_out: 0 }) }
    }

    /// Returns the number of lines left out since the last one, if another one is due.
    pub fn due(&self) -> Option<u64> {
        self.due_at(Instant::now())
    }

    fn due_at(&self, now: Instant) -> Option<u64> {
        let mut told = self.told.lock();
        if told.last.is_some_and(|last| now.saturating_duration_since(last) < self.pause) {
            told.left_out += 1;
            return None;
        }
        told.last = Some(now);
        Some(std::mem::take(&mut told.left_out))
    }
}

/// Decides which line about a route is the first one. There are as many names as the configuration has routes.
#[derive(Debug, Default)]
pub struct OncePerRoute(Mutex<BTreeSet<String>>);

impl OncePerRoute {
    /// Creates a limit under which a line about each route is due.
    pub const fn new() -> Self {
        Self(Mutex::new(BTreeSet::new()))
    }

    /// True if no line about this route was due before.
    pub fn is_first(&self, route: &str) -> bool {
        let mut told = self.0.lock();
        !told.contains(route) && told.insert(route.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_due_now_and_then_and_tells_of_those_between() {
        let (seldom, begun) = (Seldom::usual(), Instant::now());
        assert_eq!(seldom.due_at(begun), Some(0));
        for _ in 0..3 {
            assert_eq!(seldom.due_at(begun + PAUSE / 2), None);
        }
        assert_eq!(seldom.due_at(begun + PAUSE), Some(3));
        assert_eq!(seldom.due_at(begun + PAUSE * 2), Some(0));
    }

    #[test]
    fn the_first_line_about_each_route_is_due() {
        let once = OncePerRoute::new();
        assert_eq!(["a", "b", "a", "b"].map(|route| once.is_first(route)), [true, true, false, false]);
    }
}
