//! The azure-queue dialect: Azure Queue Storage in front of a backend that stores the content of each PUT
//! (`docs/how-to/queue.md`).
//!
//! A queue is a document, and so is each message. The names of messages sort by the time at which they were put.
//!
//! # Design
//!
//! *Where is the state of a message?* In its document: from when on it is visible, how often it was taken, and the hash of
//! its pop receipt. So it outlives each proxy, and each change of it is one write with the tag of the state before.
//!
//! *Why is the receipt only kept as a hash?* It is the right to delete the message. Who may read the files of the backend
//! need not have that right.
//!
//! *Why does a message name its queue?* A queue may be deleted and created again while a client puts a message. A
//! message of the queue before must not appear in the new one.

mod body;
mod grammar;
mod message;
mod name;
mod operation;
mod parameters;
mod refusals;
mod shown;
mod stored;

pub use body::{BODY_BYTES_MAX, read_message};
pub use grammar::AzureQueue;
pub use message::{MessageStanding, Moment, PopReceipt, QueueMessage};
pub use name::{is_message_id, is_queue_name, message_id};
pub use operation::{QueueCall, QueueList, QueueOf, QueueOperation};
pub use refusals::{
    body_too_large, malformed_document, message_not_found, no_random_numbers, pop_receipt_mismatch, queue_exists,
    queue_not_found, too_many_changes, too_much_to_clear, unknown_state, unreadable,
};
pub use shown::{ListedQueue, ShownMessage, metadata_fields, receipt_fields, shown_messages, shown_queues};
pub use stored::Queue;
