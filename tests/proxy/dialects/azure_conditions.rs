//! Conditional headers by Azure's rules, over the wire: their differences from HTTP's, and their order.

use crate::support::{
    azure::{BLOBS, BLOCK, acquire, assert_common, assert_done, assert_error, blobs, lease, put_blob},
    backend::{Answer, Backend, Validators},
    leases::IDS,
    proxy::Proxy,
    raw::{get, send},
    response::Response,
};

const PAST: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const FUTURE: &str = "Sun, 06 Nov 2044 08:49:37 GMT";

/// A backend with dates, a proxy that knows versions, and a blob with its tag.
async fn scene() -> (Backend, Proxy, String) {
    let backend = Backend::with(Validators::Dates).await;
    let proxy = blobs(&backend).start().await;
    let tag = assert_done(&put_blob(proxy.addr(), "/blob", &[], "one").await, 201);
    (backend, proxy, tag)
}

/// A status, with the name of the error if it is one.
fn told(response: &Response) -> String {
    assert_common(response);
    let code = response.header("x-ms-error-code").map(|code| format!(" {code}"));
    format!("{}{}", response.status, code.unwrap_or_default())
}

#[tokio::test]
async fn where_azure_contradicts_http_azure_is_followed() {
    let (_backend, proxy, tag) = scene().await;
    let (addr, bare) = (proxy.addr(), tag.trim_matches('"').to_owned());
    let list = format!("{tag}, \"other\"");
    let (ims, ius, im, inm) = ("If-Modified-Since", "If-Unmodified-Since", "If-Match", "If-None-Match");
    for (method, fields, expected) in [
        ("PUT", &[(inm, "*")][..], "409 BlobAlreadyExists"),
        ("GET", &[(inm, "*")], "400 UnsatisfiableCondition"),
        ("HEAD", &[(inm, "*")], "400 UnsatisfiableCondition"),
        ("GET", &[(im, &tag), (ius, PAST)], "412 ConditionNotMet"),
        ("GET", &[(im, &tag), (ius, FUTURE)], "200"),
        ("GET", &[(inm, &tag), (ims, PAST)], "200"),
        ("GET", &[(inm, &tag), (ims, PAST), ("x-ms-range", "bytes=0-0")], "206"),
        ("GET", &[(inm, &tag), (ims, FUTURE)], "304 ConditionNotMet"),
        ("GET", &[(inm, &tag)], "304 ConditionNotMet"),
        ("HEAD", &[(inm, &bare)], "304 ConditionNotMet"),
        ("PUT", &[(ims, FUTURE)], "412 ConditionNotMet"),
        ("PUT", &[(ius, PAST)], "412 ConditionNotMet"),
        ("PUT", &[(inm, &tag)], "412 ConditionNotMet"),
        ("PUT", &[(im, &list)], "400 MultipleConditionHeadersNotSupported"),
        ("PUT", &[(im, &tag), (inm, "*")], "400 MultipleConditionHeadersNotSupported"),
        ("GET", &[(im, &list)], "200"),
        ("DELETE", &[(im, "\"stale\"")], "412 ConditionNotMet"),
        ("PUT", &[(im, "\"open")], "412 ConditionNotMet"),
        ("PUT", &[(inm, "\"open")], "400 InvalidHeaderValue"),
    ] {
        let all = if method == "PUT" { [&[BLOCK], fields].concat() } else { fields.to_vec() };
        let response = send(addr, method, "/blob", &all, if method == "PUT" { "two" } else { "" }).await;
        assert_eq!(told(&response), expected, "{method} {fields:?}");
    }
    // Nothing of that has written; and a tag needs no quotes.
    let written = put_blob(addr, "/blob", &[(im, &bare), (ius, PAST)], "one").await;
    assert_ne!(assert_done(&written, 201), tag, "the same bytes are another state");
}

#[tokio::test]
async fn what_cannot_create_does_not_heed_that_it_must_not_exist() {
    let (_backend, proxy, _) = scene().await;
    let (addr, any) = (proxy.addr(), ("If-None-Match", "*"));
    let acquired = lease(addr, "/blob", "acquire", &[("x-ms-lease-duration", "15"), any]).await;
    assert_done(&acquired, 201);
    let id = acquired.header("x-ms-lease-id").expect("an id").to_owned();
    let deleted = send(addr, "DELETE", "/blob", &[("x-ms-lease-id", &id), any], "").await;
    assert_eq!(deleted.status, 202, "{deleted:?}");
}

#[tokio::test]
async fn what_is_missing_matches_nothing() {
    let backend = Backend::start().await;
    let proxy = blobs(&backend).start().await;
    for method in ["GET", "HEAD", "PUT", "DELETE"] {
        for condition in ["\"a\"", "*"] {
            let fields = [("If-Match", condition), BLOCK];
            let fields = &fields[..if method == "PUT" { 2 } else { 1 }];
            let response = send(proxy.addr(), method, "/nothing", fields, "").await;
            assert_eq!(told(&response), "412 ConditionNotMet", "{method} {condition}");
        }
    }
    assert_eq!(backend.content("/nothing"), None);
}

