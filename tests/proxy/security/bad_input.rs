//! Malformed and ambiguous requests: refused, and nothing of them reaches the backend (DESIGN, section 3, rule 10).

use std::fmt::Write;

use crate::support::{
    backend::Backend,
    proxy::Proxy,
    raw::{Connection, send},
    response::Response,
    wait::until,
};

const AMBIGUOUS: &str = "400 ambiguous-target";
const MALFORMED: &str = "400 malformed-request";
const BAD_CONDITION: &str = "400 malformed-precondition";
const REQUIRED: &str = "428 precondition-required";
const OVERRIDE: &str = "400 method-override";
const NOT_ALLOWED: &str = "405 method-not-allowed";
const NOT_SUPPORTED: &str = "501 not-supported";
const NO_ROUTE: &str = "404 no-route";
const TOO_LARGE: &str = "431 header-too-large";

/// A guarded route `/docs/{id}` and nothing else; heads may be as large as the parser's other limits need.
async fn start() -> (Backend, Proxy) {
    let backend = Backend::start().await;
    backend.put("/docs/1", "current");
    let file = Proxy::to(backend.addr()).server("max_header_size = \"512KiB\"").configuration();
    let file = file.replace("/{*rest}", "/docs/{*id}");
    (backend, Proxy::start(&file).await)
}

/// The status of a response and who refused.
fn outcome(response: &Response) -> String {
    assert_eq!(response.header("server"), None, "{response:?}");
    if response.status < 400 || response.headers.contains("via") {
        return response.status.to_string();
    }
    format!("{} {}", response.status, response.problem().code)
}

/// Sends each request on a connection of its own, and compares the outcomes with those of the table. Nothing but reads
/// of existing resources may have reached the backend.
async fn check(cases: &[(&[u8], &str)]) {
    let (backend, proxy) = start().await;
    let mut wrong = String::new();
    for (request, expected) in cases {
        let mut connection = Connection::open(proxy.addr()).await;
        connection.expect_response_to(if request.starts_with(b"HEAD") { "HEAD" } else { "GET" });
        connection.send_bytes(request).await;
        connection.half_close().await;
        let found = match connection.try_read_response().await {
            Ok(response) => outcome(&response),
            Err(error) => error.kind().to_string(),
        };
        if found != *expected {
            writeln!(wrong, "{found:?} and not {expected:?}: {}", request[..request.len().min(300)].escape_ascii())
                .unwrap();
        }
    }
    let writes: Vec<_> = backend.requests().into_iter().filter(|request| request.method != "GET").collect();
    assert!(wrong.is_empty(), "{wrong}");
    assert!(writes.is_empty(), "{writes:?}");
    assert_eq!(backend.content("/docs/1").as_deref(), Some("current"));
    assert!(!proxy.log().contains("panicked"));
    let lines = || proxy.log().matches(" ifmatch::access: ").count();
    until("a line for each", || lines() == cases.len()).await;
}

/// RFC 9112 section 6: what the end of a body could be argued about.
#[tokio::test]
async fn ambiguous_framing_is_refused() {
    check(&[
        (
            b"PUT /docs/1 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            REQUIRED,
        ),
        (b"PUT /docs/1 HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", MALFORMED),
        (b"PUT /docs/1 HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 2\r\n\r\nab", MALFORMED),
        (b"PUT /docs/1 HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 1\r\n\r\na", REQUIRED),
        (b"PUT /docs/1 HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", MALFORMED),
        (b"PUT /docs/1 HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\na", MALFORMED),
        (b"PUT /docs/1 HTTP/1.1\r\nHost: a\r\nContent-Length: 0x1\r\n\r\na", MALFORMED),
        (b"PUT /docs/1 HTTP/1.1\r\nHost: a\r\nContent-Length: 1 1\r\n\r\na", MALFORMED),
        (b"PUT /docs/1 HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n", MALFORMED),
        (b"PUT /docs/1 HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n", MALFORMED),
        (b"PUT /docs/1 HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", MALFORMED),
        (b"PUT /docs/1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", MALFORMED),
        (b"PUT /docs/1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n", MALFORMED),
        (b"PUT /docs/1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n", MALFORMED),
        (b"PUT /docs/1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", MALFORMED),
        (b"PUT /docs/1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n", MALFORMED),
        (b"PUT /docs/1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n", MALFORMED),
        (b"PUT /docs/1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n\r\n0\r\n\r\n", MALFORMED),
        (
            b"PUT /docs/1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: Chunked\r\n\r\n0\r\n\r\n",
            MALFORMED,
        ),
        (b"PUT /docs/1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked,CHUNKED\r\n\r\n0\r\n\r\n", MALFORMED),
        (b"PUT /docs/1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", NOT_SUPPORTED),
        (b"PUT /docs/1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n", MALFORMED),
        (b"PUT /docs/1 HTTP/1.1\r\nHost: a\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", MALFORMED),
        (b"PUT /docs/1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n", MALFORMED),
    ])
    .await;
}

