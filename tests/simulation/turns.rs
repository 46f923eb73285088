//! The order of turns (rule 16): in one process, a request in the line of a resource goes before all that come later.
//!
//! The guard is not asked where a request stands. A request waits for its turn if it has looked at its record and asks
//! for nothing more while all others do what they can.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use ifmatch::core::{
    records::record::{Record, Snapshot, Stamp},
    resource::ResourceKey,
};
use tokio::time::Instant;

use crate::{
    judge::{Entry, field},
    operation::Operation,
    world::Inner,
};

/// The lines of waiting requests, by the numbers of the requests.
#[derive(Default)]
pub struct Turns {
    /// The record that a request looked at first, which is its own.
    keys: BTreeMap<usize, ResourceKey>,
    /// The moment since which a request stands in line.
    standing: BTreeMap<usize, u64>,
    /// The requests that have had their turn.
    served: BTreeSet<usize>,
    /// True if judging has stopped: rules have changed, and some requests now wait elsewhere.
    pub is_off: bool,
}

/// The right that a swap gives to its owner.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Gives {
    Mark,
    Grant,
}

impl Turns {
    /// Records that a request looks at a record.
    pub fn looks(&mut self, request: usize, key: &ResourceKey) {
        self.keys.entry(request).or_insert_with(|| key.clone());
    }

    /// Returns the requests that stood in line before this moment, and have not had their turn.
    pub fn standing_before(&self, moment: u64) -> Vec<usize> {
        let stood = self.standing.iter().filter(|(request, since)| **since < moment && !self.served.contains(*request));
        stood.map(|(request, _)| *request).collect()
    }
}

impl Inner {
    /// Records which requests stand in line, once every task has done what it can.
    pub fn note_standing(&mut self) {
        let asking: BTreeSet<usize> = self.pending.iter().filter_map(|pending| pending.request).collect();
        let now = Instant::now();
        let is_standing = |(number, entry): &(usize, &Entry)| {
            let is_served =
                self.ledger.turns.served.contains(number) || self.ledger.turns.standing.contains_key(number);
            let waits = entry.answered.is_none() && !entry.is_given_up && !asking.contains(number) && !is_served;
            waits && self.alive[entry.process] && self.held_until[entry.process] <= now
        };
        let requests = self.ledger.requests.iter().enumerate();
        let new: Vec<usize> = requests.filter(is_standing).map(|(number, _)| number).collect();
        for number in new.into_iter().filter(|number| self.ledger.turns.keys.contains_key(number)).collect::<Vec<_>>() {
            let moment = self.ledger.moment();
            self.ledger.turns.standing.insert(number, moment);
        }
    }
    /// Records that a request has replaced `before`. Returns the request that it went past, if there is one.
    pub fn served(&mut self, request: usize, key: &ResourceKey, before: &Snapshot, next: &Record) -> Option<usize> {
        let gives = gives(before, next)?;
        let (ledger, style) = (&self.ledger, self.backend.style);
        let own = &ledger.requests[request];
        // A request that touches other resources stands in their lines first.
        let touches = |entry: &Entry| {
            let is_item = entry.resource.starts_with("item");
            if is_item { style.item_touches_document } else { style.document_touches_item }
        };
        let is_before = |(other, since): &(&usize, &u64)| {
            let entry = &ledger.requests[**other];
            let is_alike = entry.operation.writes() || gives == Gives::Grant && entry.operation == Operation::Acquire;
            **since < own.invoked
                && is_alike
                && !touches(entry)
                && !entry.operation.transfers()
                && entry.process == own.process
                && entry.answered.is_none()
                && !entry.is_given_up
                && !ledger.turns.served.contains(*other)
                && ledger.turns.keys.get(*other) == Some(key)
                && !is_past_its_wait(entry)
        };
        let passed = ledger.turns.standing.iter().find(is_before).map(|(other, _)| *other);
        let turns = &mut self.ledger.turns;
        if turns.keys.get(&request) == Some(key) {
            turns.served.insert(request);
        }
        passed.filter(|_| !turns.is_off)
    }
}

/// True if an acquisition has waited its full time: it has left the line, and looks for its answer.
fn is_past_its_wait(entry: &Entry) -> bool {
    let wait = field(&entry.request, "prefer").and_then(|prefer| prefer.strip_prefix("wait=")?.parse().ok());
    wait.is_some_and(|seconds| Instant::now() >= entry.invoked_at + Duration::from_secs(seconds))
}

fn gives(before: &Snapshot, next: &Record) -> Option<Gives> {
    if next.marks().count() > before.record.marks().count() {
        return Some(Gives::Mark);
    }
    (next.fence == Stamp::Itself).then_some(Gives::Grant)
}
