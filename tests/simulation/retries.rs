//! Retries of keyed writes: a client sends its request again, byte for byte, and its key makes both one write.

use std::time::Duration;

use ifmatch::core::resource::ResourceKey;
use tokio::time::Instant;

use crate::{
    backend::Resource,
    client::Told,
    judge::{Entry, Ledger, field},
    metadata::Parts,
};

/// The place where the answers to keyed writes are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keys {
    /// Not all configurations of the run recognise retries.
    #[default]
    Forgotten,
    /// They end with the process.
    InProcess,
    /// They are in the store that all processes share.
    Shared,
}

/// The default of `idempotency_ttl`.
const KEPT_FOR: Duration = Duration::from_secs(600);

/// Whether a record is that of a keyed write.
pub fn is_of_attempt(key: &ResourceKey) -> bool {
    key.as_str().starts_with("write ")
}

impl Ledger {
    /// Returns the client's last keyed write, to be sent again through this process.
    pub fn retry(&self, client: usize, process: usize) -> Option<Entry> {
        let has_key = |entry: &Entry| entry.client == client && field(&entry.request, "idempotency-key").is_some();
        let (number, last) = self.requests.iter().enumerate().rev().find(|(_, entry)| has_key(entry))?;
        Some(Entry {
            process,
            retry_of: Some(last.retry_of.unwrap_or(number)),
            invoked_at: Instant::now(),
            answered: None,
            is_given_up: false,
            arrived: false,
            applied: 0,
            parts: Parts::default(),
            ..last.clone()
        })
    }

    /// The other attempts at the write that request `number` is an attempt at, with their numbers.
    fn other_attempts(&self, number: usize) -> impl Iterator<Item = (usize, &Entry)> {
        let first = |number: usize| self.requests[number].retry_of.unwrap_or(number);
        let own = first(number);
        self.requests.iter().enumerate().filter(move |(other, _)| *other != number && first(*other) == own)
    }

    /// Whether an answer that a client got is kept for its retries until the end of the run.
    fn keeps_answers(&self) -> bool {
        let is_kept = match self.keys {
            Keys::Forgotten => false,
            Keys::InProcess => !self.has_died,
            Keys::Shared => !self.may_have_lost_answers,
        };
        is_kept && !self.store_forgets
    }

    /// Returns what is wrong with the application of one attempt at a write, beside the others.
    pub fn reapplication(&self, number: usize) -> Option<String> {
        if !self.keeps_answers() {
            return None;
        }
        let is_known = |(_, entry): &(usize, &Entry)| {
            let is_recent = entry.invoked_at.elapsed() < KEPT_FOR;
            let is_acknowledged = entry.answered.as_ref().is_some_and(|(_, told)| is_success(told));
            entry.applied > 0 && is_recent && (is_acknowledged || !self.is_faulty)
        };
        let (other, _) = self.other_attempts(number).find(is_known)?;
        Some(format!("request {number} is applied, and has the key of request {other}, which was applied"))
    }

    /// Returns the number of the change that an answer to an attempt at a write speaks of. Its fields may not show it.
    pub fn replayed_serial(&self, number: usize, resource: &Resource) -> Option<u64> {
        let is_attempt = |by: usize| self.other_attempts(number).any(|(other, _)| other == by);
        let change = resource.changes.iter().position(|change| change.by.is_some_and(is_attempt))?;
        Some(u64::try_from(change).unwrap() + 1)
    }

    /// Returns what is wrong with the success of a retry that the backend did not act on.
    pub fn replay(&self, number: usize, told: &Told) -> Option<String> {
        if !self.other_attempts(number).any(|(_, entry)| entry.applied > 0) {
            return Some(format!("request {number} was acknowledged, and no attempt at it was applied"));
        }
        let answers =
            self.other_attempts(number).filter_map(|(other, entry)| Some((other, &entry.answered.as_ref()?.1)));
        let is_other = |told: &Told, first: &Told| (told.status, &told.tag) != (first.status, &first.tag);
        let mut others = answers.filter(|(_, first)| is_success(first) && is_other(told, first));
        let (other, first) = others.next()?;
        Some(format!("request {number} is told {told:?}, and request {other} with the same key {first:?}"))
    }
}

pub fn is_success(told: &Told) -> bool {
    (200..300).contains(&told.status) && told.code.is_none()
}
