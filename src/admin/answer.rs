//! Answers of the admin listener: JSON, and problem documents (RFC 9457).

use axum::{
    Json,
    extract::rejection::{JsonRejection, QueryRejection},
    response::{IntoResponse, Response},
};
use http::{HeaderName, HeaderValue, StatusCode, header};
use serde_json::{Value, json};

use crate::{guard::NotBroken, store::StoreError};

/// Adds the members of one JSON object to another.
pub(super) fn joined(one: Value, other: Value) -> Value {
    match (one, other) {
        (Value::Object(mut one), Value::Object(other)) => {
            one.extend(other);
            Value::Object(one)
        }
        (one, _) => one,
    }
}

/// An answer that reports what went wrong and what to do.
#[derive(Debug)]
pub(super) struct AdminProblem {
    status: StatusCode,
    code: &'static str,
    detail: String,
    field: Option<(HeaderName, HeaderValue)>,
}

impl AdminProblem {
    pub(super) fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self { status, code, detail: detail.into(), field: None }
    }

    /// Returns the problem of a request that cannot be understood.
    pub(super) fn malformed(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "malformed-request", detail)
    }

    /// Adds a header field to the answer.
    pub(super) fn with(self, name: HeaderName, value: HeaderValue) -> Self {
        Self { field: Some((name, value)), ..self }
    }

    #[cfg(test)]
    pub(super) fn status(&self) -> StatusCode {
        self.status
    }
}

impl IntoResponse for AdminProblem {
    fn into_response(self) -> Response {
        let document = json!({
            "type": format!("urn:ifmatch:problem:{}", self.code),
            "status": self.status.as_u16(),
            "code": self.code,
            "detail": self.detail,
        });
        let mut response = (self.status, Json(document)).into_response();
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        response.headers_mut().extend(self.field);
        response
    }
}

impl From<StoreError> for AdminProblem {
    fn from(error: StoreError) -> Self {
        let (code, detail) = match error {
            StoreError::Full => {
                ("store-full", "the store has no room for another record: set store.capacity or store.max_size higher")
            }
            StoreError::Unavailable => ("store-unavailable", "the store does not answer; try again"),
            StoreError::Damaged => (
                "store-unavailable",
                "a record in the store cannot be read: delete the record that the log names, then forget its resource",
            ),
            StoreError::LostWrites => (
                "store-unavailable",
                "the store has lost acknowledged writes: delete its incarnation key, and restart this process",
            ),
        };
        Self::new(StatusCode::SERVICE_UNAVAILABLE, code, detail)
    }
}

impl From<NotBroken> for AdminProblem {
    fn from(error: NotBroken) -> Self {
        match error {
            NotBroken::NoLease => {
                let detail = "no lease with this key is held: /leases lists the keys of those that are";
                Self::new(StatusCode::NOT_FOUND, "lease-not-present", detail)
            }
            NotBroken::Store(error) => error.into(),
        }
    }
}

impl From<JsonRejection> for AdminProblem {
    fn from(rejection: JsonRejection) -> Self {
        Self::new(rejection.status(), "malformed-request", rejection.body_text())
    }
}

impl From<QueryRejection> for AdminProblem {
    fn from(rejection: QueryRejection) -> Self {
        Self::malformed(rejection.body_text())
    }
}
