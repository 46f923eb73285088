//! A response that any client received, and the rules for each refusal.

use serde_json::Value;

use super::message::Headers;

/// The error types of RFC 9209 section 2.3 that ifmatch uses.
const ERRORS: [&str; 10] = [
    "http_request_denied",
    "http_request_error",
    "destination_not_found",
    "connection_refused",
    "tls_protocol_error",
    "connection_timeout",
    "http_response_timeout",
    "http_response_incomplete",
    "proxy_internal_error",
    "proxy_loop_detected",
];

#[derive(Clone, Debug)]
pub struct Response {
    pub status: u16,
    pub headers: Headers,
    pub body: Vec<u8>,
    pub trailers: Headers,
    /// The 1xx responses before it: status and fields.
    pub informational: Vec<(u16, Headers)>,
}

/// A problem document (RFC 9457) that kept all promises of a refusal.
#[derive(Clone, Debug)]
pub struct Problem {
    pub code: String,
    pub detail: String,
    pub retry_after_seconds: Option<u64>,
    pub in_doubt: bool,
    pub json: Value,
}

impl Response {
    /// The first value of a field.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)
    }

    /// The one entity-tag, as it was sent.
    #[track_caller]
    pub fn etag(&self) -> String {
        let tags = self.headers.all("etag");
        assert_eq!(tags.len(), 1, "there is exactly one ETag field in {self:?}");
        tags[0].to_owned()
    }

    #[track_caller]
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("the body is text")
    }

    /// The problem document, after checking that it is the refusal with this status and code.
    #[track_caller]
    pub fn refused(&self, status: u16, code: &str) -> Problem {
        assert_eq!(self.status, status, "the refusal {code} in {self:?}");
        let problem = self.problem();
        assert_eq!(problem.code, code, "the code in {:?}", problem.json);
        problem
    }

    /// The same if only the head could be read.
    #[track_caller]
    pub fn refused_by_head(&self, status: u16, code: &str) {
        assert_eq!(self.status, status, "the refusal {code} in {self:?}");
        self.check_proxy_status(code);
    }

    /// The problem document of a refusal, after checking all that every refusal promises (DESIGN, section 8).
    #[track_caller]
    pub fn problem(&self) -> Problem {
        assert!(self.status >= 400, "a refusal is an error: {self:?}");
        assert_eq!(self.headers.all("content-type"), ["application/problem+json"], "in {self:?}");
        assert_eq!(self.headers.all("cache-control"), ["no-store"], "in {self:?}");
        assert_eq!(self.headers.all("etag"), [""; 0], "a refusal has no representation to label: {self:?}");
        let json: Value = serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {self:?}"));
        let word = |member: &str| {
            let value = json[member].as_str().filter(|text| !text.is_empty());
            value.unwrap_or_else(|| panic!("`{member}` is a text in {json}")).to_owned()
        };
        let code = word("code");
        assert_eq!(json["status"], self.status, "the document and the status line name one status: {json}");
        assert_eq!(word("type"), format!("urn:ifmatch:problem:{code}"));
        assert!(!word("title").is_empty());
        self.check_proxy_status(&code);
        let retry_after_seconds = json.get("retry_after").map(|seconds| seconds.as_u64().expect("whole seconds"));
        let field = self.header("retry-after").map(|seconds| seconds.parse().expect("whole seconds"));
        assert_eq!(field, retry_after_seconds, "Retry-After and the document say the same: {self:?}");
        let in_doubt = json.get("in_doubt").is_some_and(|doubt| doubt.as_bool().expect("true or false"));
        Problem { detail: word("detail"), code, retry_after_seconds, in_doubt, json }
    }

    /// RFC 9209: who made this answer, and why.
    #[track_caller]
    fn check_proxy_status(&self, code: &str) {
        let fields = self.headers.all("proxy-status");
        assert_eq!(fields.len(), 1, "there is one Proxy-Status field in {self:?}");
        let (error, details) = fields[0]
            .strip_prefix("ifmatch; error=")
            .and_then(|rest| rest.split_once("; "))
            .unwrap_or_else(|| panic!("Proxy-Status is unreadable: {}", fields[0]));
        assert!(ERRORS.contains(&error), "{error} is an error type that ifmatch uses");
        assert_eq!(details, format!("details=\"{code}\""));
    }
}

/// Checks that a retry got the answer of the first attempt, and says so.
#[track_caller]
pub fn assert_replayed(retry: &Response, first: &Response) {
    assert_eq!(retry.header("idempotent-replayed"), Some("true"), "{retry:?}");
    assert_eq!((retry.status, retry.header("etag")), (first.status, first.header("etag")));
    assert_eq!(retry.body, first.body);
    assert_eq!(first.header("idempotent-replayed"), None);
}
