//! What the backend's status means.

use http::StatusCode;

use super::{AzureError, Operation};

/// What an operation has come to at the backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is done: the status, and whether the backend's body goes with it.
    Done(StatusCode, Body),
    /// The client's copy is current.
    NotModified,
    /// It is not.
    Failed(AzureError),
}

/// Whose body an answer has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// The backend's.
    Relayed,
    /// None.
    Dropped,
}

/// What a status of the backend means for an operation. `matches` says whether the request had `If-Match`, which nothing
/// that is missing meets.
pub fn outcome(operation: Operation, status: StatusCode, matches: bool) -> Outcome {
    if status == StatusCode::NOT_MODIFIED {
        return Outcome::NotModified;
    }
    if status.is_success() {
        return match operation {
            Operation::ReadBlob if status == StatusCode::PARTIAL_CONTENT => Outcome::Done(status, Body::Relayed),
            Operation::ReadBlob => Outcome::Done(StatusCode::OK, Body::Relayed),
            Operation::PutBlob | Operation::CreateContainer => Outcome::Done(StatusCode::CREATED, Body::Dropped),
            Operation::DeleteBlob | Operation::DeleteContainer => Outcome::Done(StatusCode::ACCEPTED, Body::Dropped),
            Operation::ReadContainer | Operation::LeaseBlob | Operation::LeaseContainer => {
                Outcome::Done(StatusCode::OK, Body::Dropped)
            }
        };
    }
    let (status, code) = failure(operation, status.as_u16(), matches);
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    Outcome::Failed(AzureError { status, code })
}

fn failure(operation: Operation, status: u16, matches: bool) -> (u16, &'static str) {
    match status {
        404 | 410 if matches => (412, "ConditionNotMet"),
        404 | 410 if operation.is_of_container() => (404, "ContainerNotFound"),
        404 | 410 => (404, "BlobNotFound"),
        // What is no file is no blob: a server of files sends to its collection.
        300..=399 if operation == Operation::ReadBlob => (404, "BlobNotFound"),
        400 => (400, "InvalidInput"),
        401 => (401, "NoAuthenticationInformation"),
        403 => (403, "AuthorizationFailure"),
        // MKCOL is what the backend cannot do (RFC 4918 section 9.3.1): that there is a container was asked before.
        405 if operation == Operation::CreateContainer => (501, "NotImplemented"),
        405 => (405, "UnsupportedHttpVerb"),
        408 => (408, "OperationTimedOut"),
        // The collection that it would be in is missing (RFC 4918 section 9.7.1).
        409 if operation == Operation::PutBlob => (404, "ContainerNotFound"),
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

    const ALL: [Operation; 8] = [
        Operation::ReadBlob,
        Operation::PutBlob,
        Operation::DeleteBlob,
        Operation::LeaseBlob,
        Operation::ReadContainer,
        Operation::CreateContainer,
        Operation::DeleteContainer,
        Operation::LeaseContainer,
    ];

    fn told(operation: Operation, status: u16, matches: bool) -> String {
        match outcome(operation, StatusCode::from_u16(status).unwrap(), matches) {
            Outcome::Done(status, body) => format!("{} {body:?}", status.as_u16()),
            Outcome::NotModified => "304".to_owned(),
            Outcome::Failed(error) => format!("{} {}", error.status.as_u16(), error.code),
        }
    }

    #[test]
    fn success_has_the_one_status_that_clients_take() {
        for (operation, expected) in [
            (Operation::PutBlob, "201 Dropped"),
            (Operation::CreateContainer, "201 Dropped"),
            (Operation::DeleteBlob, "202 Dropped"),
            (Operation::DeleteContainer, "202 Dropped"),
            (Operation::ReadBlob, "200 Relayed"),
            (Operation::ReadContainer, "200 Dropped"),
        ] {
            for status in [200, 201, 202, 204] {
                assert_eq!(told(operation, status, false), expected, "{operation:?} {status}");
            }
        }
        assert_eq!(told(Operation::ReadBlob, 206, false), "206 Relayed");
        assert_eq!(told(Operation::ReadBlob, 304, false), "304");
    }

    #[test]
    fn what_is_missing_has_a_name() {
        assert_eq!(told(Operation::ReadBlob, 404, false), "404 BlobNotFound");
        assert_eq!(told(Operation::ReadBlob, 301, false), "404 BlobNotFound");
        assert_eq!(told(Operation::DeleteBlob, 410, false), "404 BlobNotFound");
        assert_eq!(told(Operation::DeleteContainer, 404, false), "404 ContainerNotFound");
        assert_eq!(told(Operation::PutBlob, 409, false), "404 ContainerNotFound");
        assert_eq!(told(Operation::ReadBlob, 404, true), "412 ConditionNotMet");
    }

    #[test]
    fn every_failure_is_an_error_of_the_same_class() {
        for operation in ALL {
            for status in 400..=599_u16 {
                let told = told(operation, status, false);
                let class = u16::from(told.as_bytes()[0] - b'0') * 100;
                let expected =
                    if (operation, status) == (Operation::CreateContainer, 405) { 500 } else { status / 100 * 100 };
                assert_eq!(class, expected, "{operation:?} {status}: {told}");
            }
        }
    }
}
