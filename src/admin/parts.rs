//! The parts of the state that a console shows, and when a part counts as changed.
//!
//! # Design
//!
//! *When has a part changed?* Ages and remaining times differ at each look, and a reader can count them on. So members
//! whose names end with `_ms` are left out of the comparison. What can move such a time otherwise, such as the renewal
//! of a lease, is compared beside the document.

use std::hash::{DefaultHasher, Hash, Hasher as _};

use serde_json::Value;

/// One part of the state, as an event of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StatePart {
    /// The name of the event.
    pub(super) name: &'static str,
    /// Equal for two looks that show the same.
    pub(super) mark: u64,
    /// The event.
    pub(super) text: String,
}

impl StatePart {
    /// Makes a part of a document, and of what else tells it from others.
    pub(super) fn new(name: &'static str, document: &Value, beside: impl Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        beside.hash(&mut hasher);
        add(document, &mut hasher);
        Self { name, mark: hasher.finish(), text: format!("event: {name}\ndata: {document}\n\n") }
    }
}

/// Adds a document without its moving times.
fn add(document: &Value, hasher: &mut DefaultHasher) {
    match document {
        Value::Object(members) => {
            for (name, value) in members.iter().filter(|(name, _)| !name.ends_with("_ms")) {
                name.hash(hasher);
                add(value, hasher);
            }
        }
        Value::Array(values) => {
            values.len().hash(hasher);
            for value in values {
                add(value, hasher);
            }
        }
        other => other.to_string().hash(hasher),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn mark(document: &Value) -> u64 {
        StatePart::new("leases", document, 0).mark
    }

    #[test]
    fn a_part_is_one_event() {
        let part = StatePart::new("doubts", &json!({ "doubts": ["line\nline"] }), 0);
        assert_eq!(part.text, "event: doubts\ndata: {\"doubts\":[\"line\\nline\"]}\n\n");
    }

    #[test]
    fn passing_time_changes_no_part() {
        let lease = |age: u64, state: &str| json!({ "leases": [{ "age_ms": age, "state": state, "fence": 7 }] });
        assert_eq!(mark(&lease(1, "leased")), mark(&lease(2, "leased")));
        assert_ne!(mark(&lease(1, "leased")), mark(&lease(1, "breaking")));
        assert_ne!(mark(&json!({ "leases": [{}, {}] })), mark(&json!({ "leases": [{}] })));
        assert_ne!(mark(&json!({ "a": 1, "b": 2 })), mark(&json!({ "a": 2, "b": 1 })));
    }

    #[test]
    fn what_stands_beside_a_document_changes_the_part() {
        let lease = json!({ "remaining_ms": 10 });
        assert_ne!(StatePart::new("leases", &lease, 1).mark, StatePart::new("leases", &lease, 2).mark);
    }
}
