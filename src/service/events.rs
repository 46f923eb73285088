//! The common parts of all streams of events.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, header};
use tokio::time::{Instant, sleep_until};

use crate::{core::watch::retry_text, entropy::number_below};

/// How often a stream without events gets a comment. Intermediaries close a connection that is silent for a minute or
/// half of it.
const COMMENT_EACH: Duration = Duration::from_secs(15);

/// When a client comes back after its stream has broken off.
const RETRY: Duration = Duration::from_secs(1);

/// The spread of that time when this proxy ends all streams at once, so that not all clients come back at once.
const RETRY_SPREAD: Duration = Duration::from_secs(4);

/// True if a client reads a stream of events.
pub(super) fn are_wanted(headers: &HeaderMap) -> bool {
    let accepts = headers.get_all(header::ACCEPT).iter().filter_map(|line| line.to_str().ok());
    let mut types = accepts.flat_map(|line| line.split(',')).filter_map(|range| range.split(';').next());
    types.any(|media_type| media_type.trim().eq_ignore_ascii_case("text/event-stream"))
}

/// The first words of a stream: when its client comes back after a break.
pub(super) fn greeting() -> String {
    retry_text(milliseconds(RETRY))
}

/// The last words of a stream that this proxy ends. Its client has to come back within this time.
pub(super) fn farewell(within: Duration) -> String {
    let retry = RETRY + Duration::from_millis(number_below(milliseconds(RETRY_SPREAD)));
    retry_text(milliseconds(retry.min(within)))
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// When a silent stream is due a comment.
pub(super) struct Silence(Instant);

impl Silence {
    /// A silence that begins now.
    pub(super) fn begin() -> Self {
        Self(Instant::now() + COMMENT_EACH)
    }

    /// Waits until it has lasted for too long. May be dropped and called again.
    pub(super) async fn is_too_long(&self) {
        sleep_until(self.0).await;
    }

    /// Returns a piece of the stream, if there is one. It ends the silence.
    pub(super) fn broken_by(&mut self, text: String) -> Option<Bytes> {
        if text.is_empty() {
            return None;
        }
        *self = Self::begin();
        Some(text.into())
    }
}

/// The comment.
pub(super) const COMMENT: &str = ":\n\n";
