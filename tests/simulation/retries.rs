//! Retries of keyed writes: a client sends its request again, and its key makes both one write.

use std::time::Duration;

use tokio::time::Instant;

use crate::{
    backend::Resource,
    client::Told,
    judge::{Entry, Ledger, field},
    keys::Change,
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

impl Ledger {
    /// Returns the client's last keyed write, to be sent again through this process.
    pub fn retry(&self, client: usize, process: usize, changes: Change) -> Option<Entry> {
        let has_key = |entry: &Entry| entry.client == client && field(&entry.request, "idempotency-key").is_some();
        let (number, last) = self.requests.iter().enumerate().rev().find(|(_, entry)| has_key(entry))?;
        let mut request = last.request.clone();
        changes.apply(&mut request);
        Some(Entry {
            process,
            request,
            retry_of: Some(last.retry_of.unwrap_or(number)),
            invoked_at: Instant::now(),
            answered: None,
            is_given_up: false,
            arrived: false,
            asked: false,
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

    /// True if the keys of writes are known for their whole term.
    fn keeps_keys(&self) -> bool {
        match self.keys {
            Keys::Forgotten => false,
            Keys::InProcess => !self.has_died,
            Keys::Shared => true,
        }
    }

    /// Returns what is wrong with the application of one attempt at a write, beside the others.
    pub fn reapplication(&self, number: usize) -> Option<String> {
        if !self.keeps_keys() {
            return None;
        }
        let (other, _) = self.other_attempts(number).find(|(_, other)| is_known(other))?;
        Some(format!("request {number} is applied, and has the key of request {other}, which was applied"))
    }

    /// Returns the number of the change that an answer to an attempt at a write speaks of. Its fields may not show it.
    pub fn replayed_serial(&self, number: usize, resource: &Resource) -> Option<u64> {
        let is_attempt = |by: usize| self.other_attempts(number).any(|(other, _)| other == by);
        let change = resource.changes.iter().position(|change| change.by.is_some_and(is_attempt))?;
        Some(u64::try_from(change).unwrap() + 1)
    }

    /// Returns what is wrong with the refusal of a retry. All of them send what the first attempt has sent.
    pub fn misread_retry(&self, number: usize, told: &Told) -> Option<String> {
        let is_misread = self.requests[number].retry_of.is_some() && told.code == Some("idempotency-mismatch");
        is_misread.then(|| format!("request {number} counts as another write than the one that it repeats"))
    }

    /// Returns what is wrong with the success of a retry that the backend did not act on.
    pub fn replay(&self, number: usize, told: &Told) -> Option<String> {
        let entry = &self.requests[number];
        let others = self.other_attempts(number).map(|(_, other)| other);
        let applied: Vec<&Entry> = others.filter(|other| is_known(other)).collect();
        if applied.iter().any(|other| session(other) != session(entry)) {
            return Some(format!("request {number} of somebody else is told the answer of the first attempt"));
        }
        let credentials = |entry: &Entry| field(&entry.request, "authorization");
        if !entry.asked && applied.iter().any(|other| credentials(other) != credentials(entry)) {
            return Some(format!("request {number} is told an answer, and nobody asked whether it may read"));
        }
        if !self.other_attempts(number).any(|(_, entry)| entry.applied > 0) {
            return Some(format!("request {number} was acknowledged, and no attempt at it was applied"));
        }
        // An attempt whose time is over may be applied again, and has another answer then.
        let answers = self.other_attempts(number).filter(|(_, entry)| entry.invoked_at.elapsed() < KEPT_FOR);
        let answers = answers.filter_map(|(other, entry)| Some((other, &entry.answered.as_ref()?.1)));
        let is_other = |first: &Told| (told.status, &told.tag) != (first.status, &first.tag);
        let (others, same): (Vec<_>, Vec<_>) =
            answers.filter(|(_, first)| is_success(first)).partition(|(_, first)| is_other(first));
        // Without keys an attempt may have been applied again, and then each application has its own answer.
        if !self.keeps_keys() && !same.is_empty() {
            return None;
        }
        let (other, first) = others.first()?;
        Some(format!("request {number} is told {told:?}, and request {other} with the same key {first:?}"))
    }
}

/// True if a write keeps its key from others: it was applied, with any answer to its client, and its time is not over.
fn is_known(entry: &Entry) -> bool {
    entry.applied > 0 && entry.invoked_at.elapsed() < KEPT_FOR
}

/// Returns the cookie that names the client.
fn session(entry: &Entry) -> Option<String> {
    field(&entry.request, "cookie").and_then(|cookies| Some(cookies.split_once(';')?.0.to_owned()))
}

pub fn is_success(told: &Told) -> bool {
    (200..300).contains(&told.status) && told.code.is_none()
}
