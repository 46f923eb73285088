//! Pages of other origins. P15: answers without CORS fields are hidden from the page; P16: so is `ETag`.

use crate::support::{
    backend::{Answer, Backend, Request},
    chromium::Pages,
    leases::{acquire, leasing},
    nginx::Nginx,
    proxy::Proxy,
    raw::{get, put_if_match, send},
    response::Response,
    source::{self, CONTENT},
};

const ORIGIN: &str = "https://app.test";
const FROM_PAGE: (&str, &str) = ("Origin", ORIGIN);

/// Lets one origin in for any request, as a backend does that knows nothing of the proxy's fields.
fn lets_in(request: &Request, answer: Answer) -> Answer {
    let answer = answer.header("Vary", "Origin");
    if request.header("origin") != Some(ORIGIN) {
        return answer;
    }
    let answer = answer.header("Access-Control-Allow-Origin", ORIGIN);
    if request.method == "OPTIONS" {
        let asked = request.header("access-control-request-headers").unwrap_or_default();
        let unknown = asked.split(',').any(|name| !matches!(name.trim(), "" | "content-type"));
        if unknown {
            return Answer::status(403);
        }
        return answer
            .header("Access-Control-Allow-Methods", "GET, PUT")
            .header("Access-Control-Allow-Headers", "Content-Type");
    }
    answer.header("Access-Control-Expose-Headers", "X-Total")
}

/// A backend that lets that origin in and keeps one text.
async fn with_cors(source: source::Source) -> (Backend, crate::support::proxy::Setup) {
    let (backend, setup) = source.start("/doc", "one").await;
    backend
        .always("GET", "/doc", |request| lets_in(request, Answer::status(200).header("ETag", "\"one\"").body("one")));
    backend.always("OPTIONS", "/doc", |request| lets_in(request, Answer::status(204)));
    (backend, setup)
}

fn names(response: &Response, field: &str) -> Vec<String> {
    let lines = response.headers.all(field);
    lines.iter().flat_map(|line| line.split(',')).map(|name| name.trim().to_ascii_lowercase()).collect()
}

#[track_caller]
fn assert_readable(response: &Response) {
    assert_eq!(response.headers.all("access-control-allow-origin"), [ORIGIN], "{response:?}");
    assert!(names(response, "access-control-expose-headers").contains(&"proxy-status".to_owned()), "{response:?}");
    assert!(names(response, "vary").contains(&"origin".to_owned()), "{response:?}");
}

const PREFLIGHT: [(&str, &str); 3] = [
    FROM_PAGE,
    ("Access-Control-Request-Method", "PUT"),
    ("Access-Control-Request-Headers", "content-type,if-match,prefer"),
];

/// P16, against a real browser and a real server that knows neither tags nor our fields.
#[tokio::test]
async fn p16_a_page_of_another_origin_reads_the_tag_and_writes_with_it() {
    let (pages, strangers) = (Pages::start().await, Pages::start().await);
    let origin = pages.origin();
    let nginx = Nginx::with(&format!(
        "etag off; if_modified_since off;
         set $granted ''; if ($http_origin = '{origin}') {{ set $granted $http_origin; }}
         add_header Access-Control-Allow-Origin $granted always; add_header Vary Origin always;
         location / {{
           if ($request_method = OPTIONS) {{
             add_header Access-Control-Allow-Origin $granted; add_header Vary Origin;
             add_header Access-Control-Allow-Methods 'GET, PUT'; add_header Access-Control-Allow-Headers content-type;
             return 204;
           }}
         }}"
    ))
    .await;
    for name in ["doc", "leased"] {
        std::fs::write(nginx.root().join(name), "one").expect("a file");
    }
    let configuration = Proxy::to(nginx.addr()).route("hash_wait = \"10s\"").configuration();
    let (tables, route) = configuration.split_once("[[routes]]").expect("a route");
    let leased = route.replace("\"all\"", "\"leased\"").replace("\"/{*rest}\"", "\"/leased\"");
    let leased = leased.replace("\"optimistic\"", "\"pessimistic\"");
    let proxy = Proxy::start(&format!("{tables}[[routes]]{route}\n[[routes]]{leased}\n")).await;
    let script = format!(
        "const at = path => 'http://{}' + path;
         const write = (tag, body) => fetch(at('/doc'), {{method: 'PUT', headers: {{'If-Match': tag}}, body}});
         const problem = async (what, answer) => say(what, answer.status, (await answer.json()).code);
         const read = await fetch(at('/doc'), {{cache: 'no-store'}});
         const tag = read.headers.get('ETag');
         say('read', read.status, await read.text(), tag !== null);
         say('write', (await write(tag, 'two')).status);
         await problem('stale', await write(tag, 'three'));
         await problem('bare', await fetch(at('/doc'), {{method: 'PUT', body: 'four'}}));
         const fresh = (await fetch(at('/doc'), {{cache: 'no-store'}})).headers.get('ETag');
         const same = await fetch(at('/doc'), {{cache: 'no-store', headers: {{'If-None-Match': fresh}}}});
         say('same', same.status, same.headers.get('ETag') === fresh);
         const acquire = () => fetch(at('/.leases/leased'), {{method: 'POST', headers: {{'Lease-Duration': '30'}}}});
         const grant = await acquire();
         say('lease', grant.status, grant.headers.get('Lease-Id') !== null, grant.headers.get('Fencing-Token') > 0);
         const held = await acquire();
         say('held', held.status, held.headers.get('Retry-After') > 0, (await held.json()).code);
         const id = grant.headers.get('Lease-Id');
         say('freed', (await fetch(at('/.leases/leased'), {{method: 'DELETE', headers: {{'Lease-Id': id}}}})).status);",
        proxy.addr()
    );
    let expected = [
        "read 200 one true",
        "write 204",
        "stale 412 precondition-failed",
        "bare 428 precondition-required",
        "same 304 true",
        "lease 201 true true",
        "held 409 true lease-held",
        "freed 204",
    ];
    assert_eq!(pages.run(&script).await, expected);
    assert_eq!(std::fs::read_to_string(nginx.root().join("doc")).expect("the file"), "two");
    assert_eq!(strangers.run(&script).await, ["failed: TypeError"], "another origin sees nothing");
}

