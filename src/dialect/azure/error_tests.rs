//! The name of each refusal.

use http::{HeaderMap, Method};

use super::*;

fn name(code: Code, asked: AskedOperation) -> String {
    let error = error_of(&Refusal::new(code, ""), asked);
    format!("{} {}", error.status.as_u16(), error.code)
}

#[test]
fn every_refusal_has_a_name() {
    for (code, expected) in [
        (Code::MalformedPrecondition, "400 InvalidHeaderValue"),
        (Code::AmbiguousTarget, "400 InvalidUri"),
        (Code::IdempotencyMismatch, "400 InvalidHeaderValue"),
        (Code::IdempotencyKeyInUse, "409 ResourceAlreadyExists"),
        (Code::IdempotencyOutcomeUnknown, "500 OperationTimedOut"),
        (Code::IdempotencyKeyMissing, "400 MissingRequiredHeader"),
        (Code::MethodOverride, "400 UnsupportedHeader"),
        (Code::MalformedRequest, "400 InvalidInput"),
        (Code::NoRoute, "404 ResourceNotFound"),
        (Code::LeaseTargetMissing, "404 ResourceNotFound"),
        (Code::DeletePending, "409 DeletePending"),
        (Code::MethodNotAllowed, "405 UnsupportedHttpVerb"),
        (Code::HeaderTimeout, "408 OperationTimedOut"),
        (Code::HeaderTooLarge, "400 InvalidHeaderValue"),
        (Code::BodyTimeout, "408 OperationTimedOut"),
        (Code::TargetTooLong, "414 InvalidUri"),
        (Code::BodyTooLarge, "413 RequestBodyTooLarge"),
        (Code::NotSupported, "501 NotImplemented"),
        (Code::WriteInFlight, "503 ServerBusy"),
        (Code::Unsettled, "503 ServerBusy"),
        (Code::PreconditionFailed, "412 ConditionNotMet"),
        (Code::PreconditionRequired, "400 MissingRequiredHeader"),
        (Code::UpstreamFailed, "500 InternalError"),
        (Code::UpstreamConnectTimeout, "500 OperationTimedOut"),
        (Code::UpstreamTimeout, "500 OperationTimedOut"),
        (Code::UpstreamUnreachable, "500 InternalError"),
        (Code::ValidatorUnavailable, "500 InternalError"),
        (Code::MalformedLeaseHeader, "400 InvalidHeaderValue"),
        (Code::LeaseHeld, "409 LeaseAlreadyPresent"),
        (Code::LeaseIdMismatch, "409 LeaseIdMismatchWithLeaseOperation"),
        (Code::LeaseNotPresent, "409 LeaseNotPresentWithLeaseOperation"),
        (Code::LeaseBreaking, "409 LeaseIsBreakingAndCannotBeAcquired"),
        (Code::LeaseBroken, "409 LeaseIsBrokenAndCannotBeRenewed"),
        (Code::LeaseHoldMax, "409 LeaseAlreadyPresent"),
        (Code::LeaseIdMissing, "412 LeaseIdMissing"),
        (Code::LeaseIdMismatchOnUse, "412 LeaseIdMismatchWithBlobOperation"),
        (Code::LeaseNotPresentOnUse, "412 LeaseNotPresentWithBlobOperation"),
        (Code::LeaseLost, "412 LeaseLost"),
        (Code::TooManyLeases, "429 TooManyRequests"),
        (Code::StoreUnavailable, "503 ServerBusy"),
        (Code::StoreFull, "503 ServerBusy"),
        (Code::Overloaded, "503 ServerBusy"),
        (Code::LoopDetected, "500 InternalError"),
    ] {
        assert_eq!(name(code, AskedOperation::default()), expected, "{code:?}");
    }
}

#[test]
fn some_names_depend_on_what_was_asked() {
    let lease = |verb| AskedOperation { lease: Some(verb), ..AskedOperation::default() };
    let container = AskedOperation { container: true, ..AskedOperation::default() };
    for (code, asked, expected) in [
        (Code::LeaseNotPresent, lease(LeaseVerb::Renew), "409 LeaseIdMismatchWithLeaseOperation"),
        (Code::LeaseNotPresent, lease(LeaseVerb::Release), "409 LeaseIdMismatchWithLeaseOperation"),
        (Code::LeaseNotPresent, lease(LeaseVerb::Change), "409 LeaseNotPresentWithLeaseOperation"),
        (Code::LeaseNotPresent, lease(LeaseVerb::Break), "409 LeaseNotPresentWithLeaseOperation"),
        (Code::LeaseBreaking, lease(LeaseVerb::Renew), "409 LeaseIsBrokenAndCannotBeRenewed"),
        (Code::LeaseBreaking, lease(LeaseVerb::Change), "409 LeaseIsBreakingAndCannotBeChanged"),
        (Code::LeaseHoldMax, lease(LeaseVerb::Renew), "409 LeaseIsBrokenAndCannotBeRenewed"),
        (Code::LeaseIdMismatchOnUse, container, "412 LeaseIdMismatchWithContainerOperation"),
        (Code::LeaseNotPresentOnUse, container, "412 LeaseNotPresentWithContainerOperation"),
        (Code::LeaseLost, container, "412 LeaseNotPresentWithContainerOperation"),
        (Code::LeaseIdMissing, container, "412 LeaseIdMissing"),
        (
            Code::PreconditionFailed,
            AskedOperation { creates: true, ..AskedOperation::default() },
            "409 BlobAlreadyExists",
        ),
        (Code::PreconditionFailed, AskedOperation { creates: true, ..container }, "409 ContainerAlreadyExists"),
    ] {
        assert_eq!(name(code, asked), expected, "{code:?} {asked:?}");
    }
}

#[test]
fn a_name_that_was_given_stands() {
    let refusal = Refusal::new(Code::NotSupported, "").called(400, "UnsupportedHeader");
    let error = error_of(&refusal, AskedOperation::default());
    assert_eq!((error.status.as_u16(), error.code), (400, "UnsupportedHeader"));
}

#[test]
fn what_was_asked_is_read_from_the_head() {
    let of = |method: Method, target: &str, fields: &[(&'static str, &'static str)]| {
        let headers: HeaderMap = fields
            .iter()
            .map(|(name, value)| (name.parse::<http::HeaderName>().unwrap(), value.parse().unwrap()))
            .collect();
        AskedOperation::of(&method, target.as_bytes(), &headers)
    };
    let any = ("if-none-match", "*");
    let creates = AskedOperation { creates: true, ..AskedOperation::default() };
    assert_eq!(of(Method::PUT, "/c/b", &[any]), creates);
    assert_eq!(of(Method::PUT, "/c/b?sv=1", &[("if-none-match", "\"a\"")]), AskedOperation::default());
    assert_eq!(of(Method::DELETE, "/c/b", &[any]), AskedOperation::default());
    assert_eq!(of(Method::PUT, "/c?restype=container", &[]), AskedOperation { container: true, ..creates });
    let renew = ("x-ms-lease-action", "renew");
    let leased = AskedOperation { lease: Some(LeaseVerb::Renew), ..AskedOperation::default() };
    assert_eq!(of(Method::PUT, "/c/b?comp=lease", &[renew, any]), leased);
    assert_eq!(of(Method::PUT, "/c/b", &[renew]), AskedOperation::default());
}
