//! Tags in bodies (`tag_member`): a client gets the tag in the object that it reads, and the backend never sees it.

use serde_json::Value;

use crate::support::{
    backend::{Answer, Backend, Validators},
    proxy::Proxy,
    raw::{get, put, put_if_match, send},
    response::Response,
    source,
};

const JSON: (&str, &str) = ("Content-Type", "application/json");
/// A text that no program may change on the way.
const DOCUMENT: &str = "{\"n\": 123456789012345678901234567890.10,\r\n \"t\": \"\\u0041\\/\" }";

fn member(response: &Response, pointer: &str) -> Option<String> {
    let body: Value = serde_json::from_str(response.text()).expect("JSON");
    body.pointer(pointer).map(|value| value.as_str().expect("a string").to_owned())
}

/// As clients of `OData` look for the tag, from any source.
#[tokio::test]
async fn an_object_has_the_tag_of_its_field() {
    for source in source::ALL {
        let (backend, setup) = source.start("/doc", DOCUMENT).await;
        let proxy = setup.route("tag_member = \"/@odata.etag\"").start().await;
        let addr = proxy.addr();
        let read = get(addr, "/doc").await;
        let tag = member(&read, "/@odata.etag").expect("a tag");
        assert_eq!(tag, read.etag(), "{source}");
        assert!(read.text().starts_with(DOCUMENT.trim_end_matches(" }")), "{source}: {}", read.text());
        let head = send(addr, "HEAD", "/doc", &[], "").await;
        assert_eq!(head.header("content-length"), Some(read.body.len().to_string().as_str()), "{source}");
        assert_eq!(send(addr, "GET", "/doc", &[("If-None-Match", &tag)], "").await.status, 304, "{source}");

        let changed = read.text().replace("0041", "0042");
        assert_eq!(put(addr, "/doc", &[JSON, ("If-Match", &tag)], &changed).await.status, 204, "{source}");
        let stored = backend.content("/doc").expect("a document");
        assert_eq!(stored, DOCUMENT.replace("0041", "0042"), "{source}: the backend gets what its client has meant");
        put(addr, "/doc", &[JSON, ("If-Match", &tag)], &changed).await.refused(412, "precondition-failed");
        let read = get(addr, "/doc").await;
        assert_ne!(member(&read, "/@odata.etag"), Some(tag), "{source}");
        assert_eq!(member(&read, "/@odata.etag"), Some(read.etag()), "{source}");
    }
}

#[tokio::test]
async fn a_body_of_another_state_than_if_match_names_is_refused() {
    let (backend, setup) = source::CONTENT.start("/doc", "{}").await;
    let proxy = setup.route("tag_member = \"/_etag\"").start().await;
    let addr = proxy.addr();
    let tag = get(addr, "/doc").await.etag();
    let quoted = serde_json::to_string(&tag).unwrap();
    for wrong in [
        "{\"_etag\": \"\\\"other\\\"\"}".to_owned(),
        "{\"_etag\": [1]}".to_owned(),
        format!("{{\"_etag\": {quoted}, \"_etag\": {quoted}}}"),
        format!("{{\"_etag\": {quoted}, \"\\u005fetag\": null}}"),
    ] {
        put_if_match(addr, "/doc", &tag, &wrong).await.refused(400, "malformed-precondition");
    }
    for field in ["Content-MD5", "Digest", "Content-Digest", "Repr-Digest"] {
        let body = format!("{{\"_etag\": {quoted}}}");
        put(addr, "/doc", &[("If-Match", &tag), (field, "sum")], &body).await.refused(400, "malformed-request");
    }
    assert_eq!(backend.count("PUT", "*"), 0, "rule 4");
    // The member is no condition: without the field this write names none.
    put(addr, "/doc", &[], format!("{{\"_etag\": {quoted}}}")).await.refused(428, "precondition-required");
    let list = format!("\"other\", {tag}");
    for agreeing in [&tag, "*", &list] {
        let fields = [("If-Match", agreeing), ("Content-MD5", "of a body that stays as it is")];
        let status = put(addr, "/doc", &fields, "{ }").await.status;
        assert_eq!(status, if agreeing == "*" { 428 } else { 204 }, "{agreeing}");
        put(addr, "/doc", &[("If-Match", &get(addr, "/doc").await.etag())], "{}").await;
        let body = format!("{{\"_etag\": {quoted}}}");
        let status = put(addr, "/doc", &[("If-Match", agreeing)], &body).await.status;
        assert_eq!(status, if agreeing == "*" { 428 } else { 204 }, "{agreeing}");
    }
    assert_eq!(backend.content("/doc").as_deref(), Some("{}"));
}

