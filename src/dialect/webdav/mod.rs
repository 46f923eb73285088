//! The spelling of `WebDAV` class 2 (RFC 4918): locks, the `If` field, and the documents about them.
//!
//! A lock is a lease: its token is the id of the lease. [`If`] reads the conditions of a request, and [`judge`] what
//! they come to. [`WantedLock`] reads the document that asks for a lock. [`Question`] and [`Cutter`] read what a PROPFIND
//! asks, and what the backend answers.

use http::HeaderName;

use super::markup;

mod condition;
mod documents;
mod fields;
mod grammar;
mod if_field;
mod lock_info;
mod lock_note;
mod multistatus;
mod question;
mod response;

pub use condition::{OpenList, Place, TagList, Truth, judge, narrowed};
pub use documents::{ShownLock, active_locks, lock_answer, not_locked, token_uri};
pub use fields::{LockDepth, MalformedField, depth, lock_token, timeout};
pub use grammar::{LockFields, WebDav};
pub use if_field::{Group, If, IfList, IfPart, MalformedIf, State, StateToken};
pub use lock_info::{LOCK_INFO_BYTES_MAX, LockInfoFault, OWNER_BYTES_MAX, WantedLock};
pub use lock_note::LockNote;
pub use multistatus::{Cutter, ListPiece, MalformedMultistatus, RESPONSE_BYTES_MAX};
pub use question::{QUESTION_BYTES_MAX, Question};
pub use response::{MultistatusResponse, ResourceFacts, all_succeeded};

/// The namespace of the elements of the protocol.
pub const NAMESPACE: &str = "DAV:";

/// The field with the conditions of a request (RFC 4918 section 10.4).
pub const IF: HeaderName = HeaderName::from_static("if");
/// The field with the token of a lock (section 10.5).
pub const LOCK_TOKEN: HeaderName = HeaderName::from_static("lock-token");
/// The field with the time for which a lock is wanted (section 10.7).
pub const TIMEOUT: HeaderName = HeaderName::from_static("timeout");
/// The field that tells how deep a request reaches (section 10.2).
pub const DEPTH: HeaderName = HeaderName::from_static("depth");
