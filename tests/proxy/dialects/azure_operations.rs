//! The list of operations: the answers to those on it are as Azure's clients expect them, and the backend sees no byte
//! of others.

use crate::support::{
    azure::{BLOBS, BLOCK, CONTAINERS, assert_common, assert_done, assert_error, blobs, put_blob},
    backend::{Answer, Backend},
    proxy::Proxy,
    raw::{get, send},
};

#[tokio::test]
async fn what_is_not_on_the_list_leaves_the_backend_untouched() {
    let backend = Backend::start().await;
    let proxy = blobs(&backend).start().await;
    backend.put("/c/blob", "one");
    let (no, bad_verb) = ((501, "NotImplemented"), (405, "UnsupportedHttpVerb"));
    let unsupported = (400, "UnsupportedHeader");
    for (method, target, fields, expected) in [
        ("PUT", "/c/blob", &[][..], (400, "MissingRequiredHeader")),
        ("PUT", "/c/blob", &[("x-ms-blob-type", "AppendBlob")], no),
        ("PUT", "/c/blob", &[("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", "512")], unsupported),
        ("PUT", "/c/blob", &[BLOCK, ("x-ms-copy-source", "http://127.0.0.1/a")], unsupported),
        ("PUT", "/c/blob", &[BLOCK, ("x-ms-meta-owner", "me")], unsupported),
        ("PUT", "/c/blob", &[BLOCK, ("x-ms-lease-action", "acquire")], unsupported),
        ("PUT", "/c/blob?comp=block", &[], (400, "MissingRequiredQueryParameter")),
        ("PUT", "/c/blob?comp=block&blockid=AA", &[], (400, "InvalidBlockId")),
        ("PUT", "/c/blob?comp=blocklist", &[BLOCK], unsupported),
        ("PUT", "/c/blob?comp=blocklist", &[], (400, "InvalidXmlDocument")),
        ("PUT", "/c/blob?comp=appendblock", &[BLOCK], no),
        ("PUT", "/c/blob?comp=page", &[BLOCK], no),
        ("PUT", "/c/blob?comp=metadata", &[], no),
        ("PUT", "/c/blob?comp=leas%65", &[BLOCK], no),
        ("PUT", "/c/blob?%63omp=lease", &[BLOCK], (400, "UnsupportedQueryParameter")),
        ("PUT", "/c/blob?comp=lease", &[], (400, "MissingRequiredHeader")),
        ("PUT", "/c?restype=container", &[], no),
        ("DELETE", "/c?restype=container", &[], no),
        ("DELETE", "/c/", &[], (400, "InvalidUri")),
        ("DELETE", "/c/blob?snapshot=2020", &[], (400, "UnsupportedQueryParameter")),
        ("DELETE", "/c/%2e%2e", &[], (400, "InvalidUri")),
        ("GET", "/c/blob?comp=blocklist&blocklisttype=new", &[], (400, "InvalidQueryParameterValue")),
        ("POST", "/c/blob", &[], bad_verb),
        ("PATCH", "/c/blob", &[], bad_verb),
        ("OPTIONS", "/c/blob", &[], bad_verb),
        ("TRACE", "/c/blob", &[], bad_verb),
        ("MKCOL", "/c/blob", &[], bad_verb),
        ("PROPFIND", "/c/blob", &[], bad_verb),
        ("COPY", "/c/blob", &[("Destination", "/other")], no),
        ("PUT", "/c/blob", &[BLOCK, ("X-HTTP-Method", "DELETE")], unsupported),
        ("GET", "/c/blob", &[("Upgrade", "websocket"), ("Connection", "upgrade"), ("x-ms-if-tags", "a")], unsupported),
    ] {
        let body = if matches!(method, "PUT" | "POST" | "PATCH") { "two" } else { "" };
        let response = send(proxy.addr(), method, target, fields, body).await;
        let told = (response.status, response.header("x-ms-error-code").unwrap_or("no name"));
        assert_eq!(told, expected, "{method} {target} {fields:?}");
        assert_error(&response, expected.0, expected.1);
        assert_eq!(response.headers.all("proxy-status").len(), 1, "{response:?}");
    }
    assert_eq!(backend.connections(), 0, "{:?}", backend.events());
}

