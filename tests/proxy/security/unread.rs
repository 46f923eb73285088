//! Requests that cannot be read: one place answers them, logs a line for each and counts it, for each part that finds a
//! fault.

use crate::support::{
    admin, backend::Backend, frames, h2c, proxy::Proxy, raw::Connection, response::Response, wait::until,
};

/// Requests over HTTP/1.1, the status and the code of their refusal, and what their line says of them.
const UNREAD: [(&str, u16, &str, &str); 8] = [
    ("GET /a HTTP/1.2\r\nHost: a\r\n\r\n", 400, "malformed-request", "method=\"GET\" path=/a status=400"),
    ("GET /a?token=secret HTTP/1.1\r\nX\r\n\r\n", 400, "malformed-request", "method=\"GET\" path=/a status=400"),
    ("GET /a#token=secret HTTP/1.1\r\n\r\n", 400, "malformed-request", "method=\"GET\" path=/a status=400"),
    ("PUT /a HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n", 400, "malformed-request", "method=\"PUT\" path=/a"),
    ("GET http://u:secret@a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400, "malformed-request", "method=\"GET\" path= status=400"),
    ("\x16\x03\x01 hello of TLS, secret\r\n\r\n", 400, "malformed-request", "path= status=400"),
    ("{\"secret\": 1}\r\n\r\n", 400, "malformed-request", "path= status=400"),
    ("GET /late HTTP/1.1\r\nX: secret\r\n", 408, "header-timeout", "method=\"GET\" path=/late status=408"),
];

async fn start() -> (Backend, Proxy, std::net::SocketAddr) {
    let backend = Backend::start().await;
    let setup = Proxy::to(backend.addr()).server("max_header_size = \"4KiB\"\nheader_timeout = \"1s\"");
    let open = "\n[[routes]]\npath = \"/open/{*rest}\"\nupstream = \"backend\"\npolicy = \"last-writer-wins\"\n";
    let (proxy, admin) = admin::start_of(&(setup.configuration() + open)).await;
    (backend, proxy, admin)
}

#[track_caller]
fn assert_refused(response: &Response, status: u16, code: &str, request: &str) {
    assert_eq!(response.refused(status, code).code, code, "{request:?}");
    assert_eq!(response.headers.all("connection"), ["close"], "{request:?}");
    assert_eq!(response.headers.get("server"), None, "{request:?}");
}

/// The lines of the access log with this text.
fn lines(proxy: &Proxy, text: &str) -> usize {
    proxy.log().lines().filter(|line| line.contains("ifmatch::access") && line.contains(text)).count()
}

/// How many requests the metrics count with this verdict.
async fn counted(admin: std::net::SocketAddr, verdict: &str) -> u64 {
    let text = admin::look(admin, "/metrics").await.text().to_owned();
    let label = format!("ifmatch_verdict=\"{verdict}\"");
    let of_verdict = text.lines().filter(|line| line.starts_with("ifmatch_verdicts_total{") && line.contains(&label));
    // A series of a route stands at zero before anything is counted.
    of_verdict.map(|line| line.rsplit(' ').next().expect("a value").parse::<u64>().expect("a number")).sum()
}

/// The first request of a connection is read on another path than one that comes after an unguarded write.
#[tokio::test]
async fn what_cannot_be_read_is_answered_logged_and_counted() {
    let (backend, proxy, admin) = start().await;
    for (request, status, code, line) in UNREAD {
        for comes_after_a_write in [false, true] {
            let (counted_before, logged_before) = (counted(admin, code).await, lines(&proxy, line));
            let mut connection = Connection::open(proxy.addr()).await;
            if comes_after_a_write {
                assert!(connection.exchange("PUT", "/open/a", &[], "one").await.status < 300);
            }
            connection.send_bytes(request).await;
            let response = connection.read_response().await;
            assert_refused(&response, status, code, request);
            assert_eq!(connection.closed().await, b"", "{request:?}");
            assert_eq!(counted(admin, code).await, counted_before + 1, "{request:?} {comes_after_a_write}");
            until("its line", || lines(&proxy, line) == logged_before + 1).await;
        }
    }
    let log = proxy.log();
    assert!(!log.contains("secret"), "{log}");
    assert!(backend.requests().iter().all(|request| request.target == "/open/a"));
}

/// The id of such a refusal leads an operator to it.
#[tokio::test]
async fn an_operator_learns_why_it_could_not_be_read() {
    let (_backend, proxy, admin) = start().await;
    let mut connection = Connection::open(proxy.addr()).await;
    connection.send_bytes(format!("GET /a HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(5_000))).await;
    let problem = connection.read_response().await.refused(431, "header-too-large");
    let id = problem.json["instance"].as_str().expect("an id").replace("urn:ifmatch:request:", "");
    let kept = admin::ask(admin, &format!("/refusals/{id}")).await;
    let told = ["method", "path", "code"].map(|member| kept[member].as_str().expect("text").to_owned());
    assert_eq!(told, ["GET", "/a", "header-too-large"], "{kept}");
}

/// RFC 9113 section 8.3.1: the library answers, and tells the proxy no more than that.
#[tokio::test]
async fn what_cannot_be_read_over_http_2_is_counted_and_logged() {
    let (_backend, proxy, admin) = start().await;
    let fields = [(":method", "GET"), (":scheme", "http"), (":authority", "a"), (":path", "/a"), ("host", "b")];
    assert_eq!(frames::outcome(proxy.addr(), &fields).await, frames::Outcome::Answered(400));
    assert_eq!(counted(admin, "malformed-request").await, 1);
    until("its line", || lines(&proxy, "path= status=400 verdict=\"malformed-request\"") == 1).await;
}

/// RFC 9110 section 9.3.6
#[tokio::test]
async fn a_tunnel_is_refused_over_either_protocol() {
    let (_backend, proxy, admin) = start().await;
    let mut http1 = Connection::open(proxy.addr()).await;
    assert!(http1.exchange("PUT", "/open/a", &[], "one").await.status < 300);
    let response = http1.exchange("CONNECT", "a:443", &[("Host", "a")], "").await;
    response.refused(405, "method-not-allowed");
    assert_eq!(response.headers.get("server"), None);
    let mut connection = h2c::Connection::open(proxy.addr()).await;
    let response = connection.exchange("CONNECT", "a:443", &[], "").await;
    response.refused(405, "method-not-allowed");
    assert_eq!(response.headers.get("server"), None);
    assert_eq!(counted(admin, "method-not-allowed").await, 2);
    until("a line for each", || lines(&proxy, "method=\"CONNECT\"") == 2).await;
    assert_eq!(connection.exchange("GET", "/none", &[], "").await.status, 404, "the connection stays");
}
