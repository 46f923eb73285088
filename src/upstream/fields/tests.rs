//! Heads in both directions through the proxy.

use super::*;

fn request(method: Method, target: &str, fields: &[(&'static str, &'static str)]) -> RequestHeader {
    let mut head = RequestHeader::build(method, target.as_bytes(), None).unwrap();
    head.set_version(Version::HTTP_11);
    for (name, value) in fields {
        head.append_header(*name, *value).unwrap();
    }
    head
}

/// Returns a request as pingora delivers it from HTTP/2: the authority is a part of the URI.
fn h2_request(fields: &[(&'static str, &'static str)]) -> RequestHeader {
    let uri = "http://h2.example/a?b=c";
    let mut head: RequestHeader = http::Request::put(uri).body(()).unwrap().into_parts().0.into();
    head.set_version(Version::HTTP_2);
    for (name, value) in fields {
        head.append_header(*name, *value).unwrap();
    }
    head
}

fn response(status: u16, fields: &[(&'static str, &'static str)]) -> ResponseHeader {
    let mut head = ResponseHeader::build(status, None).unwrap();
    head.set_version(Version::HTTP_11);
    for (name, value) in fields {
        head.append_header(*name, *value).unwrap();
    }
    head
}

fn values<'a>(fields: &'a HeaderMap, name: &str) -> Vec<&'a str> {
    fields.get_all(name).iter().map(|value| value.to_str().unwrap()).collect()
}

/// Returns the head that the upstream would see.
fn on_the_wire(head: &RequestHeader) -> String {
    let mut fields = Vec::new();
    head.header_to_h1_wire(&mut fields);
    let target = String::from_utf8_lossy(head.raw_path());
    format!("{} {target} {:?}\n{}", head.method, head.version, String::from_utf8(fields).unwrap())
}

#[test]
fn an_end_to_end_field_keeps_its_value_and_the_case_of_its_name() {
    let client = request(Method::GET, "/a", &[("Host", "x"), ("x-ODD-case", "1"), ("x-odd-CASE", "2")]);
    let wire = on_the_wire(&request_head(&client, 0).unwrap());
    assert!(wire.contains("x-ODD-case: 1\r\n") && wire.contains("x-odd-CASE: 2\r\n"), "{wire}");
}

/// RFC 9113 section 8.2.1.
#[test]
fn fields_are_spelled_as_received_and_in_lower_case_over_http_2() {
    let spelled = |head: &RequestHeader| {
        head.spelled_fields().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect::<Vec<_>>()
    };
    assert_eq!(spelled(&request(Method::GET, "/a", &[("x-ODD-case", "1")])), ["x-ODD-case: 1"]);
    assert_eq!(spelled(&h2_request(&[("x-odd-case", "1")])), ["x-odd-case: 1"]);
}

/// RFC 9110 section 7.6.1.
#[test]
fn hop_by_hop_fields_of_a_request_end_here() {
    let client = request(
        Method::GET,
        "/a",
        &[
            ("Host", "x"),
            ("Connection", "close, x-named"),
            ("Connection", "X-Other"),
            ("X-Named", "1"),
            ("X-Other", "2"),
            ("Keep-Alive", "timeout=5"),
            ("Proxy-Connection", "keep-alive"),
            ("TE", "trailers"),
            ("Trailer", "x"),
            ("Upgrade", "websocket"),
            ("HTTP2-Settings", "x"),
            ("Accept", "*/*"),
        ],
    );
    let mut client = client;
    end_nominated(&mut client);
    let head = request_head(&client, 0).unwrap();
    let mut names: Vec<_> = head.headers.keys().map(HeaderName::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["accept", "host", "via"]);
}

#[test]
fn what_only_the_proxy_may_say_is_removed() {
    let fields = [("Host", "x"), ("Expect", "100-continue"), ("Fencing-Token", "9"), ("Lease-Id", "secret")];
    let head = request_head(&request(Method::PUT, "/a", &fields), 3).unwrap();
    for name in ["expect", "fencing-token", "lease-id"] {
        assert_eq!(values(&head.headers, name), [""; 0], "{name}");
    }
}

