//! Events that meet nothing: they concern a resource that only one request can still reach.
//!
//! Such an event commutes with all others, so an exploration need not try the others before it: it is a persistent set
//! of one event. This holds if no fault is left, because a fault can hit any request at any of its steps.

use crate::{
    backend::resource_of,
    run::Run,
    schedule::Event,
    transfers::destination_of,
    world::{Inner, Pending, What},
};

impl Run {
    /// Returns an event that meets nothing, if there is one.
    pub fn own_event(&self) -> Option<Event> {
        if self.faults.left > 0 {
            return None;
        }
        let inner = self.world.lock();
        let own = inner.pending.iter().find(|asked| self.is_own(&inner, asked));
        own.map(|asked| Event::Do(asked.number))
    }

    fn is_own(&self, inner: &Inner, asked: &Pending) -> bool {
        let (Some(request), Some(resource)) = (asked.request, inner.only_resource(asked)) else { return false };
        let client = inner.ledger.requests[request].client;
        let others =
            self.setting.steps.iter().enumerate().filter(|(other, _)| *other != client && !self.is_done(inner, *other));
        let mut targets = others.flat_map(|(_, steps)| steps).flat_map(|step| {
            let leads_to = step.operation.transfers().then(|| destination_of(&step.target));
            [Some(step.target.as_str()), leads_to].into_iter().flatten()
        });
        let mut late = inner.late.iter().map(|late| &late.sent);
        let mut background = inner.pending.iter().filter(|other| other.request.is_none());
        !(targets.any(|target| inner.reaches(target, &resource))
            || late.any(|sent| inner.is_reached_by(sent, &resource))
            || inner.stray.iter().any(|(key, ..)| resource_of_key(key.as_str()).as_ref() == Some(&resource))
            || background.any(|other| inner.only_resource(other).is_none_or(|other| other == resource)))
    }

    /// True if a client has no request any more.
    fn is_done(&self, inner: &Inner, client: usize) -> bool {
        let mut own = inner.ledger.requests.iter().filter(|entry| entry.client == client);
        self.clients[client].steps.is_empty() && own.all(|entry| entry.answered.is_some() || entry.is_given_up)
    }
}

impl Inner {
    /// Returns the resource that a question concerns, if it is one alone.
    fn only_resource(&self, asked: &Pending) -> Option<String> {
        match &asked.what {
            What::Read { key, .. } | What::Swap { key, .. } => resource_of_key(key.as_str()),
            What::Exchange { sent, .. } => {
                let resource = resource_of(&sent.target);
                let changes_another = sent.writes() && self.backend.touched(&resource).is_some();
                (!changes_another && sent.destination.is_none()).then_some(resource)
            }
        }
    }
}

/// Returns the resource of a record; the records of other things have none.
fn resource_of_key(key: &str) -> Option<String> {
    let (_, path) = key.split_once(":/")?;
    Some(resource_of(&format!("/{path}")))
}
