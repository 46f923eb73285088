//! The target and the host of a request, brought into the one form that the door reads (RFC 9112 section 3.2).

use http::{Method, Version, header};
use pingora::{
    http::RequestHeader,
    protocols::http::authority::{RawTargetAuthority, raw_target_authority},
};

use crate::core::refusal::{Code, Refusal};

/// Turns a target in absolute-form into origin-form, and refuses those that no route could take.
///
/// Pingora has refused more than one Host, and a Host that differs from the target's authority.
pub(super) fn to_origin_form(request: &mut RequestHeader) -> Result<(), Refusal> {
    if request.method == Method::CONNECT {
        return Err(Refusal::new(Code::MethodNotAllowed, "this is no tunnel; use another method"));
    }
    let has_host = request.headers.contains_key(header::HOST) || request.uri.authority().is_some();
    if !has_host && request.version != Version::HTTP_10 {
        return Err(malformed("send a Host field"));
    }
    let target = request.raw_path();
    if target.starts_with(b"/") || (target == b"*" && request.method == Method::OPTIONS) {
        return Ok(());
    }
    let RawTargetAuthority::Absolute { scheme, authority, path_and_query } = raw_target_authority(target) else {
        return Err(malformed("send a target that begins with \"/\""));
    };
    if !scheme.eq_ignore_ascii_case(b"http") && !scheme.eq_ignore_ascii_case(b"https") {
        return Err(malformed("send a target that begins with \"/\", \"http://\" or \"https://\""));
    }
    let origin_form = match path_and_query.first() {
        Some(b'/') => path_and_query.to_vec(),
        None if request.method == Method::OPTIONS => b"*".to_vec(),
        _ => [b"/", path_and_query].concat(),
    };
    let authority = authority.to_vec();
    request.insert_header(header::HOST, authority).map_err(|_| malformed("send the name of a host"))?;
    request.set_raw_path(&origin_form).map_err(|_| malformed("send a target that follows RFC 3986"))
}

/// The host that a request names, perhaps with a port; empty where an HTTP/1.0 request names none.
pub(super) fn host(request: &RequestHeader) -> Result<&str, Refusal> {
    match request.headers.get(header::HOST) {
        Some(host) => host.to_str().map_err(|_| malformed("send a Host field of visible ASCII")),
        None => Ok(request.uri.authority().map_or("", |authority| authority.as_str())),
    }
}

fn malformed(detail: &'static str) -> Refusal {
    Refusal::new(Code::MalformedRequest, detail)
}
