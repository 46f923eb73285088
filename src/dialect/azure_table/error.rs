//! Errors as Table Storage sends them: a JSON document, from which the SDKs choose their exception.

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use serde::Serialize;

use super::TableOperation;
use crate::dialect::{
    CallOutcome, ErrorDocument,
    azure::{ERROR_CODE, VERSION, common_failure},
};

/// An error with its name and its message, in the one member that the SDKs look for.
#[derive(Serialize)]
struct Document<'a> {
    #[serde(rename = "odata.error")]
    error: Members<'a>,
}

#[derive(Serialize)]
struct Members<'a> {
    code: &'a str,
    message: Message<'a>,
}

#[derive(Serialize)]
struct Message<'a> {
    lang: &'a str,
    value: &'a str,
}

/// Returns the document of an error, with a message for people.
pub fn document(status: StatusCode, code: &'static str, message: &str) -> ErrorDocument {
    let error = Members { code, message: Message { lang: "en-US", value: message } };
    ErrorDocument {
        status,
        code,
        content_type: "application/json",
        fields: vec![(ERROR_CODE, HeaderValue::from_static(code))],
        // Strings always have a JSON form.
        body: serde_json::to_string(&Document { error }).unwrap_or_default(),
    }
}

/// Returns the meaning of the backend's status and fields for an operation.
pub(super) fn outcome(operation: TableOperation, status: StatusCode, fields: &HeaderMap) -> CallOutcome {
    if status == StatusCode::NOT_MODIFIED {
        return CallOutcome::NotModified;
    }
    if status.is_success() {
        let (status, relays_body) = match operation {
            TableOperation::QueryTables | TableOperation::QueryEntities | TableOperation::GetEntity => (status, true),
            // Without a body if the client wants none.
            TableOperation::CreateTable | TableOperation::InsertEntity if status != StatusCode::NO_CONTENT => {
                (StatusCode::CREATED, true)
            }
            _ => (StatusCode::NO_CONTENT, false),
        };
        return CallOutcome::Done { status, relays_body, fields: versions(fields) };
    }
    if is_own_error(fields) {
        return CallOutcome::Done { status, relays_body: true, fields: versions(fields) };
    }
    let (status, code) = failure(operation, status.as_u16());
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    CallOutcome::Failed(document(status, code, message(code)))
}

/// The version by which the service has carried the operation out, if it tells one. Its client has asked for a version, and
/// may get another.
fn versions(fields: &HeaderMap) -> Vec<(HeaderName, HeaderValue)> {
    fields.get(VERSION).map(|version| (VERSION, version.clone())).into_iter().collect()
}

/// True if a failure has the form that the SDKs read: the service knows best what it means.
fn is_own_error(fields: &HeaderMap) -> bool {
    let media_type = fields.get(header::CONTENT_TYPE).and_then(|media_type| media_type.to_str().ok());
    let is_odata = |media_type: &str| {
        let mut parts = media_type.split(';').map(|part| part.trim().to_ascii_lowercase());
        parts.next().is_some_and(|name| name == "application/json") && parts.any(|part| part.starts_with("odata="))
    };
    fields.contains_key(&ERROR_CODE) || media_type.is_some_and(is_odata)
}

fn failure(operation: TableOperation, status: u16) -> (u16, &'static str) {
    match status {
        404 | 410 => (404, "ResourceNotFound"),
        405 => (405, "MethodNotAllowed"),
        409 if operation == TableOperation::CreateTable => (409, "TableAlreadyExists"),
        409 => (409, "EntityAlreadyExists"),
        412 => (412, "UpdateConditionNotSatisfied"),
        _ => common_failure(status),
    }
}

