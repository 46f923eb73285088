//! A refusal reaches the client, no matter how much the client still has to send (DESIGN, sections 3 and 8).

use std::{io::ErrorKind, net::SocketAddr};

use h2::Reason;

use crate::support::{
    backend::Backend,
    curl::{Announced, Protocol, Read, curl},
    h2c,
    proxy::Proxy,
    raw::{Connection, request_bytes},
    response::Response,
};

const SMALL: usize = 5;
const LARGE: usize = 20_000_000;

/// Why a request is refused: the target and the field that make it so, the status, and the code.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Kind(&'static str, (&'static str, &'static str), u16, &'static str);

const NO_FIELD: (&str, &str) = ("X-None", "0");
/// Refused by the door.
const AMBIGUOUS: Kind = Kind("/docs/a%2fb", NO_FIELD, 400, "ambiguous-target");
const NO_ROUTE: Kind = Kind("/none", NO_FIELD, 404, "no-route");
/// Refused by the guard before the body is asked for.
const REQUIRED: Kind = Kind("/docs/1", NO_FIELD, 428, "precondition-required");
const MALFORMED: Kind = Kind("/docs/1", ("If-Match", "stale"), 400, "malformed-precondition");
/// Refused after a question to the backend.
const STALE: Kind = Kind("/docs/1", ("If-Match", "\"stale\""), 412, "precondition-failed");
/// Refused for its body.
const TOO_LARGE: Kind = Kind("/docs/2", ("If-None-Match", "*"), 413, "body-too-large");

const OF_WRITES: [Kind; 6] = [AMBIGUOUS, NO_ROUTE, REQUIRED, MALFORMED, STALE, TOO_LARGE];
const OF_READS: [Kind; 4] = [AMBIGUOUS, NO_ROUTE, STALE, TOO_LARGE];

/// One request with a body, and how the client sends it.
#[derive(Clone, Copy, Debug)]
struct Case {
    method: &'static str,
    kind: Kind,
    length: usize,
    announced: Announced,
    expects: bool,
}

/// With each kind of announcement, with and without `Expect: 100-continue`.
fn cases(method: &'static str, kinds: &[Kind], length: usize) -> Vec<Case> {
    let of = |kind| {
        let ways = [Announced::Length, Announced::End].into_iter().flat_map(|way| [(way, false), (way, true)]);
        ways.map(move |(announced, expects)| Case { method, kind, length, announced, expects })
    };
    kinds.iter().copied().flat_map(of).collect()
}

/// All methods, each with the kinds of refusal that it can meet.
fn small_cases() -> Vec<Case> {
    [cases("PUT", &OF_WRITES, SMALL), cases("POST", &OF_WRITES, SMALL), cases("GET", &OF_READS, SMALL)].concat()
}

impl Case {
    /// True if the proxy has to read the body before it can refuse, so that it asks a client that waits to send it.
    fn needs_body(&self) -> bool {
        let is_read_on = self.method == "GET" && self.kind == STALE;
        is_read_on || (self.kind == TOO_LARGE && self.announced == Announced::End)
    }

    fn fields(&self) -> Vec<(&'static str, &'static str)> {
        let expect = self.expects.then_some(("Expect", "100-continue"));
        // The content of a POST without a type could name the method, so it arrives before the verdict.
        [self.kind.1, ("Content-Type", "application/octet-stream")].into_iter().chain(expect).collect()
    }

    fn check(&self, response: &Response) {
        response.refused(self.kind.2, self.kind.3);
        assert!(!response.headers.contains("server"), "nobody but ifmatch answered: {response:?}");
    }
}

/// Two proxies, one of which takes no body of more than four bytes.
struct Scene {
    backend: Backend,
    proxy: Proxy,
    strict: Proxy,
}

