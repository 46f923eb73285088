//! Refusals: the answers that ifmatch makes instead of the backend, as data (RFC 9457, RFC 9209; DESIGN, section 8).
//!
//! How a refusal is written to a connection is a matter of `downstream::respond`, its one writer.

use std::{borrow::Cow, time::Duration};

use http::{HeaderMap, StatusCode};

use super::{
    cause::{Cause, Reason, RequestId, named_tags},
    tags::precondition::Preconditions,
};

mod problem;

/// The reason why a request was refused: the `code` member of the problem document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// A conditional field cannot be read.
    MalformedPrecondition,
    /// The target has more than one reading.
    AmbiguousTarget,
    /// The method is named in a header field and the route does not accept that.
    MethodOverride,
    /// The message itself breaks HTTP's rules.
    MalformedRequest,
    /// No route matches.
    NoRoute,
    /// The resource to lease does not exist.
    LeaseTargetMissing,
    /// The resource is deleted as soon as no client holds its lease.
    DeletePending,
    /// TRACE and CONNECT.
    MethodNotAllowed,
    /// The request head did not arrive in time.
    HeaderTimeout,
    /// The request head is larger than `max_header_size`.
    HeaderTooLarge,
    /// The target is longer than `max_target_size`.
    TargetTooLong,
    /// The request body did not arrive in time.
    BodyTimeout,
    /// The request body is larger than `max_body_size`.
    BodyTooLarge,
    /// The request body is not declared as JSON, and the route reads the resource's name in it.
    UnsupportedMediaType,
    /// Something that ifmatch cannot guard.
    NotSupported,
    /// A COPY or MOVE leads to another server, or to what no route guards for the same upstream.
    DestinationElsewhere,
    /// A COPY or MOVE leads to its own source.
    DestinationIsSource,
    /// Another write on the resource is in flight or in doubt.
    WriteInFlight,
    /// A read waits for settled states, and a write on the resource has not settled in time.
    Unsettled,
    /// A precondition is false.
    PreconditionFailed,
    /// A required precondition is absent.
    PreconditionRequired,
    /// The upstream gave no usable answer.
    UpstreamFailed,
    /// The upstream could not be connected to in time.
    UpstreamConnectTimeout,
    /// The upstream did not answer in time.
    UpstreamTimeout,
    /// The upstream could not be connected to.
    UpstreamUnreachable,
    /// The upstream accepted a connection that could not be made secure.
    UpstreamInsecure,
    /// The current validator could not be learned from the upstream.
    ValidatorUnavailable,
    /// A field about a lease cannot be read.
    MalformedLeaseHeader,
    /// Another client holds the lease.
    LeaseHeld,
    /// A lease operation names an id other than that of the lease.
    LeaseIdMismatch,
    /// A lease operation names a lease that does not exist.
    LeaseNotPresent,
    /// The lease is being broken.
    LeaseBreaking,
    /// The lease was broken.
    LeaseBroken,
    /// The lease was held for as long as `lease.max_hold_time`.
    LeaseHoldMax,
    /// A read or write of a leased resource names no lease.
    LeaseIdMissing,
    /// The same, on a route that tells it as a conflict (`lease.sharing_violation`).
    SharingViolation,
    /// A read or write names a shared lease that was not acquired for it (`Lease-Access`).
    LeaseAccess,
    /// A read or write names an id other than that of the lease.
    LeaseIdMismatchOnUse,
    /// A read or write names a lease that does not exist.
    LeaseNotPresentOnUse,
    /// A read or write names a lease that has ended.
    LeaseLost,
    /// The client has as many leases as `lease.max_per_principal` allows.
    TooManyLeases,
    /// A write has no idempotency key, and the route requires one.
    IdempotencyKeyMissing,
    /// The first attempt of this write has not ended, or is in doubt.
    IdempotencyInFlight,
    /// A write of another client came with this idempotency key.
    IdempotencyKeyInUse,
    /// The first attempt of this write was in doubt, and it stays unknown whether it was applied.
    IdempotencyOutcomeUnknown,
    /// Another write came with this idempotency key.
    IdempotencyMismatch,
    /// The store does not answer, or has lost acknowledged writes.
    StoreUnavailable,
    /// The store has no room for another busy record.
    StoreFull,
    /// A total limit of the proxy is reached.
    Overloaded,
    /// The request has been at this proxy before.
    LoopDetected,
}

