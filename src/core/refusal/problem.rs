//! The members of a problem document (RFC 9457), written as JSON.
//!
//! # Design
//!
//! *Why not a derived serializer?* Most answers that a proxy makes under contention are such documents. A derived one
//! with flattened and optional members costs six times as much as this.

use std::fmt::{Display, Write as _};

use crate::core::{
    cause::{Cause, Reason, Untagged},
    refusal::Refusal,
};

/// The room for most problem documents.
const PROBLEM_BYTES: usize = 512;

/// A JSON object that is being written. Writing to memory cannot fail.
struct Object(String);

impl Object {
    /// Begins the next member.
    fn name(&mut self, name: &'static str) {
        self.0.push_str(if self.0.is_empty() { "{\"" } else { ",\"" });
        self.0.push_str(name);
        self.0.push_str("\":");
    }

    /// Adds a member with a text that needs no escapes.
    fn word(&mut self, name: &'static str, word: &'static str) {
        self.name(name);
        self.0.push('"');
        self.0.push_str(word);
        self.0.push('"');
    }

    /// Adds a member with any text (RFC 8259 section 7).
    fn text(&mut self, name: &'static str, text: &str) {
        self.name(name);
        self.0.push('"');
        let mut rest = text;
        // Most texts have nothing to escape. One look at all octets is faster than a search for the first.
        if text.bytes().fold(false, |found, octet| found | is_escaped(octet)) {
            while let Some(place) = rest.bytes().position(is_escaped) {
                let (plain, from) = rest.split_at(place);
                self.0.push_str(plain);
                let (escaped, after) = from.split_at(1);
                let _ = match escaped {
                    "\"" | "\\" => write!(self.0, "\\{escaped}"),
                    control => write!(self.0, "\\u{:04x}", control.bytes().next().unwrap_or_default()),
                };
                rest = after;
            }
        }
        self.0.push_str(rest);
        self.0.push('"');
    }

    /// Adds a member with a number or another value whose text is JSON.
    fn value(&mut self, name: &'static str, value: impl Display) {
        self.name(name);
        let _ = write!(self.0, "{value}");
    }

    fn end(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

/// True if an octet of a text is escaped (RFC 8259 section 7).
fn is_escaped(octet: u8) -> bool {
    octet < b' ' || matches!(octet, b'"' | b'\\')
}

/// Writes the problem document of a refusal, its members in the order that suits a reader.
pub(super) fn document(refusal: &Refusal) -> String {
    let mut object = Object(String::with_capacity(PROBLEM_BYTES));
    object.name("type");
    for part in ["\"urn:ifmatch:problem:", refusal.code.as_str(), "\""] {
        object.0.push_str(part);
    }
    object.word("title", refusal.code.title());
    object.name("status");
    object.0.push_str(refusal.code.status().as_str());
    object.text("detail", &refusal.detail);
    object.word("code", refusal.code.as_str());
    if let Some(holder) = refusal.shown_holder() {
        object.text("holder", holder);
    }
    if let Some(seconds) = refusal.retry_after_seconds() {
        object.value("retry_after", seconds);
    }
    if refusal.in_doubt {
        object.value("in_doubt", true);
    }
    if let Some(id) = refusal.request_id {
        object.value("instance", format_args!("\"urn:ifmatch:request:{id}\""));
    }
    if let Some(cause) = &refusal.cause {
        add_cause(&mut object, cause);
    }
    object.end()
}

/// Adds the members that show the client the cause, as far as it may know.
fn add_cause(object: &mut Object, cause: &Cause) {
    if let Some(reason) = cause.reason.map(Reason::word) {
        object.word("reason", reason);
    }
    if let Some(tag) = cause.sent_tag.as_deref() {
        object.text("sent_tag", tag);
    }
    if cause.client_may_know {
        add_state(object, cause);
    }
    // This is about an earlier read of the same client.
    if let Some(untagged) = cause.untagged.map(Untagged::word) {
        object.word("untagged", untagged);
    }
}

/// Adds the members that show the state of the resource.
fn add_state(object: &mut Object, cause: &Cause) {
    if let Some(tag) = cause.current_tag.as_deref() {
        object.text("current_tag", tag);
    }
    if let Some(change) = &cause.last_change {
        object.value("last_change_seconds", change.age.as_secs());
    }
    if let Some(status) = cause.probe_status {
        object.value("probe_status", status);
    }
    if let Some(remaining) = cause.lease.as_ref().and_then(|lease| lease.remaining) {
        object.value("lease_seconds", remaining.as_secs());
    }
}
