//! The first line of a head as received (RFC 9112 section 3), before the parser changes it.
//!
//! # Design
//!
//! *What does the parser change?* If the parser refuses a space or a control character in the target, Pingora encodes
//! it, so that `/a b` becomes `/a%20b`. Pingora's URI ends at `#`, so that `DELETE /a#b` would delete `/a`. No client
//! that follows the rules sends either (RFC 3986 section 3.5, RFC 9112 section 3.2).

use memchr::{memchr, memchr_iter};

use super::head::is_token;

/// The longest method that is shown, in bytes.
const SHOWN_METHOD_BYTES: usize = 32;
/// The longest path that is shown of a request that cannot be read, in bytes.
const SHOWN_PATH_BYTES: usize = 256;

/// The beginning of a request that cannot be read, in the form that a log may show: no query, and nothing but a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShownLine<'a> {
    /// The method; empty if there is none.
    pub method: &'a [u8],
    /// The path, or its beginning; empty if there is none.
    pub path: &'a [u8],
}

/// Returns the fault of a request's target, as advice on what to send instead. `None` if there is no fault, or no
/// request line.
pub fn fault_of_target(head: &[u8]) -> Option<&'static str> {
    let (_, target) = method_and_target(head)?;
    if target.contains(&b'#') {
        return Some("leave the fragment out of the target, or encode \"#\" as %23");
    }
    let is_blank = |octet: &u8| *octet <= b' ' || *octet == 0x7f;
    target.iter().any(is_blank).then_some("encode spaces and control characters in the target")
}

/// Returns the method and the target in the first line that is not empty.
fn method_and_target(head: &[u8]) -> Option<(&[u8], &[u8])> {
    let line = lines(head).find(|line| !line.is_empty())?;
    let begin = line.iter().position(|octet| *octet == b' ')?;
    let end = line.iter().rposition(|octet| *octet == b' ')?;
    Some((line.get(..begin)?, line.get(begin + 1..end)?))
}

/// Returns what a log may show of a request that begins with these bytes.
pub fn shown(received: &[u8]) -> ShownLine<'_> {
    let line = lines(received).find(|line| !line.is_empty()).unwrap_or_default();
    let mut words = line.splitn(2, |octet| *octet == b' ');
    let (Some(method), Some(target)) = (words.next(), words.next()) else { return ShownLine::default() };
    if method.len() > SHOWN_METHOD_BYTES || !method.iter().copied().all(is_token) {
        return ShownLine::default();
    }
    let ends_path = |octet: &u8| matches!(octet, b'?' | b'#' | 0x7f) || *octet <= b' ';
    let path = target.split(ends_path).next().filter(|path| path.starts_with(b"/")).unwrap_or_default();
    ShownLine { method, path: path.get(..SHOWN_PATH_BYTES).unwrap_or(path) }
}

/// True if a line of a head begins with the name of a field.
pub fn has_field(head: &[u8], name: &[u8]) -> bool {
    field(head, name).is_some()
}

/// Returns the first line that begins with this name, after the name.
fn field<'a>(head: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let mut rest = head;
    // Each head is scanned, so no line is cut out before it is the right one.
    while !is_named(rest, name) {
        rest = rest.get(memchr(b'\n', rest)? + 1..)?;
    }
    lines(rest.get(name.len()..)?).next()
}

/// True if a line begins with this name. The first letter tells nearly all lines apart.
fn is_named(line: &[u8], name: &[u8]) -> bool {
    let letter = |octets: &[u8]| octets.first().map(u8::to_ascii_lowercase);
    letter(line) == letter(name) && line.get(..name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name))
}

fn lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut begin = 0;
    memchr_iter(b'\n', head).chain([head.len()]).filter_map(move |end| {
        let line = head.get(begin..end)?;
        begin = end + 1;
        Some(line.strip_suffix(b"\r").unwrap_or(line))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_has_neither_fragment_nor_blanks() {
        for target in [
            "/a#b",
            "/#",
            "#",
            "http://h/a#b",
            "/a b",
            "/a?b c",
            "/a HTTP/1.1",
            "/a\tb",
            "/a\x01",
            "/\x7f",
            " /a",
            "/a ",
        ] {
            for end in ["\r\n", "\n"] {
                let head = format!("DELETE {target} HTTP/1.1{end}Host: a{end}{end}");
                assert!(fault_of_target(head.as_bytes()).is_some(), "{head:?}");
            }
        }
        assert!(fault_of_target(b"\r\n\r\nGET /a#b HTTP/1.1\r\n\r\n").is_some());
    }

    #[test]
    fn a_log_shows_the_method_and_the_path_and_nothing_else() {
        let (long_method, long_path) = ("M".repeat(33), format!("/{}", "p".repeat(300)));
        let (long_line, cut) = (format!("GET {long_path}"), &long_path[..SHOWN_PATH_BYTES]);
        for (received, method, path) in [
            ("GET /a HTTP/1.1\r\nHost: a\r\n\r\n", "GET", "/a"),
            ("\r\nGET /a?token=b HTTP/1.1\r\n", "GET", "/a"),
            ("GET /a#token=b HTTP/1.1", "GET", "/a"),
            ("GET /a b HTTP/1.1", "GET", "/a"),
            ("GET /a\x01b", "GET", "/a"),
            ("GET http://user:word@a/b HTTP/1.1", "GET", ""),
            ("AUTH word", "AUTH", ""),
            ("GET  /a", "GET", ""),
            (&long_line, "GET", cut),
            ("GET", "", ""),
            ("G@T /a HTTP/1.1", "", ""),
            ("\x16\x03\x01 /a", "", ""),
            (&format!("{long_method} /a HTTP/1.1"), "", ""),
            ("", "", ""),
        ] {
            let expected = ShownLine { method: method.as_bytes(), path: path.as_bytes() };
            assert_eq!(shown(received.as_bytes()), expected, "{received:?}");
        }
    }

    #[test]
    fn the_parts_of_the_line_are_found_as_they_are_spelled() {
        let head = b"\r\nPUT /a?b HTTP/1.1\r\nHosts: x\r\nhOST: \ta:80 \r\n\r\n";
        assert_eq!(method_and_target(head), Some((&b"PUT"[..], &b"/a?b"[..])));
        assert!(has_field(head, b"host:") && !has_field(head, b"hos:"));
        for head in ["", "\r\n", "GET", "GET /a", "GET /a\r\nHost: \r\n"] {
            assert_eq!(method_and_target(head.as_bytes()), None, "{head:?}");
        }
    }

    #[test]
    fn what_comes_after_the_line_is_none_of_it() {
        for head in
            ["GET /a HTTP/1.1\r\nX: #\r\n\r\n", "GET /%23%20?a=b HTTP/1.1\r\n\r\n# \x01", "\r\n", "", "GET", "GET /a"]
        {
            assert_eq!(fault_of_target(head.as_bytes()), None, "{head:?}");
        }
    }
}
