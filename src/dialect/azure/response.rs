//! The meaning of the backend's status.

use http::StatusCode;

use super::{AzureError, AzureOperation};

/// The outcome of an operation at the backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendOutcome {
    /// The operation succeeded: the status, and whether the backend's body goes with it.
    Done(StatusCode, AnswerBody),
    /// The client's copy is current.
    NotModified,
    /// The operation failed.
    Failed(AzureError),
}

/// The body of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerBody {
    /// The backend's body.
    Relayed,
    /// No body.
    Dropped,
}

/// Returns the meaning of the backend's status for an operation. `matches`: whether the request had `If-Match`, which
/// no missing blob or container satisfies.
pub fn outcome(operation: AzureOperation, status: StatusCode, matches: bool) -> BackendOutcome {
    if status == StatusCode::NOT_MODIFIED {
        return BackendOutcome::NotModified;
    }
    if status.is_success() {
        return match operation {
            AzureOperation::ReadBlob if status == StatusCode::PARTIAL_CONTENT => {
                BackendOutcome::Done(status, AnswerBody::Relayed)
            }
            AzureOperation::ReadBlob => BackendOutcome::Done(StatusCode::OK, AnswerBody::Relayed),
            AzureOperation::PutBlob | AzureOperation::CreateContainer => {
                BackendOutcome::Done(StatusCode::CREATED, AnswerBody::Dropped)
            }
            AzureOperation::DeleteBlob | AzureOperation::DeleteContainer => {
                BackendOutcome::Done(StatusCode::ACCEPTED, AnswerBody::Dropped)
            }
            AzureOperation::ReadContainer | AzureOperation::LeaseBlob | AzureOperation::LeaseContainer => {
                BackendOutcome::Done(StatusCode::OK, AnswerBody::Dropped)
            }
        };
    }
    let (status, code) = failure(operation, status.as_u16(), matches);
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    BackendOutcome::Failed(AzureError { status, code })
}

fn failure(operation: AzureOperation, status: u16, matches: bool) -> (u16, &'static str) {
    match status {
        404 | 410 if matches => (412, "ConditionNotMet"),
        404 | 410 if operation.is_of_container() => (404, "ContainerNotFound"),
        404 | 410 => (404, "BlobNotFound"),
        // A directory is not a blob, and a file server redirects to it.
        300..=399 if operation == AzureOperation::ReadBlob => (404, "BlobNotFound"),
        400 => (400, "InvalidInput"),
        401 => (401, "NoAuthenticationInformation"),
        403 => (403, "AuthorizationFailure"),
        // The backend does not support MKCOL (RFC 4918 section 9.3.1). The proxy has already checked that no container
        // exists.
        405 if operation == AzureOperation::CreateContainer => (501, "NotImplemented"),
        405 => (405, "UnsupportedHttpVerb"),
        408 => (408, "OperationTimedOut"),
        // The parent collection is missing (RFC 4918 section 9.7.1).
        409 if operation == AzureOperation::PutBlob => (404, "ContainerNotFound"),
        409 => (409, "OperationNotAllowedOnRootBlob"),
        411 => (411, "MissingContentLengthHeader"),
        412 => (412, "ConditionNotMet"),
        413 => (413, "RequestBodyTooLarge"),
        416 => (416, "InvalidRange"),
        429 => (429, "TooManyRequests"),
        402..=499 => (status, "InvalidInput"),
        501 => (501, "NotImplemented"),
        503 => (503, "ServerBusy"),
        504 => (500, "OperationTimedOut"),
        _ => (500, "InternalError"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(operation: AzureOperation, status: u16, matches: bool) -> String {
        match outcome(operation, StatusCode::from_u16(status).unwrap(), matches) {
            BackendOutcome::Done(status, body) => format!("{} {body:?}", status.as_u16()),
            BackendOutcome::NotModified => "304".to_owned(),
            BackendOutcome::Failed(error) => format!("{} {}", error.status.as_u16(), error.code),
        }
    }

    #[test]
    fn success_has_the_one_status_that_clients_take() {
        for (operation, expected) in [
            (AzureOperation::PutBlob, "201 Dropped"),
            (AzureOperation::CreateContainer, "201 Dropped"),
            (AzureOperation::DeleteBlob, "202 Dropped"),
            (AzureOperation::DeleteContainer, "202 Dropped"),
            (AzureOperation::ReadBlob, "200 Relayed"),
            (AzureOperation::ReadContainer, "200 Dropped"),
        ] {
            for status in [200, 201, 202, 204] {
                assert_eq!(told(operation, status, false), expected, "{operation:?} {status}");
            }
        }
        assert_eq!(told(AzureOperation::ReadBlob, 206, false), "206 Relayed");
        assert_eq!(told(AzureOperation::ReadBlob, 304, false), "304");
    }

    #[test]
    fn what_is_missing_has_a_name() {
        assert_eq!(told(AzureOperation::ReadBlob, 404, false), "404 BlobNotFound");
        assert_eq!(told(AzureOperation::ReadBlob, 301, false), "404 BlobNotFound");
        assert_eq!(told(AzureOperation::DeleteBlob, 410, false), "404 BlobNotFound");
        assert_eq!(told(AzureOperation::DeleteContainer, 404, false), "404 ContainerNotFound");
        assert_eq!(told(AzureOperation::PutBlob, 409, false), "404 ContainerNotFound");
        assert_eq!(told(AzureOperation::ReadBlob, 404, true), "412 ConditionNotMet");
    }

    #[test]
    fn every_failure_is_an_error_of_the_same_class() {
        for operation in AzureOperation::ALL {
            for status in 400..=599_u16 {
                let told = told(operation, status, false);
                let class = u16::from(told.as_bytes()[0] - b'0') * 100;
                let expected = if (operation, status) == (AzureOperation::CreateContainer, 405) {
                    500
                } else {
                    status / 100 * 100
                };
                assert_eq!(class, expected, "{operation:?} {status}: {told}");
            }
        }
    }
}