impl Scene {
    async fn start() -> Self {
        let backend = Backend::start().await;
        backend.put("/docs/1", "current");
        let configuration = |server: &str| {
            let route = "require_methods = [\"PUT\", \"POST\"]\nappend_methods = []";
            let file = Proxy::to(backend.addr()).server(server).route(route).configuration();
            file.replace("/{*rest}", "/docs/{id}")
        };
        let proxy = Proxy::start(&configuration("")).await;
        let strict = Proxy::start(&configuration("max_body_size = \"4B\"")).await;
        Self { backend, proxy, strict }
    }

    fn addr(&self, case: &Case) -> SocketAddr {
        if case.kind == TOO_LARGE { self.strict.addr() } else { self.proxy.addr() }
    }

    /// Nothing but questions for the current state has reached the backend.
    fn assert_untouched(self) {
        let writes = self.backend.requests().into_iter().filter(|request| request.method != "GET");
        assert_eq!(writes.map(|request| request.head).collect::<Vec<_>>(), [[0; 0]; 0]);
        assert_eq!(self.backend.content("/docs/1").as_deref(), Some("current"));
        assert!(!self.proxy.log().contains("panicked") && !self.strict.log().contains("panicked"));
    }
}

/// A client that reads nothing before it has sent everything. Where it waits for 100 (Continue) it gets the refusal
/// instead, unless only the body can tell.
async fn over_http11(addr: SocketAddr, case: Case) {
    let body = vec![b'x'; case.length];
    let (framing, body) = match case.announced {
        Announced::Length => (("Content-Length", case.length.to_string()), body),
        Announced::End => {
            let chunks = [format!("{:x}\r\n", case.length).as_bytes(), &body, b"\r\n0\r\n\r\n"].concat();
            (("Transfer-Encoding", "chunked".to_owned()), chunks)
        }
    };
    let fields = [case.fields(), vec![(framing.0, framing.1.as_str())]].concat();
    let mut connection = Connection::open(addr).await;
    connection.expect_response_to(case.method);
    connection.send_bytes(request_bytes(case.method, case.kind.0, &fields, b"")).await;
    if case.expects && case.needs_body() {
        assert_eq!(connection.read_head().await.0, 100, "{case:?}");
    }
    if !case.expects || case.needs_body() {
        connection.send_bytes(&body).await;
    }
    let response = connection.read_response().await;
    case.check(&response);
    assert_eq!(response.informational.len(), 0, "{case:?}");
    let survives = response.headers.has_token("connection", "keep-alive");
    if case.length == SMALL && case.announced == Announced::Length && !case.expects {
        assert!(survives, "a small request is no reason to close: {case:?}");
    }
    if survives {
        assert_eq!(connection.exchange("GET", "/docs/1", &[], "").await.text(), "current", "{case:?}");
    } else {
        let end = connection.try_read_response().await.expect_err("nothing follows the answer");
        assert_eq!(end.kind(), ErrorKind::UnexpectedEof, "an orderly end of {case:?}");
    }
}

/// A client that sends its whole body first, and then another request on the same connection.
async fn over_h2c(addr: SocketAddr, case: Case) {
    let length = case.length.to_string();
    let mut fields = case.fields();
    if case.announced == Announced::Length {
        fields.push(("content-length", &length));
    }
    let mut connection = h2c::Connection::open(addr).await;
    let mut stream = connection.begin(case.method, case.kind.0, &fields).await;
    stream.send_last(vec![b'x'; case.length]).await;
    case.check(&stream.response().await);
    assert_eq!(connection.exchange("GET", "/docs/1", &[], "").await.text(), "current", "{case:?}");
}

async fn with_curl(addr: SocketAddr, protocol: Protocol, case: Case) {
    let fields: Vec<String> = case.fields().iter().map(|(name, value)| format!("{name}: {value}")).collect();
    let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
    let upload = (case.announced, vec![b'x'; case.length]);
    match curl(protocol, addr, case.method, case.kind.0, &fields, upload).await {
        Read::Whole(response) => case.check(&response),
        Read::Head(response) => response.refused_by_head(case.kind.2, case.kind.3),
    }
}

