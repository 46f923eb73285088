//! Refusals in the dialect: the text of each for people, and its name.

use std::time::Duration;

use crate::core::{
    lease::{Denied, UseDenied},
    refusal::{Code, Refusal},
};

/// When to retry while a lease without an end is held.
const RETRY_INFINITE: Duration = Duration::from_secs(60);

/// The text for a resource that a client of another route has deleted, while others still hold its lease.
const DELETE_PENDING: &str = "The specified resource is about to be deleted.";

/// Returns the refusal of a lease operation.
pub fn refuse(denied: &Denied) -> Refusal {
    match denied {
        Denied::Held { remaining, .. } | Denied::NoPlace { remaining } => {
            Refusal::new(Code::LeaseHeld, "There is already a lease present.")
                .retry_after(remaining.unwrap_or(RETRY_INFINITE))
        }
        Denied::IdMismatch => Refusal::new(
            Code::LeaseIdMismatch,
            "The lease ID specified did not match the lease ID, or the lease belongs to another client.",
        ),
        Denied::NotPresent => Refusal::new(Code::LeaseNotPresent, "There is currently no such lease."),
        Denied::Breaking => {
            Refusal::new(Code::LeaseBreaking, "The lease is being broken; acquire it anew after its end.")
        }
        Denied::Broken => Refusal::new(Code::LeaseBroken, "The lease has been broken; acquire it anew."),
        Denied::BeyondHoldMax => Refusal::new(
            Code::LeaseHoldMax,
            "The lease was held for as long as this proxy allows (lease.max_hold_time): release it, and acquire it anew.",
        ),
        Denied::DeletePending => Refusal::new(Code::DeletePending, DELETE_PENDING).retry_after(Duration::from_secs(1)),
        Denied::Busy(_) => {
            Refusal::new(Code::WriteInFlight, "A write is in flight or in doubt; the lease can be granted afterwards.")
                .retry_after(Duration::from_secs(1))
        }
    }
}

/// Returns the refusal of a read or write that a lease forbids.
pub fn refuse_use(denied: UseDenied) -> Refusal {
    match denied {
        UseDenied::IdMissing => Refusal::new(
            Code::LeaseIdMissing,
            "There is currently a lease, and no lease ID was specified in the request.",
        ),
        UseDenied::LeaseRequired => {
            Refusal::new(Code::LeaseIdMissing, "This proxy lets only the holder of a lease write: acquire one first.")
        }
        UseDenied::IdMismatch | UseDenied::BeyondAccess => {
            Refusal::new(Code::LeaseIdMismatchOnUse, "The lease ID specified did not match the lease ID.")
        }
        UseDenied::NotPresent => Refusal::new(Code::LeaseNotPresentOnUse, "There is currently no lease of this ID."),
        UseDenied::DeletePending => {
            Refusal::new(Code::DeletePending, DELETE_PENDING).retry_after(Duration::from_secs(1))
        }
        UseDenied::Lost => {
            Refusal::new(Code::LeaseLost, "A lease ID was specified, but the lease has expired or was broken.")
        }
    }
}

/// Refuses a request without a required field.
pub(super) fn missing_field(name: &str) -> Refusal {
    Refusal::new(Code::MalformedLeaseHeader, format!("The request needs {name}.")).called(400, "MissingRequiredHeader")
}

/// Refuses a field whose value has no meaning.
pub(super) fn bad_field(name: &str, expected: &str) -> Refusal {
    Refusal::new(Code::MalformedLeaseHeader, format!("The value of {name} is not {expected}."))
        .called(400, "InvalidHeaderValue")
}

/// Refuses a field that is not served.
pub(super) fn unknown_field(name: &str) -> Refusal {
    let detail = format!("The field {name} is not served here, and the request was not sent on without it.");
    Refusal::new(Code::NotSupported, detail).called(400, "UnsupportedHeader")
}

/// Refuses a query parameter that is not served.
pub(in crate::dialect) fn unknown_query() -> Refusal {
    let detail = "The query has a parameter that is not served here, and the request was not sent on without it.";
    Refusal::new(Code::NotSupported, detail).called(400, "UnsupportedQueryParameter")
}

/// Refuses a query parameter that occurs twice, or whose value has no meaning.
pub(in crate::dialect) fn bad_query(name: &str) -> Refusal {
    Refusal::new(Code::MalformedRequest, format!("The query parameter {name} occurs twice, or its value is invalid."))
        .called(400, "InvalidQueryParameterValue")
}

/// Refuses a request that Azure refuses with this name of a 400.
pub(in crate::dialect) fn invalid(code: &'static str, detail: &'static str) -> Refusal {
    Refusal::new(Code::MalformedRequest, detail).called(400, code)
}

/// Refuses an operation that is not on the list.
pub(in crate::dialect) fn not_served(what: &'static str) -> Refusal {
    Refusal::new(Code::NotSupported, what).called(501, "NotImplemented")
}

/// Refuses a path that the backend would not take for a blob or a container.
pub(super) fn bad_path() -> Refusal {
    let detail = "The name of a blob or container cannot end with a slash or a dot segment here.";
    Refusal::new(Code::AmbiguousTarget, detail)
}

/// Refuses a path that is not that of a blob, but of the metadata of one.
pub(super) fn reserved_name() -> Refusal {
    let detail = "The name of no blob, and of no folder in it, can end with the metadata_suffix of this proxy.";
    invalid("InvalidResourceName", detail)
}

/// Refuses an operation on metadata or properties by a route that keeps none.
pub(super) fn no_metadata() -> Refusal {
    not_served("Metadata and properties of blobs are not served here: this proxy keeps none without metadata_suffix.")
}

/// Refuses a method that no operation has.
pub(in crate::dialect) fn bad_method() -> Refusal {
    Refusal::new(Code::MethodNotAllowed, "No operation of this resource has that method.")
}

/// Refuses conditional fields that cannot be combined.
pub(super) fn too_many_conditions() -> Refusal {
    let detail = "A write takes one condition with one ETag, or the pair If-Match and If-Unmodified-Since or the pair \
                  If-None-Match and If-Modified-Since.";
    Refusal::new(Code::MalformedPrecondition, detail).called(400, "MultipleConditionHeadersNotSupported")
}

/// Refuses conditions on an operation that concerns no state of a blob or container.
pub(super) fn no_conditions() -> Refusal {
    let detail = "A block and a list of blobs take no conditions: send those of an upload with its list of blocks.";
    invalid("ConditionHeadersNotSupported", detail)
}

/// Refuses a condition that can never be met.
pub(super) fn unsatisfiable() -> Refusal {
    Refusal::new(Code::MalformedPrecondition, "If-None-Match: * has no meaning for a read.")
        .called(400, "UnsatisfiableCondition")
}