/// Returns the message of an error: Azure's own if the backend's status has one meaning.
fn message(code: &str) -> &'static str {
    match code {
        "ResourceNotFound" => "The specified resource does not exist.",
        "EntityAlreadyExists" => "The specified entity already exists.",
        "TableAlreadyExists" => "The table specified already exists.",
        "UpdateConditionNotSatisfied" => "The update condition specified in the request was not satisfied.",
        _ => "The server behind this proxy has refused the request, or has failed.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(operation: TableOperation, status: u16) -> String {
        told_with(operation, status, &HeaderMap::new())
    }

    fn told_with(operation: TableOperation, status: u16, fields: &HeaderMap) -> String {
        match outcome(operation, StatusCode::from_u16(status).unwrap(), fields) {
            CallOutcome::Done { status, relays_body, .. } => format!("{} {relays_body}", status.as_u16()),
            CallOutcome::NotModified => "304".to_owned(),
            CallOutcome::Failed(error) => format!("{} {}", error.status.as_u16(), error.code),
        }
    }

    #[test]
    fn success_has_the_status_that_the_sdks_take() {
        for status in [200, 201, 202, 204] {
            for operation in [
                TableOperation::UpdateEntity,
                TableOperation::MergeEntity,
                TableOperation::DeleteEntity,
                TableOperation::DeleteTable,
            ] {
                assert_eq!(told(operation, status), "204 false", "{operation:?} {status}");
            }
            for operation in [TableOperation::InsertEntity, TableOperation::CreateTable] {
                let expected = if status == 204 { "204 false" } else { "201 true" };
                assert_eq!(told(operation, status), expected, "{operation:?} {status}");
            }
        }
        assert_eq!(told(TableOperation::GetEntity, 200), "200 true");
        assert_eq!(told(TableOperation::GetEntity, 304), "304");
    }

    #[test]
    fn a_failure_has_the_name_that_the_sdks_choose_their_exception_by() {
        for (operation, status, expected) in [
            (TableOperation::GetEntity, 404, "404 ResourceNotFound"),
            (TableOperation::InsertEntity, 409, "409 EntityAlreadyExists"),
            (TableOperation::CreateTable, 409, "409 TableAlreadyExists"),
            (TableOperation::UpdateEntity, 412, "412 UpdateConditionNotSatisfied"),
            (TableOperation::UpdateEntity, 422, "422 InvalidInput"),
            (TableOperation::QueryTables, 301, "500 InternalError"),
            (TableOperation::QueryTables, 502, "500 InternalError"),
        ] {
            assert_eq!(told(operation, status), expected);
        }
    }

    #[test]
    fn an_error_of_the_service_in_the_form_of_odata_passes() {
        let with = |name: http::HeaderName, value: &'static str| {
            let fields = HeaderMap::from_iter([(name, HeaderValue::from_static(value))]);
            told_with(TableOperation::InsertEntity, 400, &fields)
        };
        assert_eq!(with(ERROR_CODE, "PropertiesNeedValue"), "400 true");
        for media_type in ["application/json;odata=nometadata;charset=utf-8", "Application/JSON; OData=minimalmetadata"]
        {
            assert_eq!(with(header::CONTENT_TYPE, media_type), "400 true", "{media_type}");
        }
        for media_type in ["application/json", "application/problem+json;odata=no", "text/html", "text/odata=x"] {
            assert_eq!(with(header::CONTENT_TYPE, media_type), "400 InvalidInput", "{media_type}");
        }
    }

    #[test]
    fn the_version_of_an_answer_is_that_which_the_service_tells() {
        let of = |status: u16, told: &[(HeaderName, &'static str)]| {
            let told = told.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect();
            let status = StatusCode::from_u16(status).unwrap();
            match outcome(TableOperation::InsertEntity, status, &told) {
                CallOutcome::Done { fields, .. } => fields,
                CallOutcome::NotModified | CallOutcome::Failed(_) => panic!("the answer of the service passes"),
            }
        };
        let versions = [(VERSION, HeaderValue::from_static("2026-04-06"))];
        assert_eq!(of(201, &[(VERSION, "2026-04-06")]), versions);
        assert_eq!(of(400, &[(VERSION, "2026-04-06"), (ERROR_CODE, "PropertiesNeedValue")]), versions);
        assert_eq!(of(204, &[]), [], "that of the request remains");
    }

    #[test]
    fn an_error_is_the_one_member_of_its_document() {
        let made = document(StatusCode::PRECONDITION_FAILED, "UpdateConditionNotSatisfied", "\"No.\"");
        let expected =
            r#"{"odata.error":{"code":"UpdateConditionNotSatisfied","message":{"lang":"en-US","value":"\"No.\""}}}"#;
        assert_eq!(made.body, expected);
        assert_eq!(made.fields, [(ERROR_CODE, HeaderValue::from_static("UpdateConditionNotSatisfied"))]);
    }
}
