//! The head of a request of HTTP/1.1, read once, into fields that share its bytes.

use std::{mem::MaybeUninit, sync::Arc};

use bytes::Bytes;
use http::{HeaderValue, Version, header};
use httparse::{Request, Status};
use pingora::{http::RequestHeader, protocols::http::authority::validate_request_authority};

use crate::{
    core::{http::fields::wants_connection, wire::received_body::ReceivedBody},
    upstream::fields::FieldsOfHead as _,
};

/// The number of fields that a head may have.
const FIELDS_MAX: usize = 256;

/// A head that is well-formed, and the framing that it announces.
pub(super) struct ReadHead {
    pub(super) request: Arc<RequestHeader>,
    pub(super) body: ReceivedBody,
    /// True if the connection may stay.
    pub(super) stays: bool,
}

/// Reads a complete head. `None` means that it is malformed or ambiguous: no server would have to read the same in it.
pub(super) fn read(bytes: &Bytes) -> Option<ReadHead> {
    let mut request = parse(bytes)?;
    validate_request_authority(&request).ok()?;
    let body = ReceivedBody::of_request(request.version, &request.headers).ok()?;
    let mut stays = wants_connection(request.version, &request.headers);
    if matches!(body, ReceivedBody::Chunks(_)) && request.headers.contains_key(header::CONTENT_LENGTH) {
        // The coding takes precedence, and the connection ends (RFC 9112 section 6.1).
        request.remove(&header::CONTENT_LENGTH);
        stays = false;
    }
    Some(ReadHead { request: Arc::new(request), body, stays })
}

fn parse(bytes: &Bytes) -> Option<RequestHeader> {
    let mut fields = [const { MaybeUninit::uninit() }; FIELDS_MAX];
    let mut parsed = Request::new(&mut []);
    if parsed.parse_with_uninit_headers(bytes, &mut fields).ok()? == Status::Partial {
        return None;
    }
    build(bytes, (parsed.method?, parsed.path?, parsed.version), parsed.headers)
}

fn build(
    bytes: &Bytes,
    (method, target, version): (&str, &str, Option<u8>),
    fields: &[httparse::Header<'_>],
) -> Option<RequestHeader> {
    let mut request = RequestHeader::build(method, target.as_bytes(), Some(fields.len())).ok()?;
    request.set_version(if version == Some(0) { Version::HTTP_10 } else { Version::HTTP_11 });
    for field in fields {
        let value = HeaderValue::from_maybe_shared(bytes.slice_ref(field.value)).ok()?;
        request.append_header(bytes.slice_ref(field.name.as_bytes()), value).ok()?;
    }
    Some(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(head: &str) -> Option<ReadHead> {
        super::read(&Bytes::from(head.to_owned()))
    }

    #[test]
    fn a_head_keeps_its_spelling_and_its_order() {
        let head =
            read("\r\nPUT /a?b HTTP/1.1\r\nHOST: a\r\nx-B: 1\r\nX-b: \t2 \r\ncontent-length: 3\r\n\r\n").unwrap();
        let spelled: Vec<_> = head.request.spelled_fields().map(|(name, value)| (name, value.as_bytes())).collect();
        let expected = [("HOST", &b"a"[..]), ("x-B", b"1"), ("X-b", b"2"), ("content-length", b"3")];
        assert_eq!(spelled, expected);
        assert_eq!((head.request.method.as_str(), head.request.raw_path()), ("PUT", &b"/a?b"[..]));
        assert!(head.stays && matches!(head.body, ReceivedBody::Length(3)));
    }

    #[test]
    fn what_has_two_readings_is_no_head() {
        for head in [
            "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: u@a\r\n\r\n",
            "GET http://a/ HTTP/1.1\r\nHost: b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n",
            "GET / HTTP/2.0\r\nHost: a\r\n\r\n",
            "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            "PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n",
            "PUT / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
        ] {
            assert!(read(head).is_none(), "{head:?}");
        }
        let many = format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: y\r\n".repeat(FIELDS_MAX));
        assert!(read(&many).is_none());
    }

    #[test]
    fn a_connection_stays_unless_somebody_ends_it() {
        for (head, stays) in [
            ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", true),
            ("GET / HTTP/1.1\r\nHost: a\r\nConnection: TE, Close\r\n\r\n", false),
            ("GET / HTTP/1.0\r\n\r\n", false),
            ("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", true),
            ("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", false),
        ] {
            assert_eq!(read(head).unwrap().stays, stays, "{head:?}");
        }
    }
}
