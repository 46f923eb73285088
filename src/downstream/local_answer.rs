//! The answers that this proxy makes: refusals, and others like a local 304 (RFC 9110, RFC 9457; DESIGN, section 8).

use std::borrow::Cow;

use bytes::{BufMut as _, Bytes, BytesMut};
use http::{HeaderValue, Method, StatusCode, header};
use pingora::{
    ErrorType, OrErr as _,
    http::{RequestHeader, ResponseHeader},
};

use super::http1::end_lines;
use crate::{
    core::{
        http::preferences::{PREFERENCE_APPLIED, RETURN_REPRESENTATION},
        policy::Dialect,
        refusal::{Code, Refusal},
    },
    dialect::{ErrorDocument, Incoming, native::problem},
    guard::{Relayed, UntoldGrant},
    telemetry::{self, access::AccessEntry},
    upstream::fields::{FieldsOfHead as _, never_has_body},
};

/// The methods that a 405 lists: all that a guarded route accepts by default (RFC 9110 section 15.5.6).
const ALLOW: HeaderValue = HeaderValue::from_static("GET, HEAD, OPTIONS, PUT, POST, PATCH, DELETE");
/// The room for the fields of most refusals.
const FIELDS: usize = 8;
/// The room for the head of most answers.
const HEAD_BYTES: usize = 512;

/// An answer of this proxy. All of it is known before a byte is written.
pub(crate) struct LocalAnswer {
    head: LocalHead,
    /// The body, if one is sent.
    body: Option<Bytes>,
}

/// The head of an answer, without `Date` and `Connection`.
enum LocalHead {
    /// A response, perhaps one that the upstream has begun.
    Response(Box<ResponseHeader>),
    /// The head of a refusal. A list is a fifth of the work of a map.
    Refusal(StatusCode, Vec<Field>),
}