/// RFC 9112 section 7.1: chunks that cannot be read, in a write whose precondition is true.
#[tokio::test]
async fn malformed_chunks_write_nothing() {
    let head = "PUT /docs/2 HTTP/1.1\r\nHost: a\r\nIf-None-Match: *\r\nTransfer-Encoding: chunked\r\n\r\n";
    let bodies: [&[u8]; 16] = [
        b"\r\n1\r\nx\r\n0\r\n\r\n",
        b";a\r\nx\r\n0\r\n\r\n",
        b"1;a\nb\r\nx\r\n0\r\n\r\n",
        b"1;a\n0\r\n\r\n",
        b"1;a\0\r\nx\r\n0\r\n\r\n",
        b"1\r\nx\r\n\r\n0\r\n\r\n",
        b"g\r\nx\r\n0\r\n\r\n",
        b"-1\r\nx\r\n0\r\n\r\n",
        b"0x1\r\nx\r\n0\r\n\r\n",
        b"+1\r\nx\r\n0\r\n\r\n",
        b"1\nx\r\n0\r\n\r\n",
        b"1\r\nxy\r\n0\r\n\r\n",
        b"1\r\nx\n0\r\n\r\n",
        b"ffffffffffffffff1\r\nx\r\n0\r\n\r\n",
        b"fffffffffffffffe\r\nx\r\n0\r\n\r\n",
        b"1 1\r\nx\r\n0\r\n\r\n",
    ];
    let requests = bodies.map(|body| [head.as_bytes(), body].concat());
    let cases: Vec<(&[u8], &str)> = requests.iter().map(|request| (request.as_slice(), MALFORMED)).collect();
    check(&cases).await;
}

/// RFC 9112 section 7.1: what pingora reads leniently if nothing else could be meant goes to the backend in a framing of
/// our own.
#[tokio::test]
async fn what_pingora_reads_leniently_reaches_the_backend_well_framed() {
    let (backend, proxy) = start().await;
    // Trailer fields are skipped unread, and so are chunk extensions.
    let bodies = [
        ("1\r\nx\r\n0\r\nnot a field\r\n\r\n", "x"),
        ("1;a\r\nx\r\n0\r\n\r\n", "x"),
        ("1 ; a=\"b\"\r\nx\r\n000\r\n\r\n", "x"),
    ];
    for (number, (body, written)) in bodies.into_iter().enumerate() {
        let target = format!("/docs/new-{number}");
        let fields = [("If-None-Match", "*"), ("Transfer-Encoding", "chunked")];
        assert_eq!(send(proxy.addr(), "PUT", &target, &fields, body).await.status, 201, "{body:?}");
        let seen = backend.seen("PUT", &target);
        assert_eq!(seen[0].headers.all("content-length"), [written.len().to_string()]);
        assert_eq!((seen[0].header("transfer-encoding"), backend.content(&target).as_deref()), (None, Some(written)));
    }
}

