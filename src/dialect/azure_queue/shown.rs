//! The documents and fields that answer operations on queues.

use http::{HeaderName, HeaderValue};

use super::{Moment, PopReceipt, Queue, QueueList, QueueMessage};
use crate::{
    core::objects::metadata::Metadata,
    dialect::{ShownDocument, azure::METADATA_PREFIX, xml},
};

const POP_RECEIPT: HeaderName = HeaderName::from_static("x-ms-popreceipt");
const TIME_NEXT_VISIBLE: HeaderName = HeaderName::from_static("x-ms-time-next-visible");
const APPROXIMATE_COUNT: HeaderName = HeaderName::from_static("x-ms-approximate-messages-count");

/// The end of a message that has none: the last moment that Azure tells.
const NEVER: &str = "Fri, 31 Dec 9999 23:59:59 GMT";

/// A message as an answer shows it.
#[derive(Debug)]
pub enum ShownMessage {
    /// Its client has just put it: it knows the text.
    Put(PopReceipt),
    /// Its client has taken it.
    Taken(PopReceipt),
    /// Its client only looks at it.
    Peeked,
}

/// Returns the document of messages, each with its id.
pub fn shown_messages(messages: &[(String, QueueMessage, ShownMessage)]) -> ShownDocument {
    let mut document = xml::Writer::begin("QueueMessagesList");
    for (id, message, shown) in messages {
        document.element("QueueMessage", |document| show(document, id, message, shown));
    }
    ShownDocument { content_type: xml::CONTENT_TYPE, body: document.end("QueueMessagesList") }
}

fn show(document: &mut xml::Writer, id: &str, message: &QueueMessage, shown: &ShownMessage) {
    document.text("MessageId", id);
    document.text("InsertionTime", &message.inserted.to_date());
    document.text("ExpirationTime", &message.expires.map_or_else(|| NEVER.to_owned(), Moment::to_date));
    if let ShownMessage::Put(receipt) | ShownMessage::Taken(receipt) = shown {
        document.text("PopReceipt", &receipt.reveal());
        document.text("TimeNextVisible", &message.visible.to_date());
    }
    if let ShownMessage::Taken(_) | ShownMessage::Peeked = shown {
        document.text("DequeueCount", &message.taken.to_string());
        document.exact("MessageText", &message.text);
    }
}

/// A queue in a list.
#[derive(Debug)]
pub struct ListedQueue {
    /// Its name.
    pub name: String,
    /// Its metadata, if they are wanted.
    pub metadata: Option<Metadata>,
}

/// Returns the document of a page of queues. `next` is the name after which the next page begins.
pub fn shown_queues(list: &QueueList, endpoint: &str, queues: &[ListedQueue], next: Option<&str>) -> ShownDocument {
    let mut document = xml::Writer::begin_with("EnumerationResults", &[("ServiceEndpoint", endpoint)]);
    document.text("Prefix", &list.prefix);
    document.text("Marker", list.after.as_deref().unwrap_or_default());
    document.text("MaxResults", &list.max_queues.to_string());
    document.element("Queues", |document| {
        for queue in queues {
            document.element("Queue", |document| {
                document.text("Name", &queue.name);
                if let Some(metadata) = &queue.metadata {
                    document.element("Metadata", |document| {
                        metadata.iter().for_each(|(name, value)| document.text(name, value));
                    });
                }
            });
        }
    });
    document.text("NextMarker", next.unwrap_or_default());
    ShownDocument { content_type: xml::CONTENT_TYPE, body: document.end("EnumerationResults") }
}

/// Returns the fields that tell the client of an update of its new receipt.
pub fn receipt_fields(message: &QueueMessage, receipt: PopReceipt) -> Vec<(HeaderName, HeaderValue)> {
    let values = [(POP_RECEIPT, receipt.reveal()), (TIME_NEXT_VISIBLE, message.visible.to_date())];
    // Both are visible ASCII.
    values.into_iter().filter_map(|(name, value)| Some((name, HeaderValue::try_from(value).ok()?))).collect()
}

