//! The form of each refusal: RFC 9457, RFC 9209, and nothing of the request in it (DESIGN, section 8).

use crate::support::{
    backend::{Answer, Backend},
    h2c, ports,
    proxy::Proxy,
    raw::{Connection, send},
    response::Response,
};

/// A request: method, target, fields, body.
type Sent = (&'static str, &'static str, &'static [(&'static str, &'static str)], &'static str);

const CREATE: &[(&str, &str)] = &[("If-None-Match", "*")];
const STALE: &[(&str, &str)] = &[("If-Match", "\"stale\"")];

/// The text that must not come back.
const MARK: &str = "mark\"<b>";

/// A proxy with routes to a living and to a dead backend.
async fn start() -> (Backend, Proxy) {
    let backend = Backend::start().await;
    backend.put("/docs/1", "current");
    backend.put("/docs/long", "x".repeat(2000));
    backend.always("GET", "/docs/broken", |_| Answer::status(500));
    backend.always("GET", "/docs/slow", |_| Answer::never());
    backend.always("PUT", "/docs/silent", |_| Answer::never());
    backend.always("PUT", "/docs/cut", |_| Answer::close());
    let server = "max_body_size = \"9B\"\nmax_spool_size = \"9B\"\nbody_timeout = \"1s\"";
    let setup = Proxy::to(backend.addr()).server(server).upstream("timeout = \"400ms\"\nlate_write_window = \"1h\"");
    let file = setup.route("max_hash_size = \"1KiB\"").configuration().replace("/{*rest}", "/docs/{id}");
    let dead = format!("\n[upstreams.dead]\nservers = [\"{}\"]\n", ports::free());
    let routes = ["optimistic", "last-writer-wins"]
        .map(|policy| format!("\n[[routes]]\npath = \"/dead/{policy}\"\nupstream = \"dead\"\npolicy = \"{policy}\"\n"));
    let proxy = Proxy::start(&[file, dead, routes.concat()].concat()).await;
    (backend, proxy)
}

/// Checks the promises of every refusal beside its problem document.
fn check(sent: Sent, response: &Response, status: u16, code: &str) {
    let problem = response.refused(status, code);
    assert!(!problem.detail.is_empty());
    assert_eq!(response.header("server"), None, "{sent:?}");
    assert!(response.headers.contains("date"), "RFC 9110 section 6.6.1: {sent:?}");
    assert_eq!(response.headers.contains("allow"), status == 405, "RFC 9110 section 15.5.6: {sent:?}");
}

/// One request for each code that a client can bring about, over both protocols.
#[tokio::test]
async fn every_refusal_is_a_problem_that_no_cache_keeps() {
    let (_backend, proxy) = start().await;
    let cases: [(Sent, u16, &str); 20] = [
        (("PUT", "/docs/1", &[("If-Match", "stale")], "x"), 400, "malformed-precondition"),
        (("PUT", "/docs/a%2fb", &[], "x"), 400, "ambiguous-target"),
        (("PUT", "/docs/1", &[("X-HTTP-Method", "GET")], "x"), 400, "method-override"),
        (("GET", "/none", &[], ""), 404, "no-route"),
        (("TRACE", "/docs/1", &[], ""), 405, "method-not-allowed"),
        (("PUT", "/docs/2", CREATE, "more than nine"), 413, "body-too-large"),
        (("PUT", "/docs/1", &[("Destination", "/docs/2")], ""), 501, "not-supported"),
        (("COPY", "/docs/1", &[("Destination", "/none")], ""), 502, "destination-elsewhere"),
        (("MOVE", "/docs/1", &[("Destination", "/docs/1")], ""), 403, "destination-is-source"),
        (("PUT", "/docs/1", STALE, "x"), 412, "precondition-failed"),
        (("GET", "/docs/1", STALE, ""), 412, "precondition-failed"),
        (("PUT", "/docs/1", &[], "x"), 428, "precondition-required"),
        (("GET", "/docs/slow", &[], ""), 504, "upstream-timeout"),
        (("PUT", "/docs/silent", CREATE, "x"), 504, "upstream-timeout"),
        (("PUT", "/docs/silent", CREATE, "x"), 409, "write-in-flight"),
        (("PUT", "/docs/cut", CREATE, "x"), 502, "upstream-failed"),
        (("PUT", "/docs/broken", STALE, "x"), 502, "validator-unavailable"),
        (("PUT", "/docs/long", STALE, "x"), 502, "validator-unavailable"),
        (("GET", "/dead/optimistic", &[], ""), 502, "upstream-failed"),
        (("PUT", "/dead/last-writer-wins", &[], "x"), 502, "upstream-failed"),
    ];
    for (sent, status, code) in cases {
        let (method, target, fields, body) = sent;
        check(sent, &send(proxy.addr(), method, target, fields, body).await, status, code);
        // A doubt that the first one left is what the second one meets.
        let (status, code) = if method == "PUT" && matches!(target, "/docs/silent" | "/docs/cut") {
            (409, "write-in-flight")
        } else {
            (status, code)
        };
        let lower: Vec<(String, &str)> = fields.iter().map(|(name, value)| (name.to_lowercase(), *value)).collect();
        let lower: Vec<(&str, &str)> = lower.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        let mut connection = h2c::Connection::open(proxy.addr()).await;
        check(sent, &connection.exchange(method, target, &lower, body).await, status, code);
    }
    assert!(!proxy.log().contains("panicked"));
}

