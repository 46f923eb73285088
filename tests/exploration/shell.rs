//! The production steps, with a broken rule around them.

use std::sync::Arc;

use ifmatch::core::{
    lease::{self, Command, Denied, Done},
    records::{
        record::{Mark, Record, Snapshot, Stamp},
        steps::{self, Outcome, Settlement},
    },
};

use super::{route::lease_rules, rules::Rules};

/// Marks the resource for a write.
pub fn mark(snapshot: &Snapshot, mark: Mark, is_claim: bool, rules: &Rules) -> Option<Record> {
    let mark = Mark { leaves_lease: mark.leaves_lease || !rules.ended_lease_is_taken, ..mark };
    if is_claim { steps::claim(snapshot, mark) } else { steps::add_unclaimed(snapshot, mark) }
}

/// Records the end of a write.
pub fn settle(snapshot: &Snapshot, settlement: &Settlement, rules: &Rules) -> Option<Record> {
    let mut settlement = settlement.clone();
    if !rules.disturbed_is_dropped {
        settlement.marked_at = snapshot.touched();
    }
    if !rules.doubt_holds && settlement.outcome == Outcome::Doubt {
        settlement.outcome = Outcome::Unclear;
    }
    let outcome = settlement.outcome;
    let mut record = steps::settle(snapshot, settlement)?;
    if !rules.unclear_mints && outcome == Outcome::Unclear {
        record.version = Stamp::At(snapshot.version());
    }
    Some(record)
}

/// Takes over what dead owners have left.
pub fn take_over(snapshot: &Snapshot, rules: &Rules) -> Option<Record> {
    let mut record = steps::take_over(snapshot)?;
    if !rules.takeover_is_a_doubt {
        record.doubt = snapshot.record.doubt;
    }
    Some(record)
}

/// Does a lease operation.
pub fn step(snapshot: &Snapshot, command: Command, rules: &Rules) -> Result<(Record, Done), Denied> {
    if rules.grant_waits_for_writes {
        return lease::step(snapshot, command, lease_rules());
    }
    let mut snapshot = snapshot.clone();
    let record = Arc::make_mut(&mut snapshot.record);
    let (claim, unclaimed) = (record.claim.take(), std::mem::take(&mut record.unclaimed));
    let (record, done) = lease::step(&snapshot, command, lease_rules())?;
    Ok((Record { claim, unclaimed, ..record }, done))
}
