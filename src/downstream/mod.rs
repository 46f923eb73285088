//! The client's side of a request: pingora's session as a client of the guard, and the writer of every answer.

pub mod client;
pub(crate) mod local_answer;
pub(crate) mod relay;
pub mod respond;
pub(crate) mod session;
pub(crate) mod unread;
pub(crate) mod upload;
