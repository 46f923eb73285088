//! The client's side of a request: its session over either protocol, and the writer of every answer.

pub mod client;
mod head;
mod http1;
mod http2;
pub(crate) mod local_answer;
pub(crate) mod peer;
pub(crate) mod relay;
pub mod respond;
pub(crate) mod session;
pub(crate) mod stream;
pub(crate) mod unread;
pub(crate) mod upload;

use std::time::Duration;

/// How long a client may take to receive a piece of its response.
pub(crate) const WRITE_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a kept connection waits for the rest of a small body.
const SMALL_BODY_WAIT: Duration = Duration::from_secs(2);
/// How long a client may pause within its request before the response begins.
const PAUSE_MAX: Duration = Duration::from_secs(60);
