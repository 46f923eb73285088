//! Writes whose body names their resource (`writes_to`): they are judged as writes to that resource, and by its rules. The
//! seed of P26: an upsert goes around every check of a tag.

use std::net::SocketAddr;

use crate::support::{
    backend::Backend,
    documents,
    leases::{acquire, release},
    proxy::Proxy,
    raw::{get, put_if_match, race, request_bytes, send},
    response::Response,
    wait::until,
};

const LIST: &str = "/docs";
const DOCUMENT: &str = "/docs/7";
const UPSERT: (&str, &str) = ("x-ms-documentdb-is-upsert", "true");
const JSON: (&str, &str) = ("Content-Type", "application/json");

/// A proxy for documents, by their paths and by their bodies, with these lines on the route of documents.
async fn start(policy: &str) -> (Backend, Proxy) {
    let backend = documents::start().await;
    let setup =
        Proxy::to(backend.addr()).server("max_body_memory = \"64KiB\"").route("etag = \"header:X-Document-Etag\"");
    let configuration = setup.route("unique_tags = true").route("hash_wait = \"10s\"").configuration();
    let (tables, route) = configuration.split_once("[[routes]]").expect("a route");
    let route = |name: &str, path: &str, lines: &str| {
        let renamed = route.replace("\"all\"", name).replace("\"/{*rest}\"", path);
        format!("[[routes]]{renamed}\n{lines}\n")
    };
    let documents = route("\"documents\"", "\"/docs/{id}\"", "").replace("policy = \"optimistic\"", policy);
    let list = route("\"list\"", "\"/docs\"", "writes_to = \"/docs/{json./id}\"");
    (backend, Proxy::start(&format!("{tables}{documents}{list}")).await)
}

async fn post(addr: SocketAddr, fields: &[(&str, &str)], body: &str) -> Response {
    send(addr, "POST", LIST, &[&[UPSERT, JSON], fields].concat(), body).await
}

async fn upsert(addr: SocketAddr, tag: &str, body: &str) -> Response {
    post(addr, &[("If-Match", tag)], body).await
}

