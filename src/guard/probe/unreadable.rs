//! The refusals of requests whose resource could not be read at the upstream.

use http::StatusCode;

use crate::core::refusal::{Code, Refusal};

/// The refusal if the body is too large for a tag.
pub(super) fn too_large() -> Refusal {
    unreadable(
        "the body is a stream or larger than max_hash_size: raise max_hash_size on this route, or use another tag source (etag)",
    )
}

/// The refusal if the upstream gave no answer within `probe_timeout`.
pub(super) fn timed_out() -> Refusal {
    Refusal::new(
        Code::UpstreamTimeout,
        "the upstream did not report the current state of the resource in time; nothing was written",
    )
}

/// The refusal if the upstream cannot be reached, or breaks the connection.
pub(super) fn unanswered() -> Refusal {
    Refusal::new(
        Code::ValidatorUnavailable,
        "send it again later; nothing was written: the proxy needs the current state of the resource, and the upstream \
         cannot be reached or broke the connection",
    )
}

/// The refusal if the status of the answer does not show the state of the resource.
pub(super) fn answered(status: StatusCode) -> Refusal {
    let mut refusal = unreadable(&format!("it answered {}", status.as_u16()));
    refusal.cause_mut().probe_status = Some(status.as_u16());
    refusal
}

/// The refusal if the upstream denies a probe that had the client's credentials, and these hold for one request alone.
pub(super) fn bound_credentials(status: StatusCode) -> Refusal {
    let mut refusal = Refusal::new(
        Code::ValidatorUnavailable,
        format!(
            "the proxy asked the upstream for the current state of the resource, and got {}: the client's credentials \
             hold for its own method or request, so a request of the proxy cannot use them. Nothing was written. Set \
             probe_auth = \"field\", \"none\" or \"sigv4\" on this route, or a source of tags that asks for no state: etag = \
             \"delegate\", or \"version\" with other_writers = false",
            status.as_u16()
        ),
    );
    refusal.cause_mut().probe_status = Some(status.as_u16());
    refusal
}

/// The refusal if the state cannot be read, for this reason.
pub(super) fn unreadable(reason: &str) -> Refusal {
    Refusal::new(
        Code::ValidatorUnavailable,
        format!(
            "the proxy needs the current state of the resource from the upstream, but {reason}; nothing was written. A \
             guarded resource must answer GET with 200, 404 or 410"
        ),
    )
}