/// RFC 9112 sections 2, 3 and 5: heads that break the grammar.
#[tokio::test]
async fn malformed_heads_are_refused() {
    let large_value = format!("GET /docs/1 HTTP/1.1\r\nHost: a\r\nX-Large: {}\r\n\r\n", "x".repeat(1_100_000));
    let many_fields = format!("GET /docs/1 HTTP/1.1\r\nHost: a\r\n{}\r\n", "X-Many: x\r\n".repeat(300));
    let long_target = format!("GET /docs/{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(70_000));
    check(&[
        (b"GET /docs/1\r\nHost: a\r\n\r\n", MALFORMED),
        (b"/docs/1 HTTP/1.1\r\nHost: a\r\n\r\n", MALFORMED),
        (b"GET  HTTP/1.1\r\nHost: a\r\n\r\n", MALFORMED),
        (b"G@T /docs/1 HTTP/1.1\r\nHost: a\r\n\r\n", MALFORMED),
        (b"GET /docs/1 HTTP/2.0\r\nHost: a\r\n\r\n", MALFORMED),
        (b"GET /docs/1 HTTP/1.2\r\nHost: a\r\n\r\n", MALFORMED),
        (b"GET /docs/1 http/1.1\r\nHost: a\r\n\r\n", MALFORMED),
        (b"GET /docs/1 HTTP/1.1 \r\nHost: a\r\n\r\n", MALFORMED),
        (b"GET\t/docs/1\tHTTP/1.1\r\nHost: a\r\n\r\n", MALFORMED),
        (b" GET /docs/1 HTTP/1.1\r\nHost: a\r\n\r\n", MALFORMED),
        (b"\0GET /docs/1 HTTP/1.1\r\nHost: a\r\n\r\n", MALFORMED),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03, the hello of TLS\r\n\r\n", MALFORMED),
        (b"GET /docs/1 HTTP/1.1\r\n\r\n", MALFORMED),
        (b"GET /docs/1 HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", MALFORMED),
        (b"GET /docs/1 HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", MALFORMED),
        (b"GET /docs/1 HTTP/1.1\r\nHost: a b\r\n\r\n", MALFORMED),
        (b"GET /docs/1 HTTP/1.1\r\nHost: a/b\r\n\r\n", MALFORMED),
        (b"GET /docs/1 HTTP/1.1\r\nHost: u@a\r\n\r\n", MALFORMED),
        (b"GET /docs/1 HTTP/1.1\r\nHost: \xff\r\n\r\n", MALFORMED),
        (b"GET http://b/docs/1 HTTP/1.1\r\nHost: a\r\n\r\n", MALFORMED),
        (b"GET http:///docs/1 HTTP/1.1\r\nHost: a\r\n\r\n", MALFORMED),
        (b"GET ftp://a/docs/1 HTTP/1.1\r\nHost: a\r\n\r\n", MALFORMED),
        (b"GET docs/1 HTTP/1.1\r\nHost: a\r\n\r\n", MALFORMED),
        (b"GET * HTTP/1.1\r\nHost: a\r\n\r\n", MALFORMED),
        (b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", NO_ROUTE),
        (b"GET /docs/1 HTTP/1.1\r\nHost: a\r\nX Y: z\r\n\r\n", MALFORMED),
        (b"GET /docs/1 HTTP/1.1\r\nHost: a\r\nX : z\r\n\r\n", MALFORMED),
        (b"GET /docs/1 HTTP/1.1\r\nHost: a\r\n: z\r\n\r\n", MALFORMED),
        (b"GET /docs/1 HTTP/1.1\r\nHost: a\r\nX\r\n\r\n", MALFORMED),
        (b"GET /docs/1 HTTP/1.1\r\nHost: a\r\nX(Y): z\r\n\r\n", MALFORMED),
        (b"GET /docs/1 HTTP/1.1\r\nHost: a\r\nX\xc3: z\r\n\r\n", MALFORMED),
        (b"GET /docs/1 HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n", MALFORMED),
        (b"GET /docs/1 HTTP/1.1\r\nHost: a\r\nX: a\x01b\r\n\r\n", MALFORMED),
        (b"GET /docs/1 HTTP/1.1\r\nHost: a\r\nX: a\x7fb\r\n\r\n", MALFORMED),
        (b"GET /docs/1 HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n", MALFORMED),
        (b"GET /docs/1 HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n", MALFORMED),
        (large_value.as_bytes(), TOO_LARGE),
        (many_fields.as_bytes(), MALFORMED),
        (long_target.as_bytes(), MALFORMED),
    ])
    .await;
}

/// Rule 10: targets with more than one reading get 400.
#[tokio::test]
async fn ambiguous_targets_are_refused() {
    let targets: [(&[u8], &str); 26] = [
        (b"/docs/A%2f", AMBIGUOUS),
        (b"/docs/A%2F1", AMBIGUOUS),
        (b"/docs/%2e%2e/docs/1", AMBIGUOUS),
        (b"/docs/.%2e/1", AMBIGUOUS),
        (b"/docs/%5c1", AMBIGUOUS),
        (b"/docs/\\1", AMBIGUOUS),
        (b"/docs/%001", AMBIGUOUS),
        (b"/docs/%0a1", AMBIGUOUS),
        (b"/docs/%7f", AMBIGUOUS),
        (b"/docs/1;x=1", AMBIGUOUS),
        (b"/docs/1%3bx=1", AMBIGUOUS),
        (b"/docs/%zz", AMBIGUOUS),
        (b"/docs/%", AMBIGUOUS),
        (b"/docs/%4", AMBIGUOUS),
        (b"/../docs/1", AMBIGUOUS),
        (b"/docs/../../1", AMBIGUOUS),
        (b"/none/../docs/1", REQUIRED),
        (b"/docs/../none", NO_ROUTE),
        (b"/docs/1#fragment", MALFORMED),
        (b"/docs/1\0", MALFORMED),
        (b"/docs/1\x01", MALFORMED),
        (b"/docs/1\x7f", MALFORMED),
        (b"/docs/\xff", MALFORMED),
        (b"/docs/caf\xc3\xa9", REQUIRED),
        (b"//docs/1", AMBIGUOUS),
        (b"/docs/1 2", MALFORMED),
    ];
    let requests =
        targets.map(|(target, _)| [b"PUT ", target, b" HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"].concat());
    let cases: Vec<(&[u8], &str)> =
        requests.iter().zip(targets).map(|(request, (_, expected))| (request.as_slice(), expected)).collect();
    check(&cases).await;
}

/// DESIGN, section 4: methods, fields and protocols by which a write could go around the guard.
#[tokio::test]
async fn ways_around_the_guard_are_closed() {
    let with = |method: &str, fields: &str| {
        format!("{method} /docs/1 HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n{fields}\r\nx").into_bytes()
    };
    let at = |method: &str, query: &str| {
        format!("{method} /docs/1{query} HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx").into_bytes()
    };
    let cases = [
        (with("PUT", ""), REQUIRED),
        (with("PATCH", ""), REQUIRED),
        (with("DELETE", ""), REQUIRED),
        (with("PUT", "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"), REQUIRED),
        (with("PUT", "Connection: Upgrade\r\nUpgrade: websocket\r\n"), REQUIRED),
        (with("PUT", "Connection: If-Match\r\n"), MALFORMED),
        (with("PUT", "Range: bytes=0-1\r\nContent-Range: bytes 0-0/7\r\n"), REQUIRED),
        (with("PUT", "Content-Range: bytes 0-0/7\r\nIf-Match: \"stale\"\r\n"), "412 precondition-failed"),
        (with("CONNECT", ""), NOT_ALLOWED),
        (with("TRACE", ""), NOT_ALLOWED),
        (with("COPY", "Destination: /none\r\n"), "502 destination-elsewhere"),
        (with("MOVE", "Destination: /docs/2\r\n"), REQUIRED),
        (with("PUT", "Destination: /docs/2\r\nIf-None-Match: *\r\n"), NOT_SUPPORTED),
        (with("GET", "X-HTTP-Method: PUT\r\n"), OVERRIDE),
        (with("POST", "X-HTTP-Method-Override: PUT\r\n"), OVERRIDE),
        (with("POST", "X-Method-Override: PUT\r\n"), OVERRIDE),
        (with("POST", "x-method-override:\r\n"), OVERRIDE),
        (at("POST", "?_method=PUT"), OVERRIDE),
        (at("POST", "?a=1&%5fmethod=delete"), OVERRIDE),
        (at("GET", "?a=1&_method"), OVERRIDE),
    ];
    check(&cases.each_ref().map(|(request, expected)| (request.as_slice(), *expected))).await;
}

/// RFC 9110 section 13.1: preconditions of a write that cannot be read.
#[tokio::test]
async fn malformed_preconditions_are_refused() {
    let many = vec!["\"tag\""; 10_000].join(", ");
    let values: [(&str, &str); 18] = [
        ("stale", BAD_CONDITION),
        ("", BAD_CONDITION),
        (",", BAD_CONDITION),
        ("\"a", BAD_CONDITION),
        ("a\"", BAD_CONDITION),
        ("\"a\" \"b\"", BAD_CONDITION),
        ("w/\"a\"", BAD_CONDITION),
        ("W/ \"a\"", BAD_CONDITION),
        ("W/a", BAD_CONDITION),
        ("*, \"a\"", BAD_CONDITION),
        ("\"a\", *", BAD_CONDITION),
        ("\"a b\"", BAD_CONDITION),
        ("\"a\tb\"", BAD_CONDITION),
        ("\"a\"; q=1", BAD_CONDITION),
        ("'a'", BAD_CONDITION),
        ("\"a\"\r\nIf-Match: *", BAD_CONDITION),
        ("\"a\"\r\nIf-Match: b", BAD_CONDITION),
        (&many, BAD_CONDITION),
    ];
    let requests = values.map(|(value, _)| {
        format!("PUT /docs/1 HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nIf-Match: {value}\r\n\r\n").into_bytes()
    });
    let cases: Vec<(&[u8], &str)> =
        requests.iter().zip(values).map(|(request, (_, expected))| (request.as_slice(), expected)).collect();
    check(&cases).await;
}
