//! Bodies that every reader takes for JSON, and for nothing else.
//!
//! # Design
//!
//! *Why is the type asked for, if the body is JSON?* `{"a":"&id=1&b="}` is JSON, and a form whose field `id` is 1. A
//! backend chooses by the declared type, and so does ifmatch.
//!
//! *Why is a word in a parameter enough for a refusal?* Some servers search the whole field for the type of forms.

use http::{HeaderMap, header};

use super::content_type;

/// Words of the types that servers read as forms, at any place in the field.
const WORDS_OF_FORMS: [&str; 2] = ["form", "multipart"];

/// True if a request declares its body as JSON in UTF-8, with one reading.
pub fn is_declared_json(headers: &HeaderMap) -> bool {
    let mut lines = headers.get_all(header::CONTENT_TYPE).iter();
    let (Some(line), None) = (lines.next(), lines.next()) else { return false };
    !headers.contains_key(header::CONTENT_ENCODING) && line.to_str().is_ok_and(is_json)
}

/// True if a request declares its body as a list of operations on the resource (RFC 6902), so that no member of it is one of
/// the resource.
pub fn is_declared_json_patch(headers: &HeaderMap) -> bool {
    content_type::may_be(headers, "application/json-patch+json") && is_declared_json(headers)
}

/// True if a media type is one of JSON (RFC 6839 section 3.1), with parameters that change nothing.
fn is_json(value: &str) -> bool {
    let value = value.to_ascii_lowercase();
    let mut parts = value.split(';').map(|part| part.trim_matches([' ', '\t']));
    let subtype = parts.next().and_then(|media_type| media_type.strip_prefix("application/")).unwrap_or_default();
    let parameters: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
    let charsets = || parameters.iter().filter(|parameter| parameter.starts_with("charset"));
    (subtype == "json" || subtype.ends_with("+json"))
        && is_token(subtype)
        && parameters.iter().all(|parameter| is_parameter(parameter))
        && charsets().count() <= 1
        && charsets().all(|charset| matches!(*charset, "charset=utf-8" | "charset=\"utf-8\""))
        && !WORDS_OF_FORMS.iter().any(|word| value.contains(word))
}

/// True if a parameter ends where every reader ends it.
fn is_parameter(parameter: &str) -> bool {
    let Some((name, value)) = parameter.split_once('=') else { return false };
    let quoted = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
    let is_plain = |octet: u8| matches!(octet, b' '..=b'~') && !matches!(octet, b'"' | b'\\' | b',');
    is_token(name) && quoted.map_or_else(|| is_token(value), |quoted| quoted.bytes().all(is_plain))
}

/// RFC 9110 section 5.6.2.
fn is_token(text: &str) -> bool {
    let is_character = |octet: u8| octet.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&octet);
    !text.is_empty() && text.bytes().all(is_character)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declared(fields: &[(&'static str, &str)]) -> bool {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, value.parse().expect("a value"));
        }
        is_declared_json(&headers)
    }

    #[test]
    fn one_field_that_says_json_declares_it() {
        for value in [
            "application/json",
            "Application/JSON ; charset=UTF-8",
            "application/json;charset=\"utf-8\"",
            "application/json;",
            "application/vnd.api+json",
            "application/query+json",
            "application/json; profile=\"https://example.com/a b\"; odata=verbose",
        ] {
            assert!(declared(&[("content-type", value)]), "{value}");
        }
    }

    /// Rule 18: a body that some server reads in another way is not declared JSON.
    #[test]
    fn what_some_server_reads_in_another_way_is_no_json() {
        for value in [
            "",
            "json",
            "text/json",
            "text/plain",
            "application/x-www-form-urlencoded",
            "application/x-www-form-urlencoded+json",
            "multipart/form-data; boundary=a",
            "multipart/x+json",
            "application/json, application/x-www-form-urlencoded",
            "application/json; a=application/x-www-form-urlencoded",
            "application/json; a=\"multipart/form-data\"",
            "application/json; charset=utf-16",
            "application/json; charset=utf-8; charset=utf-16",
            "application/json; charset=\"utf-8",
            "application/json; charset =utf-8",
            "application/json; charset",
            "application/json charset=utf-8",
            "application/json; a=\"b;c\"",
            "application/json; a=\"b\\\"\"",
            "application/json+xml",
            "application/+json x",
        ] {
            assert!(!declared(&[("content-type", value)]), "{value}");
        }
        let json = ("content-type", "application/json");
        assert!(!declared(&[]));
        assert!(!declared(&[json, json]));
        assert!(!declared(&[json, ("content-type", "multipart/form-data")]));
        for coding in ["gzip", "identity", ""] {
            assert!(!declared(&[json, ("content-encoding", coding)]), "{coding}");
        }
    }
}