/// The fixed parts of a code: its name on the wire, status, title, and `Proxy-Status` error type.
struct Facts(&'static str, u16, &'static str, &'static str);

impl Code {
    const fn facts(self) -> Facts {
        const DENIED: &str = "http_request_denied";
        match self {
            Self::MalformedPrecondition => {
                Facts("malformed-precondition", 400, "A conditional header field cannot be read", "http_request_error")
            }
            Self::AmbiguousTarget => {
                Facts("ambiguous-target", 400, "The target has more than one reading", "http_request_error")
            }
            Self::MethodOverride => Facts("method-override", 400, "Method override fields are refused here", DENIED),
            Self::MalformedRequest => {
                Facts("malformed-request", 400, "The request cannot be read", "http_request_error")
            }
            Self::NoRoute => Facts("no-route", 404, "No route matches this target", "destination_not_found"),
            Self::LeaseTargetMissing => Facts("lease-target-missing", 404, "There is nothing to lease", DENIED),
            Self::DeletePending => Facts("delete-pending", 409, "The resource is about to be deleted", DENIED),
            Self::MethodNotAllowed => Facts("method-not-allowed", 405, "The method is not allowed", DENIED),
            Self::HeaderTimeout => Facts("header-timeout", 408, "The request head did not arrive in time", DENIED),
            Self::HeaderTooLarge => Facts("header-too-large", 431, "The request head is too large", DENIED),
            Self::TargetTooLong => Facts("target-too-long", 414, "The target is too long", "http_request_error"),
            Self::BodyTimeout => Facts("body-timeout", 408, "The request body did not arrive in time", DENIED),
            Self::BodyTooLarge => Facts("body-too-large", 413, "The request body is too large", DENIED),
            Self::UnsupportedMediaType => {
                Facts("unsupported-media-type", 415, "The body is not declared as JSON", DENIED)
            }
            Self::NotSupported => Facts("not-supported", 501, "The request cannot be guarded", DENIED),
            Self::DestinationElsewhere => {
                Facts("destination-elsewhere", 502, "The destination is not guarded together with the source", DENIED)
            }
            Self::DestinationIsSource => {
                Facts("destination-is-source", 403, "The destination is the source itself", DENIED)
            }
            Self::WriteInFlight => {
                Facts("write-in-flight", 409, "Another write on this resource is in flight or in doubt", DENIED)
            }
            Self::Unsettled => Facts("unsettled", 503, "A write on this resource has not ended", DENIED),
            Self::PreconditionFailed => Facts("precondition-failed", 412, "The precondition is false", DENIED),
            Self::PreconditionRequired => Facts("precondition-required", 428, "A precondition is required", DENIED),
            Self::UpstreamFailed => {
                Facts("upstream-failed", 502, "The upstream gave no usable answer", "http_response_incomplete")
            }
            Self::UpstreamConnectTimeout => {
                Facts("upstream-timeout", 504, "The upstream could not be reached in time", "connection_timeout")
            }
            Self::UpstreamTimeout => {
                Facts("upstream-timeout", 504, "The upstream did not answer in time", "http_response_timeout")
            }
            Self::UpstreamUnreachable => {
                Facts("upstream-failed", 502, "The upstream could not be reached", "connection_refused")
            }
            Self::UpstreamInsecure => Facts(
                "upstream-failed",
                502,
                "No secure connection to the upstream could be made",
                "tls_protocol_error",
            ),
            Self::ValidatorUnavailable => Facts(
                "validator-unavailable",
                502,
                "The current state of the resource could not be learned",
                "http_response_incomplete",
            ),
            Self::MalformedLeaseHeader => {
                Facts("malformed-lease-header", 400, "A lease header field cannot be read", "http_request_error")
            }
            Self::LeaseHeld => Facts("lease-held", 409, "Another client holds the lease", DENIED),
            Self::LeaseIdMismatch => Facts("lease-id-mismatch", 409, "The lease has another id", DENIED),
            Self::LeaseNotPresent => Facts("lease-not-present", 409, "There is no such lease", DENIED),
            Self::LeaseBreaking => Facts("lease-breaking", 409, "The lease is being broken", DENIED),
            Self::LeaseBroken => Facts("lease-broken", 409, "The lease was broken", DENIED),
            Self::LeaseHoldMax => Facts("lease-hold-max", 409, "The lease was held for too long", DENIED),
            Self::SharingViolation => Facts("sharing-violation", 409, "Another client holds the lease", DENIED),
            Self::LeaseIdMissing => Facts("lease-id-missing", 412, "A lease is needed", DENIED),
            Self::LeaseAccess => Facts("lease-access", 412, "The lease is not for this use", DENIED),
            Self::LeaseIdMismatchOnUse => Facts("lease-id-mismatch", 412, "The lease has another id", DENIED),
            Self::LeaseNotPresentOnUse => Facts("lease-not-present", 412, "There is no such lease", DENIED),
            Self::LeaseLost => Facts("lease-lost", 412, "The lease has ended", DENIED),
            Self::TooManyLeases => Facts("too-many-leases", 429, "The client has too many leases", DENIED),
            Self::IdempotencyKeyMissing => {
                Facts("idempotency-key-missing", 400, "An idempotency key is required", DENIED)
            }
            Self::IdempotencyInFlight => {
                Facts("idempotency-in-flight", 409, "The first attempt of this write has not ended", DENIED)
            }
            Self::IdempotencyKeyInUse => {
                Facts("idempotency-key-in-use", 409, "The idempotency key belongs to another client's write", DENIED)
            }
            Self::IdempotencyOutcomeUnknown => {
                Facts("idempotency-outcome-unknown", 409, "The first attempt may have been applied", DENIED)
            }
            Self::IdempotencyMismatch => {
                Facts("idempotency-mismatch", 422, "The idempotency key was used for another write", DENIED)
            }
            Self::StoreUnavailable => {
                Facts("store-unavailable", 503, "The store cannot be used", "proxy_internal_error")
            }
            Self::StoreFull => Facts("store-full", 503, "The store has no room", "proxy_internal_error"),
            Self::Overloaded => Facts("overloaded", 503, "A limit of the proxy is reached", "proxy_internal_error"),
            // RFC 9209 suggests 502, after which a proxy in front could not know whether a write was applied.
            Self::LoopDetected => Facts("loop-detected", 508, "The request goes round", "proxy_loop_detected"),
        }
    }

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        self.facts().0
    }

    /// The status of the answer.
    pub fn status(self) -> StatusCode {
        StatusCode::from_u16(self.facts().1).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// The title of the problem document.
    pub const fn title(self) -> &'static str {
        self.facts().2
    }

    /// The error type of the `Proxy-Status` field (RFC 9209 section 2.3).
    pub const fn proxy_status_error(self) -> &'static str {
        self.facts().3
    }
}

