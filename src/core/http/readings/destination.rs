//! The second resource of a COPY or MOVE, as the head names it (RFC 4918 sections 9.8, 9.9 and 10).
//!
//! # Design
//!
//! *Why does the scheme not count?* Behind a TLS terminator a proxy cannot know which scheme the client used. Its client
//! knows the proxy by the host that it sent, and names the destination by the same one.

use http::{HeaderMap, HeaderName};

use crate::core::{
    http::request_target::{split_authority, without_default_port},
    refusal::{Code, Refusal},
};

/// The field that names the second resource (RFC 4918 section 10.3).
pub static DESTINATION: HeaderName = HeaderName::from_static("destination");
/// The field that tells whether an existing destination may be replaced (RFC 4918 section 10.6).
pub static OVERWRITE: HeaderName = HeaderName::from_static("overwrite");
/// The field that tells whether the members of a collection are meant too (RFC 4918 section 10.2).
pub static DEPTH: HeaderName = HeaderName::from_static("depth");

/// Returns the target that a COPY or MOVE of a client of this host names as its destination, in origin-form and as
/// received. Checks the other fields for the operation.
///
/// # Errors
///
/// A field is absent, repeated or malformed, or the destination belongs to another server.
pub fn destination<'a>(method: &str, headers: &'a HeaderMap, host: &str) -> Result<&'a [u8], Refusal> {
    forbids_overwrite(headers)?;
    let depth = single(headers, &DEPTH)?;
    let is_whole = depth.is_none_or(|depth| depth.eq_ignore_ascii_case(b"infinity"));
    if !is_whole && (method.eq_ignore_ascii_case("MOVE") || depth != Some(b"0")) {
        return Err(malformed("send Depth: infinity, or leave Depth out; a COPY may also have Depth: 0"));
    }
    let Some(reference) = single(headers, &DESTINATION)? else {
        return Err(malformed("a COPY or MOVE names in Destination where it leads: send one"));
    };
    if host.is_empty() {
        return Err(malformed("send Host: Destination names a resource of that host"));
    }
    target_of(reference, host)
}

/// True if a COPY or MOVE must not replace a resource at its destination.
///
/// # Errors
///
/// The field is repeated or malformed.
pub fn forbids_overwrite(headers: &HeaderMap) -> Result<bool, Refusal> {
    match single(headers, &OVERWRITE)? {
        None | Some(b"T") => Ok(false),
        Some(b"F") => Ok(true),
        Some(_) => Err(malformed("Overwrite is T or F")),
    }
}

fn target_of<'a>(reference: &'a [u8], host: &str) -> Result<&'a [u8], Refusal> {
    let unreadable = || malformed("Destination is an absolute URI, or a path that begins with one slash");
    let text = str::from_utf8(reference).map_err(|_error| unreadable())?;
    if text.contains(['?', '#']) {
        return Err(malformed("Destination names a resource by its path alone: leave out the query and the fragment"));
    }
    if text.starts_with("//") {
        return Err(unreadable());
    }
    let Some((_, authority, path)) = split_authority(text) else { return Err(elsewhere()) };
    match authority {
        Some(authority) if is_same(authority, host) => Ok(if path.is_empty() { b"/" } else { path.as_bytes() }),
        Some(_) => Err(elsewhere()),
        None if path.starts_with('/') => Ok(path.as_bytes()),
        None => Err(unreadable()),
    }
}

fn is_same(authority: &str, host: &str) -> bool {
    without_default_port(authority).eq_ignore_ascii_case(without_default_port(host))
}

/// The refusal of a COPY or MOVE that leads out of what this proxy guards there.
pub fn elsewhere() -> Refusal {
    let detail = "Destination leads to another server, or to what no route guards for the same upstream: copy by reading \
                  and writing";
    Refusal::new(Code::DestinationElsewhere, detail)
}

fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a [u8]>, Refusal> {
    let mut lines = headers.get_all(name).iter();
    match (lines.next(), lines.next()) {
        (first, None) => Ok(first.map(|value| value.as_bytes().trim_ascii())),
        (_, Some(_)) => Err(malformed("send Destination, Overwrite and Depth once each")),
    }
}

