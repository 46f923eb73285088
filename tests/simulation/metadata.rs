//! Metadata: a second part of each resource, in a document of its own at the backend. The rules for both parts together.

use http::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    backend::{Change, Resource},
    client::Told,
    judge::{Entry, Ledger},
    operation::Operation,
    retries::is_success,
    world::{Inner, Sent},
};

/// The end of the names of documents with metadata.
pub const SUFFIX: &str = ".metadata.json";

/// The field with the metadata of a resource: the number of the write that gave it to the resource.
pub const FIELD: &str = "x-ms-meta-is";

/// The number of times that a request has changed each part of its resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Parts {
    content: usize,
    metadata: usize,
}

/// Returns the fields that a request of Azure's clients has for its metadata.
pub fn fields(operation: Operation, number: usize) -> Vec<(&'static str, String)> {
    let kind = ("x-ms-blob-type", "BlockBlob".to_owned());
    match operation {
        Operation::Create | Operation::Put | Operation::Unless => vec![kind, (FIELD, number.to_string())],
        Operation::Strip => vec![kind],
        Operation::Describe => vec![(FIELD, number.to_string())],
        _ => Vec::new(),
    }
}

/// Returns the document with these metadata.
pub fn document(metadata: u32) -> String {
    json!({ "is": metadata.to_string() }).to_string()
}

/// Returns the metadata in a document.
pub fn written(document: &str) -> Option<u32> {
    serde_json::from_str::<Value>(document).ok()?["is"].as_str()?.parse().ok()
}

impl Entry {
    /// True if the answer to the client says that its write may be done by half, and asks it to read the resource.
    pub fn is_half_done(&self, told: &Told) -> bool {
        self.parts != Parts::default() && told.code == Some("upstream-failed")
    }

    /// True if a change leaves the resource as this write means to leave it.
    fn leaves(&self, number: usize, change: &Change) -> bool {
        let own = u32::try_from(number).ok();
        let (content, metadata) = match self.operation {
            Operation::Delete => (None, None),
            Operation::Describe => (change.content, own),
            Operation::Strip => (own, None),
            _ => (own, own),
        };
        (change.content, change.metadata) == (content, metadata)
    }
}

impl Inner {
    /// Records what a request has done to a part of its resource. `is_change`: whether it has changed anything.
    pub fn changed_part(&mut self, sent: &Sent, (before, is_change): (&Resource, bool), now: Instant) {
        let Some(number) = sent.request.filter(|_| sent.writes()) else { return };
        let entry = &mut self.ledger.requests[number];
        entry.arrived = true;
        if !is_change {
            return;
        }
        let is_first = entry.parts == Parts::default();
        let is_of_metadata = sent.target.ends_with(SUFFIX);
        let part = if is_of_metadata { &mut entry.parts.metadata } else { &mut entry.parts.content };
        *part += 1;
        let is_again = *part > 1;
        entry.applied += usize::from(is_of_metadata == (entry.operation == Operation::Describe));
        let (entry, after) = (entry.clone(), self.backend.resource(&entry.resource));
        let is_next = before.changes.last().is_some_and(|last| last.by == Some(number));
        let wrong = if is_again {
            Some(format!("request {number} was applied twice"))
        } else if is_first {
            self.ledger.application(number, (&entry, sent.fence), before, now)
        } else {
            (!is_next).then(|| format!("request {number} changes the second part of another state"))
        };
        let is_left_over = after.content().is_none() && after.metadata().is_some();
        let left_over =
            is_left_over.then(|| format!("after request {number} there are metadata without their resource"));
        if let Some(wrong) = wrong.or(left_over) {
            self.ledger.breaks(wrong);
        }
    }
}

impl Ledger {
    /// Records the answer that the client of a request gets about both parts of a resource.
    pub fn answered_with_metadata(
        &mut self,
        (number, entry): (usize, &Entry),
        told: &Told,
        resource: &Resource,
        at: Instant,
    ) {
        let own = resource.changes.iter().rposition(|change| change.by == Some(number));
        let serial = if entry.operation.writes() { own.map(|last| last as u64 + 1) } else { told.serial };
        let state = serial.and_then(|serial| resource.change_at(serial));
        if entry.operation.writes() && is_success(told) && !state.is_some_and(|state| entry.leaves(number, state)) {
            self.breaks(format!("request {number} was acknowledged, and left {state:?}"));
        }
        let is_labelled = entry.request.method == Method::GET && told.status == 200 && told.tag.is_some();
        if is_labelled && told.metadata != state.and_then(|state| state.metadata) {
            self.breaks(format!("request {number} shows content and metadata of two states with one tag: {told:?}"));
        }
        self.learn(entry, &Told { serial, ..told.clone() }, state.and_then(|state| state.content), at);
    }
}