#[tokio::test]
async fn conditions_are_judged_before_the_lease_but_for_the_one_that_creates() {
    let (_backend, proxy, tag) = scene().await;
    let (addr, [id, other, _]) = (proxy.addr(), IDS);
    acquire(addr, "/blob", id, "15").await;
    let (stale, current, any) = (("If-Match", "\"stale\""), ("If-Match", tag.as_str()), ("If-None-Match", "*"));
    for (method, fields, expected) in [
        ("PUT", &[stale][..], "412 ConditionNotMet"),
        ("PUT", &[current], "412 LeaseIdMissing"),
        ("PUT", &[any], "412 LeaseIdMissing"),
        ("PUT", &[any, ("x-ms-lease-id", id)], "409 BlobAlreadyExists"),
        ("DELETE", &[stale], "412 ConditionNotMet"),
        ("DELETE", &[current], "412 LeaseIdMissing"),
        ("GET", &[stale, ("x-ms-lease-id", other)], "412 ConditionNotMet"),
        ("GET", &[current, ("x-ms-lease-id", other)], "412 LeaseIdMismatchWithBlobOperation"),
    ] {
        let all = if method == "PUT" { [&[BLOCK], fields].concat() } else { fields.to_vec() };
        let response = send(addr, method, "/blob", &all, if method == "PUT" { "two" } else { "" }).await;
        assert_eq!(told(&response), expected, "{method} {fields:?}");
    }
    let renewed = lease(addr, "/blob", "renew", &[("x-ms-lease-id", other), stale]).await;
    assert_error(&renewed, 412, "ConditionNotMet");
    assert_eq!(get(addr, "/blob").await.text(), "one");
}

/// RFC 9110 section 8.8.2.2: a date of this second may stand for two states, so clients get the second before it.
#[tokio::test]
async fn a_date_that_two_states_may_share_lets_nobody_overwrite() {
    let backend = Backend::start().await;
    let proxy = blobs(&backend).start().await;
    let addr = proxy.addr();
    let at = |second: u32| format!("Sun, 06 Nov 1994 08:49:{second} GMT");
    let answer = move |read_at: u32| {
        Answer::status(200).header("Last-Modified", &at(37)).header("Date", &at(read_at)).body("one")
    };
    backend.always("*", "/blob", move |request| if request.method == "PUT" { Answer::status(204) } else { answer(37) });
    let read = get(addr, "/blob").await;
    assert_eq!(read.headers.all("last-modified"), ["Sun, 06 Nov 1994 08:49:36 GMT"]);
    let since = |date: &'static str| [("If-Unmodified-Since", date)];
    let told_date = "Sun, 06 Nov 1994 08:49:36 GMT";
    assert_error(&put_blob(addr, "/blob", &since(told_date), "two").await, 412, "ConditionNotMet");
    backend.always(
        "*",
        "/other",
        move |request| {
            if request.method == "PUT" { Answer::status(204) } else { answer(38) }
        },
    );
    let read = get(addr, "/other").await;
    assert_eq!(read.headers.all("last-modified"), ["Sun, 06 Nov 1994 08:49:37 GMT"]);
    let written = put_blob(addr, "/other", &since("Sun, 06 Nov 1994 08:49:37 GMT"), "two").await;
    assert_eq!(written.status, 201, "{written:?}");
}

#[tokio::test]
async fn a_date_that_the_backend_does_not_tell_lets_nobody_overwrite() {
    let backend = Backend::start().await;
    let proxy = blobs(&backend).start().await;
    backend.put("/blob", "one");
    for (name, date) in [("If-Unmodified-Since", FUTURE), ("If-Modified-Since", PAST)] {
        assert_error(&put_blob(proxy.addr(), "/blob", &[(name, date)], "two").await, 412, "ConditionNotMet");
    }
    assert_eq!(backend.content("/blob").as_deref(), Some("one"));
}

/// With tags of the content every answer has one too, and parts are cut from the whole.
#[tokio::test]
async fn tags_of_the_content_serve_as_well() {
    let backend = Backend::with(Validators::Dates).await;
    let lines = BLOBS.replace("version", "content").replace("exclusive", "shared");
    let proxy = Proxy::to(backend.addr()).route(&lines).start().await;
    let (addr, [id, ..]) = (proxy.addr(), IDS);
    let tag = assert_done(&put_blob(addr, "/blob", &[("If-None-Match", "*")], "content").await, 201);
    let acquired = acquire(addr, "/blob", id, "15").await;
    assert_eq!(assert_done(&acquired, 201), tag);
    assert_eq!(assert_done(&lease(addr, "/blob", "renew", &[("x-ms-lease-id", id)]).await, 200), tag);
    for (range, status, text, content_range) in
        [("bytes=0-33554431", 206, "content", Some("bytes 0-6/7")), ("bytes=1-2", 206, "on", Some("bytes 1-2/7"))]
    {
        let part = send(addr, "GET", "/blob", &[("x-ms-range", range)], "").await;
        assert_eq!((part.status, part.text(), part.header("content-range")), (status, text, content_range));
        assert_eq!(assert_done(&part, 206), tag);
    }
    let beyond = send(addr, "GET", "/blob", &[("x-ms-range", "bytes=7-")], "").await;
    assert_error(&beyond, 416, "InvalidRange");
    assert_eq!(beyond.header("content-range"), Some("bytes */7"));
    let written = put_blob(addr, "/blob", &[("x-ms-lease-id", id), ("If-Match", &tag)], "other").await;
    assert_ne!(assert_done(&written, 201), tag);
}
