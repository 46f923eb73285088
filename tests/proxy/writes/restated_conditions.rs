//! Conditions that clients state elsewhere or otherwise than RFC 9110 does (`precondition`, `lenient_tags`).

use crate::support::{
    backend::{Answer, Backend},
    proxy::Proxy,
    raw::{get, put, send},
    source::{UPSTREAM, UPSTREAM_EXCLUSIVE},
};

const JSON: (&str, &str) = ("Content-Type", "application/json");

#[tokio::test]
async fn a_tag_without_quotes_counts_where_the_route_says_so() {
    for source in [UPSTREAM, UPSTREAM_EXCLUSIVE] {
        let (backend, setup) = source.start("/doc", "one").await;
        let proxy = setup.route("lenient_tags = true").start().await;
        let addr = proxy.addr();
        let tag = get(addr, "/doc").await.etag();
        let unquoted = tag.trim_matches('"');
        put(addr, "/doc", &[("If-Match", "stale")], "two").await.refused(412, "precondition-failed");
        let read = send(addr, "GET", "/doc", &[("If-None-Match", unquoted)], "").await;
        assert_eq!(read.status, 304, "{source}");
        assert_eq!(put(addr, "/doc", &[("If-Match", unquoted)], "two").await.status, 204, "{source}");
        let sent = backend.seen("PUT", "/doc");
        assert_eq!(sent[0].header("if-match"), Some(tag.as_str()), "the backend gets the tag as it is");
        put(addr, "/doc", &[("If-Match", "a b")], "three").await.refused(400, "malformed-precondition");
        proxy.logged(&["WARN", "otherwise than RFC 9110 demands"]).await;

        let (_backend, setup) = source.start("/doc", "one").await;
        let strict = setup.start().await;
        put(strict.addr(), "/doc", &[("If-Match", "stale")], "two").await.refused(400, "malformed-precondition");
    }
}

#[tokio::test]
async fn a_strong_tag_counts_for_the_weak_one_of_a_backend_that_has_no_other() {
    for (lines, expected) in [("", 412), ("lenient_tags = true", 204)] {
        let backend = Backend::start().await;
        backend.always("*", "/doc", |_| Answer::status(200).header("ETag", "W/\"3\"").body("one"));
        backend.always("PUT", "/doc", |_| Answer::status(204).header("ETag", "W/\"4\""));
        let setup = Proxy::to(backend.addr()).route("etag = \"upstream\"\ncompare = \"opaque\"\nunique_tags = true");
        let proxy = setup.route(lines).start().await;
        let addr = proxy.addr();
        get(addr, "/doc").await;
        assert_eq!(put(addr, "/doc", &[("If-Match", "\"2\"")], "two").await.status, 412, "{lines}");
        assert_eq!(put(addr, "/doc", &[("If-Match", "\"3\"")], "two").await.status, expected, "{lines}");
    }
}

