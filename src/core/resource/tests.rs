//! Keys of resources: what makes one key, what makes two, and which templates and requests have none.

use http::{HeaderMap, HeaderValue};
use percent_encoding::{NON_ALPHANUMERIC, percent_encode};
use proptest::{collection::vec, option, prelude::*, sample::select};

use super::{
    super::{http::request_target::*, route::*},
    AmbiguousKey::*,
    *,
};

/// The key of a request to the upstream `docs`, with the route's path pattern, the template, and the target.
fn key(pattern: &str, template: &str, target: &str, fields: &[(&'static str, &str)]) -> Result<String, AmbiguousKey> {
    key_at("example.com", pattern, template, target.as_bytes(), fields)
}

fn key_at(
    host: &str,
    pattern: &str,
    template: &str,
    target: &[u8],
    fields: &[(&'static str, &str)],
) -> Result<String, AmbiguousKey> {
    let pattern = PathPattern::parse(pattern).unwrap();
    let template = KeyTemplate::parse(template, &pattern.names().collect::<Vec<_>>()).unwrap();
    let table = RouteTable::new(vec![(HostPattern::Any, pattern)]);
    let (path, query) = split_query(target);
    let path = normalize(path, KeptInNames::ALL).unwrap();
    let captures = table.find(host, &path).unwrap().captures;
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        headers.append(*name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    let parts = KeyParts { host, path: &path, captures: &captures, query, headers: &headers };
    template.key("docs", &parts).map(|key| key.as_str().to_owned())
}

#[test]
fn a_key_is_the_identity_and_what_the_template_makes_of_the_request() {
    let cases = [
        ("/documents/{id}", "{path}", "/documents//%34%32/?x=1", "docs:/documents/42"),
        ("/jobs/{resource}/{stage}", "{resource}#{stage}", "/jobs/a%23/b", "docs:a%23#b"),
        ("/{*rest}", "{host}{path}", "/a", "docs:example.com/a"),
        ("/hosts/{host}/{*path}", "{host}#{path}", "/hosts/h/a/b", "docs:h#a/b"),
        ("/files/{*rest}", "/files/{rest}", "/files/a/b", "docs:/files/a/b"),
        ("/api/{tenant}/{id}", "/{tenant}/{id}", "/api/t@1/%c3%a9", "docs:/t@1/%C3%A9"),
        ("/get", "/documents/{query.id}", "/get?id=t%401", "docs:/documents/t@1"),
        ("/get", "{query.id}|{query.part}", "/get?part=a+b%2Fc&id=", "docs:?|a%20b%2Fc"),
        ("/get", "{query.id}", "/get?id", "docs:?"),
        ("/get", "{query.id}", "/get?_id=1&ids=2", "docs:?"),
        ("/get", "{query.id}", "/get", "docs:?"),
        ("/get", "{query.a b}", "/get?a%20b=1&&", "docs:1"),
        ("/get", "{query.a b}", "/get?a+b=1", "docs:1"),
        ("/get", "inventory", "/get", "docs:inventory"),
    ];
    for (pattern, template, target, expected) in cases {
        assert_eq!(key(pattern, template, target, &[]).as_deref(), Ok(expected), "{template} {target}");
    }
}

#[test]
fn the_host_counts_without_case_port_and_trailing_dot() {
    for host in ["Example.COM", "example.com:8080", "example.com."] {
        assert_eq!(key_at(host, "/a", "{host}", b"/a", &[]).unwrap(), "docs:example.com", "{host}");
    }
    assert_eq!(key_at("[::1]:80", "/a", "{host}", b"/a", &[]).unwrap(), "docs:%5B::1%5D");
}

#[test]
fn the_identity_ends_at_the_first_colon() {
    let path = normalize(b"/b", KeptInNames::NOTHING).unwrap();
    let table = RouteTable::new(vec![(HostPattern::Any, PathPattern::parse("/b").unwrap())]);
    let captures = table.find("h", &path).unwrap().captures;
    let parts = KeyParts { host: "h", path: &path, captures: &captures, query: None, headers: &HeaderMap::new() };
    let key =
        |identity: &str, template: &str| KeyTemplate::parse(template, &[]).unwrap().key(identity, &parts).unwrap();
    assert_eq!(key("docs:a b", "{path}").to_string(), "docs%3Aa%20b:/b");
    assert_ne!(key("docs", "a:{path}"), key("docs:a", "{path}"));
}

/// RFC 9110 section 5.2: field lines of one name are one field.
#[test]
fn a_header_field_counts_once() {
    let tenant = |fields: &[(&'static str, &str)]| key("/a", "{header.X-Tenant}#{path}", "/a", fields);
    assert_eq!(tenant(&[("x-tenant", " a,b ")]).unwrap(), "docs:a,b#/a");
    assert_eq!(tenant(&[("x-tenant", "")]).unwrap(), "docs:?#/a");
    assert_eq!(tenant(&[]).unwrap(), "docs:?#/a");
    for second in ["a", "b", ""] {
        assert_eq!(tenant(&[("x-tenant", "a"), ("x-tenant", second)]), Err(RepeatedField("x-tenant".to_owned())));
    }
}

/// Rule 18: a field of JSON counts by its value, and is never left out.
#[test]
fn a_field_of_json_counts_by_its_value() {
    let partition = |fields: &[(&'static str, &str)]| key("/a", "{path}#{header.X-Partition:json}", "/a", fields);
    for same in [r#"["a"]"#, r#"[ "a" ]"#, r#"["\u0061"]"#] {
        assert_eq!(partition(&[("x-partition", same)]).unwrap(), "docs:/a#%5B%22a%22%5D", "{same}");
    }
    assert_eq!(partition(&[("x-partition", "[1.0]")]), partition(&[("x-partition", "[1]")]));
    assert_ne!(partition(&[("x-partition", "[\"1\"]")]), partition(&[("x-partition", "[1]")]));
    let refused = || Err(BadJson("x-partition".to_owned()));
    assert_eq!(partition(&[]), refused());
    for value in ["", "a", "['a']", "[\"a\",]", "[\"é\"]"] {
        assert_eq!(partition(&[("x-partition", value)]), refused(), "{value}");
    }
    let twice = [("x-partition", "[1]"), ("x-partition", "[1]")];
    assert_eq!(partition(&twice), Err(RepeatedField("x-partition".to_owned())));
}

#[test]
fn a_query_with_two_readings_has_no_key() {
    let id = || "id".to_owned();
    let cases: [(&[u8], AmbiguousKey); 12] = [
        (b"/a?id=1&id=1", RepeatedParameter(id())),
        (b"/a?id=1&id=2", RepeatedParameter(id())),
        (b"/a?id=1&%69d=2", OtherSpelling(id())),
        (b"/a?Id=1", OtherSpelling(id())),
        (b"/a?id&id=1", RepeatedParameter(id())),
        (b"/a?id=%4", BadEncoding(id())),
        (b"/a?id=%zz", BadEncoding(id())),
        (b"/a?id=%ff", BadEncoding(id())),
        (b"/a?id=1%00", BadEncoding(id())),
        (b"/a?x=1;id=2", Separator),
        (b"/a?id=1#", Separator),
        (b"/a?x#&id=1", Separator),
    ];
    for (target, expected) in cases {
        assert_eq!(key_at("h", "/a", "{query.id}", target, &[]), Err(expected), "{}", target.escape_ascii());
    }
}

#[test]
fn a_query_that_makes_no_key_may_hold_anything() {
    assert_eq!(key_at("h", "/a", "{path}", b"/a?id=1;id=%zz#\xff", &[]).unwrap(), "docs:/a");
    assert_eq!(key_at("h", "/a", "{query.id}", b"/a?other=%zz&id=1&\xff=%", &[]).unwrap(), "docs:1");
}

#[test]
fn a_template_with_a_problem_says_what_to_write() {
    let boundary = "two resources could get one key, because the key does not show where a value ends";
    let separate = "separate values with \"#\", as in \"{resource}#{stage}\"";
    let known = "known placeholders are {host}, {path}, the names in the route's path, {query.NAME} and {header.NAME}";
    let braces = "write placeholders as \"{path}\"; a key holds no other braces";
    let cases = [
        ("", "a key cannot be empty", "write \"{path}\""),
        ("{pth}", "{pth} stands for nothing here", "did you mean {path}?"),
        ("{resuorce}", "{resuorce} stands for nothing here", "did you mean {resource}?"),
        ("{qury.id}", "{qury.id} stands for nothing here", "did you mean {query.id}?"),
        ("{headers.x}", "{headers.x} stands for nothing here", "did you mean {header.x}?"),
        ("{query}", "{query} stands for nothing here", "did you mean {query.NAME}?"),
        ("{query.}", "{query.} stands for nothing here", "did you mean {query.NAME}?"),
        ("{}", "{} stands for nothing here", known),
        ("{xyzzy}", "{xyzzy} stands for nothing here", known),
        ("{path", "a brace has no partner", braces),
        ("path}", "a brace has no partner", braces),
        ("{resource} {stage}", "the text of a key is visible ASCII, without spaces", "separate values with \"#\""),
        ("{resource}{stage}", boundary, separate),
        ("{resource}-{stage}", boundary, separate),
        ("{resource}:{stage}", boundary, separate),
        ("{resource}%{stage}", boundary, separate),
        ("{path}/{stage}", boundary, separate),
        ("{path}{host}", boundary, separate),
        ("{stage}/{resource}", boundary, separate),
        ("{query.a}?{query.b}", boundary, separate),
    ];
    for (template, message, hint) in cases {
        let problem = KeyTemplate::parse(template, &["resource", "stage"]).unwrap_err();
        assert_eq!((problem.message.as_str(), problem.hint.as_deref()), (message, Some(hint)), "{template}");
    }
    let problem = KeyTemplate::parse("{header.a b}", &[]).unwrap_err();
    assert_eq!(problem.message, "\"a b\" cannot be the name of a header field");
    let problem = KeyTemplate::parse("{header.a:jsn}", &[]).unwrap_err();
    assert_eq!(problem.message, "\"a:jsn\" cannot be the name of a header field");
    assert_eq!(KeyTemplate::parse("{header.a:json}", &[]).unwrap().to_string(), "{header.a:json}");
}

#[test]
fn a_template_whose_values_have_an_end_is_taken() {
    for template in
        ["{resource}/{stage}", "{host}{path}", "{resource}#x-{stage}-", "{query.a}/{header.b}|{path}", "a{path}b"]
    {
        assert!(KeyTemplate::parse(template, &["resource", "stage"]).is_ok(), "{template}");
    }
}

/// Stores keep floors by bucket: if the bucket of a key changed, old tags would come back.
#[test]
fn the_bucket_of_a_key_is_the_beginning_of_its_hash() {
    let key = ResourceKey::new("docs:/documents/42");
    let hash = blake3::hash(b"docs:/documents/42").to_hex();
    assert_eq!(format!("{:04x}", key.bucket()), hash[..4]);
}

/// Values made of the characters that separate, encode and end values.
fn value() -> impl Strategy<Value = Option<String>> {
    option::of(vec(select(vec!["a", "#", "/", "?", "%23", "%", "&", "=", "+", " ", ";", ":", "|", "é"]), 0..4))
        .prop_map(|pieces| pieces.map(|pieces| pieces.concat()))
}

proptest! {
    #[test]
    fn two_tuples_of_values_never_have_one_key(a in [value(), value(), value()], b in [value(), value(), value()]) {
        let key = |[first, second, third]: &[Option<String>; 3]| {
            let parameter = |name: &str, value: &Option<String>| {
                value.as_ref().map_or(String::new(), |value| format!("{name}={}&", percent_encode(value.as_bytes(), NON_ALPHANUMERIC)))
            };
            let target = format!("/a?{}{}", parameter("first", first), parameter("second", second));
            // Field values have no spaces around them.
            let third = third.as_deref().map(|value| ("x-third", value.trim()));
            key("/a", "{query.first}#{query.second}/{header.X-Third}", &target, third.as_slice()).unwrap()
        };
        // An empty value is an absent one.
        let tuple = |values: &[Option<String>; 3]| {
            let [first, second, third] = values.clone().map(Option::unwrap_or_default);
            (first, second, third.trim().to_owned())
        };
        prop_assert_eq!(key(&a) == key(&b), tuple(&a) == tuple(&b));
    }
}
