//! Configurations with untrue statements about the backend or the clients. The proxy obeys them, so updates are lost:
//! faults for the checks to find, planted without a change of the program.

use super::{
    board::Events,
    options::Options,
    plan::{Late, Plan},
    run::{Verdict, run},
    support::random::Random,
};

/// The statement that a configuration leaves out, or makes wrongly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Untrue {
    /// Items are said to change nothing else, and no others to write: their writes claim one of two keys.
    ItemsAlone,
    /// The two routes to a document have different keys: a claim by one is lost on the other.
    TwoKeys,
    /// The same, and clients write by dates alone: a date outlives the writes by the other route.
    StaleDates,
    /// Clients expect that retries are recognised, and they are not.
    NoRetries,
    /// Two proxies have a store each.
    TwoStores,
    /// The backend is said to apply nothing late: a doubt is forgotten as soon as it comes up.
    ForgottenDoubts,
    /// The backend applies writes later than is said: after the doubt is over.
    LateWrites,
}

pub const ALL: [Untrue; 7] = [
    Untrue::ItemsAlone,
    Untrue::TwoKeys,
    Untrue::StaleDates,
    Untrue::NoRetries,
    Untrue::TwoStores,
    Untrue::ForgottenDoubts,
    Untrue::LateWrites,
];

/// The events after which each of the faults has been found, and the doubts where they are the fault.
const EVENTS: Events = Events { writes: 150, conflicts: 10, doubts: 0, grants: 0 };
const DOUBTS: usize = 32;
const OPERATIONS: usize = 600;

/// A window that is over before most late writes are applied.
const SHORT_WINDOW_MS: usize = 50;

/// The late writes where they are the fault. They are late by more than that window, because no `timeout` of a generated
/// configuration is as long. Each must meet another write, so there are many of them.
const VERY_LATE: Late = Late { percent: 20, after_ms: 850, spread_ms: 500 };

impl Untrue {
    /// Returns a text of the configuration, and what stands there instead.
    fn change(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::ItemsAlone => Some(("\nalso_changes", "\n#")),
            Self::TwoKeys | Self::StaleDates => {
                Some(("path = \"/alias/{id}\"\nkey = \"/docs/{id}\"", "path = \"/alias/{id}\"\nkey = \"/alias/{id}\""))
            }
            Self::NoRetries => Some(("idempotency = \"accept\"", "idempotency = \"off\"")),
            Self::TwoStores | Self::ForgottenDoubts | Self::LateWrites => None,
        }
    }

    fn options(self, random: &mut Random) -> Options {
        let options = Options::by_chance(random).with_free_leases();
        match self {
            Self::StaleDates => options.with_coarse_dates(),
            Self::ForgottenDoubts => options.with_late_write_window(0),
            Self::LateWrites => options.with_late_write_window(SHORT_WINDOW_MS),
            Self::ItemsAlone => options.with_no_other_writers(),
            Self::TwoKeys | Self::NoRetries | Self::TwoStores => options,
        }
    }

    fn late(self) -> Late {
        match self {
            Self::ForgottenDoubts | Self::LateWrites => VERY_LATE,
            _ => Options::late(),
        }
    }

    fn events(self) -> Events {
        match self {
            Self::ForgottenDoubts | Self::LateWrites => Events { doubts: DOUBTS, ..EVENTS },
            // Most dates are stale, and most of those are known to be.
            Self::StaleDates => Events { writes: 60, ..EVENTS },
            _ => EVENTS,
        }
    }

    /// Plans a run without kills and stops, whose configuration is wrong in this way.
    pub fn plan(self, mut random: Random) -> Plan {
        let options = self.options(&mut random);
        let mut text = options.text("kind = \"memory\"");
        if let Some((right, wrong)) = self.change() {
            assert!(text.contains(right), "{text}");
            text = text.replace(right, wrong);
        }
        Plan {
            options: Some(options),
            clients: 16,
            proxies: if self == Self::TwoStores { 2 } else { 1 },
            places: 4,
            operations: OPERATIONS,
            events: self.events(),
            keeps_keys: true,
            outlasts: false,
            only_dates: self == Self::StaleDates,
            late: self.late(),
            ..Plan::bare(format!("{self:?}, {options}"), text, vec!["docs"], random)
        }
    }

    /// Runs this many such plans, one after another, and panics if one of them finds nothing.
    pub async fn is_found(self, seeds: usize, mut random: Random) -> String {
        let (mut operations, mut anomalies, mut fewest) = (0, 0, usize::MAX);
        let mut vain = Vec::new();
        for _ in 0..seeds {
            let Verdict { anomalies: found, summary, tally, .. } = run(self.plan(random.fork())).await;
            (operations, anomalies) = (operations + tally.total(), anomalies + found.len());
            fewest = fewest.min(found.len());
            vain.extend(found.is_empty().then_some(summary));
        }
        let found = seeds - vain.len();
        assert!(
            vain.is_empty(),
            "{self:?} is found by {found} of {seeds} seeds; nothing was found by\n{}",
            vain.join("\n")
        );
        let mean = operations / anomalies;
        format!(
            "{self:?}: found by {seeds} of {seeds} seeds, one anomaly in {mean} operations, {fewest} or more in a run"
        )
    }
}
