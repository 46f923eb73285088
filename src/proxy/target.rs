//! The target and the host of a request, in the one form that the door reads (RFC 9112 section 3.2).

use http::{Method, Version, header};
use pingora::{
    http::RequestHeader,
    protocols::http::authority::{RawTargetAuthority, raw_target_authority},
};

use crate::core::{
    refusal::{Code, Refusal},
    route::is_host,
};

/// Refuses a target of more than `most` bytes as received. Records, knowledge and log lines hold the target.
pub(super) fn check_length(request: &RequestHeader, most: usize) -> Result<(), Refusal> {
    if request.raw_path().len() <= most {
        return Ok(());
    }
    Err(Refusal::new(Code::TargetTooLong, format!("send a target of at most {most} bytes, its query included")))
}

/// Turns a target in absolute-form into origin-form, and refuses targets that no route could match.
///
/// Several Host fields have been refused already, and a Host that differs from the target's authority.
pub(super) fn to_origin_form(request: &mut RequestHeader) -> Result<(), Refusal> {
    if request.method == Method::CONNECT {
        return Err(no_tunnel());
    }
    let has_host = request.headers.contains_key(header::HOST) || request.uri.authority().is_some();
    if !has_host && request.version != Version::HTTP_10 {
        return Err(malformed("send a Host field"));
    }
    let target = request.raw_path();
    if target.starts_with(b"/") {
        return name_host(request);
    }
    if target == b"*" && request.method == Method::OPTIONS {
        return Err(whole_server());
    }
    let RawTargetAuthority::Absolute { scheme, authority, path_and_query } = raw_target_authority(target) else {
        return Err(malformed("send a target that begins with \"/\""));
    };
    if !scheme.eq_ignore_ascii_case(b"http") && !scheme.eq_ignore_ascii_case(b"https") {
        return Err(malformed("send a target that begins with \"/\", \"http://\" or \"https://\""));
    }
    let origin_form = match path_and_query.first() {
        Some(b'/') => path_and_query.to_vec(),
        None if request.method == Method::OPTIONS => return Err(whole_server()),
        _ => [b"/", path_and_query].concat(),
    };
    let authority = authority.to_vec();
    request.insert_header(header::HOST, authority).map_err(|_cause| malformed("send a valid host name"))?;
    request.set_raw_path(&origin_form).map_err(|_cause| malformed("send a target that follows RFC 3986"))
}

/// Returns the refusal of CONNECT.
pub(super) fn no_tunnel() -> Refusal {
    Refusal::new(Code::MethodNotAllowed, "tunnels are not supported; use another method")
}

/// Writes the authority of an HTTP/2 request into Host (RFC 9113 section 8.3.1). Readers of that field see the same
/// request over either protocol.
fn name_host(request: &mut RequestHeader) -> Result<(), Refusal> {
    match request.uri.authority().map(|authority| authority.as_str().to_owned()) {
        Some(authority) if !request.headers.contains_key(header::HOST) => {
            request.insert_header(header::HOST, authority).map_err(|_cause| malformed("send a valid host name"))
        }
        _ => Ok(()),
    }
}

/// Returns the host that a request names, perhaps with a port. Empty if an HTTP/1.0 request names none.
pub(super) fn host(request: &RequestHeader) -> Result<&str, Refusal> {
    match request.headers.get(header::HOST) {
        Some(host) => host
            .to_str()
            .ok()
            .filter(|host| is_host(host))
            .ok_or_else(|| malformed("send the name or address of a host, perhaps with a port, in the Host field")),
        None => Ok(""),
    }
}

/// Refuses `OPTIONS *`, which asks about a server as a whole. A proxy of routes has none behind it.
fn whole_server() -> Refusal {
    Refusal::new(Code::NoRoute, "ask about a path that a route matches, not about the whole server")
}

fn malformed(detail: &'static str) -> Refusal {
    Refusal::new(Code::MalformedRequest, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the target and the host that a request of this version ends up with, or the code of its refusal.
    fn outcome(method: &str, target: &str, version: Version, host: Option<&str>) -> Result<(String, String), Code> {
        let mut request = RequestHeader::build(method, target.as_bytes(), None).expect("a request");
        request.set_version(version);
        if let Some(host) = host {
            request.insert_header(header::HOST, host).expect("a host");
        }
        to_origin_form(&mut request).map_err(|refusal| refusal.code)?;
        let host = super::host(&request).map_err(|refusal| refusal.code)?.to_owned();
        Ok((String::from_utf8_lossy(request.raw_path()).into_owned(), host))
    }

    /// RFC 9112 section 3.2: the four forms of a target.
    #[test]
    fn every_target_is_in_origin_form_or_refused() {
        let (http_11, http_10) = (Version::HTTP_11, Version::HTTP_10);
        let good = |target: &str, host: &str| Ok((target.to_owned(), host.to_owned()));
        for (method, target, version, host, expected) in [
            ("GET", "/a?b", http_11, Some("h:1"), good("/a?b", "h:1")),
            ("GET", "/a", http_10, None, good("/a", "")),
            ("GET", "/a", http_11, None, Err(Code::MalformedRequest)),
            ("GET", "/a", http_11, Some(""), good("/a", "")),
            ("GET", "http://h:1/a?b", http_11, Some("h:1"), good("/a?b", "h:1")),
            ("GET", "HTTPS://h", http_11, Some("h"), good("/", "h")),
            ("GET", "http://h?b", http_11, Some("h"), good("/?b", "h")),
            ("GET", "http://h/a", http_10, None, good("/a", "h")),
            ("GET", "http://h/a", http_11, None, Err(Code::MalformedRequest)),
            ("GET", "ftp://h/a", http_11, Some("h"), Err(Code::MalformedRequest)),
            ("GET", "a", http_11, Some("h"), Err(Code::MalformedRequest)),
            ("GET", "*", http_11, Some("h"), Err(Code::MalformedRequest)),
            ("OPTIONS", "*", http_11, Some("h"), Err(Code::NoRoute)),
            ("OPTIONS", "http://h", http_11, Some("h"), Err(Code::NoRoute)),
            ("CONNECT", "h:1", http_11, Some("h:1"), Err(Code::MethodNotAllowed)),
        ] {
            assert_eq!(outcome(method, target, version, host), expected, "{method} {target} {host:?}");
        }
    }
}
