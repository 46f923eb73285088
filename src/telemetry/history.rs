//! How the requests of each route ended, minute by minute, for the last hour.
//!
//! # Design
//!
//! *What does it cost a request?* Nothing. Once a minute, a task compares the totals of each route with those of the
//! minute before.

use std::collections::{BTreeMap, VecDeque};

use super::activity::{MeaningCounts, Tally};

/// The number of minutes that are kept.
const MINUTES_MAX: usize = 60;

/// The number of routes with a history: each takes 2.5 KiB.
const ROUTES_MAX: usize = 1_000;

/// The minutes of all routes.
#[derive(Debug, Default)]
pub struct History {
    /// The number of minutes that have ended.
    ended: u64,
    routes: BTreeMap<String, RouteHistory>,
}

/// The minutes of one route.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteHistory {
    /// The totals at the end of the last minute.
    pub until_now: MeaningCounts,
    /// The counts of each minute, the oldest first. A newer route has fewer of them.
    pub minutes: VecDeque<MeaningCounts>,
}

impl History {
    /// Ends a minute with these totals.
    pub fn end_minute(&mut self, totals: &BTreeMap<String, Tally>) {
        self.ended += 1;
        for (route, tally) in totals {
            if !self.routes.contains_key(route) {
                if self.routes.len() >= ROUTES_MAX {
                    continue;
                }
                self.routes.insert(route.clone(), RouteHistory::default());
            }
            if let Some(history) = self.routes.get_mut(route) {
                history.end_minute(tally.meanings);
            }
        }
    }

    /// Returns the number of minutes that have ended since the start.
    pub fn ended(&self) -> u64 {
        self.ended
    }

    /// Returns the history of each route that has one.
    pub fn routes(&self) -> &BTreeMap<String, RouteHistory> {
        &self.routes
    }
}

impl RouteHistory {
    fn end_minute(&mut self, totals: MeaningCounts) {
        let mut minute = totals;
        minute.iter_mut().zip(self.until_now).for_each(|(count, before)| *count = count.saturating_sub(before));
        self.until_now = totals;
        self.minutes.push_back(minute);
        if self.minutes.len() > MINUTES_MAX {
            self.minutes.pop_front();
        }
    }

    /// True if the route had a request in a minute that is kept.
    pub fn had_requests(&self) -> bool {
        self.minutes.iter().flatten().any(|count| *count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(route: &str, meanings: MeaningCounts) -> BTreeMap<String, Tally> {
        BTreeMap::from([(route.to_owned(), Tally { meanings, ..Tally::default() })])
    }

    fn minutes(history: &History, route: &str) -> Vec<MeaningCounts> {
        history.routes().get(route).map(|history| history.minutes.iter().copied().collect()).unwrap_or_default()
    }

    #[test]
    fn a_minute_has_what_came_since_the_minute_before() {
        let mut history = History::default();
        history.end_minute(&totals("docs", [7, 0, 1, 0, 0]));
        history.end_minute(&totals("docs", [9, 0, 1, 0, 2]));
        history.end_minute(&totals("docs", [9, 0, 1, 0, 2]));
        assert_eq!(minutes(&history, "docs"), [[7, 0, 1, 0, 0], [2, 0, 0, 0, 2], [0; 5]]);
        assert_eq!(history.ended(), 3);
        let docs = &history.routes()["docs"];
        assert_eq!((docs.until_now, docs.had_requests()), ([9, 0, 1, 0, 2], true));
    }

    #[test]
    fn the_last_hour_is_kept_and_no_more() {
        let mut history = History::default();
        for total in 1..=100 {
            history.end_minute(&totals("docs", [total * total, 0, 0, 0, 0]));
        }
        let kept = minutes(&history, "docs");
        assert_eq!(kept.len(), 60);
        assert_eq!((kept.first(), kept.last()), (Some(&[41 * 41 - 40 * 40, 0, 0, 0, 0]), Some(&[199, 0, 0, 0, 0])));
    }

    #[test]
    fn an_hour_without_requests_is_idle() {
        let mut history = History::default();
        for _ in 0..=MINUTES_MAX {
            assert!(history.ended() == 0 || history.routes()["docs"].had_requests());
            history.end_minute(&totals("docs", [1, 0, 0, 0, 0]));
        }
        assert!(!history.routes()["docs"].had_requests());
    }

    #[test]
    fn routes_beyond_the_limit_have_no_history() {
        let mut history = History::default();
        for route in 0..=ROUTES_MAX {
            history.end_minute(&totals(&format!("{route:04}"), [1; 5]));
        }
        assert_eq!(history.routes().len(), ROUTES_MAX);
        assert!(!history.routes().contains_key("1000"));
        history.end_minute(&totals("0000", [3; 5]));
        assert_eq!(minutes(&history, "0000"), [[1; 5], [2; 5]], "who is in stays in");
    }
}
