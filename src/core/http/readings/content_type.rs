//! The media types that a backend could read in the fields of a request.
//!
//! # Design
//!
//! *Why may there be only one?* Of several `Content-Type` lines, or of a list in one line, some servers read the first
//! and some the last. So a body could be judged as one type and applied as another.
//!
//! *Why is a quoted comma no exception?* Many readers split a line at its commas without regard to quotes. Only a part
//! that looks like a media type matters, and no parameter in use holds one.

use http::{HeaderMap, header};

/// True if the fields have more than one reading of the media type.
pub fn is_ambiguous(headers: &HeaderMap) -> bool {
    let mut lines = headers.get_all(header::CONTENT_TYPE).iter();
    let line = lines.next();
    let parts = line.into_iter().flat_map(|line| line.as_bytes().split(|&octet| octet == b','));
    lines.next().is_some() || parts.skip(1).any(|part| is_media_type(essence(part)))
}

/// True if a backend could read this beginning of a media type, in lower case: `multipart/` or a whole type.
pub fn may_be(headers: &HeaderMap, beginning: &str) -> bool {
    parts(headers).any(|part| part.starts_with(beginning.as_bytes()))
}

/// True if a backend could read the content as JSON. Some search the whole field for that word.
pub fn may_be_json(headers: &HeaderMap) -> bool {
    parts(headers).any(|part| part.windows(4).any(|word| word == b"json"))
}

/// True if a backend could read a charset that begins with none of these names, in lower case.
pub fn has_other_charset(headers: &HeaderMap, beginnings: &[&str]) -> bool {
    let charset = |part: Vec<u8>| part.strip_prefix(b"charset").map(<[u8]>::to_vec);
    parts(headers).filter_map(charset).any(|value| {
        let name: Vec<u8> = value.into_iter().filter(|octet| !b"=*\"'".contains(octet)).collect();
        !beginnings.iter().any(|beginning| name.starts_with(beginning.as_bytes()))
    })
}

/// Returns the types and parameters of all lines, in lower case and without blanks.
fn parts(headers: &HeaderMap) -> impl Iterator<Item = Vec<u8>> {
    let lines = headers.get_all(header::CONTENT_TYPE).iter();
    let parts = lines.flat_map(|line| line.as_bytes().split(|octet| matches!(octet, b',' | b';')));
    parts.map(|part| {
        let bare: Vec<u8> = part.iter().filter(|octet| octet.is_ascii_graphic()).copied().collect();
        bare.to_ascii_lowercase()
    })
}

/// The part of a value in front of its parameters.
fn essence(value: &[u8]) -> &[u8] {
    value.split(|&octet| octet == b';').next().unwrap_or_default().trim_ascii()
}

fn is_media_type(essence: &[u8]) -> bool {
    let mut halves = essence.splitn(2, |&octet| octet == b'/');
    halves.all(|half| !half.is_empty()) && essence.contains(&b'/')
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn fields(lines: &[&str]) -> HeaderMap {
        let value = |line: &&str| (header::CONTENT_TYPE, HeaderValue::from_bytes(line.as_bytes()).expect("a value"));
        let mut headers = HeaderMap::new();
        lines.iter().map(value).for_each(|(name, value)| {
            headers.append(name, value);
        });
        headers
    }

    /// Rule 18: two media types in one request are two readings.
    #[test]
    fn one_request_has_one_media_type() {
        for (lines, is_ambiguous_too) in [
            (&[][..], false),
            (&["application/json"], false),
            (&["text/plain; charset=utf-8"], false),
            (&["multipart/form-data; boundary=\"a,b\""], false),
            (&["application/json, "], false),
            (&["application/json", "multipart/form-data"], true),
            (&["application/json", "application/json"], true),
            (&["application/json, multipart/form-data; boundary=x"], true),
            (&["text/plain;a=b,multipart/form-data"], true),
            (&["text/plain; a=\"b, multipart/form-data\""], true),
        ] {
            assert_eq!(is_ambiguous(&fields(lines)), is_ambiguous_too, "{lines:?}");
        }
    }

    #[test]
    fn a_form_is_recognised_wherever_it_is_named() {
        for (line, is_form) in [
            ("multipart/form-data", true),
            ("Multipart/Form-Data; boundary=x", true),
            ("multipart / form-data ;boundary=x", true),
            ("text/plain, multipart/form-data", true),
            ("text/plain; multipart/form-data", true),
            ("text/plain", false),
            ("application/multipart/form-data", false),
            ("", false),
        ] {
            assert_eq!(may_be(&fields(&[line]), "multipart/form-data"), is_form, "{line}");
        }
        assert!(may_be(&fields(&["text/plain", "multipart/mixed"]), "multipart/"));
    }

    #[test]
    fn a_charset_is_found_in_any_spelling() {
        for (line, is_other) in [
            ("text/plain", false),
            ("text/plain; charset=utf-8", false),
            ("text/plain; Charset = \"UTF-8\"", false),
            ("text/plain;charset*=utf-8", false),
            ("text/plain; charset=utf-16", true),
            ("text/plain; charset=", true),
            ("text/plain; charset=utf-8; CHARSET='IBM037'", true),
        ] {
            assert_eq!(has_other_charset(&fields(&[line]), &["utf-8"]), is_other, "{line}");
        }
        for (line, may_be) in [("Application/JSON", true), ("text/x; a=\"json\"", true), ("text/plain", false)] {
            assert_eq!(may_be_json(&fields(&[line])), may_be, "{line}");
        }
    }

    proptest! {
        /// Rule 18: letter case, blanks and parameters hide no form.
        #[test]
        fn no_spelling_hides_a_form(upper in prop::collection::vec(any::<bool>(), 19), blanks in "[ \t]{0,3}", end in "(;.{0,5})?") {
            let name = "multipart/form-data".chars().zip(upper);
            let name: String = name.map(|(one, upper)| if upper { one.to_ascii_uppercase() } else { one }).collect();
            let Ok(value) = HeaderValue::from_bytes(format!("{blanks}{name}{blanks}{end}").as_bytes()) else { return Ok(()) };
            let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, value)]);
            prop_assert!(may_be(&headers, "multipart/form-data"));
        }
    }
}
