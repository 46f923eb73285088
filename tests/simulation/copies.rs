//! What a 304 promises: the copy of its client is current.

use crate::{
    backend::{Change, Resource},
    client::Told,
    judge::{Entry, Ledger},
};

impl Ledger {
    /// Returns what is wrong with a 304, which tells a client that its copy is current: the copy was replaced by a write
    /// that had been acknowledged when the client asked.
    pub fn outdated(&self, number: usize, (entry, told): (&Entry, &Told), resource: &Resource) -> Option<String> {
        let base = entry.base.as_ref().filter(|_| told.status == 304)?;
        let is_known_since = |change: &Change| {
            let answered = change.by.and_then(|by| self.requests[by].answered.as_ref());
            answered.is_some_and(|(at, told)| told.status < 300 && *at < entry.invoked)
        };
        let mut states = base.serial..=resource.serial();
        let was_current = |serial: u64| {
            let is_it = serial == base.serial || resource.content_at(serial) == base.content;
            let since = usize::try_from(serial).unwrap().min(resource.changes.len());
            is_it && !resource.changes[since..].iter().any(is_known_since)
        };
        let (from, to) = (base.serial, resource.serial());
        let how = format!("request {number} is told that change {from} is current, and change {to} was acknowledged");
        (!states.any(was_current)).then_some(how)
    }
}