/// Returns the fields that show a queue with this number of messages.
pub fn metadata_fields(queue: &Queue, count: usize) -> Vec<(HeaderName, HeaderValue)> {
    let metadata = queue.metadata.iter().filter_map(|(name, value)| {
        let name = HeaderName::try_from([METADATA_PREFIX, name].concat()).ok()?;
        Some((name, HeaderValue::from_str(value).ok()?))
    });
    metadata.chain([(APPROXIMATE_COUNT, HeaderValue::from(count))]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> QueueMessage {
        QueueMessage {
            queue: "q".to_owned(),
            text: "<a>\r\n".to_owned(),
            inserted: Moment(784_111_777_000),
            expires: None,
            visible: Moment(784_111_807_500),
            taken: 2,
            receipt: String::new(),
        }
    }

    /// Get Messages of Azure's documentation.
    #[test]
    fn a_message_is_shown_as_azure_shows_it() {
        let receipt = PopReceipt::new([0; 16]);
        let shown = |shown| shown_messages(&[("1".to_owned(), message(), shown)]).body;
        let times = "<MessageId>1</MessageId><InsertionTime>Sun, 06 Nov 1994 08:49:37 GMT</InsertionTime>\
                     <ExpirationTime>Fri, 31 Dec 9999 23:59:59 GMT</ExpirationTime>";
        let right = "<PopReceipt>AAAAAAAAAAAAAAAAAAAAAA</PopReceipt>\
                     <TimeNextVisible>Sun, 06 Nov 1994 08:50:07 GMT</TimeNextVisible>";
        let content = "<DequeueCount>2</DequeueCount><MessageText>&lt;a&gt;&#13;\n</MessageText>";
        let around = |inner: String| {
            format!(
                "<?xml version=\"1.0\" encoding=\"utf-8\"?><QueueMessagesList><QueueMessage>{inner}</QueueMessage>\
                 </QueueMessagesList>"
            )
        };
        assert_eq!(shown(ShownMessage::Taken(receipt)), around([times, right, content].concat()));
        assert_eq!(shown(ShownMessage::Put(receipt)), around([times, right].concat()));
        assert_eq!(
            shown(ShownMessage::Peeked),
            around([times, content].concat()),
            "who peeks has no right to the message"
        );
        let none = "<?xml version=\"1.0\" encoding=\"utf-8\"?><QueueMessagesList></QueueMessagesList>";
        assert_eq!(shown_messages(&[]).body, none);
    }

    /// List Queues of Azure's documentation.
    #[test]
    fn a_page_of_queues_is_shown_as_azure_shows_it() {
        let mut metadata = Metadata::default();
        metadata.insert("Color", "a&b").expect("metadata");
        let queues = [
            ListedQueue { name: "one".to_owned(), metadata: Some(metadata) },
            ListedQueue { name: "other".to_owned(), metadata: None },
        ];
        let list = QueueList { prefix: "o".to_owned(), after: None, max_queues: 2, shows_metadata: true };
        let expected = "<?xml version=\"1.0\" encoding=\"utf-8\"?><EnumerationResults ServiceEndpoint=\"http://h/\">\
                        <Prefix>o</Prefix><Marker></Marker><MaxResults>2</MaxResults><Queues><Queue><Name>one</Name>\
                        <Metadata><Color>a&amp;b</Color></Metadata></Queue><Queue><Name>other</Name></Queue></Queues>\
                        <NextMarker>p</NextMarker></EnumerationResults>";
        assert_eq!(shown_queues(&list, "http://h/", &queues, Some("p")).body, expected);
    }

    #[test]
    fn fields_tell_of_receipts_and_queues() {
        let told = |fields: Vec<(HeaderName, HeaderValue)>| {
            fields.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect::<Vec<_>>()
        };
        let expected =
            ["x-ms-popreceipt: AAAAAAAAAAAAAAAAAAAAAA", "x-ms-time-next-visible: Sun, 06 Nov 1994 08:50:07 GMT"];
        assert_eq!(told(receipt_fields(&message(), PopReceipt::new([0; 16]))), expected);
        let mut metadata = Metadata::default();
        metadata.insert("a", "b").expect("metadata");
        let queue = Queue { id: String::new(), metadata };
        assert_eq!(told(metadata_fields(&queue, 3)), ["x-ms-meta-a: b", "x-ms-approximate-messages-count: 3"]);
    }
}
