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

    /// The server has closed the connection before its response was complete.
    pub(super) const fn closed() -> Self {
        Self { connection_died: true, ..Self::abandoned() }
    }

    /// The connection broke.
    pub(super) fn broken(error: &io::Error) -> Self {
        tracing::debug!(%error, "a connection to an upstream broke");
        Self::closed()
    }

    /// The request was not sent. `connection_died` tells whether another connection may take it.
    pub(super) const fn not_sent(connection_died: bool) -> Self {
        Self { failure: Failure::NotSent { timed_out: false }, connection_died }
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
            return Self::not_sent(true);
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
