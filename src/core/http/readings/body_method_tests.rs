//! Bodies that name a method, and those that do not.

use std::convert::Infallible;

use http::{HeaderValue, Method};
use proptest::prelude::*;

use super::*;
use crate::testing::fields;

const FORM: &str = "application/x-www-form-urlencoded";
const PARTS: &str = "multipart/form-data; boundary=x";

fn named_with(headers: &HeaderMap, body: &[u8]) -> NamedMethod {
    named_method(headers, body.iter().copied().map(Ok::<_, Infallible>)).expect("no octet is an error")
}

fn named(content_type: &str, body: &str) -> NamedMethod {
    let value = HeaderValue::from_str(content_type).expect("a value");
    named_with(&HeaderMap::from_iter([(header::CONTENT_TYPE, value)]), body.as_bytes())
}

fn delete() -> NamedMethod {
    NamedMethod::One(Method::DELETE)
}

/// Rule 18: Rails, Symfony, Laravel and ASP.NET take the method of a POST from its form.
#[test]
fn the_method_of_a_form_is_found() {
    for (body, expected) in [
        ("_method=DELETE", delete()),
        ("a=1&_method=delete&b=2", delete()),
        ("a=1;%5Fmethod=%64elete", delete()),
        ("\r\n_method=DELETE\r\n", delete()),
        ("+.method=+DELETE", delete()),
        ("X-HTTP-Method-Override=DELETE", delete()),
        ("_method=DELETE&_method=delete", delete()),
        ("_method=PUT&_method=DELETE", NamedMethod::Unclear),
        ("_method=P UT", NamedMethod::Unclear),
        ("_method", NamedMethod::Unclear),
        ("{\"_method\":\"DELETE\"}", delete()),
        ("{\"_method\":\"DELETE\"}&_method=PUT", NamedMethod::Unclear),
        ("a=_method&method=PUT&_methods=PUT", NamedMethod::None),
        ("", NamedMethod::None),
    ] {
        assert_eq!(named(FORM, body), expected, "{body}");
    }
    // PHP drops the blanks in front of a name.
    for blank in ["+", " ", "%20", "%09", "%5B"] {
        for count in [84, 85, 86, 255, 256, 257, 1000] {
            let body = format!("a=1&{}_method=DELETE", blank.repeat(count));
            assert_ne!(named(FORM, &body), NamedMethod::None, "{count} of {blank:?}");
        }
    }
    assert_eq!(named(FORM, &format!("{}_method=DELETE", "a".repeat(300))), NamedMethod::None);
}

/// Rule 18: a server that decodes a form finds other names in it.
#[test]
fn a_form_has_the_names_that_its_octets_spell() {
    for (lines, is_plain) in [
        (&[("content-type", FORM)][..], true),
        (&[("content-type", FORM), ("content-encoding", "Identity")], true),
        (&[("content-type", FORM), ("content-encoding", "gzip")], false),
        (&[("content-type", PARTS), ("content-encoding", "br")], false),
        (&[("content-type", "application/x-www-form-urlencoded; charset=ISO-8859-1")], true),
        (&[("content-type", "application/x-www-form-urlencoded; charset=utf-16")], false),
        (&[("content-type", "application/x-www-form-urlencoded; charset=ibm037")], false),
        (&[("content-type", "application/json"), ("content-encoding", "gzip")], true),
        (&[("content-type", "text/plain; charset=utf-16")], true),
    ] {
        let expected = if is_plain { NamedMethod::None } else { NamedMethod::Unclear };
        assert_eq!(named_with(&fields(lines), b"a=1"), expected, "{lines:?}");
    }
}

/// Rule 18: some servers unfold a line, or read an encoded word.
#[test]
fn a_part_that_names_a_method_is_unclear() {
    for disposition in [
        "Content-Disposition: form-data; name=\"_method\"",
        "content-disposition:form-data;name=_method",
        "CONTENT-DISPOSITION: form-data; name = \"_Method\"",
        "Content-Disposition: form-data; name*=utf-8''%5fmethod",
        "Content-Disposition: form-data;\r\n name=\"_method\"",
        "Content-Disposition:\n\tform-data;\n name=\n \"_method\"",
        "Content-Type: text/plain\r\n Content-Disposition: form-data; name=\"_method\"",
        "Content-Disposition: form-data; name=\"=?utf-8?Q?=5Fmethod?=\"",
        "Content-Disposition: form-data; name*0=\"_met\"; name*1=\"hod\"",
        "Content-Disposition: form-data; name=\"X-HTTP-Method-Override\"",
    ] {
        let body = format!("--x\r\n{disposition}\r\n\r\nDELETE\r\n--x--\r\n");
        assert_eq!(named(PARTS, &body), NamedMethod::Unclear, "{disposition}");
    }
    let long = format!("--x\r\nContent-Disposition: form-data; a=\"{}\"; name=\"_method\"", "a".repeat(5000));
    assert_eq!(named(PARTS, &long), NamedMethod::Unclear);
    let file = "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"_method\"\r\n\r\n_method\r\n--x--";
    assert_eq!(named(PARTS, file), NamedMethod::None);
}