#[tokio::test]
async fn an_upsert_needs_the_tag_of_what_it_replaces() {
    let (backend, proxy) = start("policy = \"optimistic\"").await;
    let addr = proxy.addr();
    post(addr, &[], r#"{"id": "7"}"#).await.refused(428, "precondition-required");
    let created = post(addr, &[("If-None-Match", "*")], r#"{"id": "7"}"#).await;
    assert_eq!(created.status, 201);
    post(addr, &[("If-None-Match", "*")], r#"{"id": "7"}"#).await.refused(412, "precondition-failed");
    let first = get(addr, DOCUMENT).await.etag();
    assert_eq!(created.etag(), first);

    let second = upsert(addr, &first, r#"{"id": 7, "by": "upsert"}"#).await;
    assert_eq!((second.status, second.etag()), (200, get(addr, DOCUMENT).await.etag()));
    let written = backend.count("POST", LIST);
    upsert(addr, &first, r#"{"id": "7"}"#).await.refused(412, "precondition-failed");
    post(addr, &[], r#"{"id": "7"}"#).await.refused(428, "precondition-required");
    assert_eq!(backend.count("POST", LIST), written, "no refused upsert reaches the backend");

    // One history of tags: a change by the path makes the tags of upserts stale, and the other way round.
    assert_eq!(put_if_match(addr, DOCUMENT, &second.etag(), r#"{"by": "put"}"#).await.status, 200);
    upsert(addr, &second.etag(), r#"{"id": "7"}"#).await.refused(412, "precondition-failed");
    let third = get(addr, DOCUMENT).await.etag();
    assert_eq!(upsert(addr, &third, r#"{"id": "7"}"#).await.status, 200);
    put_if_match(addr, DOCUMENT, &third, "{}").await.refused(412, "precondition-failed");
}

/// Rule 14: the body is received for the name in it, and the tag is then read otherwise than RFC 9110 demands.
#[tokio::test]
async fn an_upsert_with_a_tag_without_quotes_arrives_whole() {
    let (backend, proxy) = start("policy = \"optimistic\"\nlenient_tags = true").await;
    let addr = proxy.addr();
    assert_eq!(post(addr, &[("If-None-Match", "*")], r#"{"id": "7"}"#).await.status, 201);
    let tag = get(addr, DOCUMENT).await.etag();
    let body = r#"{"id": "7", "by": "upsert"}"#;
    assert_eq!(upsert(addr, tag.trim_matches('"'), body).await.status, 200);
    let sent = backend.seen("POST", LIST);
    assert_eq!(sent.last().map(|request| request.body.as_slice()), Some(body.as_bytes()));
}

#[tokio::test]
async fn of_upserts_and_puts_with_one_tag_one_wins() {
    let (_backend, proxy) = start("policy = \"optimistic\"").await;
    let addr = proxy.addr();
    assert_eq!(post(addr, &[("If-None-Match", "*")], r#"{"id": "7"}"#).await.status, 201);
    for _ in 0..10 {
        let tag = get(addr, DOCUMENT).await.etag();
        let fields: [(&str, &str); 3] = [("If-Match", &tag), UPSERT, JSON];
        let writers = (0..16).map(|writer| {
            let body = format!("{{\"id\": \"7\", \"by\": {writer}}}");
            let (method, target) = if writer % 2 == 0 { ("POST", LIST) } else { ("PUT", DOCUMENT) };
            request_bytes(method, target, &fields, body.as_bytes())
        });
        let answers = race(addr, writers.collect()).await;
        let won = answers.iter().filter(|answer| answer.status == 200).count();
        let lost = answers.iter().filter(|answer| answer.status == 412).count();
        assert_eq!((won, lost), (1, 15), "{answers:?}");
    }
}

/// Refused before one byte reaches the backend: it could read another name than ifmatch does.
#[tokio::test]
async fn a_body_with_two_readings_is_refused() {
    let (backend, proxy) = start("policy = \"optimistic\"").await;
    let addr = proxy.addr();
    let any = [("If-None-Match", "*")];
    for body in [
        r#"{"id": "7", "id": "8"}"#,
        r#"{"id": "7", "ID": "8"}"#,
        r#"{"Id": "7"}"#,
        r#"[{"id": "7"}]"#,
        r#"{"id": 7.0}"#,
        r#"{"id": null}"#,
        r#"{"id": "7"} trailing"#,
        r#"{"\u0131d": "7"}"#,
        r#"{"İD": "7"}"#,
        r#"{"id": 9007199254740993}"#,
        r#"{"id\u0000": "7"}"#,
        r#"{"__proto__": {"id": "7"}}"#,
        r#"{"id": "7", "by": "\ud800"}"#,
        "id=7",
    ] {
        let refused = post(addr, &any, body).await;
        let problem = refused.refused(400, "malformed-request");
        assert!(problem.detail.contains("/id"), "{}", problem.detail);
    }
    for body in [r#"{"id": ""}"#, r#"{"id": ".."}"#, r#"{"id": "a/b"}"#, r#"{"id": "a;b"}"#] {
        post(addr, &any, body).await.refused(400, "ambiguous-target");
    }
    assert_eq!(backend.requests().len(), 0);
}

#[tokio::test]
async fn a_body_without_the_name_is_judged_by_its_own_route() {
    let (backend, proxy) = start("policy = \"optimistic\"").await;
    let addr = proxy.addr();
    assert_eq!(post(addr, &[], r#"{"by": "anybody"}"#).await.status, 201);
    assert_eq!(send(addr, "POST", LIST, &[("x-ms-documentdb-isquery", "True"), JSON], "{}").await.status, 200);
    assert_eq!(get(addr, LIST).await.status, 200);
    assert_eq!(backend.count("POST", LIST), 2);
}

#[tokio::test]
async fn the_holder_of_the_lease_alone_upserts() {
    let (backend, proxy) = start("policy = \"pessimistic\"\nlease = { absent = \"allow\" }").await;
    let addr = proxy.addr();
    let lease = acquire(addr, DOCUMENT, "30").await;
    post(addr, &[], r#"{"id": "7"}"#).await.refused(412, "lease-id-missing");
    assert_eq!(post(addr, &[("Lease-Id", &lease.id)], r#"{"id": "7"}"#).await.status, 201);
    assert_eq!(post(addr, &[], r#"{"id": "8"}"#).await.status, 201);
    let seen = backend.seen("POST", LIST);
    assert_eq!(seen[0].header("fencing-token"), Some(lease.fence.to_string().as_str()));
    release(addr, DOCUMENT, &lease.id).await;
    assert_eq!(post(addr, &[], r#"{"id": "7"}"#).await.status, 200);
}

/// Rule 18: servers read the bodies of methods that they do not know, and of DELETE, like the one of a POST.
#[tokio::test]
async fn no_method_goes_around_the_name_in_the_body() {
    let (backend, proxy) = start("policy = \"pessimistic\"\nlease = { absent = \"allow\" }").await;
    let addr = proxy.addr();
    let lease = acquire(addr, DOCUMENT, "30").await;
    for method in ["PUT", "PATCH", "DELETE", "MKCOL", "MERGE", "LINK", "LOCK", "post", "pUt", "UPSERT"] {
        let refused = send(addr, method, LIST, &[JSON], r#"{"id": "7"}"#).await;
        refused.refused(412, "lease-id-missing");
        let form = send(addr, method, LIST, &[], "id=7").await;
        form.refused(415, "unsupported-media-type");
        assert_eq!(backend.count(method, LIST), 0, "{method}");
    }
    assert_eq!(send(addr, "UPSERT", LIST, &[JSON, ("Lease-Id", &lease.id)], r#"{"id": "7"}"#).await.status, 201);
}

/// Rule 18: a POST whose body names its method too could do something else to the resource.
#[tokio::test]
async fn a_body_that_names_a_resource_names_no_method() {
    let (backend, proxy) =
        start("policy = \"pessimistic\"\nlease = { guards = [\"delete\"], absent = \"allow\" }").await;
    let addr = proxy.addr();
    acquire(addr, DOCUMENT, "30").await;
    for body in [r#"{"id": "7", "_method": "DELETE"}"#, r#"{"\u005fmethod": 1, "id": "7"}"#] {
        post(addr, &[], body).await.refused(400, "method-override");
    }
    assert_eq!(backend.count("POST", LIST), 0);
    assert_eq!(post(addr, &[], r#"{"id": "7", "a": {"_method": "DELETE"}}"#).await.status, 201);
}

/// A write that runs beside others goes to its own target too.
#[tokio::test]
async fn an_append_that_names_its_resource_goes_where_it_was_sent() {
    let (backend, proxy) = start("policy = \"optimistic\"\nappend_methods = [\"PATCH\"]\nrequire = \"never\"").await;
    let appended = send(proxy.addr(), "PATCH", LIST, &[JSON], r#"{"id": "7"}"#).await;
    assert_eq!(appended.status, 201);
    assert_eq!((backend.count("PATCH", LIST), backend.count("PATCH", DOCUMENT)), (1, 0));
}

/// The body is read from its file, once for the name and once for the backend.
#[tokio::test]
async fn a_large_body_names_its_resource_too() {
    let (backend, proxy) = start("policy = \"optimistic\"").await;
    let addr = proxy.addr();
    let body = format!("{{\"text\": \"{}\", \"id\": \"7\"}}", "x".repeat(300 * 1024));
    assert_eq!(post(addr, &[("If-None-Match", "*")], &body).await.status, 201);
    let tag = get(addr, DOCUMENT).await.etag();
    assert_eq!(upsert(addr, &tag, &body).await.status, 200);
    upsert(addr, &tag, &body).await.refused(412, "precondition-failed");
    assert!(backend.seen("POST", LIST).iter().all(|request| request.body == body.as_bytes()));
}

#[tokio::test]
async fn the_log_names_the_resource_of_the_body() {
    let (_backend, proxy) = start("policy = \"optimistic\"").await;
    post(proxy.addr(), &[], r#"{"id": "7"}"#).await.refused(428, "precondition-required");
    until("the line of the upsert", || proxy.log().contains(":/docs/7")).await;
}

/// Rule 18: a form is JSON too, and a form parser finds the leased document in it.
#[tokio::test]
async fn a_body_that_is_not_declared_as_json_is_refused() {
    let (backend, proxy) = start("policy = \"pessimistic\"\nlease = { absent = \"allow\" }").await;
    let addr = proxy.addr();
    acquire(addr, DOCUMENT, "30").await;
    let before = backend.requests().len();
    let form = r#"{"a":"&id=7&v=thief&b="}"#;
    for fields in [
        &[("Content-Type", "application/x-www-form-urlencoded")][..],
        &[("Content-Type", "multipart/form-data; boundary=b")],
        &[("Content-Type", "text/plain")],
        &[("Content-Type", "application/json; charset=utf-16")],
        &[JSON, ("Content-Encoding", "gzip")],
        &[],
    ] {
        let refused = send(addr, "POST", LIST, fields, form).await;
        let problem = refused.refused(415, "unsupported-media-type");
        assert!(problem.detail.contains("Content-Type: application/json"), "{}", problem.detail);
    }
    let twice = [JSON, ("Content-Type", "application/x-www-form-urlencoded")];
    send(addr, "POST", LIST, &twice, form).await.refused(400, "malformed-request");
    assert_eq!(backend.requests().len(), before, "no refused write reaches the backend");
    assert_eq!(send(addr, "POST", LIST, &[JSON], form).await.status, 201, "a document without a name is a new one");
}

/// Rule 18: Go reads both members as one, and the last one counts.
#[tokio::test]
async fn a_member_that_go_reads_as_the_name_is_refused() {
    let backend = documents::start().await;
    let setup = Proxy::to(backend.addr()).route("etag = \"header:X-Document-Etag\"\nunique_tags = true");
    let configuration = setup.configuration();
    let (tables, route) = configuration.split_once("[[routes]]").expect("a route");
    let route = |name: &str, path: &str, lines: &str| {
        format!("[[routes]]{}\n{lines}\n", route.replace("\"all\"", name).replace("\"/{*rest}\"", path))
    };
    let items = route("\"items\"", "\"/docs/{sku}/{key}\"", "");
    let list = route("\"list\"", "\"/docs\"", "writes_to = \"/docs/{json./sku}/{json./key}\"");
    let proxy = Proxy::start(&format!("{tables}{items}{list}")).await;
    for body in [
        r#"{"ſku": "2", "key": "2"}"#,
        r#"{"sku": "1", "key": "1", "ſku": "2"}"#,
        r#"{"sku": "2", "\u212aey": "2"}"#,
        r#"{"sku": "1", "key": "1", "\u212aey": "2"}"#,
    ] {
        post(proxy.addr(), &[("If-None-Match", "*")], body).await.refused(400, "malformed-request");
    }
    assert_eq!(backend.requests().len(), 0);
}