#[tokio::test]
async fn p16_our_fields_are_named_where_the_backend_lets_the_origin_in() {
    for source in source::ALL {
        let (_backend, setup) = with_cors(source).await;
        let proxy = setup.start().await;
        let read = send(proxy.addr(), "GET", "/doc", &[FROM_PAGE], "").await;
        let expected = ["x-total", "etag", "retry-after", "proxy-status", "idempotent-replayed"];
        assert_eq!(names(&read, "access-control-expose-headers"), expected, "{source}");
        assert_eq!(read.headers.all("vary"), ["Origin"], "{source}");
        let stranger = send(proxy.addr(), "GET", "/doc", &[("Origin", "https://other.test")], "").await;
        let fields = stranger.headers.0.iter().filter(|(name, _)| name.to_ascii_lowercase().starts_with("access"));
        assert_eq!(fields.count(), 0, "{source}: {stranger:?}");
        assert_eq!(stranger.headers.all("vary"), ["Origin"], "{source}");
    }
}

/// A backend refuses preflights about fields that it does not know.
#[tokio::test]
async fn p16_a_preflight_may_ask_for_our_fields() {
    let (backend, setup) = with_cors(CONTENT).await;
    let proxy = setup.start().await;
    let answer = send(proxy.addr(), "OPTIONS", "/doc", &PREFLIGHT, "").await;
    assert_eq!((answer.status, answer.header("access-control-allow-methods")), (204, Some("GET, PUT")));
    let allowed = names(&answer, "access-control-allow-headers");
    for name in ["content-type", "if-match", "if-none-match", "prefer", "idempotency-key"] {
        assert!(allowed.contains(&name.to_owned()), "{name} in {allowed:?}");
    }
    assert!(!allowed.contains(&"lease-id".to_owned()), "there are no leases here");
    assert_eq!(backend.seen("OPTIONS", "/doc")[0].header("access-control-request-headers"), Some("content-type"));
    let stranger = [("Origin", "https://other.test"), PREFLIGHT[1]];
    let answer = send(proxy.addr(), "OPTIONS", "/doc", &stranger, "").await;
    assert_eq!(names(&answer, "access-control-allow-headers"), [""; 0], "the backend decides who comes in");
}

/// An operation on a lease is no request that the backend knows.
#[tokio::test]
async fn p16_a_preflight_for_a_lease_is_answered_as_one_for_its_resource() {
    let (backend, _) = with_cors(CONTENT).await;
    let proxy = leasing(&backend).start().await;
    let fields =
        [FROM_PAGE, ("Access-Control-Request-Method", "DELETE"), ("Access-Control-Request-Headers", "lease-id")];
    let answer = send(proxy.addr(), "OPTIONS", "/.leases/doc", &fields, "").await;
    assert_eq!(answer.status, 204);
    assert_eq!(names(&answer, "access-control-allow-methods"), ["get", "put", "post", "patch", "delete"]);
    assert!(names(&answer, "access-control-allow-headers").contains(&"lease-id".to_owned()));
    let seen = backend.seen("OPTIONS", "/doc");
    assert_eq!(seen[0].header("access-control-request-method"), Some("GET"));
    assert_eq!(seen[0].header("access-control-request-headers"), None);
}

/// P15: what a page may do is also told by its preflight; nothing more is asked.
#[tokio::test]
async fn p15_a_refusal_is_readable_after_a_preflight() {
    let (backend, setup) = with_cors(CONTENT).await;
    let proxy = setup.start().await;
    assert_eq!(send(proxy.addr(), "OPTIONS", "/doc", &PREFLIGHT, "").await.status, 204);
    let refused = send(proxy.addr(), "PUT", "/doc", &[FROM_PAGE], "two").await;
    refused.refused(428, "precondition-required");
    assert_readable(&refused);
    assert_eq!(backend.count("*", "*"), 1, "the preflight");
}