/// A backend of documents with revisions, behind a route that looks for them in bodies and queries.
async fn revisions() -> (Backend, Proxy) {
    let backend = Backend::start().await;
    backend.put("/doc", r#"{"_rev": "2-b", "text": "one"}"#);
    // Like a database that keeps earlier revisions.
    backend.always("GET", "/doc?rev=1-a", |_| Answer::status(200).body(r#"{"_rev": "1-a", "text": "zero"}"#));
    let route = "etag = \"json:/_rev\"\nunique_tags = true\nprecondition = [\"json:/_rev\", \"query:rev\"]";
    let proxy = Proxy::to(backend.addr()).route(route).route("hash_wait = \"10s\"").start().await;
    (backend, proxy)
}

#[tokio::test]
async fn a_revision_in_the_body_is_a_precondition() {
    let (backend, proxy) = revisions().await;
    let addr = proxy.addr();
    assert_eq!(get(addr, "/doc").await.etag(), "\"2-b\"");
    put(addr, "/doc", &[JSON], r#"{"_rev": "1-a"}"#).await.refused(412, "precondition-failed");
    put(addr, "/doc", &[JSON], r#"{"text": "two"}"#).await.refused(428, "precondition-required");
    put(addr, "/doc", &[], r#"{"_rev": "2-b"}"#).await.refused(428, "precondition-required");
    for unclear in [r#"{"_rev": "2-b", "_REV": "1-a"}"#, r#"{"_rev": "2-b", "_rev": "2-b"}"#, r#"["2-b"]"#, "{"] {
        put(addr, "/doc", &[JSON], unclear).await.refused(400, "malformed-precondition");
    }
    assert_eq!(backend.count("PUT", "*"), 0, "rule 4");
    let body = r#"{"_rev": "2-b", "text": "two"}"#;
    assert_eq!(put(addr, "/doc", &[JSON], body).await.status, 204);
    assert_eq!(backend.content("/doc").as_deref(), Some(body), "the body arrives as it was sent");
}

/// The policy decides about a write without a version, as if its body lacked the member.
#[tokio::test]
async fn null_and_an_empty_text_name_no_version() {
    let (backend, proxy) = revisions().await;
    let addr = proxy.addr();
    for body in [r#"{"_rev": null}"#, r#"{"_rev": ""}"#, "{}"] {
        put(addr, "/doc", &[JSON], body).await.refused(428, "precondition-required");
        let stale = [JSON, ("If-Match", "\"1-a\"")];
        put(addr, "/doc", &stale, body).await.refused(412, "precondition-failed");
        put(addr, "/doc?rev=1-a", &[JSON], body).await.refused(412, "precondition-failed");
    }
    put(addr, "/doc", &[JSON], r#"{"_rev": false}"#).await.refused(400, "malformed-precondition");
    assert_eq!(backend.count("PUT", "*"), 0, "rule 4");
    let create = [JSON, ("If-None-Match", "*")];
    assert_eq!(put(addr, "/new", &create, r#"{"_rev": null}"#).await.status, 201);
    send(addr, "POST", "/doc", &[JSON], r#"{"_rev": ""}"#).await;
    assert_eq!(backend.count("POST", "/doc"), 1, "a POST adds, and needs no version");
}

/// Rule 18: a version that some server finds is not passed over in silence.
#[tokio::test]
async fn a_body_that_only_some_servers_read_as_json_is_refused() {
    let backend = Backend::start().await;
    backend.put("/doc", r#"{"_rev": "2-b"}"#);
    let route = "etag = \"json:/_rev\"\nrequire = \"never\"\nprecondition = [\"json:/_rev\"]";
    let proxy = Proxy::to(backend.addr()).route(route).start().await;
    let stale = r#"{"_rev": "1-a"}"#;
    for fields in [
        &[("Content-Type", "application/json; charset=utf8")][..],
        &[("Content-Type", "application/json; charset=utf-16")],
        &[("Content-Type", "text/json")],
        &[("Content-Type", "application/x-json")],
        &[JSON, ("Content-Encoding", "gzip")],
    ] {
        for method in ["PUT", "POST", "PATCH"] {
            let refused = send(proxy.addr(), method, "/doc", fields, stale).await;
            assert_eq!(refused.status, 415, "{method} {fields:?}: {refused:?}");
        }
    }
    assert_eq!(backend.requests().iter().filter(|request| request.method != "GET").count(), 0);
    assert_eq!(put(proxy.addr(), "/doc", &[("Content-Type", "text/plain")], stale).await.status, 204);
}

/// A list of operations (RFC 6902) has no member of the resource.
#[tokio::test]
async fn operations_on_a_document_name_no_version() {
    let (backend, proxy) = revisions().await;
    let addr = proxy.addr();
    get(addr, "/doc").await;
    let operations = ("Content-Type", "application/json-patch+json");
    let body = r#"[{"op": "replace", "path": "/text", "value": "two"}]"#;
    send(addr, "PATCH", "/doc", &[operations], body).await.refused(428, "precondition-required");
    send(addr, "PATCH", "/doc", &[operations, ("If-Match", "\"1-a\"")], body).await.refused(412, "precondition-failed");
    send(addr, "PATCH", "/doc", &[operations, ("If-Match", "\"2-b\"")], body).await;
    assert_eq!(backend.count("PATCH", "/doc"), 1);
}

#[tokio::test]
async fn a_revision_in_the_query_is_one_too() {
    let (backend, proxy) = revisions().await;
    let addr = proxy.addr();
    // The backend still shows the state that this names.
    send(addr, "DELETE", "/doc?rev=1-a", &[], "").await.refused(412, "precondition-failed");
    send(addr, "DELETE", "/doc?re%76=1-a", &[], "").await.refused(412, "precondition-failed");
    send(addr, "DELETE", "/doc?rev=2-b&Rev=1-a", &[], "").await.refused(400, "malformed-precondition");
    assert_eq!(backend.count("DELETE", "*"), 0);
    backend.put("/doc?batch=1", r#"{"_rev": "2-b"}"#);
    send(addr, "DELETE", "/doc?batch=1&rev=2-b", &[], "").await;
    assert_eq!(backend.count("DELETE", "/doc?batch=1&rev=2-b"), 1, "the target arrives as it was sent");
}

/// A COPY only reads its source, but writes another resource by what it has read.
#[tokio::test]
async fn the_source_of_a_copy_has_the_revision_that_the_copy_names() {
    let (backend, proxy) = revisions().await;
    let to = ("Destination", "/copy");
    let copied = send(proxy.addr(), "COPY", "/doc?rev=1-a", &[to, ("Overwrite", "F")], "").await;
    copied.refused(412, "precondition-failed");
    assert_eq!(backend.count("COPY", "*"), 0);
    send(proxy.addr(), "COPY", "/doc?rev=2-b", &[to, ("Overwrite", "F")], "").await;
    assert_eq!(backend.count("COPY", "/doc?rev=2-b"), 1);
}

/// Rule 14: the form is read for its method first, and for nothing else.
#[tokio::test]
async fn a_form_with_a_version_in_the_query_arrives_whole() {
    let backend = Backend::start().await;
    backend.put("/doc", "one");
    let route = "precondition = [\"query:version\"]\nmethod_override = \"judge\"";
    let proxy = Proxy::to(backend.addr()).route(route).start().await;
    let tag = get(proxy.addr(), "/doc").await.etag();
    let target = format!("/doc?version={}", tag.trim_matches('"'));
    let form = ("Content-Type", "application/x-www-form-urlencoded");
    send(proxy.addr(), "POST", "/doc?version=stale", &[form], "_method=put&text=two")
        .await
        .refused(412, "precondition-failed");
    send(proxy.addr(), "POST", &target, &[form], "_method=put&text=two").await;
    let sent = backend.seen("POST", &target);
    assert_eq!(sent.iter().map(|request| request.body.as_slice()).collect::<Vec<_>>(), [b"_method=put&text=two"]);
}

#[tokio::test]
async fn two_versions_that_differ_are_refused() {
    let (backend, proxy) = revisions().await;
    let addr = proxy.addr();
    for (target, fields, body) in [
        ("/doc?rev=1-a", &[JSON][..], r#"{"_rev": "2-b"}"#),
        ("/doc", &[JSON, ("If-Match", "\"1-a\"")], r#"{"_rev": "2-b"}"#),
        ("/doc?rev=2-b", &[("If-Match", "*")], "two"),
    ] {
        put(addr, target, fields, body).await.refused(400, "malformed-precondition");
    }
    assert_eq!(backend.count("PUT", "*"), 0);
    let agreeing = [JSON, ("If-Match", "\"2-b\"")];
    put(addr, "/doc?rev=2-b", &agreeing, r#"{"_rev": "2-b"}"#).await;
    assert_eq!(backend.count("PUT", "/doc?rev=2-b"), 1);
}