/// RFC 9112 section 9.6: the close that may follow an answer does not take the answer away.
#[tokio::test]
async fn a_refusal_of_a_small_body_reaches_an_http11_client() {
    let scene = Scene::start().await;
    for case in small_cases() {
        over_http11(scene.addr(&case), case).await;
    }
    scene.assert_untouched();
}

#[tokio::test]
async fn a_refusal_of_a_large_body_reaches_an_http11_client() {
    let scene = Scene::start().await;
    for case in cases("PUT", &OF_WRITES, LARGE) {
        over_http11(scene.addr(&case), case).await;
    }
    scene.assert_untouched();
}

/// RFC 9113 section 8.1: a response before the end of the request may be followed by a reset that hides it.
#[tokio::test]
async fn a_refusal_of_a_small_body_reaches_an_h2c_client() {
    let scene = Scene::start().await;
    for case in small_cases() {
        over_h2c(scene.addr(&case), case).await;
    }
    scene.assert_untouched();
}

#[tokio::test]
async fn a_refusal_of_a_large_body_reaches_an_h2c_client() {
    let scene = Scene::start().await;
    for case in cases("PUT", &OF_WRITES, LARGE) {
        over_h2c(scene.addr(&case), case).await;
    }
    scene.assert_untouched();
}

/// RFC 9113 section 8.1.1: a request that ends before its declared length is reset, and what is left of the answer goes
/// with it. The head is out by then, and tells why; without the reset all of it arrives.
#[tokio::test]
async fn a_client_that_cuts_its_upload_short_over_h2c_learns_why_it_was_refused() {
    let scene = Scene::start().await;
    let length = LARGE.to_string();
    for Kind(target, field, status, code) in [AMBIGUOUS, REQUIRED, STALE].repeat(10) {
        let mut connection = h2c::Connection::open(scene.proxy.addr()).await;
        let mut stream = connection.begin("PUT", target, &[("content-length", &length), field]).await;
        stream.send("the beginning").await;
        match stream.cut_short().await {
            (response, None) => drop(response.refused(status, code)),
            (response, Some(reset)) => {
                assert_eq!(reset.reason(), Some(Reason::PROTOCOL_ERROR));
                response.refused_by_head(status, code);
            }
        }
    }
    scene.assert_untouched();
}

/// RFC 9110 section 10.1.1: a client that waits is answered before its body, and may still send it, over HTTP/2 too.
#[tokio::test]
async fn an_h2c_client_that_waits_for_100_is_refused_at_once() {
    let scene = Scene::start().await;
    let mut connection = h2c::Connection::open(scene.proxy.addr()).await;
    let mut stream = connection.begin("PUT", "/docs/1", &[("expect", "100-continue")]).await;
    assert_eq!(stream.status().await, 428);
    stream.send_last(vec![b'x'; LARGE]).await;
    scene.assert_untouched();
}

/// curl reads while it sends, and calls a broken upload an error even where it got an answer.
#[tokio::test]
async fn a_refusal_of_a_small_body_reaches_curl() {
    let scene = Scene::start().await;
    for case in small_cases() {
        let over = |protocol| with_curl(scene.addr(&case), protocol, case);
        tokio::join!(over(Protocol::Http11), over(Protocol::H2c));
    }
    scene.assert_untouched();
}

#[tokio::test]
async fn a_refusal_of_a_large_body_reaches_curl_over_http11() {
    let scene = Scene::start().await;
    for case in cases("PUT", &OF_WRITES, LARGE) {
        with_curl(scene.addr(&case), Protocol::Http11, case).await;
    }
    scene.assert_untouched();
}

#[tokio::test]
async fn a_refusal_of_a_large_body_reaches_curl_over_h2c() {
    let scene = Scene::start().await;
    for case in cases("PUT", &OF_WRITES, LARGE) {
        with_curl(scene.addr(&case), Protocol::H2c, case).await;
    }
    scene.assert_untouched();
}
