//! The texts of events (the WHATWG's server-sent events) and of states.

use http::StatusCode;
use serde::Serialize;

use super::{LeaseChange, SeenContent, StateObserver};
use crate::core::{
    digits::hexadecimal_text,
    lease::PublicLease,
    records::record::Snapshot,
    tags::{entity_tag::EntityTag, parts_hash::PartsHasher},
};

/// The name of the states of all resources of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateId(String);

impl StateId {
    /// Returns the name of these states in a store with this incarnation. `by_tag` tells for each whether its content can
    /// change without a new version.
    pub fn of<'a>(incarnation: u64, states: impl Iterator<Item = (&'a [u8], &'a StateObserver, bool)>) -> Self {
        let mut hasher = PartsHasher::default();
        hasher.add(&incarnation.to_le_bytes());
        for (name, observer, by_tag) in states {
            hasher.add(name);
            observer.add_to(&mut hasher, by_tag);
        }
        Self(hexadecimal_text(&hasher.half()))
    }

    /// The text of the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Returns the tag of states. It is weak, because it does not cover the remaining time of a lease.
pub fn state_tag(id: &StateId) -> Option<EntityTag> {
    EntityTag::weak(id.as_str()).ok()
}

#[derive(Serialize)]
struct StateText<'a> {
    path: &'a str,
    #[serde(flatten)]
    content: ContentView,
    lease: PublicLease<'a>,
}

#[derive(Serialize)]
struct ChangedText<'a> {
    path: &'a str,
    #[serde(flatten)]
    content: ContentView,
}

#[derive(Serialize)]
struct LeaseStepText<'a> {
    path: &'a str,
    change: &'static str,
    #[serde(flatten)]
    lease: PublicLease<'a>,
}

#[derive(Serialize)]
struct ContentView {
    #[serde(skip_serializing_if = "Option::is_none")]
    etag: Option<String>,
    #[serde(skip_serializing_if = "is_false")]
    deleted: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_false(value: &bool) -> bool {
    !*value
}

#[derive(Serialize)]
struct DeniedText<'a> {
    path: &'a str,
    status: u16,
}

impl ContentView {
    fn of(content: &SeenContent) -> Self {
        let text = |tag: &EntityTag| String::from_utf8_lossy(tag.to_header_value().as_bytes()).into_owned();
        Self { etag: content.tag().map(text), deleted: *content == SeenContent::Deleted }
    }
}

/// Returns the state of a resource as JSON.
pub fn state_json(path: &str, content: &SeenContent, snapshot: &Snapshot) -> String {
    json(&StateText { path, content: ContentView::of(content), lease: PublicLease::of(snapshot) })
}

/// Returns the event that tells the state of a resource. `id` ends a set of events that belong together.
pub fn state_event(path: &str, content: &SeenContent, snapshot: &Snapshot, id: Option<&StateId>) -> String {
    event("state", id, &state_json(path, content, snapshot))
}

/// Returns the event of a change of the content.
pub fn changed_event(path: &str, content: &SeenContent, id: Option<&StateId>) -> String {
    event("changed", id, &json(&ChangedText { path, content: ContentView::of(content) }))
}

/// Returns the event of a step of the lease, with the state that the step has led to.
pub fn lease_event(path: &str, change: LeaseChange, snapshot: &Snapshot, id: Option<&StateId>) -> String {
    event("lease", id, &json(&LeaseStepText { path, change: change.word(), lease: PublicLease::of(snapshot) }))
}

/// Returns the event that tells that the upstream denies a resource, with its status.
pub fn denied_event(path: &str, status: StatusCode) -> String {
    event("denied", None, &denied_json(path, status))
}

/// Returns the same as JSON.
pub fn denied_json(path: &str, status: StatusCode) -> String {
    json(&DeniedText { path, status: status.as_u16() })
}

/// Returns the line that tells a client when to come back after the end of its stream.
pub fn retry_text(milliseconds: u64) -> String {
    format!("retry: {milliseconds}\n\n")
}

/// One event. JSON has no line breaks of its own.
pub(super) fn event(name: &str, id: Option<&StateId>, data: &str) -> String {
    match id {
        Some(id) => format!("event: {name}\nid: {}\ndata: {data}\n\n", id.as_str()),
        None => format!("event: {name}\ndata: {data}\n\n"),
    }
}

/// Writes a value as JSON.
pub(super) fn json(value: &impl Serialize) -> String {
    // Serialising words and numbers cannot fail.
    serde_json::to_string(value).unwrap_or_default()
}