/// RFC 9110 section 7.6.3.
#[test]
fn via_grows_by_the_version_of_the_received_message() {
    let client = request(Method::GET, "/a", &[("Host", "x"), ("Via", "1.0 before")]);
    let mut old = client.clone();
    old.set_version(Version::HTTP_10);
    let via = |client: &RequestHeader| values(&request_head(client, 0).unwrap().headers, "via").join(", ");
    for (client, expected) in
        [(&client, "1.0 before, 1.1 ifmatch ("), (&old, "1.0 before, 1.0 ifmatch ("), (&h2_request(&[]), "2 ifmatch (")]
    {
        assert!(via(client).starts_with(expected), "{}", via(client));
    }
}

#[test]
fn the_upstream_is_spoken_to_in_http_1_1() {
    assert_eq!(request_head(&h2_request(&[]), 0).unwrap().version, Version::HTTP_11);
}

/// RFC 9110 section 8.6: a method that expects content states that there is none.
#[test]
fn an_empty_body_has_a_length_only_where_the_method_expects_one() {
    let length = |method: Method, len: u64| {
        let fields = [("Host", "x"), ("Content-Length", "0")];
        values(&request_head(&request(method, "/a", &fields), len).unwrap().headers, "content-length").join(",")
    };
    for method in [Method::PUT, Method::POST, Method::PATCH] {
        assert_eq!(length(method, 0), "0");
    }
    for method in [Method::GET, Method::HEAD, Method::DELETE] {
        assert_eq!(length(method, 0), "");
    }
    assert_eq!(length(Method::DELETE, 7), "7");
}

/// RFC 9112 section 6.1: a received body has a known length, with any earlier framing.
#[test]
fn a_chunked_body_is_sent_with_its_length() {
    let client = request(Method::PUT, "/a", &[("Host", "x"), ("Transfer-Encoding", "Chunked")]);
    let head = request_head(&client, 12).unwrap();
    assert_eq!(values(&head.headers, "content-length"), ["12"]);
    assert!(!head.headers.contains_key(header::TRANSFER_ENCODING));
}

/// RFC 9112 section 6.1.
#[test]
fn a_body_in_an_unknown_transfer_coding_is_not_forwarded() {
    let client = request(Method::PUT, "/a", &[("Host", "x"), ("Transfer-Encoding", "gzip, chunked")]);
    assert!(matches!(request_head(&client, 12), Err(HeadError::TransferCoding)));
}

/// RFC 9112 section 3.2.
#[test]
fn every_form_of_target_reaches_the_upstream_in_origin_form() {
    let cases = [
        (Method::GET, "/a//b/%2e%2e/c?d=%20", "/a//b/%2e%2e/c?d=%20"),
        (Method::GET, "http://x/a?b", "/a?b"),
        (Method::GET, "http://x", "/"),
        (Method::GET, "http://x?b", "/?b"),
        (Method::OPTIONS, "http://x", "*"),
        (Method::OPTIONS, "*", "*"),
    ];
    for (method, received, forwarded) in cases {
        let head = request_head(&request(method, received, &[("Host", "x")]), 0).unwrap();
        assert_eq!(head.raw_path(), forwarded.as_bytes(), "{received}");
    }
}

#[test]
fn bytes_of_a_target_that_are_not_utf_8_are_kept() {
    for received in [&b"/a\xff?b"[..], b"http://x/a\xff?b"] {
        let mut client = RequestHeader::build("GET", received, None).unwrap();
        client.insert_header("Host", "x").unwrap();
        assert_eq!(request_head(&client, 0).unwrap().raw_path(), b"/a\xff?b");
    }
}

#[test]
fn a_target_without_a_path_to_forward_is_malformed() {
    let client = request(Method::GET, "foo:bar", &[("Host", "x")]);
    assert!(matches!(request_head(&client, 0), Err(HeadError::Target)));
}

/// RFC 9113 section 8.3.1, RFC 9112 section 3.2.2.
#[test]
fn host_is_the_authority_of_the_request() {
    let host = |client: RequestHeader| values(&request_head(&client, 0).unwrap().headers, "host").join(",");
    assert_eq!(host(h2_request(&[])), "h2.example");
    assert_eq!(host(request(Method::GET, "http://absolute/a", &[])), "absolute");
    assert_eq!(host(request(Method::GET, "/a", &[("Host", "x:81")])), "x:81");
}

