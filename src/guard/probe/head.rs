//! The head of a request to the upstream for the resource of a write.

use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use pingora::http::RequestHeader;

use crate::{
    core::http::{
        fields::METHOD_FIELDS,
        readings::{
            destination::{DEPTH, DESTINATION, OVERWRITE},
            method, query,
        },
    },
    guard::{Request, remove_conditions},
    upstream::fields::request_head,
};

/// Fields of a write that have no bearing on the representation to read.
const LEFT_OUT: [HeaderName; 3] =
    [header::RANGE, HeaderName::from_static("idempotency-key"), HeaderName::from_static("prefer")];

/// The fields of a COPY or MOVE.
static OF_DESTINATION: [&HeaderName; 3] = [&DESTINATION, &OVERWRITE, &DEPTH];

/// The head of a probe for the resource of a write. `None` if a field cannot be written.
pub(super) fn probe_head(request: &Request, method: Method, for_bytes: bool) -> Option<Box<RequestHeader>> {
    let mut head = request_head(&request.head, 0).ok()?;
    let describes_body = |name: &&HeaderName| name.as_str().starts_with("content-");
    let of_body: Vec<HeaderName> = head.headers.keys().filter(describes_body).cloned().collect();
    remove_conditions(&mut head);
    // A backend that heeds a method in a field would take the probe for a write.
    for name in LEFT_OUT.iter().chain(&METHOD_FIELDS).chain(OF_DESTINATION).chain(&of_body) {
        head.remove_header(name);
    }
    if method::is_named(&HeaderMap::new(), head.raw_path()) {
        let target = query::without(head.raw_path(), method::is_parameter);
        head.set_raw_path(&target).ok()?;
    }
    head.set_method(method);
    head.insert_header(header::CACHE_CONTROL, HeaderValue::from_static("no-cache")).ok()?;
    if for_bytes {
        ask_for_identity(&mut head).ok()?;
    }
    Some(head)
}

/// Requests the bytes that are hashed, which have no content coding.
pub(crate) fn ask_for_identity(head: &mut RequestHeader) -> pingora::Result<()> {
    head.insert_header(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"))
}
