//! The promise of a read: the copy that a 304 confirms is current, and so is the state that a 200 shows.

use crate::{
    backend::{Change, Resource},
    client::Told,
    judge::{Entry, Ledger},
};

impl Ledger {
    /// Returns what is wrong with a 304, which tells a client that its copy is current, or with a 200: the copy or the
    /// state was replaced by a write that had been acknowledged when the client asked.
    pub fn outdated(&self, number: usize, (entry, told): (&Entry, &Told), resource: &Resource) -> Option<String> {
        let (from, content) = match (told.status, &entry.base, told.serial) {
            (304, Some(base), _) => (base.serial, base.content),
            (200, _, Some(shown)) if entry.shows_state(told) => (shown, resource.content_at(shown)),
            _ => return None,
        };
        let is_known_since = |change: &Change| {
            let answered = change.by.and_then(|by| self.requests[by].answered.as_ref());
            answered.is_some_and(|(at, told)| told.status < 300 && *at < entry.invoked)
        };
        let was_current = |serial: u64| {
            let is_it = serial == from || resource.content_at(serial) == content;
            let since = usize::try_from(serial).unwrap().min(resource.changes.len());
            is_it && !resource.changes[since..].iter().any(is_known_since)
        };
        let to = resource.serial();
        let how = format!("request {number} is shown change {from} as current, and change {to} was acknowledged");
        (!(from..=to).any(was_current)).then_some(how)
    }
}