#[tokio::test]
async fn the_backend_gets_a_plain_request() {
    let backend = Backend::start().await;
    let proxy = blobs(&backend).start().await;
    let fields = [
        ("x-ms-version", "2024-11-04"),
        ("x-ms-date", "Sun, 06 Nov 1994 08:49:37 GMT"),
        ("x-ms-client-request-id", "mine"),
        ("x-ms-blob-content-type", "image/png"),
        ("Content-Type", "application/octet-stream"),
        ("If-None-Match", "*"),
    ];
    let target = "/c/blob?timeout=30&sv=2021&sig=a%2Bb%3D";
    let put = put_blob(proxy.addr(), target, &fields, "one").await;
    assert_eq!(put.status, 201, "{put:?}");
    assert_eq!(put.headers.all("x-ms-version"), ["2024-11-04"]);
    assert_eq!(put.headers.all("x-ms-client-request-id"), ["mine"]);
    let seen = backend.seen("PUT", "*");
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].target, "/c/blob?sv=2021&sig=a%2Bb%3D");
    assert_eq!(seen[0].headers.all("content-type"), ["image/png"]);
    let azure = |(name, _): &(String, String)| name.to_lowercase().starts_with("x-ms-");
    assert!(!backend.requests().iter().any(|request| request.headers.0.iter().any(azure)), "{seen:?}");
}

#[tokio::test]
async fn each_status_is_the_one_that_clients_take() {
    let backend = Backend::start().await;
    let proxy = blobs(&backend).start().await;
    let addr = proxy.addr();
    for status in [200, 201, 204] {
        backend.once("PUT", "/blob", Answer::status(status).applied());
        assert_eq!(put_blob(addr, "/blob", &[], "one").await.status, 201, "{status}");
        backend.once("DELETE", "/blob", Answer::status(status).applied());
        let deleted = send(addr, "DELETE", "/blob", &[], "").await;
        assert_eq!((deleted.status, deleted.text()), (202, ""), "{status}");
        assert_eq!(deleted.headers.all("x-ms-delete-type-permanent"), ["true"], "{status}");
    }
}

/// A body that was damaged on its way never reaches the backend.
#[tokio::test]
async fn an_upload_has_the_checksums_that_it_names() {
    let backend = Backend::start().await;
    let proxy = blobs(&backend).start().await;
    let addr = proxy.addr();
    // The checksums of "abc".
    let (md5, crc64) = ("kAFQmDzST7DWlj99KOF/cg==", "6/rBP7vK5QU=");
    for (name, value, mismatch) in [
        ("Content-MD5", md5, "Md5Mismatch"),
        ("x-ms-blob-content-md5", md5, "Md5Mismatch"),
        ("x-ms-content-crc64", crc64, "Crc64Mismatch"),
    ] {
        let put = put_blob(addr, "/blob", &[(name, value)], "abc").await;
        assert_eq!((put.status, put.headers.all("content-md5")), (201, vec![md5]), "{name}: the answer has the MD5");
        let puts = backend.count("PUT", "/blob");
        assert_error(&put_blob(addr, "/blob", &[(name, value)], "abd").await, 400, mismatch);
        assert_eq!(backend.count("PUT", "/blob"), puts, "{name}");
        assert_eq!(backend.content("/blob").as_deref(), Some("abc"));
    }
    assert_error(&put_blob(addr, "/blob", &[("Content-MD5", "abc")], "abc").await, 400, "InvalidMd5");
    let of_nothing = "1B2M2Y8AsgTpgAmY7PhCfg==";
    for (of_body, of_blob, status) in [(of_nothing, md5, 201), (md5, of_nothing, 400)] {
        let fields = [("Content-MD5", of_body), ("x-ms-blob-content-md5", of_blob)];
        assert_eq!(put_blob(addr, "/blob", &fields, "abc").await.status, status, "that of the blob takes precedence");
    }
}

