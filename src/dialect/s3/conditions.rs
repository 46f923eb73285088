//! The requests of S3 clients: conditions as S3 spells them, and requests that cannot be guarded.

use std::borrow::Cow;

use http::{HeaderMap, HeaderName, HeaderValue, Method, header};

use super::removals;
use crate::{
    core::{
        http::readings::{content_type, query},
        policy::TagSource,
        refusal::{Code, Refusal},
    },
    dialect::Incoming,
};

/// The media types of HTML forms, in which an upload names its object. Some servers accept each kind of `multipart`.
const FORMS: [&str; 2] = ["multipart/", "application/x-www-form-urlencoded"];

/// Returns the fields of a request, with quotes around a single bare tag. S3 accepts both spellings.
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

/// The prefix of conditions that are foreign to HTTP and to the proxy: on the size or age of the object that is removed.
const OWN_CONDITIONS: [&str; 1] = ["x-amz-if-match-"];

/// The field with the old name of a renamed object. That object is gone once its content is at the target.
const RENAMED: &str = "x-amz-rename-source";

/// Refuses requests that change resources other than their target. The `PostObject` of HTML forms names them in its body,
/// and so does a `DeleteObjects` that not every reader takes for one. `RenameObject` names one in a field. If the server leaves conditions to the proxy, this
/// function also refuses conditions that the proxy cannot judge.
///
/// # Errors
///
/// The request cannot be guarded.
pub fn refuse_unguardable(request: Incoming<'_>, etag: &TagSource) -> Result<(), Refusal> {
    let Incoming { method, other_methods, target, headers } = request;
    let mut methods = other_methods.iter().chain([method]);
    if methods.clone().all(|method| matches!(*method, Method::GET | Method::HEAD)) {
        return Ok(());
    }
    let is_named = |name: &HeaderName, starts: &[&str]| starts.iter().any(|start| name.as_str().starts_with(start));
    if headers.keys().any(|name| is_named(name, &[RENAMED])) {
        let detail =
            "renaming an object changes two objects at once, which cannot be guarded: copy it, and then delete it";
        return Err(Refusal::new(Code::NotSupported, detail));
    }
    if *etag != TagSource::Delegate && headers.keys().any(|name| is_named(name, &OWN_CONDITIONS)) {
        let detail = "this proxy cannot judge this condition, and the server behind it may ignore it: send If-Match \
                      with the ETag of the object that is written or deleted";
        return Err(Refusal::new(Code::NotSupported, detail));
    }
    let is_empty = || headers.get(header::CONTENT_LENGTH).is_some_and(|length| length == "0");
    let is_form = || FORMS.iter().any(|form| content_type::may_be(headers, form)) && !is_empty();
    let is_unlisted = || query::has(target, "delete") && !removals::is_list(request);
    if methods.any(|method| *method == Method::POST) && (is_unlisted() || is_form()) {
        let detail = "a request that names its objects in its body is guarded as a POST of a Delete document in UTF-8 to \
                      ?delete alone: else write or delete them one by one, with PUT or DELETE";
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

    /// Rule 18: a spelling that some server takes for a removal of many objects, or for a form, is one.
    #[test]
    fn what_names_its_objects_in_its_body_is_refused() {
        let none = HeaderMap::new();
        let typed = |lines: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(header::CONTENT_TYPE, HeaderValue::from_static(line));
            }
            headers
        };
        let form = typed(&["Multipart/Form-Data; boundary=x"]);
        let refused = |method: &Method, target: &str, headers: &HeaderMap| {
            let request = Incoming { method, other_methods: &[], target: target.as_bytes(), headers };
            refuse_unguardable(request, &TagSource::Upstream)
        };
        for lines in [
            &["Multipart/Form-Data; boundary=x"][..],
            &["application/json", "multipart/form-data"],
            &["application/json, multipart/form-data"],
            &["multipart / form-data"],
            &["multipart/mixed"],
            &["application/x-www-form-urlencoded; charset=utf-8"],
        ] {
            assert!(refused(&Method::POST, "/bucket", &typed(lines)).is_err(), "{lines:?}");
        }
        let mut empty = typed(&["application/x-www-form-urlencoded"]);
        empty.insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
        assert_eq!(refused(&Method::POST, "/bucket/object?uploads", &empty), Ok(()), "it names nothing");
        assert_eq!(refused(&Method::PUT, "/bucket/object", &form), Ok(()), "the type of the object");
        let either = Incoming {
            method: &Method::DELETE,
            other_methods: &[Method::POST],
            target: b"/bucket?delete",
            headers: &none,
        };
        assert!(refuse_unguardable(either, &TagSource::Upstream).is_err(), "a POST in another reading");
        for target in [
            "/bucket?delete&uploads",
            "/bucket?%64elete",
            "/bucket?d%65lete",
            "/bucket?Delete",
            "/bucket?a=1;delete",
            "/bucket?+delete=",
        ] {
            let refusal = refused(&Method::POST, target, &none).unwrap_err();
            assert_eq!(refusal.code, Code::NotSupported, "{target}");
        }
        for (method, target) in [
            (Method::POST, "/bucket/delete?uploads"),
            (Method::POST, "/bucket"),
            (Method::POST, "/bucket?x-id=DeleteObjects&delete="),
            (Method::DELETE, "/bucket?delete"),
        ] {
            assert_eq!(refused(&method, target, &none), Ok(()), "{method} {target}");
        }
    }
    #[test]
    fn conditions_of_which_only_the_server_could_know_are_left_to_no_server_that_ignores_them() {
        let refused = |method: Method, name: &'static str, etag: &TagSource| {
            let fields = HeaderMap::from_iter([(HeaderName::from_static(name), HeaderValue::from_static("1"))]);
            let request = Incoming { method: &method, other_methods: &[], target: b"/bucket/object", headers: &fields };
            refuse_unguardable(request, etag).map_err(|refusal| refusal.code)
        };
        let not_supported = Err(Code::NotSupported);
        for name in ["x-amz-if-match-last-modified-time", "x-amz-if-match-size"] {
            assert_eq!(refused(Method::PUT, name, &TagSource::Upstream), not_supported, "{name}");
            assert_eq!(refused(Method::DELETE, name, &TagSource::Upstream), not_supported, "{name}");
            assert_eq!(refused(Method::GET, name, &TagSource::Upstream), Ok(()), "{name} has no meaning there");
            assert_eq!(refused(Method::PUT, name, &TagSource::Delegate), Ok(()), "{name}");
        }
        assert_eq!(refused(Method::PUT, "x-amz-copy-source", &TagSource::Upstream), Ok(()));
        for name in ["x-amz-rename-source", "x-amz-rename-source-if-match"] {
            assert_eq!(refused(Method::PUT, name, &TagSource::Delegate), not_supported, "{name}");
        }
    }
}
