//! The wait for one change, for clients that read no stream.

use std::time::Duration;

use http::{HeaderMap, StatusCode, header};
use tokio::time::{Instant, timeout_at};

use super::{WatchWanted, fields_of_state, told, watching::Watching};
use crate::{
    body::Client,
    core::{records::record::Snapshot, watch::denied_json},
    dialect::native::applied_wait,
    drain::GenerationEnd,
    guard::Answer,
    guard::Halt,
};

/// The resources whose next change a client waits for.
pub(super) struct Wait {
    pub(super) watching: Watching,
    /// The record of each.
    pub(super) snapshots: Vec<Snapshot>,
    /// The resources that the client may not read, with the upstream's answer.
    pub(super) denied: Vec<(String, StatusCode)>,
    pub(super) end: GenerationEnd,
}

impl Wait {
    /// Answers with the state as soon as it is another than the client knows, else with 304.
    pub(super) async fn answer(
        mut self,
        client: &mut dyn Client,
        wanted: &WatchWanted,
        max_wait: Duration,
    ) -> Result<Answer, Halt> {
        let begun = Instant::now();
        let patience = begun + wanted.wait.unwrap_or_default().min(max_wait);
        // The client gets no event after the end of its right.
        let until = self.watching.watched.iter().map(|one| one.watcher.right_until()).fold(patience, Instant::min);
        let end = self.end.clone();
        let mut is_told_late = false;
        loop {
            let id = self.watching.state_id();
            if !wanted.knows(&id) {
                let mut response = told(self.body(), &id);
                if is_told_late {
                    response.fields.extend([applied_wait()]);
                }
                return Ok(Answer::local(response));
            }
            is_told_late = wanted.wait.is_some();
            let changed = tokio::select! {
                biased;
                changed = timeout_at(until, self.changed()) => changed.is_ok(),
                () = end.wait() => false,
                gone = client.gone() => return Err(Halt::Broken(gone)),
            };
            if !changed {
                let mut fields: HeaderMap = fields_of_state(&id, "application/json");
                fields.remove(header::CONTENT_TYPE);
                return Ok(Answer::not_modified(fields));
            }
        }
    }

    /// Waits until one of the resources may look different, and looks.
    async fn changed(&mut self) {
        for looked in self.watching.looked().await {
            if let Some(snapshot) = self.snapshots.get_mut(looked.place)
                && looked.snapshot.revision >= snapshot.revision
            {
                *snapshot = looked.snapshot;
            }
        }
    }

    fn body(&self) -> String {
        let states = self.watching.states(&self.snapshots);
        let is_one = self.watching.watched.len() + self.denied.len() == 1;
        if is_one || self.denied.is_empty() {
            return states;
        }
        let denied = self.denied.iter().map(|(name, status)| denied_json(name, *status));
        let states = states.strip_prefix('[').and_then(|states| states.strip_suffix(']')).unwrap_or(&states);
        format!("[{}]", std::iter::once(states.to_owned()).chain(denied).collect::<Vec<_>>().join(","))
    }
}