/// RFC 9112 section 3.2: an HTTP/1.0 client may have sent no Host.
#[test]
fn a_request_without_an_authority_has_no_host_yet() {
    let head = request_head(&request(Method::GET, "/a", &[]), 0).unwrap();
    assert_eq!(values(&head.headers, "host"), [""; 0]);
}

/// RFC 9113 section 8.2.3.
#[test]
fn split_cookies_are_joined() {
    let head = request_head(&h2_request(&[("cookie", "a=1"), ("cookie", "b=2; c=3")]), 0).unwrap();
    assert_eq!(values(&head.headers, "cookie"), ["a=1; b=2; c=3"]);
    let head = request_head(&h2_request(&[("cookie", ""), ("cookie", "a=1"), ("cookie", "")]), 0).unwrap();
    assert_eq!(values(&head.headers, "cookie"), ["a=1"]);
}

/// RFC 9110 section 7.6.1.
#[test]
fn hop_by_hop_fields_of_a_response_end_here() {
    let fields = [
        ("Connection", "x-named"),
        ("X-Named", "1"),
        ("Keep-Alive", "timeout=5"),
        ("Transfer-Encoding", "chunked"),
        ("Trailer", "x"),
        ("Upgrade", "h2c"),
        ("ETag", "\"a\""),
    ];
    let head = response_head(Box::new(response(200, &fields)));
    let mut names: Vec<_> = head.headers.keys().map(HeaderName::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["etag", "via"]);
}

/// Returns the framing fields of a framed response, and checks its version.
fn framed(status: u16, fields: &[(&'static str, &'static str)], method: Method, version: Version) -> String {
    let mut client = request(method, "/a", &[]);
    client.set_version(version);
    let mut head = response_head(Box::new(response(status, fields)));
    frame_response(&mut head, &client);
    assert_eq!(head.version, Version::HTTP_11, "the proxy speaks for itself");
    let fields = [values(&head.headers, "content-length"), values(&head.headers, "transfer-encoding")];
    fields.concat().join(" ")
}

/// RFC 9112 section 6.3.
#[test]
fn a_body_of_known_length_keeps_it() {
    assert_eq!(framed(200, &[("Content-Length", "5")], Method::GET, Version::HTTP_11), "5");
}

/// RFC 9112 section 7.1.
#[test]
fn a_body_of_unknown_length_is_chunked_for_http_1_1_alone() {
    assert_eq!(framed(200, &[], Method::GET, Version::HTTP_11), "chunked");
    assert_eq!(framed(200, &[], Method::GET, Version::HTTP_10), "");
    assert_eq!(framed(200, &[], Method::GET, Version::HTTP_2), "");
}

/// RFC 9112 section 6.3, rule 1.
#[test]
fn a_response_without_a_body_is_not_chunked() {
    assert_eq!(framed(200, &[], Method::HEAD, Version::HTTP_11), "");
    assert_eq!(framed(304, &[], Method::GET, Version::HTTP_11), "");
}

/// RFC 9110 section 8.6.
#[test]
fn a_204_has_no_length() {
    assert_eq!(framed(204, &[("Content-Length", "0")], Method::PUT, Version::HTTP_11), "");
}

/// RFC 9110 section 8.6: HEAD and 304 state the length that GET and 200 would have carried.
#[test]
fn the_length_of_another_response_is_kept() {
    assert_eq!(framed(200, &[("Content-Length", "5")], Method::HEAD, Version::HTTP_11), "5");
    assert_eq!(framed(304, &[("Content-Length", "5")], Method::GET, Version::HTTP_11), "5");
}

/// RFC 9110 section 8.6.
#[test]
fn a_repeated_length_is_sent_once() {
    assert_eq!(framed(200, &[("Content-Length", "5, 5")], Method::GET, Version::HTTP_11), "5");
    assert_eq!(framed(200, &[("Content-Length", "5"), ("Content-Length", "5")], Method::GET, Version::HTTP_11), "5");
}
