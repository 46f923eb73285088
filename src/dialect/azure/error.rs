//! The Azure error for each refusal.

use http::{HeaderValue, StatusCode};

use super::{AskedOperation, ERROR_CODE, LeaseVerb};
use crate::{
    core::refusal::{Code, Refusal},
    dialect::{ErrorDocument, xml},
};

/// An error of Azure: status and name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AzureError {
    /// The status.
    pub status: StatusCode,
    /// The name, as in `x-ms-error-code`.
    pub code: &'static str,
}

impl AzureError {
    /// Returns the document of the error, with a message for people.
    pub fn document(self, message: &str) -> ErrorDocument {
        ErrorDocument {
            status: self.status,
            code: self.code,
            content_type: xml::CONTENT_TYPE,
            fields: vec![(ERROR_CODE, HeaderValue::from_static(self.code))],
            body: xml::error(&[("Code", self.code), ("Message", message)]),
        }
    }
}

/// Returns the error that reports a refusal.
///
/// A write that meets another write gets 503 `ServerBusy`. Nothing was written, and clients retry after a 503 but give
/// up after a 409.
pub fn error_of(refusal: &Refusal, asked: AskedOperation) -> AzureError {
    let (status, code) = match refusal.service {
        Some(service) => (service.status, service.code),
        None => facts(refusal.code, asked),
    };
    AzureError { status: StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), code }
}

fn facts(code: Code, asked: AskedOperation) -> (u16, &'static str) {
    match code {
        Code::MalformedPrecondition | Code::MalformedLeaseHeader | Code::IdempotencyMismatch | Code::HeaderTooLarge => {
            (400, "InvalidHeaderValue")
        }
        Code::AmbiguousTarget => (400, "InvalidUri"),
        Code::MethodOverride => (400, "UnsupportedHeader"),
        Code::MalformedRequest => (400, "InvalidInput"),
        Code::PreconditionRequired | Code::IdempotencyKeyMissing => (400, "MissingRequiredHeader"),
        Code::NoRoute | Code::LeaseTargetMissing => (404, "ResourceNotFound"),
        Code::DeletePending => (409, "DeletePending"),
        Code::MethodNotAllowed => (405, "UnsupportedHttpVerb"),
        Code::HeaderTimeout | Code::BodyTimeout => (408, "OperationTimedOut"),
        Code::TargetTooLong => (414, "InvalidUri"),
        Code::BodyTooLarge => (413, "RequestBodyTooLarge"),
        Code::UnsupportedMediaType => (415, "UnsupportedHeader"),
        Code::NotSupported | Code::DestinationElsewhere | Code::DestinationIsSource => (501, "NotImplemented"),
        Code::PreconditionFailed => match (asked.creates, asked.container) {
            (true, true) => (409, "ContainerAlreadyExists"),
            (true, false) => (409, "BlobAlreadyExists"),
            (false, _) => (412, "ConditionNotMet"),
        },
        Code::UpstreamFailed
        | Code::UpstreamUnreachable
        | Code::UpstreamInsecure
        | Code::ValidatorUnavailable
        | Code::LoopDetected => (500, "InternalError"),
        Code::UpstreamConnectTimeout | Code::UpstreamTimeout | Code::IdempotencyOutcomeUnknown => {
            (500, "OperationTimedOut")
        }
        Code::LeaseHeld
        | Code::LeaseIdMismatch
        | Code::LeaseNotPresent
        | Code::LeaseBreaking
        | Code::LeaseBroken
        | Code::LeaseHoldMax => (409, of_operation(code, asked.lease)),
        Code::IdempotencyKeyInUse => (409, "ResourceAlreadyExists"),
        Code::LeaseIdMissing
        | Code::SharingViolation
        | Code::LeaseAccess
        | Code::LeaseIdMismatchOnUse
        | Code::LeaseNotPresentOnUse
        | Code::LeaseLost => (412, of_use(code, asked.container)),
        Code::TooManyLeases => (429, "TooManyRequests"),
        Code::WriteInFlight
        | Code::Unsettled
        | Code::IdempotencyInFlight
        | Code::StoreUnavailable
        | Code::StoreFull
        | Code::Overloaded => (503, "ServerBusy"),
    }
}

/// Returns the name for the refusal of a lease operation.
fn of_operation(code: Code, verb: Option<LeaseVerb>) -> &'static str {
    match (code, verb) {
        (Code::LeaseHoldMax | Code::LeaseBreaking, Some(LeaseVerb::Renew)) | (Code::LeaseBroken, _) => {
            "LeaseIsBrokenAndCannotBeRenewed"
        }
        (Code::LeaseBreaking, Some(LeaseVerb::Change)) => "LeaseIsBreakingAndCannotBeChanged",
        (Code::LeaseBreaking, _) => "LeaseIsBreakingAndCannotBeAcquired",
        // For these actions Azure reports a mismatch even if there is no lease at all.
        (Code::LeaseIdMismatch, _) | (Code::LeaseNotPresent, Some(LeaseVerb::Renew | LeaseVerb::Release)) => {
            "LeaseIdMismatchWithLeaseOperation"
        }
        (Code::LeaseNotPresent, _) => "LeaseNotPresentWithLeaseOperation",
        _ => "LeaseAlreadyPresent",
    }
}

/// Returns the name for the refusal of a read or write.
fn of_use(code: Code, container: bool) -> &'static str {
    match (code, container) {
        (Code::LeaseAccess | Code::LeaseIdMismatchOnUse, false) => "LeaseIdMismatchWithBlobOperation",
        (Code::LeaseAccess | Code::LeaseIdMismatchOnUse, true) => "LeaseIdMismatchWithContainerOperation",
        (Code::LeaseNotPresentOnUse, false) => "LeaseNotPresentWithBlobOperation",
        // Azure has no name for a container's lease that has ended.
        (Code::LeaseNotPresentOnUse | Code::LeaseLost, true) => "LeaseNotPresentWithContainerOperation",
        (Code::LeaseLost, false) => "LeaseLost",
        _ => "LeaseIdMissing",
    }
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
