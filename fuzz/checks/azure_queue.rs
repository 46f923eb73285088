//! The requests of clients of Azure queues, and the documents that backends keep for them: nothing makes a reader panic,
//! and a document that was written is read unchanged.

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use ifmatch::dialect::{
    Incoming,
    azure_queue::{
        MessageStanding, Moment, PopReceipt, Queue, QueueCall, QueueMessage, QueueOf, QueueOperation, is_message_id,
        is_queue_name, read_message,
    },
};

const METHODS: [Method; 6] = [Method::GET, Method::PUT, Method::POST, Method::DELETE, Method::HEAD, Method::PATCH];

/// Gives one reader the rest of an input. The first byte says which one.
pub fn check(input: &[u8]) {
    let Some((which, rest)) = input.split_first() else { return };
    match which % 4 {
        0 => {
            let Ok(Some(text)) = read_message(rest) else { return };
            assert!(text.len() <= 64 * 1024);
            let receipt = PopReceipt::new([0; 16]).hash();
            let (inserted, visible) = (Moment(0), Moment(1));
            let (queue, expires, taken) = (String::new(), None, 0);
            let message = QueueMessage { queue, text, inserted, expires, visible, taken, receipt };
            assert_eq!(QueueMessage::from_document(&message.to_document()), Some(message));
        }
        1 => check_call(rest),
        2 => {
            let Some(message) = QueueMessage::from_document(rest) else { return };
            assert_eq!(QueueMessage::from_document(&message.to_document()), Some(message.clone()));
            let is_expired = message.standing(Moment(u64::MAX)) == MessageStanding::Expired;
            assert_eq!(is_expired, message.expires.is_some());
            let _date = message.visible.to_date();
        }
        _ => {
            let Some(queue) = Queue::from_document(rest) else { return };
            assert_eq!(Queue::from_document(&queue.to_document()), Some(queue));
        }
    }
}

/// Reads a request: the first byte is its method, the first line its target, and the others are fields.
fn check_call(input: &[u8]) {
    let Some((method, rest)) = input.split_first() else { return };
    let mut lines = rest.split(|octet| *octet == b'\n');
    let (target, mut headers) = (lines.next().unwrap_or_default(), HeaderMap::new());
    for line in lines {
        let (name, value) = line.split_at(line.iter().position(|octet| *octet == b':').unwrap_or_default());
        let value = value.strip_prefix(b":").unwrap_or(value);
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value)) {
            headers.append(name, value);
        }
    }
    let method = &METHODS[usize::from(*method) % METHODS.len()];
    let Ok(call) = QueueCall::of(Incoming { method, other_methods: &[], target, headers: &headers }) else { return };
    let QueueOperation::Of(queue, of_queue) = call.operation else { return };
    assert!(is_queue_name(&queue), "{queue}");
    if let QueueOf::Update(id, receipt, _) | QueueOf::DeleteMessage(id, receipt) = of_queue {
        assert!(is_message_id(&id), "{id}");
        assert!(PopReceipt::parse(&receipt.reveal()).is_some_and(|again| again == receipt));
    }
}