/// RFC 9110 section 15.5.9: a body that stops.
#[tokio::test]
async fn a_body_that_does_not_come_is_refused_in_time() {
    let (backend, proxy) = start().await;
    let mut connection = Connection::open(proxy.addr()).await;
    connection.send_bytes("PUT /docs/2 HTTP/1.1\r\nHost: a\r\nIf-None-Match: *\r\nContent-Length: 2\r\n\r\nx").await;
    connection.read_response().await.refused(408, "body-timeout");
    assert_eq!(backend.count("*", "*"), 0);
}

/// RFC 9110 section 9.3.2: the same head, without the body.
#[tokio::test]
async fn head_gets_the_head_of_the_refusal_alone() {
    let (_backend, proxy) = start().await;
    let fields: [(&str, &[(&str, &str)]); 4] = [
        ("/none", &[]),
        ("/docs/a%2fb", &[]),
        ("/docs/1", &[("If-Match", "\"stale\"")]),
        ("/docs/1", &[("X-HTTP-Method", "PUT")]),
    ];
    let mut connection = Connection::open(proxy.addr()).await;
    let mut h2_connection = h2c::Connection::open(proxy.addr()).await;
    for (target, fields) in fields {
        let [head, get] = [
            connection.exchange("HEAD", target, fields, "").await,
            connection.exchange("GET", target, fields, "").await,
        ];
        let comparable = |response: &Response| {
            let fields = response.headers.0.iter().filter(|(name, _)| name != "Date").cloned();
            (response.status, fields.collect::<Vec<_>>())
        };
        assert_eq!(comparable(&head), comparable(&get), "{target}");
        assert!(head.status >= 400 && head.body.is_empty() && !get.body.is_empty(), "{target}");
        let lower: Vec<_> = fields.iter().map(|(name, value)| (name.to_lowercase(), *value)).collect();
        let lower: Vec<_> = lower.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        let h2_head = h2_connection.exchange("HEAD", target, &lower, "").await;
        assert_eq!((h2_head.status, h2_head.body.len()), (head.status, 0), "{target}");
        assert_eq!(h2_head.header("content-length"), head.header("content-length"), "{target}");
    }
}

/// DESIGN, section 8: values from requests are never copied into header fields, and are escaped in bodies.
#[tokio::test]
async fn a_refusal_repeats_nothing_of_the_request_unescaped() {
    let (_backend, proxy) = start().await;
    let target = |path: &str| path.replace("MARK", "mark%22%3Cb%3E");
    let cases = [
        ("PUT", target("/docs/MARK"), vec![]),
        ("PUT", target("/MARK/none"), vec![]),
        ("PUT", target("/docs/a%2fMARK"), vec![]),
        ("PUT", target("/docs/%zzMARK"), vec![]),
        ("PUT", target("/docs/1?MARK"), vec![("If-Match", MARK)]),
        ("PUT", target("/docs/1"), vec![("If-Match", "\"mark\"<b>")]),
        ("PUT", target("/docs/1"), vec![("X-HTTP-Method", MARK)]),
        ("COPY", target("/docs/1"), vec![("Destination", MARK), ("Host", "mark"), ("Referer", MARK)]),
    ];
    for (method, target, fields) in cases {
        let response = send(proxy.addr(), method, &target, &fields, "x").await;
        response.problem();
        let repeated = response.headers.0.iter().find(|(_, value)| value.contains("mark"));
        assert_eq!(repeated, None, "{method} {target}");
        assert!(!response.text().contains(MARK), "{method} {target}: {}", response.text());
    }
}
