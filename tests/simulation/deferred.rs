//! The rules of deletions that wait for the holders of a lease (`lease.delete_pending`).

use std::collections::BTreeMap;

use tokio::time::Instant;

use crate::{
    backend::{Change, Resource},
    client::Told,
    grants::Grant,
    judge::{Entry, Ledger, field},
    operation::Operation,
};

/// The resources of which a client was told that they will be deleted.
#[derive(Default)]
pub struct Waiting {
    /// The moment of that answer, by resource, with the leases of those clients, and whether each of them named a state.
    told: BTreeMap<String, (u64, Vec<String>, bool)>,
    /// The moment when the backend last acted on a late DELETE, by resource.
    acted: BTreeMap<String, u64>,
}

/// True if the answer to a DELETE says that it waits.
pub fn is_deferred(entry: &Entry) -> bool {
    entry.operation == Operation::Delete && entry.answered.as_ref().is_some_and(|(_, told)| told.status == 202)
}

impl Waiting {
    /// Forgets everything: so has the store.
    pub fn clear(&mut self) {
        self.told.clear();
    }

    /// Records that the resource is deleted.
    pub fn end(&mut self, resource: &str) {
        self.told.remove(resource);
    }

    /// True if the resource of a request is only for other clients: this one held no lease when it was deleted, or has
    /// deleted it.
    pub fn hides(&self, entry: &Entry, grants: &[Grant]) -> bool {
        // A DELETE that names a state may have been withdrawn, and then nothing waits.
        let Some((since, deleters, false)) = self.told.get(&entry.resource) else { return false };
        let has_deleted = |grant: &Grant| grant.ids.iter().any(|id| deleters.contains(id)) && *since < entry.invoked;
        !grants.iter().any(|grant| grant.is_of(entry) && grant.is_shared && !has_deleted(grant))
    }
}

impl Ledger {
    /// Records that a DELETE has been answered. If it waits, its client has given its own lease up, also if the DELETE is
    /// withdrawn later. After a 503 it may wait.
    pub fn give_up(&mut self, entry: &Entry, told: &Told) {
        if !self.has_metadata && entry.operation == Operation::Delete && matches!(told.status, 202 | 503) {
            self.grants.iter_mut().filter(|grant| grant.is_of(entry)).for_each(|grant| grant.is_over = true);
        }
    }

    /// True if the client of a lease has sent a DELETE and got no answer: it may wait, and then the lease is given up.
    pub fn may_be_given_up(&self, grant: &Grant) -> bool {
        let is_open = |entry: &&Entry| entry.operation == Operation::Delete && entry.answered.is_none();
        self.requests.iter().filter(is_open).any(|entry| grant.is_of(entry))
    }

    /// Records the answer to a client that its DELETE waits.
    pub fn defer(&mut self, entry: &Entry, moment: u64) {
        if entry.applied > 0 {
            self.breaks("a DELETE that waits was applied".to_owned());
        }
        // The late DELETE may have been faster than this answer.
        if self.waiting.acted.get(&entry.resource).is_some_and(|acted| *acted > entry.invoked) {
            return;
        }
        let none = (moment, Vec::new(), true);
        let (_, deleters, all_name_states) = self.waiting.told.entry(entry.resource.clone()).or_insert(none);
        deleters.extend(entry.lease.clone());
        *all_name_states &= field(&entry.request, "if-match").is_some();
    }

    /// Returns what is wrong with a late DELETE on which the backend acts. `changes`: whether there was something to
    /// delete; `before`: the state then.
    pub fn late_delete(
        &mut self,
        resource: &str,
        (changes, before): (bool, &Resource),
        now: Instant,
    ) -> Option<String> {
        let moment = self.moment();
        self.waiting.end(resource);
        let last = self.waiting.acted.insert(resource.to_owned(), moment);
        let deletes = |entry: &&Entry| entry.operation == Operation::Delete && entry.resource == resource;
        let is_open = |entry: &Entry| match &entry.answered {
            Some((at, told)) => matches!(told.status, 202 | 503) && last.is_none_or(|last| *at > last),
            None => true,
        };
        let mut open = self.requests.iter().filter(deletes).filter(|entry| is_open(entry)).peekable();
        if changes && open.peek().is_none() {
            return Some(format!("{resource} is deleted late, and no client waits for that"));
        }
        if changes && open.all(|entry| self.is_outdated(entry, before)) {
            return Some(format!("{resource} is deleted late, and has changed since the DELETE that names its state"));
        }
        let gave_up = |grant: &Grant| self.requests.iter().filter(deletes).any(|entry| grant.is_of(entry));
        let holds = |grant: &&Grant| grant.resource == resource && grant.is_held(now) && !gave_up(grant);
        if let Some(grant) = self.grants.iter().find(holds) {
            return Some(format!("{resource} is deleted late while a client holds the lease {}", grant.fence));
        }
        let ended = self.grants.iter_mut().filter(|grant| grant.resource == resource);
        ended.for_each(|grant| grant.is_over = true);
        None
    }

    /// True if a DELETE that waits named a state of the resource that a later request has replaced since.
    fn is_outdated(&self, entry: &Entry, before: &Resource) -> bool {
        let Some((told, _)) = entry.answered.as_ref().filter(|_| is_deferred(entry)) else { return false };
        let Some(base) = entry.base.as_ref().filter(|_| field(&entry.request, "if-match").is_some()) else {
            return false;
        };
        let since = usize::try_from(base.serial).unwrap().min(before.changes.len());
        let is_later = |change: &Change| change.by.is_some_and(|by| self.requests[by].invoked > *told);
        let is_same = self.equal_content_is_one_state && before.content() == base.content;
        !is_same && before.changes[since..].iter().any(is_later)
    }

    /// Returns what is wrong if an answer shows a resource that waits to be deleted.
    pub fn shows_deferred(&self, number: usize, entry: &Entry, told: &Told) -> Option<String> {
        let since = self.waiting.told.get(&entry.resource).map(|(since, ..)| *since);
        let is_later = since.is_some_and(|since| since < entry.invoked);
        let shows = entry.operation == Operation::Read && matches!(told.status, 200 | 206 | 304);
        let is_wrong = is_later && shows && self.waiting.hides(entry, &self.grants);
        is_wrong.then(|| format!("request {number} shows what waits to be deleted"))
    }
}