/// The same if the probe has shown it, for a client that made its preflight long ago.
#[tokio::test]
async fn p15_a_refusal_is_readable_after_a_probe() {
    let (backend, setup) = with_cors(CONTENT).await;
    let proxy = setup.start().await;
    let refused = send(proxy.addr(), "PUT", "/doc", &[FROM_PAGE, ("If-Match", "\"old\"")], "two").await;
    refused.refused(412, "precondition-failed");
    assert_readable(&refused);
    assert_eq!(backend.count("*", "*"), 1, "the probe");
}

/// Before the first answer the backend is asked, once; a refused request never reaches it.
#[tokio::test]
async fn p15_a_backend_that_said_nothing_yet_is_asked_by_a_preflight() {
    let (backend, setup) = with_cors(CONTENT).await;
    let proxy = setup.start().await;
    for _ in 0..2 {
        let refused = send(proxy.addr(), "PUT", "/doc", &[FROM_PAGE, ("Cookie", "a=b")], "two").await;
        refused.refused(428, "precondition-required");
        assert_readable(&refused);
    }
    let seen = backend.requests();
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert_eq!((seen[0].method.as_str(), seen[0].header("origin")), ("OPTIONS", Some(ORIGIN)));
    assert_eq!(seen[0].header("access-control-request-method"), Some("PUT"));
    assert_eq!(seen[0].header("cookie"), None, "a preflight has no credentials");
}

#[tokio::test]
async fn p15_an_origin_that_the_backend_does_not_let_in_can_read_no_refusal() {
    let (backend, setup) = with_cors(CONTENT).await;
    let proxy = setup.start().await;
    let addr = proxy.addr();
    assert_eq!(send(addr, "GET", "/doc", &[FROM_PAGE], "").await.status, 200);
    for _ in 0..2 {
        let refused = send(addr, "PUT", "/doc", &[("Origin", "https://other.test")], "two").await;
        refused.refused(428, "precondition-required");
        assert_eq!(refused.header("access-control-allow-origin"), None);
    }
    assert_eq!(backend.count("OPTIONS", "/doc"), 1, "it is not asked at once again");
    assert_eq!(send(addr, "PUT", "/doc", &[], "two").await.header("access-control-allow-origin"), None);
    assert_eq!(backend.count("OPTIONS", "/doc"), 1, "and never where no page asks");
}

/// P15: a 304, from memory and not.
#[tokio::test]
async fn p15_a_304_names_our_fields_too() {
    for source in source::ALL {
        let (_backend, setup) = with_cors(source).await;
        let proxy = setup.start().await;
        let tag = send(proxy.addr(), "GET", "/doc", &[FROM_PAGE], "").await.etag();
        let same = send(proxy.addr(), "GET", "/doc", &[FROM_PAGE, ("If-None-Match", &tag)], "").await;
        assert_eq!((same.status, same.etag()), (304, tag), "{source}");
        assert_readable(&same);
    }
}

/// A lease that another one holds: 409 with the time to come back in it.
#[tokio::test]
async fn p15_what_a_lease_says_is_readable() {
    let (backend, _) = with_cors(CONTENT).await;
    let proxy = leasing(&backend).start().await;
    acquire(proxy.addr(), "/doc", "30").await;
    let held = send(proxy.addr(), "POST", "/.leases/doc", &[FROM_PAGE, ("Lease-Duration", "30")], "").await;
    held.refused(409, "lease-held");
    assert_readable(&held);
    assert!(names(&held, "access-control-expose-headers").contains(&"lease-id".to_owned()));
    let shown = send(proxy.addr(), "GET", "/.leases/doc", &[FROM_PAGE], "").await;
    assert_eq!(shown.status, 200);
    assert_readable(&shown);
}

/// An answer to one page is not an answer to another, no matter which one asks first.
#[tokio::test]
async fn p15_what_one_origin_was_told_is_not_told_to_another() {
    for source in source::EXCLUSIVE {
        let (_backend, setup) = with_cors(source).await;
        let proxy = setup.start().await;
        let addr = proxy.addr();
        let tag = send(addr, "GET", "/doc", &[FROM_PAGE], "").await.etag();
        let fields = [("Origin", "https://other.test"), ("If-None-Match", tag.as_str())];
        let stranger = send(addr, "GET", "/doc", &fields, "").await;
        assert_eq!(stranger.header("access-control-allow-origin"), None, "{source}: {stranger:?}");
        assert_eq!(get(addr, "/doc").await.header("access-control-allow-origin"), None, "{source}");
        put_if_match(addr, "/doc", "\"old\"", "two").await.refused(412, "precondition-failed");
    }
}