/// Rule 18: Laravel, Phoenix and Parse Server take the method of a POST from its JSON.
#[test]
fn the_method_of_an_object_is_found() {
    for (body, expected) in [
        ("{\"_method\":\"DELETE\"}", delete()),
        (" {\r\n\t\"a\" : [1, {\"b\": \"}\"}] , \"_method\"\n:\t\"delete\" }", delete()),
        ("\u{feff}{\"_method\":\"DELETE\"}", delete()),
        ("{\"\\u005fMethod\":\"DEL\\u0045TE\"}", delete()),
        ("{\"_method\\u0000x\":\"DELETE\"}", delete()),
        ("{\"_HttpMethod\":\"DELETE\"}", delete()),
        ("{\"_method\":\"DELETE\",\"_method\":\"delete\"}", delete()),
        ("{\"_method\":\"DELETE\",}", delete()),
        ("{\"_method\":\"PUT\",\"_method\":\"DELETE\"}", NamedMethod::Unclear),
        ("{\"_method\":\"\"}", NamedMethod::Unclear),
        ("{\"_method\":null}", NamedMethod::Unclear),
        ("{\"_method\":[\"DELETE\"]}", NamedMethod::Unclear),
        ("{\"_method\":{\"a\":\"DELETE\"}}", NamedMethod::Unclear),
        ("{\"a\":\"_method\",\"b\":\"DELETE\"}", NamedMethod::None),
        ("{\"a\":{\"_method\":\"DELETE\"}}", NamedMethod::None),
        ("[{\"_method\":\"DELETE\"}]", NamedMethod::None),
        ("{\"a\":\"\\\"_method\\\":\"}", NamedMethod::None),
        ("{\"a\\\\\":\"_method\",\"b\":1}", NamedMethod::None),
        ("{\"_methods\":\"DELETE\",\"method\":\"DELETE\"}", NamedMethod::None),
        ("{}{\"_method\":\"DELETE\"}", NamedMethod::None),
        ("\"_method\"", NamedMethod::None),
        ("_method=DELETE", NamedMethod::None),
        ("{", NamedMethod::None),
        ("", NamedMethod::None),
    ] {
        for content_type in ["application/json", "text/plain"] {
            assert_eq!(named(content_type, body), expected, "{body}");
        }
    }
    let deep = format!("{{\"a\":{}1{},\"_method\":\"DELETE\"}}", "[".repeat(2000), "]".repeat(2000));
    assert_eq!(named("application/json", &deep), delete());
    let wide: Vec<u8> = "\u{feff}{\"_method\":\"DELETE\"}".encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(named_with(&fields(&[("content-type", "application/json; charset=utf-16")]), &wide), delete());
}

#[test]
fn a_body_that_may_name_a_method_is_told_by_its_type() {
    for (value, may) in [
        (FORM, true),
        ("Multipart/Form-Data; boundary=x", true),
        ("application/json", true),
        ("application/vnd.api+json", true),
        ("text/plain;charset=utf-8", true),
        ("application/xml", false),
        ("application/octet-stream", false),
        ("image/png", false),
    ] {
        assert_eq!(may_name_method(&fields(&[("content-type", value)])), may, "{value}");
    }
    assert!(may_name_method(&HeaderMap::new()));
}

proptest! {
    /// Rule 18: nothing around it hides the method of a form.
    #[test]
    fn nothing_around_it_hides_a_method(before in "[a-z0-9=%+\r\n]{0,600}", after in "[a-z0-9=%;\"]{0,40}") {
        prop_assert_ne!(named(FORM, &format!("{before}&_method=PUT&{after}")), NamedMethod::None);
    }

    /// Rule 18: nor is that of an object hidden by what stands before it.
    #[test]
    fn no_member_before_it_hides_a_method(name in "[a-z_\"\\\\{}\\[\\]:,]{0,20}", value in value(), escaped in any::<[bool; 7]>()) {
        let members = serde_json::json!({ name: value }).to_string();
        let spelled: String = "_method"
            .chars()
            .zip(escaped)
            .map(|(one, escaped)| if escaped { format!("\\u{:04x}", u32::from(one)) } else { one.to_string() })
            .collect();
        let body = format!("{},\"{spelled}\":\"PUT\"}}", members.strip_suffix('}').expect("an object"));
        prop_assert_ne!(named("application/json", &body), NamedMethod::None, "{}", body);
    }
}

/// Any JSON, with all that could mislead a search for strings and brackets.
fn value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<i64>().prop_map(Into::into),
        "[a-z_\"\\\\{}\\[\\]:, \n\u{e9}]{0,12}".prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            prop::collection::hash_map("[a-z\"\\\\:]{0,6}", inner, 0..4)
                .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
        ]
    })
}
