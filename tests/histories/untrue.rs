//! Configurations that say something untrue of the backend or of the clients. The proxy does what it is told, so updates
//! are lost: faults for the checks to find, planted without a change of the program.

use super::{
    board::Events,
    options::Options,
    plan::Plan,
    run::{Verdict, run},
    support::random::Random,
};

/// What a configuration leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Untrue {
    /// Items are said to change nothing else: their writes claim one of two keys.
    ItemsAlone,
    /// The two routes to a document have different keys: a claim by one is lost on the other.
    TwoKeys,
    /// Clients expect that retries are recognised, and they are not.
    NoRetries,
    /// Two proxies have a store each.
    TwoStores,
}

pub const ALL: [Untrue; 4] = [Untrue::ItemsAlone, Untrue::TwoKeys, Untrue::NoRetries, Untrue::TwoStores];

/// The events after which each of the faults has been found.
const EVENTS: Events = Events { writes: 150, conflicts: 10, doubts: 16, grants: 0 };
const OPERATIONS: usize = 400;

impl Untrue {
    /// Returns a text of the configuration, and what stands there instead.
    fn change(self) -> (&'static str, &'static str) {
        match self {
            Self::ItemsAlone => ("\nalso_changes", "\n#"),
            Self::TwoKeys => {
                ("path = \"/alias/{id}\"\nkey = \"/docs/{id}\"", "path = \"/alias/{id}\"\nkey = \"/alias/{id}\"")
            }
            Self::NoRetries => ("idempotency = \"accept\"", "idempotency = \"off\""),
            Self::TwoStores => ("[store]", "[store]"),
        }
    }

    /// Plans a run without kills and stops, whose configuration is wrong in this way.
    pub fn plan(self, mut random: Random) -> Plan {
        let options = Options::by_chance(&mut random).with_free_leases();
        let (text, (right, wrong)) = (options.text("kind = \"memory\""), self.change());
        assert!(text.contains(right), "{text}");
        Plan {
            options: Some(options),
            clients: 16,
            proxies: if self == Self::TwoStores { 2 } else { 1 },
            places: 4,
            operations: OPERATIONS,
            events: EVENTS,
            keeps_keys: true,
            outlasts: false,
            ..Plan::bare(format!("{self:?}, {options}"), text.replace(right, wrong), vec!["docs"], random)
        }
    }

    /// Runs this many such plans, one after another, and panics at one in which nothing is found.
    pub async fn is_found(self, seeds: usize, mut random: Random) -> String {
        let (mut operations, mut anomalies, mut most) = (0, 0, 0);
        for _ in 0..seeds {
            let Verdict { anomalies: found, summary, tally, .. } = run(self.plan(random.fork())).await;
            assert!(!found.is_empty(), "nothing was found: {summary}");
            let each = tally.total() / found.len();
            (operations, anomalies, most) = (operations + tally.total(), anomalies + found.len(), most.max(each));
        }
        let mean = operations / anomalies;
        format!("{self:?}: found by {seeds} of {seeds} seeds, one anomaly in {mean} operations, at most {most}")
    }
}
