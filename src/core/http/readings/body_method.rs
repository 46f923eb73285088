//! The method that a body names, as frameworks take it from a POST.
//!
//! # Design
//!
//! *Which frameworks look into JSON?* Laravel and Phoenix do by default, and so do applications of Express. Parse
//! Server reads every body as JSON, with any declared type. So each body that begins as an object is searched, if its
//! type does not exclude JSON.
//!
//! *Why is a compressed form refused, or one in a charset that does not extend ASCII?* Servers that decode it find
//! names that its octets do not spell. No browser sends one.

use http::{HeaderMap, header};

use super::{content_type, form::FormSearch, json_method::JsonSearch, named_method::NamedMethod};

/// The types of forms.
const FORMS: [&str; 2] = ["application/x-www-form-urlencoded", "multipart/"];

/// The beginnings of the names of charsets in which each octet of ASCII stands for itself.
const ASCII_CHARSETS: [&str; 11] =
    ["utf-8", "utf8", "us-ascii", "iso-8859-", "latin", "windows-125", "koi8-", "euc-", "gb", "big5", "shift_jis"];

/// True if content with these fields could name a method.
pub fn may_name_method(headers: &HeaderMap) -> bool {
    may_be_form(headers)
        || !headers.contains_key(header::CONTENT_TYPE)
        || content_type::may_be(headers, "text/plain")
        || content_type::may_be_json(headers)
}

/// Returns the method that a body with these fields names, or the error of the first octet that cannot be read.
///
/// # Errors
///
/// An octet cannot be read.
pub fn named_method<E>(headers: &HeaderMap, body: impl IntoIterator<Item = Result<u8, E>>) -> Result<NamedMethod, E> {
    if may_be_form(headers) && hides_names(headers) {
        return Ok(NamedMethod::Unclear);
    }
    let mut form = may_be_form(headers).then(FormSearch::default);
    let mut json = JsonSearch::default();
    for octet in body {
        let octet = octet?;
        json.take(octet);
        match &mut form {
            Some(form) => form.take(octet),
            None if json.is_over() => break,
            None => {}
        }
    }
    let mut named = json.found();
    named.join(form.map_or(NamedMethod::None, FormSearch::found));
    Ok(named)
}

fn may_be_form(headers: &HeaderMap) -> bool {
    FORMS.iter().any(|form| content_type::may_be(headers, form))
}

/// True if a server that decodes the content could find names that its octets do not spell.
fn hides_names(headers: &HeaderMap) -> bool {
    let is_plain = |coding: &http::HeaderValue| coding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"identity");
    !headers.get_all(header::CONTENT_ENCODING).iter().all(is_plain)
        || content_type::has_other_charset(headers, &ASCII_CHARSETS)
}

#[cfg(test)]
#[path = "body_method_tests.rs"]
mod tests;
