//! The client's side of a request: its session over either protocol, and the writer of every answer.

pub mod client;
mod head;
mod http1;
mod http2;
mod limits;
pub(crate) mod local_answer;
pub(crate) mod peer;
pub(crate) mod relay;
pub mod respond;
pub(crate) mod session;
pub(crate) mod stream;
pub(crate) mod unread;
pub(crate) mod upload;

pub(crate) use limits::WRITE_TIMEOUT;