/// The status and name that the service imitated by a route gives an error, if they do not follow from its [`Code`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceError {
    /// The status.
    pub status: u16,
    /// The name.
    pub code: &'static str,
}

/// One refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The reason.
    pub code: Code,
    /// The request to send instead, for a human reader.
    pub detail: Cow<'static, str>,
    /// The time after which a retry may succeed; sent in whole seconds, rounded up.
    pub retry_after: Option<Duration>,
    /// True if a write was in flight whose outcome cannot be known.
    pub in_doubt: bool,
    /// The name that the holder of the lease gives itself.
    pub holder: Option<Box<str>>,
    /// The imitated service's name of the refusal; used if refusals have that service's format.
    pub service: Option<ServiceError>,
    /// Further fields of the answer.
    pub fields: Option<Box<HeaderMap>>,
    /// The reason beyond the code, and the facts behind it.
    pub cause: Option<Box<Cause>>,
    /// The id of the refused request, once it has one.
    pub request_id: Option<RequestId>,
}

impl Refusal {
    /// A refusal that does not pass with time.
    pub fn new(code: Code, detail: impl Into<Cow<'static, str>>) -> Self {
        let detail = detail.into();
        Self {
            code,
            detail,
            retry_after: None,
            in_doubt: false,
            holder: None,
            service: None,
            fields: None,
            cause: None,
            request_id: None,
        }
    }

    /// Adds the reason.
    #[must_use]
    pub fn because(mut self, reason: Reason) -> Self {
        self.cause_mut().reason = Some(reason);
        self
    }

    /// The cause, to add facts to it.
    pub fn cause_mut(&mut self) -> &mut Cause {
        self.cause.get_or_insert_default()
    }

    /// Adds the tags that the request names, if the verdict has not.
    pub fn note_sent_tags(&mut self, request: &HeaderMap) {
        let cause = self.cause_mut();
        if cause.sent_tag.is_none() {
            cause.sent_tag = Preconditions::parse(request).ok().as_ref().and_then(named_tags);
        }
    }

    /// Adds a time after which a retry may succeed.
    #[must_use]
    pub fn retry_after(self, after: Duration) -> Self {
        Self { retry_after: Some(after), ..self }
    }

    /// Adds that a write was in flight whose outcome cannot be known.
    #[must_use]
    pub fn in_doubt(self) -> Self {
        Self { in_doubt: true, ..self }
    }

    /// Adds the name that the holder of the lease gives itself.
    #[must_use]
    pub fn held_by(self, holder: &str) -> Self {
        Self { holder: Some(holder.into()), ..self }
    }

    /// Adds the status and name that the imitated service gives the refusal.
    #[must_use]
    pub fn called(self, status: u16, code: &'static str) -> Self {
        Self { service: Some(ServiceError { status, code }), ..self }
    }

    /// The `Retry-After` field in whole seconds, at least one.
    pub fn retry_after_seconds(&self) -> Option<u64> {
        self.retry_after
            .map(|after| after.as_secs() + u64::from(after.subsec_nanos() > 0))
            .map(|seconds| seconds.max(1))
    }

    /// The problem document (RFC 9457), as JSON.
    pub fn problem(&self) -> String {
        problem::document(self)
    }

    /// The name that the holder of the lease gives itself, if the client may know it.
    pub fn shown_holder(&self) -> Option<&str> {
        let of_cause = || self.cause.as_ref().filter(|cause| cause.client_may_know)?.lease.as_ref()?.holder.as_deref();
        self.holder.as_deref().or_else(of_cause)
    }

    /// The `Proxy-Status` field (RFC 9209), made of the proxy's own words alone, never of a request's.
    pub fn proxy_status(&self) -> String {
        ["ifmatch; error=", self.code.proxy_status_error(), "; details=\"", self.code.as_str(), "\""].concat()
    }
}

#[cfg(test)]
#[path = "refusal_tests.rs"]
mod tests;