/// As clients of SCIM look for the tag. A backend's own weak tag is there as its field has it.
#[tokio::test]
async fn a_member_within_another_comes_and_goes_with_it() {
    let backend = Backend::start().await;
    let stored = "{\"userName\":\"ann\"}";
    backend.always("*", "/people/1", move |_| Answer::status(200).header("ETag", "W/\"3\"").body(stored));
    backend.always("PUT", "/people/1", |_| {
        Answer::status(200).header("ETag", "W/\"4\"").body("{\"meta\":{\"version\":1}}")
    });
    let route = "etag = \"upstream\"\ncompare = \"opaque\"\nunique_tags = true\ntag_member = \"/meta/version\"";
    let proxy = Proxy::to(backend.addr()).route(route).start().await;
    let read = get(proxy.addr(), "/people/1").await;
    assert_eq!(read.text(), "{\"userName\":\"ann\",\"meta\":{\"version\":\"W/\\\"3\\\"\"}}");
    let written = put_if_match(proxy.addr(), "/people/1", "W/\"3\"", read.text()).await;
    assert_eq!(written.text(), "{\"meta\":{\"version\":\"W/\\\"4\\\"\"}}", "the answer to a write has its tag too");
    assert_eq!(backend.seen("PUT", "/people/1")[0].body, stored.as_bytes());
}

#[tokio::test]
async fn a_tag_that_was_stored_counts_for_nothing() {
    let (backend, setup) = source::CONTENT.start("/doc", "{\"a\":1}").await;
    let proxy = setup.route("tag_member = \"/_etag\"\netag_after_write = \"always\"").start().await;
    let addr = proxy.addr();
    let without = get(addr, "/doc").await;
    backend.put("/doc", "{\"_etag\":\"\\\"old\\\"\",\"a\":1}");
    let with = get(addr, "/doc").await;
    assert_eq!((with.etag(), with.text()), (without.etag(), without.text()), "content tags do not cover the member");
    assert_eq!(put_if_match(addr, "/doc", &with.etag(), "{\"a\":2}").await.status, 204);
    // Without a tag in its field an answer has none in its body.
    backend.once("POST", "/doc", Answer::status(201).body("{\"_etag\":\"\\\"old\\\"\",\"a\":1}"));
    let posted = send(addr, "POST", "/doc", &[JSON], "{\"_etag\":\"x\",\"b\":1}").await;
    assert_eq!((posted.header("etag"), posted.text()), (None, "{\"a\":1}"));
    assert_eq!(backend.seen("POST", "/doc")[0].body, b"{\"b\":1}");
}

#[tokio::test]
async fn the_state_that_comes_with_a_412_has_its_tag() {
    let (_backend, setup) = source::CONTENT.start("/doc", "{}").await;
    let proxy = setup.route("tag_member = \"/_etag\"").start().await;
    let fields = [("If-Match", "\"stale\""), ("Prefer", "return=representation")];
    let refused = put(proxy.addr(), "/doc", &fields, "{\"_etag\":\"\\\"stale\\\"\"}").await;
    refused.refused_by_head(412, "precondition-failed");
    assert_eq!(member(&refused, "/_etag"), Some(refused.etag()));
}

/// A field that describes other bytes than those that the client gets does not reach it.
#[tokio::test]
async fn fields_that_describe_other_bytes_are_left_out() {
    let backend = Backend::with(Validators::Tags).await;
    let answer = |_: &_| {
        ["Content-MD5", "Digest", "Content-Digest", "Repr-Digest"]
            .iter()
            .fold(Answer::status(200).header("ETag", "\"1\""), |answer, name| answer.header(name, "sum"))
            .header("Accept-Ranges", "bytes")
    };
    backend.always("GET", "/object", move |request| answer(request).body("{}"));
    backend.always("GET", "/list", move |request| answer(request).body("[]"));
    backend.always("GET", "/packed", move |request| answer(request).header("Content-Encoding", "x").body("{}"));
    let proxy = Proxy::to(backend.addr()).route("etag = \"upstream\"\ntag_member = \"/_etag\"").start().await;
    for (target, expected, field) in
        [("/object", "{\"_etag\":\"\\\"1\\\"\"}", None), ("/list", "[]", Some("sum")), ("/packed", "{}", Some("sum"))]
    {
        let fields = [("Range", "bytes=0-0"), ("If-Range", "\"1\""), ("Accept-Encoding", "gzip")];
        let read = send(proxy.addr(), "GET", target, &fields, "").await;
        assert_eq!((read.status, read.text(), read.etag().as_str()), (200, expected, "\"1\""), "{target}");
        for name in ["content-md5", "digest", "content-digest", "repr-digest"] {
            assert_eq!(read.header(name), field, "{target} {name}");
        }
        assert_eq!(read.header("accept-ranges"), field.and(Some("bytes")), "{target}");
        let asked = &backend.seen("GET", target)[0];
        assert_eq!((asked.header("range"), asked.header("accept-encoding")), (None, Some("identity")));
    }
}

#[tokio::test]
async fn what_is_too_large_to_hash_passes_as_it_came() {
    let large = format!("{{\"_etag\":\"old\",\"a\":\"{}\"}}", "a".repeat(2000));
    for source in [source::CONTENT, source::UPSTREAM] {
        let (backend, setup) = source.start("/doc", &large).await;
        let route = "tag_member = \"/_etag\"\nmax_hash_size = \"1KiB\"\nrequire = \"never\"";
        let proxy = setup.route(route).start().await;
        assert_eq!(get(proxy.addr(), "/doc").await.text(), large, "{source}");
        put(proxy.addr(), "/other", &[], &large).await;
        assert_eq!(backend.content("/other").as_deref(), Some(large.as_str()), "{source}");
    }
}
