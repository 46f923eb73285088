//! The state of a run: equal states go on alike, so an exploration goes on from one of them.

use std::hash::Hash;

use ifmatch::core::records::record::Snapshot;

use crate::{
    judge::{Entry, Ledger, Seen},
    names::{Names, hash},
    run::Run,
    world::{Inner, Pending, What},
};

impl Run {
    /// Returns a hash of everything that decides how the run can go on.
    pub fn state(&self) -> u64 {
        let records = self.cellar.records();
        let inner = self.world.lock();
        let names = &inner.names;
        let records: Vec<_> = records.iter().map(|(key, record)| (key.as_str(), names.snapshot(record))).collect();
        let late = in_any_order(inner.late.iter().map(|late| (&late.sent, late.until - self.world.begun)));
        let stray = inner.stray.iter();
        let stray = stray.map(|(key, expected, next)| (key.as_str(), names.revision(*expected), names.record(next)));
        let left: Vec<usize> = self.clients.iter().map(|client| client.steps.len()).collect();
        let open =
            (in_any_order(inner.pending.iter().map(|pending| question(names, pending))), late, in_any_order(stray));
        let seams = (&inner.backend.resources, &inner.told, &inner.alive, open);
        hash(&(records, seams, self.faults.left, self.world.now(), left, judged(&inner)))
    }
}

impl Run {
    /// Returns a hash of all that clients and the backend have.
    pub fn end(&self) -> u64 {
        let records = self.cellar.records();
        let inner = self.world.lock();
        let records: Vec<_> =
            records.iter().map(|(key, Snapshot { record, .. })| (key.as_str(), inner.names.record(record))).collect();
        let answer = |entry: &Entry| {
            let told = entry.answered.as_ref().map(|(_, told)| (told.status, told.code, told.serial, told.in_doubt));
            (told, entry.applied)
        };
        let answers: Vec<_> = inner.ledger.requests.iter().map(answer).collect();
        hash(&(answers, &inner.backend.resources, records))
    }
}

/// Returns a hash of a question.
fn question(names: &Names, Pending { request, process, what, .. }: &Pending) -> u64 {
    let asked = match what {
        What::Read { key, .. } => hash(&key.as_str()),
        What::Swap { key, expected, next, .. } => hash(&(key.as_str(), names.revision(*expected), names.record(next))),
        What::Exchange { sent, .. } => hash(sent),
    };
    hash(&(request, process, asked))
}

/// Returns the hashes of things whose order has no meaning.
fn in_any_order(things: impl Iterator<Item: Hash>) -> Vec<u64> {
    let mut hashes: Vec<u64> = things.map(|thing| hash(&thing)).collect();
    hashes.sort_unstable();
    hashes
}

/// Returns a hash of what the judge looks at beside the world.
fn judged(inner: &Inner) -> u64 {
    let Ledger { requests, clients, turns, .. } = &inner.ledger;
    let seen = |seen: &Seen| (seen.serial, seen.content, seen.is_beside_write);
    let known: Vec<_> = clients.iter().flat_map(|client| client.seen.values().map(seen)).collect();
    let request = |entry: &Entry| {
        let ended = (
            entry.answered.is_some(),
            entry.is_given_up,
            entry.arrived,
            entry.applied,
            entry.parts,
            entry.shows_beside,
        );
        let is_before = |other: &Entry| other.answered.as_ref().is_some_and(|(at, _)| *at < entry.invoked);
        let before: Vec<bool> = requests.iter().map(is_before).collect();
        (ended, before, turns.standing_before(entry.invoked), entry.base.as_ref().map(seen))
    };
    let requests: Vec<_> = requests.iter().map(request).collect();
    hash(&(known, requests))
}
