//! The meaning of the backend's status.

use http::{HeaderValue, StatusCode, header};

use super::{AzureError, AzureOperation, AzureResource, BLOB_TYPE, BLOCK_BLOB, DELETE_TYPE_PERMANENT};
use crate::dialect::CallOutcome;

/// Returns the meaning of the backend's status for an operation. `matches`: whether the request had `If-Match`, which
/// no missing blob or container satisfies.
pub fn outcome(operation: AzureOperation, status: StatusCode, matches: bool) -> CallOutcome {
    if status == StatusCode::NOT_MODIFIED {
        return CallOutcome::NotModified;
    }
    if status.is_success() {
        return match operation {
            AzureOperation::ReadBlob if status == StatusCode::PARTIAL_CONTENT => relayed(status),
            AzureOperation::ReadBlob => relayed(StatusCode::OK),
            AzureOperation::PutBlob
            | AzureOperation::PutBlock
            | AzureOperation::PutBlockList
            | AzureOperation::CreateContainer => dropped(StatusCode::CREATED),
            // Nothing is kept of a deleted blob.
            AzureOperation::DeleteBlob => CallOutcome::Done {
                status: StatusCode::ACCEPTED,
                relays_body: false,
                fields: vec![(DELETE_TYPE_PERMANENT, HeaderValue::from_static("true"))],
            },
            AzureOperation::CopyBlob | AzureOperation::DeleteContainer => dropped(StatusCode::ACCEPTED),
            AzureOperation::GetBlockList
            | AzureOperation::ReadMetadata
            | AzureOperation::SetMetadata
            | AzureOperation::SetProperties
            | AzureOperation::ReadContainer
            | AzureOperation::ReadContainerMetadata
            | AzureOperation::SetContainerMetadata
            | AzureOperation::ListContainers
            | AzureOperation::ListBlobs
            | AzureOperation::LeaseBlob
            | AzureOperation::LeaseContainer => dropped(StatusCode::OK),
        };
    }
    let (status, code) = failure(operation, status.as_u16(), matches);
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let error = AzureError { status, code };
    CallOutcome::Failed(error.document(message(code)))
}

/// Returns the message of an error: Azure's own if the backend's status has one meaning.
fn message(code: &str) -> &'static str {
    match code {
        "BlobNotFound" => "The specified blob does not exist.",
        "ContainerNotFound" => "The specified container does not exist.",
        "ConditionNotMet" => "The condition specified using HTTP conditional header(s) is not met.",
        _ => "The server behind this proxy has refused the request, or has failed.",
    }
}

fn relayed(status: StatusCode) -> CallOutcome {
    let kind = (BLOB_TYPE, HeaderValue::from_static(BLOCK_BLOB));
    let fields = vec![kind, (header::ACCEPT_RANGES, HeaderValue::from_static("bytes"))];
    CallOutcome::Done { status, relays_body: true, fields }
}

fn dropped(status: StatusCode) -> CallOutcome {
    CallOutcome::Done { status, relays_body: false, fields: Vec::new() }
}

fn failure(operation: AzureOperation, status: u16, matches: bool) -> (u16, &'static str) {
    match status {
        404 | 410 if matches => (412, "ConditionNotMet"),
        404 | 410 => match operation.resource() {
            AzureResource::Account => (404, "ResourceNotFound"),
            AzureResource::Container => (404, "ContainerNotFound"),
            AzureResource::Blob => (404, "BlobNotFound"),
        },
        // A directory is not a blob, and a file server redirects to it.
        300..=399 if operation.is_read() && operation.resource() == AzureResource::Blob => (404, "BlobNotFound"),
        // The backend does not support MKCOL (RFC 4918 section 9.3.1). The proxy has already checked that no container
        // exists.
        405 if operation == AzureOperation::CreateContainer => (501, "NotImplemented"),
        405 => (405, "UnsupportedHttpVerb"),
        // The parent collection is missing (RFC 4918 section 9.7.1).
        409 if operation.replaces_blob() => (404, "ContainerNotFound"),
        409 => (409, "OperationNotAllowedOnRootBlob"),
        411 => (411, "MissingContentLengthHeader"),
        412 => (412, "ConditionNotMet"),
        416 => (416, "InvalidRange"),
        429 => (429, "TooManyRequests"),
        _ => common_failure(status),
    }
}

