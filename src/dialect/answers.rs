//! The parts of answers, which a grammar makes from the outcome of a call.

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

/// A response that the proxy makes.
#[derive(Debug)]
pub struct Response {
    /// The status.
    pub status: StatusCode,
    /// The fields.
    pub fields: HeaderMap,
    /// The body, if there is one.
    pub body: Option<String>,
}

impl Response {
    /// A response without content, which no cache keeps.
    pub fn empty(status: StatusCode) -> Self {
        let fields = HeaderMap::from_iter([(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))]);
        Self { status, fields, body: None }
    }

    /// A response with a document of this type, which no cache keeps.
    pub fn document(status: StatusCode, content_type: &'static str, document: String) -> Self {
        let fields = HeaderMap::from_iter([
            (header::CONTENT_TYPE, HeaderValue::from_static(content_type)),
            (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        ]);
        Self { status, fields, body: Some(document) }
    }
}

/// A document that describes a resource.
#[derive(Debug)]
pub struct ShownDocument {
    /// The media type.
    pub content_type: &'static str,
    /// The text.
    pub body: String,
}

/// A refusal in the form that clients read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorDocument {
    /// The status.
    pub status: StatusCode,
    /// The name of the error.
    pub code: &'static str,
    /// The media type of the body.
    pub content_type: &'static str,
    /// The fields that do not describe the content.
    pub fields: Vec<(HeaderName, HeaderValue)>,
    /// The body.
    pub body: String,
}

/// The meaning of the upstream's response to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    /// The call succeeded.
    Done {
        /// The status for the client.
        status: StatusCode,
        /// True if the client gets the upstream's body.
        relays_body: bool,
        /// Fields to add.
        fields: Vec<(HeaderName, HeaderValue)>,
    },
    /// The client's copy is current.
    NotModified,
    /// The call failed.
    Failed(ErrorDocument),
}