/// The client compares it with its own: the content that has arrived may differ from the one that the request names.
#[tokio::test]
async fn the_answer_to_an_upload_has_the_md5_of_what_has_arrived() {
    let backend = Backend::start().await;
    let proxy = blobs(&backend).start().await;
    let addr = proxy.addr();
    for (body, md5) in [("abc", "kAFQmDzST7DWlj99KOF/cg=="), ("", "1B2M2Y8AsgTpgAmY7PhCfg==")] {
        let put = put_blob(addr, "/blob", &[], body).await;
        assert_eq!((put.status, put.headers.all("content-md5")), (201, vec![md5]), "{put:?}");
    }
    let refused = put_blob(addr, "/blob", &[("If-Match", "\"other\"")], "abc").await;
    assert_error(&refused, 412, "ConditionNotMet");
    let lost = Backend::start().await;
    lost.serve(|_request| Answer::status(507));
    let failed = put_blob(blobs(&lost).start().await.addr(), "/blob", &[], "abc").await;
    for untold in [refused, failed] {
        assert_eq!(untold.headers.all("content-md5"), [""; 0], "nothing was stored: {untold:?}");
    }
}

/// No state has a tag that cannot be spelled: the condition is false of each.
#[tokio::test]
async fn a_tag_that_cannot_be_spelled_matches_nothing() {
    let backend = Backend::start().await;
    let proxy = blobs(&backend).start().await;
    let addr = proxy.addr();
    let tag = put_blob(addr, "/blob", &[], "one").await.etag();
    let spoilt = format!("{tag}junk");
    assert_error(&put_blob(addr, "/blob", &[("If-Match", &spoilt)], "two").await, 412, "ConditionNotMet");
    assert_error(&put_blob(addr, "/blob", &[("If-None-Match", &spoilt)], "two").await, 400, "InvalidHeaderValue");
    assert_eq!(backend.content("/blob").as_deref(), Some("one"));
}

#[tokio::test]
async fn what_the_backend_refuses_is_told_in_azures_words() {
    let backend = Backend::start().await;
    let proxy = blobs(&backend).start().await;
    let addr = proxy.addr();
    for (status, expected, code) in [
        (400, 400, "InvalidInput"),
        (401, 401, "NoAuthenticationInformation"),
        (403, 403, "AuthorizationFailure"),
        (404, 404, "BlobNotFound"),
        (301, 404, "BlobNotFound"),
        (418, 418, "InvalidInput"),
        (500, 500, "InternalError"),
        (503, 503, "ServerBusy"),
    ] {
        let answer = Answer::status(status).header("WWW-Authenticate", "Bearer").header("Retry-After", "7").body("no");
        backend.once("GET", "/blob", answer);
        let response = get(addr, "/blob").await;
        assert_error(&response, expected, code);
        assert_eq!(response.headers.all("www-authenticate"), ["Bearer"], "{status}");
        assert_eq!(response.headers.all("retry-after"), ["7"], "{status}");
        backend.once("HEAD", "/blob", Answer::status(status));
        let response = send(addr, "HEAD", "/blob", &[], "").await;
        assert_error(&response, expected, code);
        assert_eq!(response.text(), "");
        let of_content = ["content-type", "content-length"].map(|name| response.header(name));
        assert_eq!(of_content, [None, None], "{status}");
    }
    backend.once("PUT", "/blob", Answer::status(409).body("no such folder"));
    assert_error(&put_blob(addr, "/blob", &[], "one").await, 404, "ContainerNotFound");
}