/// Returns the status and the name of a failure that all storage services of Azure report alike.
pub fn common_failure(status: u16) -> (u16, &'static str) {
    match status {
        401 => (401, "NoAuthenticationInformation"),
        403 => (403, "AuthorizationFailure"),
        408 => (408, "OperationTimedOut"),
        413 => (413, "RequestBodyTooLarge"),
        400..=499 => (status, "InvalidInput"),
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
            CallOutcome::Done { status, relays_body, .. } => {
                format!("{} {}", status.as_u16(), if relays_body { "Relayed" } else { "Dropped" })
            }
            CallOutcome::NotModified => "304".to_owned(),
            CallOutcome::Failed(error) => format!("{} {}", error.status.as_u16(), error.code),
        }
    }

    #[test]
    fn success_has_the_one_status_that_clients_take() {
        for (operation, expected) in [
            (AzureOperation::PutBlob, "201 Dropped"),
            (AzureOperation::PutBlockList, "201 Dropped"),
            (AzureOperation::CopyBlob, "202 Dropped"),
            (AzureOperation::GetBlockList, "200 Dropped"),
            (AzureOperation::ListBlobs, "200 Dropped"),
            (AzureOperation::CreateContainer, "201 Dropped"),
            (AzureOperation::DeleteBlob, "202 Dropped"),
            (AzureOperation::DeleteContainer, "202 Dropped"),
            (AzureOperation::ReadBlob, "200 Relayed"),
            (AzureOperation::ReadContainer, "200 Dropped"),
            (AzureOperation::ReadContainerMetadata, "200 Dropped"),
            (AzureOperation::SetContainerMetadata, "200 Dropped"),
            (AzureOperation::ListContainers, "200 Dropped"),
            (AzureOperation::ReadMetadata, "200 Dropped"),
            (AzureOperation::SetMetadata, "200 Dropped"),
            (AzureOperation::SetProperties, "200 Dropped"),
        ] {
            for status in [200, 201, 202, 204] {
                assert_eq!(told(operation, status, false), expected, "{operation:?} {status}");
            }
        }
        assert_eq!(told(AzureOperation::ReadBlob, 206, false), "206 Relayed");
        assert_eq!(told(AzureOperation::ReadBlob, 304, false), "304");
    }

    #[test]
    fn a_deletion_is_permanent() {
        let told = |operation| match outcome(operation, StatusCode::NO_CONTENT, false) {
            CallOutcome::Done { fields, .. } => fields,
            other => panic!("{other:?}"),
        };
        let permanent = (DELETE_TYPE_PERMANENT, HeaderValue::from_static("true"));
        assert_eq!(told(AzureOperation::DeleteBlob), [permanent]);
        assert!(told(AzureOperation::DeleteContainer).is_empty());
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
    fn what_is_missing_is_no_failure_of_the_server() {
        let said =
            |status, matches| match outcome(AzureOperation::ReadBlob, StatusCode::from_u16(status).unwrap(), matches) {
                CallOutcome::Failed(error) => error.body,
                other => panic!("{other:?}"),
            };
        assert!(said(404, false).contains("The specified blob does not exist."), "{}", said(404, false));
        assert!(said(404, true).contains("is not met"), "{}", said(404, true));
        assert!(said(500, false).contains("has failed"), "{}", said(500, false));
    }

    #[test]
    fn every_failure_is_an_error_of_the_same_class() {
        for (operation, _) in AzureOperation::ALL {
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
