//! The S3 error for each refusal.

use http::StatusCode;

use crate::core::refusal::{Code, Refusal};

/// Returns the status and the name of the S3 error that reports a refusal.
///
/// If S3 has no matching error, the status is the one of the problem document. Clients that do not recognise the name
/// go by the class of the status.
pub fn error_of(refusal: &Refusal) -> (StatusCode, &'static str) {
    let (status, code) = match refusal.service {
        Some(service) => (Some(service.status), service.code),
        None => facts(refusal.code),
    };
    let status = status.and_then(|status| StatusCode::from_u16(status).ok());
    (status.unwrap_or(refusal.code.status()), code)
}

/// Returns the status, if it differs from the status of the code, and the name.
fn facts(code: Code) -> (Option<u16>, &'static str) {
    match code {
        Code::MalformedPrecondition | Code::MalformedLeaseHeader => (None, "InvalidArgument"),
        Code::AmbiguousTarget => (None, "InvalidURI"),
        Code::MethodOverride | Code::MalformedRequest | Code::IdempotencyKeyMissing | Code::UnsupportedMediaType => {
            (None, "InvalidRequest")
        }
        Code::NoRoute => (None, "NoSuchBucket"),
        Code::LeaseTargetMissing => (None, "NoSuchKey"),
        Code::MethodNotAllowed => (None, "MethodNotAllowed"),
        Code::HeaderTimeout | Code::BodyTimeout => (Some(400), "RequestTimeout"),
        Code::HeaderTooLarge => (Some(400), "RequestHeaderSectionTooLarge"),
        Code::TargetTooLong => (None, "KeyTooLongError"),
        Code::BodyTooLarge => (Some(400), "EntityTooLarge"),
        Code::NotSupported | Code::DestinationElsewhere | Code::DestinationIsSource => (Some(501), "NotImplemented"),
        Code::WriteInFlight => (None, "ConditionalRequestConflict"),
        Code::DeletePending
        | Code::IdempotencyInFlight
        | Code::IdempotencyKeyInUse
        | Code::IdempotencyOutcomeUnknown
        | Code::LeaseHeld
        | Code::SharingViolation
        | Code::LeaseIdMismatch
        | Code::LeaseNotPresent
        | Code::LeaseBreaking
        | Code::LeaseBroken
        | Code::LeaseHoldMax => (None, "OperationAborted"),
        Code::IdempotencyMismatch => (Some(400), "IdempotentParameterMismatch"),
        Code::PreconditionFailed
        | Code::LeaseIdMissing
        | Code::LeaseAccess
        | Code::LeaseIdMismatchOnUse
        | Code::LeaseNotPresentOnUse
        | Code::LeaseLost => (None, "PreconditionFailed"),
        Code::PreconditionRequired => (None, "PreconditionRequired"),
        Code::UpstreamFailed
        | Code::UpstreamConnectTimeout
        | Code::UpstreamTimeout
        | Code::UpstreamUnreachable
        | Code::UpstreamInsecure
        | Code::LoopDetected
        | Code::ValidatorUnavailable => (None, "InternalError"),
        Code::TooManyLeases | Code::StoreFull | Code::Overloaded | Code::Unsettled => (Some(503), "SlowDown"),
        Code::StoreUnavailable => (None, "ServiceUnavailable"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_has_the_name_that_clients_choose_their_exception_by() {
        for (code, status, name) in [
            (Code::PreconditionFailed, 412, "PreconditionFailed"),
            (Code::WriteInFlight, 409, "ConditionalRequestConflict"),
            (Code::IdempotencyMismatch, 400, "IdempotentParameterMismatch"),
            (Code::BodyTooLarge, 400, "EntityTooLarge"),
            (Code::PreconditionRequired, 428, "PreconditionRequired"),
            (Code::UpstreamTimeout, 504, "InternalError"),
            (Code::Overloaded, 503, "SlowDown"),
            (Code::LoopDetected, 508, "InternalError"),
            (Code::Unsettled, 503, "SlowDown"),
        ] {
            let error = error_of(&Refusal::new(code, ""));
            assert_eq!((error.0.as_u16(), error.1), (status, name));
        }
        let absent = Refusal::new(Code::PreconditionFailed, "").called(404, "NoSuchKey");
        assert_eq!(error_of(&absent), (StatusCode::NOT_FOUND, "NoSuchKey"));
    }
}
