//! The decision about a request, as logs, metrics and traces show it.

use crate::core::refusal::Code;

/// The decision about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It went to the upstream.
    Passed,
    /// It went to the upstream, on a route that only watches.
    Observed,
    /// ifmatch answered it.
    Answered,
    /// ifmatch confirmed the copy of its client.
    NotModified,
    /// It was a retry, and got the answer of its first attempt.
    Replayed,
    /// It was refused, or would have been.
    Refused(Code),
    /// Only the upstream could have decided.
    Unknown,
}

impl Decision {
    /// Returns the name of the decision.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Observed => "observed",
            Self::Answered => "answered",
            Self::NotModified => "not-modified",
            Self::Replayed => "replayed",
            Self::Refused(code) => code.as_str(),
            Self::Unknown => "unknown",
        }
    }
}
