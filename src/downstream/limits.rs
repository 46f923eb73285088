//! How long a client may take.

use std::time::Duration;

/// How long a client may take to receive a piece of its response.
pub(crate) const WRITE_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a kept connection waits for the rest of a small body.
pub(super) const SMALL_BODY_WAIT: Duration = Duration::from_secs(2);
/// How long a client may pause within its request before the response begins.
pub(super) const PAUSE_MAX: Duration = Duration::from_secs(60);