/// A field, its name as it is spelled over HTTP/1.1.
type Field = (Cow<'static, str>, HeaderValue);

impl LocalAnswer {
    /// Makes an answer from a head and a complete body.
    ///
    /// This function sets `Content-Length`, even if the method or the status keeps the body from being sent. If there
    /// could be a body, `None` means that there is none. Otherwise it leaves the field unchanged.
    pub(crate) fn new(
        request: &RequestHeader,
        mut head: Box<ResponseHeader>,
        body: Option<Bytes>,
    ) -> pingora::Result<Self> {
        let bodiless = never_has_body(head.status);
        if !bodiless {
            head.insert_header(header::CONTENT_LENGTH, body.as_ref().map_or(0, Bytes::len))?;
        }
        let body = body.filter(|_| !bodiless && request.method != Method::HEAD);
        Ok(Self { head: LocalHead::Response(head), body })
    }

    /// Makes the answer of a refusal: a document in the shape that the route's clients read, with `Proxy-Status` (RFC
    /// 9209). No cache stores it. The refusal is recorded before the client can ask about it.
    pub(crate) fn refusal(
        request: &RequestHeader,
        mut refusal: Refusal,
        dialect: Dialect,
        entry: &mut AccessEntry,
    ) -> pingora::Result<Self> {
        telemetry::refused(entry, &mut refusal);
        let incoming = Incoming {
            method: &request.method,
            other_methods: &[],
            target: request.raw_path(),
            headers: &request.headers,
        };
        let document = dialect.grammar().refusal(incoming, &refusal);
        let is_head = request.method == Method::HEAD;
        let has_content = !is_head || dialect.quirks().head_errors_have_content;
        let answer = Self::of_document(document, &refusal, has_content, !is_head);
        telemetry::keep_refusal(entry, refusal, Some(&request.method), request.raw_path());
        answer
    }

    /// Makes the answer of a refusal that the protocol tells by a response of its own.
    pub(super) fn told(
        request: &RequestHeader,
        mut refusal: Refusal,
        (mut head, body): (Box<ResponseHeader>, Option<Bytes>),
        entry: &mut AccessEntry,
    ) -> pingora::Result<Self> {
        telemetry::refused(entry, &mut refusal);
        head.insert_header(header::CACHE_CONTROL, "no-store")?;
        head.insert_header("Proxy-Status", value(refusal.proxy_status())?)?;
        telemetry::keep_refusal(entry, refusal, Some(&request.method), request.raw_path());
        Self::new(request, head, body)
    }

    /// Makes the answer of a refusal whose client wants the current representation: that, in place of a document.
    pub(super) fn with_current_state(
        request: &RequestHeader,
        mut refusal: Refusal,
        mut current: Box<Relayed>,
        entry: &mut AccessEntry,
    ) -> pingora::Result<Box<Relayed>> {
        telemetry::refused(entry, &mut refusal);
        let head = &mut current.head;
        head.set_status(refusal.code.status())?;
        head.insert_header(header::CACHE_CONTROL, "no-store")?;
        head.insert_header("Proxy-Status", value(refusal.proxy_status())?)?;
        head.insert_header(PREFERENCE_APPLIED, RETURN_REPRESENTATION)?;
        head.insert_header(header::CONTENT_LOCATION, request.raw_path())?;
        telemetry::keep_refusal(entry, refusal, Some(&request.method), request.raw_path());
        Ok(current)
    }

    /// Makes the answer to a request that was refused before it was read, beyond this method and path at most. The route
    /// is not known that early, so the answer is a problem document.
    pub(crate) fn unread(
        method: Option<&Method>,
        path: &[u8],
        mut refusal: Refusal,
        entry: &mut AccessEntry,
    ) -> pingora::Result<Self> {
        telemetry::refused(entry, &mut refusal);
        let answer = Self::of_document(problem(&refusal), &refusal, true, method != Some(&Method::HEAD));
        telemetry::keep_refusal(entry, refusal, method, path);
        answer
    }

    /// `has_content` tells whether the head describes the content, and `sends` whether the content follows.
    fn of_document(
        document: ErrorDocument,
        refusal: &Refusal,
        has_content: bool,
        sends: bool,
    ) -> pingora::Result<Self> {
        let mut fields = Vec::with_capacity(FIELDS);
        if has_content {
            fields.push(("Content-Type".into(), HeaderValue::from_static(document.content_type)));
        }
        for (name, value) in document.fields {
            set(&mut fields, name.to_string(), value);
        }
        set(&mut fields, "Cache-Control", HeaderValue::from_static("no-store"));
        set(&mut fields, "Proxy-Status", value(refusal.proxy_status())?);
        if let Some(seconds) = refusal.retry_after_seconds() {
            set(&mut fields, "retry-after", seconds.into());
        }
        for (name, value) in refusal.fields.iter().flat_map(|fields| fields.iter()) {
            set(&mut fields, name.to_string(), value.clone());
        }
        if refusal.code == Code::MethodNotAllowed {
            set(&mut fields, "Allow", ALLOW);
        }
        if has_content {
            set(&mut fields, "Content-Length", document.body.len().into());
        }
        let body = sends.then(|| document.body.into());
        Ok(Self { head: LocalHead::Refusal(document.status, fields), body })
    }

    /// Adds a line of a field to the head.
    pub(super) fn add_field(&mut self, name: &'static str, value: HeaderValue) -> pingora::Result<()> {
        match &mut self.head {
            LocalHead::Response(head) => {
                head.append_header(name, value)?;
            }
            LocalHead::Refusal(_, fields) => fields.push((name.into(), value)),
        }
        Ok(())
    }

    /// Its status.
    pub(crate) fn status(&self) -> StatusCode {
        match &self.head {
            LocalHead::Response(head) => head.status,
            LocalHead::Refusal(status, _) => *status,
        }
    }

    /// Takes out the new lease whose id the head shows.
    pub(super) fn untold(&mut self) -> Option<UntoldGrant> {
        match &mut self.head {
            LocalHead::Response(head) => UntoldGrant::of(head),
            LocalHead::Refusal(..) => None,
        }
    }

    /// The number of bytes of the body that are sent.
    pub(crate) fn sent_bytes(&self) -> usize {
        self.body.as_ref().map_or(0, Bytes::len)
    }

    /// The head and the body for a session, which may be one of HTTP/2.
    pub(super) fn into_parts(self, is_http2: bool) -> pingora::Result<(Box<ResponseHeader>, Bytes)> {
        let head = match self.head {
            LocalHead::Response(head) => head,
            LocalHead::Refusal(status, fields) => {
                // No client of HTTP/2 sees how a name is spelled.
                let count = Some(fields.len());
                let mut head = if is_http2 {
                    ResponseHeader::build_no_case(status, count)?
                } else {
                    ResponseHeader::build(status, count)?
                };
                for (name, value) in fields {
                    match name {
                        Cow::Borrowed(name) => head.append_header(name, value)?,
                        Cow::Owned(name) => head.append_header(name, value)?,
                    };
                }
                Box::new(head)
            }
        };
        Ok((head, self.body.unwrap_or_default()))
    }

    /// The bytes over HTTP/1.1 (RFC 9112 section 4). `stays` announces whether the connection stays.
    pub(super) fn into_bytes(self, stays: bool) -> BytesMut {
        let (status, mut bytes) = (self.status(), BytesMut::with_capacity(HEAD_BYTES + self.sent_bytes()));
        let line = [&b"HTTP/1.1 "[..], status.as_str().as_bytes(), b" ", reason(status), b"\r\n"];
        for part in line {
            bytes.put_slice(part);
        }
        match self.head {
            LocalHead::Response(mut head) => {
                head.remove(&header::DATE);
                head.remove(&header::CONNECTION);
                head.header_to_h1_wire(&mut bytes);
            }
            LocalHead::Refusal(_, fields) => {
                for (name, value) in &fields {
                    let line = [name.as_bytes(), b": ", value.as_bytes(), b"\r\n"];
                    for part in line {
                        bytes.put_slice(part);
                    }
                }
            }
        }
        end_lines(&mut bytes, stays);
        bytes.put_slice(&self.body.unwrap_or_default());
        bytes
    }
}

/// Sets a field that the list has once.
fn set(fields: &mut Vec<Field>, name: impl Into<Cow<'static, str>>, value: HeaderValue) {
    let name = name.into();
    match fields.iter_mut().find(|(known, _)| known.eq_ignore_ascii_case(&name)) {
        Some((_, known)) => *known = value,
        None => fields.push((name, value)),
    }
}

fn value(text: String) -> pingora::Result<HeaderValue> {
    HeaderValue::try_from(text).or_err(ErrorType::InvalidHTTPHeader, "a field of a refusal")
}

fn reason(status: StatusCode) -> &'static [u8] {
    status.canonical_reason().unwrap_or_default().as_bytes()
}
