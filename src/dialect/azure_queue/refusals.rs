//! Refusals of operations on queues, with Azure's names.

use std::time::Duration;

use crate::{
    core::refusal::{Code, Refusal},
    dialect::azure,
};

/// Refuses an operation on a queue that does not exist.
pub fn queue_not_found() -> Refusal {
    missing("QueueNotFound", "The specified queue does not exist.")
}

/// Refuses an operation on a message that does not exist.
pub fn message_not_found() -> Refusal {
    missing("MessageNotFound", "The specified message does not exist.")
}

/// Refuses a receipt that is not the last one of its message.
pub fn pop_receipt_mismatch() -> Refusal {
    let detail = "The specified pop receipt did not match the pop receipt for a dequeued message: it was updated, or another \
                  client has it.";
    Refusal::new(Code::PreconditionFailed, detail).called(400, "PopReceiptMismatch")
}

/// Refuses to create a queue that has other metadata.
pub fn queue_exists() -> Refusal {
    let detail = "The specified queue already exists, and has other metadata.";
    Refusal::new(Code::PreconditionFailed, detail).called(409, "QueueAlreadyExists")
}

/// Refuses a message that is too long.
pub fn body_too_large() -> Refusal {
    Refusal::new(Code::BodyTooLarge, "The text of a message has at most 64 KiB in UTF-8.")
}

/// Refuses a body that is no message.
pub fn malformed_document() -> Refusal {
    let detail = "The body is no document <QueueMessage><MessageText>…</MessageText></QueueMessage> in UTF-8.";
    azure::invalid("InvalidXmlDocument", detail)
}

/// Tells that a part of the messages is still there.
pub fn too_much_to_clear() -> Refusal {
    let detail = "A part of the messages is deleted. Repeat the request until it succeeds.";
    Refusal::new(Code::Overloaded, detail).called(500, "OperationTimedOut").retry_after(Duration::from_secs(1))
}

/// Refuses an operation whose queue or message changed each time it was about to be written.
pub fn too_many_changes() -> Refusal {
    let detail = "Other clients change the queue or message at this moment; try again.";
    Refusal::new(Code::WriteInFlight, detail).retry_after(Duration::from_secs(1))
}

/// Refuses an operation that needs a secret while the machine has no random numbers.
pub fn no_random_numbers() -> Refusal {
    Refusal::new(Code::Overloaded, "The proxy has no random numbers at this moment; try again.")
}

/// Refuses an operation on a state that no write could depend on.
pub fn unknown_state() -> Refusal {
    Refusal::new(Code::StoreUnavailable, "The state of the queue or message is not known at this moment; try again.")
}

/// Refuses an operation on a document of the backend that ifmatch has not written.
pub fn unreadable() -> Refusal {
    Refusal::new(Code::UpstreamFailed, "The backend has another document where that of the queue or message should be.")
}

/// Refuses the name of a queue.
pub(super) fn bad_name(code: &'static str, detail: &'static str) -> Refusal {
    azure::invalid(code, detail)
}

/// Refuses a number of the query outside of its range.
pub(super) fn out_of_range(name: &str, least: i64, most: i64) -> Refusal {
    let detail = format!("The query parameter {name} is a number from {least} to {most} here.");
    Refusal::new(Code::MalformedRequest, detail).called(400, "OutOfRangeQueryParameterValue")
}

/// Refuses a request without a required parameter.
pub(super) fn missing_parameter(name: &str) -> Refusal {
    let detail = format!("The request needs the query parameter {name}.");
    Refusal::new(Code::MalformedRequest, detail).called(400, "MissingRequiredQueryParameter")
}

fn missing(code: &'static str, detail: &'static str) -> Refusal {
    Refusal::new(Code::PreconditionFailed, detail).called(404, code)
}
