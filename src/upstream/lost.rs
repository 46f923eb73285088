//! Exchanges that fail after they have begun.

use std::io;

use pingora::ErrorType;

use super::{Failure, http2::is_unprocessed};

/// An exchange that failed after it began.
pub(crate) struct Lost {
    pub(crate) failure: Failure,
    /// True if the connection broke before the response's head was complete.
    pub(crate) connection_died: bool,
}

impl Lost {
    pub(super) const fn abandoned() -> Self {
        Self { failure: Failure::Abandoned { timed_out: false }, connection_died: false }
    }

    pub(super) const fn timed_out() -> Self {
        Self { failure: Failure::Abandoned { timed_out: true }, connection_died: false }
    }

    /// True if the server is known to have done nothing.
    pub(super) const fn is_untouched(&self) -> bool {
        matches!(self.failure, Failure::NotSent { .. })
    }

    /// Returns the failure's name in metrics.
    pub(crate) const fn word(&self) -> &'static str {
        match self.failure {
            Failure::NotSent { .. } => "not_sent",
            Failure::Insecure => "tls",
            Failure::Full => "overloaded",
            Failure::Abandoned { timed_out: true } => "timeout",
            Failure::Abandoned { timed_out: false } => "broken",
        }
    }
}

impl From<Box<pingora::Error>> for Lost {
    fn from(error: Box<pingora::Error>) -> Self {
        tracing::debug!(error = error.etype().as_str(), "an exchange with an upstream failed");
        if is_unprocessed(&error) {
            return Self { failure: Failure::NotSent { timed_out: false }, connection_died: true };
        }
        let died = matches!(error.etype(), ErrorType::ConnectionClosed | ErrorType::ReadError | ErrorType::WriteError);
        Self { connection_died: died, ..Self::abandoned() }
    }
}

impl From<io::Error> for Lost {
    fn from(error: io::Error) -> Self {
        tracing::error!(%error, "a spool file cannot be read");
        Self::abandoned()
    }
}
