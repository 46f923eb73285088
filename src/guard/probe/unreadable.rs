//! The refusals of requests whose resource could not be read at the upstream.

use http::StatusCode;

use crate::core::refusal::{Code, Refusal};

/// A body that is too large for a tag.
pub(super) fn too_large() -> Refusal {
    unreadable(
        "its body is larger than hash_max, or a stream: raise hash_max on this route, or use another tag source (etag)",
    )
}

/// No answer within `probe_timeout`.
pub(super) fn timed_out() -> Refusal {
    Refusal::new(
        Code::UpstreamTimeout,
        "the upstream did not tell the current state of the resource in time; nothing was written",
    )
}

/// A status that tells nothing of the resource.
pub(super) fn answered(status: StatusCode) -> Refusal {
    unreadable(&format!("it answered {}", status.as_u16()))
}

/// A state that cannot be read, for this reason.
pub(super) fn unreadable(reason: &str) -> Refusal {
    Refusal::new(
        Code::ValidatorUnavailable,
        format!(
            "the upstream was asked for the current state of the resource, and {reason}; nothing was written. A guarded \
             resource must answer GET with 200, 404 or 410"
        ),
    )
}