/// A container is a collection of the backend, and never a file.
#[tokio::test]
async fn a_container_is_made_and_removed_as_a_collection() {
    let backend = Backend::start().await;
    let route = format!("{BLOBS}\n{CONTAINERS}");
    let proxy = Proxy::to(backend.addr()).route(&route).start().await;
    let (addr, target) = (proxy.addr(), "/photos?restype=container");
    let created = send(addr, "PUT", target, &[], "").await;
    assert_eq!(created.status, 201, "{created:?}");
    assert_common(&created);
    assert_eq!(backend.count("MKCOL", "/photos/"), 1);
    assert_error(&send(addr, "PUT", target, &[], "").await, 409, "ContainerAlreadyExists");
    assert_error(&put_blob(addr, "/photos", &[], "one").await, 501, "NotImplemented");
    assert_eq!(send(addr, "DELETE", target, &[], "").await.status, 202);
    assert_eq!(backend.count("DELETE", "/photos/"), 1);
    assert_error(&send(addr, "DELETE", target, &[], "").await, 404, "ContainerNotFound");
    assert_error(&send(addr, "GET", target, &[], "").await, 404, "ContainerNotFound");
    // A backend that knows no collections cannot have containers.
    backend.once("MKCOL", "/photos/", Answer::status(405));
    assert_error(&send(addr, "PUT", target, &[], "").await, 501, "NotImplemented");
    assert_eq!(backend.count("PUT", "*"), 0);
}

#[tokio::test]
async fn a_tag_of_the_backends_own_is_its_last_fence() {
    let backend = Backend::with(crate::support::backend::Validators::TagsAndDates).await;
    let lines = BLOBS.replace("version", "upstream").replace("exclusive", "shared");
    let proxy = Proxy::to(backend.addr()).route(&lines).start().await;
    let addr = proxy.addr();
    backend.put("/blob", "one");
    let tag = assert_done(&get(addr, "/blob").await, 200);
    assert_done(&put_blob(addr, "/blob", &[("If-Match", tag.trim_matches('"'))], "two").await, 201);
    assert_eq!(backend.seen("PUT", "/blob")[0].headers.all("if-match"), [tag.as_str()]);
}

/// Clients take any content for the part that they have asked for.
#[tokio::test]
async fn the_whole_is_never_sent_for_a_part() {
    let backend = Backend::start().await;
    let proxy = blobs(&backend).route("max_hash_size = \"1KiB\"").start().await;
    let addr = proxy.addr();
    let part = async |target: &str, range: &str| send(addr, "GET", target, &[("x-ms-range", range)], "").await;
    // The backend knows no parts.
    backend.put("/blob", "content");
    for (range, text, content_range) in [
        ("bytes=0-33554431", "content", "bytes 0-6/7"),
        ("bytes=1-2", "on", "bytes 1-2/7"),
        ("bytes=4-", "ent", "bytes 4-6/7"),
    ] {
        let response = part("/blob", range).await;
        assert_eq!((response.status, response.text()), (206, text), "{range}");
        assert_eq!(response.headers.all("content-range"), [content_range]);
    }
    let beyond = part("/blob", "bytes=7-").await;
    assert_error(&beyond, 416, "InvalidRange");
    assert_eq!(beyond.headers.all("content-range"), ["bytes */7"]);
    backend.put("/large", "a".repeat(2_000));
    let whole = part("/large", "bytes=0-33554431").await;
    assert_eq!(
        (whole.status, whole.body.len(), whole.header("content-range")),
        (206, 2_000, Some("bytes 0-1999/2000"))
    );
    assert_error(&part("/large", "bytes=0-9").await, 501, "NotImplemented");

    // While a write is in flight its tag may be older than what is read.
    let held = backend.hold("PUT", "/blob");
    let writer = tokio::spawn(async move { put_blob(addr, "/blob", &[], "changed").await });
    let mut write = held.arrived().await;
    write.apply().await;
    assert_error(&part("/blob", "bytes=1-2").await, 503, "ServerBusy");
    assert_eq!(part("/blob", "bytes=0-9").await.text(), "changed");
    write.answer(Answer::status(204)).await;
    assert_eq!(writer.await.expect("an answer").status, 201);
    assert_eq!(part("/blob", "bytes=1-2").await.text(), "ha");
}
