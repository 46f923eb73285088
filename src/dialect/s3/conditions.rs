//! What S3's clients send.

use std::borrow::Cow;

use http::{HeaderMap, HeaderValue, Method, header};

use crate::core::{
    refusal::{Code, Refusal},
    target::split_query,
};

/// The media type of an upload by an HTML form.
const FORM: &[u8] = b"multipart/form-data";

/// The fields of a request with its one tag in quotes, where its client left them out: S3 takes both spellings.
pub fn quoted(headers: &HeaderMap) -> Cow<'_, HeaderMap> {
    let mut quoted = Cow::Borrowed(headers);
    for name in [header::IF_MATCH, header::IF_NONE_MATCH] {
        let mut lines = headers.get_all(&name).iter();
        let (Some(line), None) = (lines.next(), lines.next()) else { continue };
        let tag = line.as_bytes().trim_ascii();
        let is_bare = !tag.is_empty() && tag != b"*" && !tag.iter().any(|octet| matches!(octet, b'"' | b',' | b' '));
        if let (true, Ok(value)) = (is_bare, HeaderValue::from_bytes(&[b"\"", tag, b"\""].concat())) {
            quoted.to_mut().insert(name, value);
        }
    }
    quoted
}

/// Refuses what changes other resources than its target: `DeleteObjects`, and the `PostObject` of HTML forms, name them
/// in their bodies.
pub fn refuse_unguardable(method: &Method, target: &[u8], headers: &HeaderMap) -> Result<(), Refusal> {
    let (_, query) = split_query(target);
    let mut names = query.unwrap_or_default().split(|&octet| octet == b'&');
    let deletes = names.any(|pair| pair.split(|&octet| octet == b'=').next() == Some(b"delete"));
    let content = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    let is_form = content.get(..FORM.len()).is_some_and(|start| start.eq_ignore_ascii_case(FORM));
    if *method == Method::POST && (deletes || is_form) {
        let detail = "a request that names its objects in its body cannot be guarded: write or delete them one by one, \
                      by PUT or DELETE";
        return Err(Refusal::new(Code::NotSupported, detail));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn if_match(value: &'static str) -> String {
        let headers = HeaderMap::from_iter([(header::IF_MATCH, HeaderValue::from_static(value))]);
        quoted(&headers)[header::IF_MATCH].to_str().unwrap().to_owned()
    }

    #[test]
    fn a_bare_tag_gets_its_quotes_and_all_else_stays() {
        assert_eq!(if_match("9b2cf5-2"), "\"9b2cf5-2\"");
        for value in ["\"9b2cf5\"", "*", "W/\"9b2cf5\"", "\"a\", \"b\"", "a, b", ""] {
            assert_eq!(if_match(value), value);
        }
        assert!(matches!(quoted(&HeaderMap::new()), Cow::Borrowed(_)));
    }

    #[test]
    fn what_names_its_objects_in_its_body_is_refused() {
        let none = HeaderMap::new();
        let form = HeaderValue::from_static("Multipart/Form-Data; boundary=x");
        let form = HeaderMap::from_iter([(header::CONTENT_TYPE, form)]);
        assert!(refuse_unguardable(&Method::POST, b"/bucket", &form).is_err());
        for target in ["/bucket?delete", "/bucket?x-id=DeleteObjects&delete="] {
            let refusal = refuse_unguardable(&Method::POST, target.as_bytes(), &none).unwrap_err();
            assert_eq!(refusal.code, Code::NotSupported, "{target}");
        }
        for (method, target) in
            [(Method::POST, "/bucket/delete?uploads"), (Method::POST, "/bucket"), (Method::DELETE, "/bucket?delete")]
        {
            assert_eq!(refuse_unguardable(&method, target.as_bytes(), &none), Ok(()), "{method} {target}");
        }
    }
}