fn malformed(detail: &'static str) -> Refusal {
    Refusal::new(Code::MalformedRequest, detail)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const HOST: &str = "docs.test";

    fn fields(lines: &[(&HeaderName, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, HeaderValue::from_bytes(value.as_bytes()).expect("a value"));
        }
        headers
    }

    fn named(method: &str, lines: &[(&HeaderName, &'static str)], host: &str) -> Result<String, Code> {
        let headers = fields(lines);
        let target = destination(method, &headers, host);
        target.map(|target| String::from_utf8(target.to_vec()).expect("UTF-8")).map_err(|refusal| refusal.code)
    }

    #[test]
    fn a_destination_is_a_path_or_a_reference_to_the_host_of_the_client() {
        let (malformed, elsewhere) = (Err(Code::MalformedRequest), Err(Code::DestinationElsewhere));
        let path = |path: &str| Ok(path.to_owned());
        for (value, host, expected) in [
            ("/a/b", HOST, path("/a/b")),
            ("/%61%20b", HOST, path("/%61%20b")),
            ("/gr\u{fc}n", HOST, path("/gr\u{fc}n")),
            ("http://docs.test/a", HOST, path("/a")),
            ("HTTPS://DOCS.test/a", HOST, path("/a")),
            ("https://docs.test:443/a", HOST, path("/a")),
            ("http://docs.test/a", "docs.test:80", path("/a")),
            ("http://docs.test", HOST, path("/")),
            ("http://docs.test:8080/a", "docs.test:8080", path("/a")),
            ("http://docs.test:8080/a", HOST, elsewhere.clone()),
            ("http://other.test/a", HOST, elsewhere.clone()),
            ("http://user@docs.test/a", HOST, elsewhere.clone()),
            ("/a", "", malformed.clone()),
            ("ftp://docs.test/a", HOST, elsewhere.clone()),
            ("/a?b", HOST, malformed.clone()),
            ("/a#b", HOST, malformed.clone()),
            ("http://docs.test?b", HOST, malformed.clone()),
            ("//docs.test/a", HOST, malformed.clone()),
            ("a", HOST, malformed.clone()),
            ("", HOST, malformed.clone()),
        ] {
            assert_eq!(named("COPY", &[(&DESTINATION, value)], host), expected, "{value} for {host}");
        }
        assert_eq!(named("MOVE", &[], HOST), malformed);
        assert_eq!(named("MOVE", &[(&DESTINATION, "/a"), (&DESTINATION, "/a")], HOST), malformed);
    }

    /// RFC 4918 sections 9.8.3, 9.9.2 and 10.2.
    #[test]
    fn a_move_is_of_the_whole_and_a_copy_may_be_of_the_collection_alone() {
        for (method, depth, is_right) in [
            ("COPY", "0", true),
            ("COPY", "infinity", true),
            ("COPY", "Infinity", true),
            ("COPY", "1", false),
            ("COPY", "", false),
            ("MOVE", "infinity", true),
            ("MOVE", "0", false),
            ("move", "0", false),
            ("MOVE", "1", false),
        ] {
            let named = named(method, &[(&DESTINATION, "/a"), (&DEPTH, depth)], HOST);
            assert_eq!(named.is_ok(), is_right, "{method} with {depth:?}");
        }
        assert!(named("COPY", &[(&DESTINATION, "/a"), (&DEPTH, "0"), (&DEPTH, "0")], HOST).is_err());
    }

    #[test]
    fn overwrite_is_one_of_two_letters() {
        for (value, expected) in [("T", Some(false)), ("F", Some(true)), ("f", None), ("", None), ("TF", None)] {
            let headers = fields(&[(&DESTINATION, "/a"), (&OVERWRITE, value)]);
            assert_eq!(forbids_overwrite(&headers).ok(), expected, "{value:?}");
            assert_eq!(destination("MOVE", &headers, HOST).is_ok(), expected.is_some(), "{value:?}");
        }
        assert_eq!(forbids_overwrite(&HeaderMap::new()).ok(), Some(false));
    }
}
