//! The documents by which a backend keeps queues and messages: JSON, and no longer than a message may be.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Moment, QueueMessage};
use crate::core::objects::metadata::Metadata;

/// A queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Its id, which each of its messages names.
    pub id: String,
    /// Its metadata.
    pub metadata: Metadata,
}

#[derive(Serialize, Deserialize)]
struct StoredQueue {
    queue: String,
    metadata: BTreeMap<String, String>,
}

#[derive(Serialize, Deserialize)]
struct StoredMessage {
    queue: String,
    inserted: u64,
    expires: Option<u64>,
    visible: u64,
    taken: u64,
    receipt: String,
    text: String,
}

impl Queue {
    /// Returns the document of the queue.
    pub fn to_document(&self) -> Vec<u8> {
        let metadata = self.metadata.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        // Texts always have a JSON form.
        serde_json::to_vec(&StoredQueue { queue: self.id.clone(), metadata }).unwrap_or_default()
    }

    /// Reads a document. `None` if it is not that of a queue.
    pub fn from_document(document: &[u8]) -> Option<Self> {
        let stored: StoredQueue = serde_json::from_slice(document).ok()?;
        let mut metadata = Metadata::default();
        stored.metadata.iter().try_for_each(|(name, value)| metadata.insert(name, value)).ok()?;
        Some(Self { id: stored.queue, metadata })
    }
}

impl QueueMessage {
    /// Returns the document of the message.
    pub fn to_document(&self) -> Vec<u8> {
        let Self { queue, text, inserted, expires, visible, taken, receipt } = self.clone();
        let expires = expires.map(|moment| moment.0);
        let stored = StoredMessage { queue, inserted: inserted.0, expires, visible: visible.0, taken, receipt, text };
        // Texts and numbers always have a JSON form.
        serde_json::to_vec(&stored).unwrap_or_default()
    }

    /// Reads a document. `None` if it is not that of a message.
    pub fn from_document(document: &[u8]) -> Option<Self> {
        let stored: StoredMessage = serde_json::from_slice(document).ok()?;
        let StoredMessage { queue, inserted, expires, visible, taken, receipt, text } = stored;
        let (inserted, expires, visible) = (Moment(inserted), expires.map(Moment), Moment(visible));
        Some(Self { queue, text, inserted, expires, visible, taken, receipt })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_message_survives_its_document(text: String, times: [u64; 3], expires: Option<u64>) {
            let [inserted, visible, taken] = times;
            let message = QueueMessage {
                queue: "a".to_owned(),
                text,
                inserted: Moment(inserted),
                expires: expires.map(Moment),
                visible: Moment(visible),
                taken,
                receipt: "b".to_owned(),
            };
            prop_assert_eq!(QueueMessage::from_document(&message.to_document()), Some(message));
        }

        #[test]
        fn no_other_document_is_read(document: Vec<u8>) {
            prop_assert_eq!(QueueMessage::from_document(&document), None);
            prop_assert_eq!(Queue::from_document(&document), None);
        }
    }

    #[test]
    fn a_queue_survives_its_document() {
        let mut metadata = Metadata::default();
        metadata.insert("Owner", "a \"b\"").expect("metadata");
        let queue = Queue { id: "1".to_owned(), metadata };
        assert_eq!(Queue::from_document(&queue.to_document()), Some(queue));
        assert_eq!(Queue::from_document(br#"{"queue":"1","metadata":{"1":"a"}}"#), None);
    }
}
