//! The method that the form in a body names, as frameworks take it from a POST.
//!
//! # Design
//!
//! *Why is a form of several parts only searched?* Servers differ in where its parts begin. So each line that could be
//! the beginning of such a part counts, and no method is taken from it.

use http::{HeaderMap, Method};
use percent_encoding::percent_decode;

use super::{content_type, method::is_parameter};

/// The number of bytes of a name and of a value that are kept. A longer one names no method.
const KEPT_BYTES: usize = 256;

/// The number of bytes at the beginning of a line that are looked at.
const LINE_BYTES: usize = 1024;

/// The method that a body names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamedMethod {
    /// The body names no method.
    None,
    /// The body names this method.
    One(Method),
    /// It names several, or none that can be read.
    Unclear,
}

/// True if content with these fields could be a form.
pub fn may_be_form(headers: &HeaderMap) -> bool {
    ["application/x-www-form-urlencoded", "multipart/"].iter().any(|form| content_type::may_be(headers, form))
}

/// Returns the method that a form names, in either encoding, or the error of the first octet that cannot be read.
pub fn named_method<E>(body: impl IntoIterator<Item = Result<u8, E>>) -> Result<NamedMethod, E> {
    let mut search = Search::default();
    for octet in body {
        search.take(octet?);
    }
    search.end_parameter();
    search.end_line();
    Ok(search.found)
}

/// A search through the bytes of a body.
struct Search {
    name: Vec<u8>,
    value: Option<Vec<u8>>,
    line: Vec<u8>,
    found: NamedMethod,
}

impl Default for Search {
    fn default() -> Self {
        Self { name: Vec::new(), value: None, line: Vec::new(), found: NamedMethod::None }
    }
}

impl Search {
    fn take(&mut self, octet: u8) {
        match octet {
            b'&' | b';' => self.end_parameter(),
            b'=' if self.value.is_none() => self.value = Some(Vec::new()),
            _ => {
                let kept = self.value.as_mut().unwrap_or(&mut self.name);
                if kept.len() < KEPT_BYTES {
                    kept.push(octet);
                }
            }
        }
        match octet {
            b'\r' | b'\n' => self.end_line(),
            _ if self.line.len() < LINE_BYTES => self.line.push(octet),
            _ => {}
        }
    }

    fn end_parameter(&mut self) {
        let (name, value) = (std::mem::take(&mut self.name), self.value.take());
        if !is_parameter(name.trim_ascii()) {
            return;
        }
        let token = percent_decode(value.unwrap_or_default().trim_ascii()).collect::<Vec<_>>();
        let named = Method::from_bytes(&token.to_ascii_uppercase()).map_or(NamedMethod::Unclear, NamedMethod::One);
        self.found = if self.found == NamedMethod::None || self.found == named { named } else { NamedMethod::Unclear };
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line).to_ascii_lowercase();
        if line.trim_ascii_start().starts_with(b"content-disposition")
            && line.split(|&octet| octet == b';').any(is_part)
        {
            self.found = NamedMethod::Unclear;
        }
    }
}

/// True if a parameter of Content-Disposition names a part that holds a method.
fn is_part(parameter: &[u8]) -> bool {
    let mut halves = parameter.splitn(2, |&octet| octet == b'=');
    let key = halves.next().unwrap_or_default().trim_ascii();
    let value = halves.next().unwrap_or_default();
    let value = value.rsplit(|&octet| octet == b'\'').next().unwrap_or_default();
    let bare = value.iter().filter(|octet| !matches!(octet, b'"' | b'\\')).copied().collect::<Vec<_>>();
    key.starts_with(b"name") && is_parameter(bare.trim_ascii())
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http::{HeaderValue, header};
    use proptest::prelude::*;

    use super::*;

    fn named(body: &str) -> NamedMethod {
        named_method(body.bytes().map(Ok::<_, Infallible>)).expect("no octet is an error")
    }

    /// Rule 18: Rails, Symfony and Laravel take the method of a POST from its form.
    #[test]
    fn the_method_of_a_form_is_found() {
        let delete = NamedMethod::One(Method::DELETE);
        for (body, expected) in [
            ("_method=DELETE", delete.clone()),
            ("a=1&_method=delete&b=2", delete.clone()),
            ("a=1;%5Fmethod=%64elete", delete.clone()),
            ("\r\n_method=DELETE\r\n", delete.clone()),
            ("+.method=DELETE", delete.clone()),
            ("_method=DELETE&_method=delete", delete),
            ("_method=PUT&_method=DELETE", NamedMethod::Unclear),
            ("_method=P UT", NamedMethod::Unclear),
            ("_method", NamedMethod::Unclear),
            ("a=_method&method=PUT&_methods=PUT", NamedMethod::None),
            ("{\"_method\":\"PUT\"}", NamedMethod::None),
            ("", NamedMethod::None),
        ] {
            assert_eq!(named(body), expected, "{body}");
        }
    }

    #[test]
    fn a_part_that_names_a_method_is_unclear() {
        for disposition in [
            "Content-Disposition: form-data; name=\"_method\"",
            "content-disposition:form-data;name=_method",
            "CONTENT-DISPOSITION: form-data; name = \"_Method\"",
            "Content-Disposition: form-data; name*=utf-8''%5fmethod",
        ] {
            let body = format!("--x\r\n{disposition}\r\n\r\nDELETE\r\n--x--\r\n");
            assert_eq!(named(&body), NamedMethod::Unclear, "{disposition}");
        }
        let file = "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"_method\"\r\n\r\n_method\r\n--x--";
        assert_eq!(named(file), NamedMethod::None);
    }

    #[test]
    fn a_form_is_told_by_its_type() {
        for (value, is_form) in [
            ("application/x-www-form-urlencoded", true),
            ("Multipart/Form-Data; boundary=x", true),
            ("application/json", false),
        ] {
            let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(value))]);
            assert_eq!(may_be_form(&headers), is_form, "{value}");
        }
    }

    proptest! {
        /// Rule 18: nothing around it hides the method of a form.
        #[test]
        fn nothing_around_it_hides_a_method(before in "[a-z0-9=%+\r\n]{0,600}", after in "[a-z0-9=%;\"]{0,40}") {
            prop_assert_ne!(named(&format!("{before}&_method=PUT&{after}")), NamedMethod::None);
        }
    }
}
