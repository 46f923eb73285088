//! The support itself, checked against servers that are known to be right.

use std::{
    io::ErrorKind,
    net::{SocketAddr, TcpStream},
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use bytes::Bytes;
use h2::Reason;
use tokio::{net::TcpListener, task::JoinHandle};

use crate::support::{
    backend::{Answer, Backend, Validators},
    gate::Gate,
    h2c,
    message::chunked,
    nginx::Nginx,
    ports,
    proxy::Proxy,
    raw::{Connection, get, put, put_if_match, race, request_bytes, send},
    wait::{until, within},
};

/// The raw client against a server that others wrote: lengths, HEAD, a range, chunks, errors, a kept connection.
#[tokio::test]
async fn raw_client_speaks_with_nginx() {
    let nginx = Nginx::start().await;
    let mut connection = Connection::open(nginx.addr()).await;
    assert_eq!(connection.exchange("PUT", "/docs/a", &[], "first").await.status, 201);
    let body = chunked(&["sec", "ond"]);
    assert_eq!(connection.exchange("PUT", "/docs/a", &[("Transfer-Encoding", "chunked")], body).await.status, 204);
    let head = connection.exchange("HEAD", "/docs/a", &[], "").await;
    assert_eq!((head.status, head.header("content-length"), head.body.len()), (200, Some("6"), 0));
    let read = connection.exchange("GET", "/docs/a", &[("Range", "bytes=3-")], "").await;
    assert_eq!((read.status, read.text(), read.header("ETag")), (206, "ond", None));
    assert_eq!(connection.exchange("DELETE", "/docs/a", &[], "").await.status, 204);
    assert_eq!(connection.exchange("GET", "/docs/a", &[("Connection", "close")], "").await.status, 404);
    assert_eq!(connection.closed().await, b"");
    assert!(connection.is_closed().await);
    let lines = nginx.access_lines().await;
    let expected = ["PUT 201", "PUT 204", "HEAD 200", "GET 206", "DELETE 204", "GET 404"];
    assert_eq!(lines, expected.map(|line| line.replace(' ', " /docs/a ")));
}

/// 20 MB with `Expect: 100-continue`: the interim response is collected, the body arrives whole.
#[tokio::test]
async fn raw_client_uploads_much() {
    let nginx = Nginx::with_etags().await;
    let body = "0123456789".repeat(2_000_000);
    let response = put(nginx.addr(), "/large", &[("Expect", "100-continue")], &body).await;
    let interim: Vec<u16> = response.informational.iter().map(|(status, _)| *status).collect();
    assert_eq!((response.status, interim), (201, vec![100]));
    assert_eq!(std::fs::read_to_string(nginx.root().join("large")).unwrap(), body);
    assert!(!get(nginx.addr(), "/large").await.etag().is_empty());
}

/// A server that answers early and closes with the rest of the upload unread does not hide its answer.
#[tokio::test]
async fn raw_client_sees_an_early_answer() {
    let backend = Backend::start().await;
    let held = backend.hold("PUT", "/large");
    let addr = backend.addr();
    let upload = tokio::spawn(async move { put(addr, "/large", &[], vec![0; 20_000_000]).await.status });
    let mut held = held.arrived().await;
    held.send_bytes("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n").await;
    assert_eq!(within("the upload to end", upload).await.unwrap(), 413);
    assert_eq!(backend.body_bytes("PUT", "/large"), 0);
}

#[tokio::test]
async fn backend_keeps_what_is_written() {
    let backend = Backend::with(Validators::TagsAndDates).await;
    let addr = backend.addr();
    assert_eq!(get(addr, "/a").await.status, 404);
    assert_eq!(put(addr, "/a", &[], "one").await.status, 201);
    let first = get(addr, "/a").await;
    assert_eq!(first.text(), "one");
    assert_eq!(put(addr, "/a", &[], "two").await.status, 204);
    assert_eq!(send(addr, "POST", "/a", &[], "+three").await.status, 204);
    let second = get(addr, "/a").await;
    assert_eq!((second.text(), backend.content("/a")), ("two+three", Some("two+three".to_owned())));
    assert_ne!(first.etag(), second.etag());
    assert_ne!(first.header("last-modified"), second.header("last-modified"));
    assert_eq!(send(addr, "HEAD", "/a", &[], "").await.header("content-length"), Some("9"));
    assert_eq!(send(addr, "DELETE", "/a", &[], "").await.status, 204);
    assert_eq!(backend.content("/a"), None);
    assert_eq!((backend.count("PUT", "/a"), backend.body_bytes("PUT", "/a"), backend.count("*", "*")), (2, 6, 8));
}

/// The order that scenarios are made of: a GET reaches the backend before a PUT and is answered after it, with the old
/// content.
#[tokio::test]
async fn a_test_orders_the_events() {
    let backend = Backend::start().await;
    let addr = backend.addr();
    backend.put("/doc", "old");
    let (read, write) = (backend.hold("GET", "/doc"), backend.hold("PUT", "/doc"));

    let reader = tokio::spawn(async move { get(addr, "/doc").await });
    let read = read.arrived().await;
    let old = read.stored();
    let writer = tokio::spawn(async move { put(addr, "/doc", &[], "new").await });
    let mut write = write.arrived().await;
    assert_eq!(backend.content("/doc").as_deref(), Some("old"));
    write.apply().await;
    assert_eq!(backend.content("/doc").as_deref(), Some("new"));
    assert!(!writer.is_finished());
    write.answer(Answer::status(204)).await;
    assert_eq!(writer.await.unwrap().status, 204);
    read.answer(old).await;
    assert_eq!(reader.await.unwrap().text(), "old");

    let expected =
        ["GET /doc arrived", "PUT /doc arrived", "PUT /doc applied", "PUT /doc answered 204", "GET /doc answered 200"];
    assert_eq!(backend.events(), expected);
}

/// The backend may apply a write after its connection is gone.
#[tokio::test]
async fn a_write_is_applied_late() {
    let backend = Backend::start().await;
    let held = backend.hold("PUT", "/doc");
    let mut client = Connection::open(backend.addr()).await;
    client.request("PUT", "/doc", &[], "late").await;
    let mut held = held.arrived().await;
    let write = held.write().await;
    client.reset();
    held.peer_closed().await;
    held.close();
    assert_eq!(backend.content("/doc"), None);
    write.apply();
    assert_eq!(backend.content("/doc").as_deref(), Some("late"));
    until("the connection to be counted as closed", || backend.open_connections() == 0).await;
}

#[tokio::test]
async fn an_answer_waits_for_a_gate() {
    let backend = Backend::start().await;
    let gate = Gate::closed();
    let answer = Answer::status(200).early(103, &[("Link", "</style>")]).body("late").after(&gate);
    backend.always("GET", "*", move |_| answer.clone());
    let addr = backend.addr();
    let readers = [0, 1].map(|number| tokio::spawn(async move { get(addr, &format!("/{number}")).await }));
    backend.reached("GET", "*", 2).await;
    assert!(readers.iter().all(|reader| !reader.is_finished()));
    gate.open();
    for reader in readers {
        let response = reader.await.unwrap();
        assert_eq!((response.status, response.text()), (200, "late"));
        assert_eq!(response.informational[0].1.get("link"), Some("</style>"));
    }
}

/// The connection that dies under a request, as pooled connections do.
#[tokio::test]
async fn only_a_reused_connection_swallows() {
    let backend = Backend::start().await;
    backend.always_where(|request| request.on_reused_connection() && request.method == "PUT", |_| Answer::close());
    let mut connection = Connection::open(backend.addr()).await;
    assert_eq!(connection.exchange("PUT", "/a", &[], "one").await.status, 201);
    let swallowed = connection.try_exchange("PUT", "/a", &[], "two").await;
    assert_eq!(swallowed.unwrap_err().kind(), ErrorKind::UnexpectedEof);
    assert_eq!(backend.content("/a").as_deref(), Some("one"));
    let seen = backend.seen("PUT", "/a");
    assert_eq!((seen.len(), seen[1].nth_on_connection, seen[1].complete, backend.connections()), (2, 2, true, 1));
}

#[tokio::test]
async fn an_answer_can_be_every_kind_of_bad() {
    let backend = Backend::start().await;
    let addr = backend.addr();
    let outcome = async |answer: Answer| {
        backend.once("PUT", "/a", answer);
        let response = Connection::open(addr).await.try_exchange("PUT", "/a", &[], "body").await;
        response.map(|response| response.status).map_err(|error| error.kind())
    };
    assert_eq!(outcome(Answer::status(503).applied()).await, Ok(503));
    assert_eq!(backend.content("/a").as_deref(), Some("body"));
    assert_eq!(outcome(Answer::close()).await, Err(ErrorKind::UnexpectedEof));
    assert_eq!(outcome(Answer::reset()).await, Err(ErrorKind::ConnectionReset));
    assert_eq!(outcome(Answer::raw("HTTP/1.1 200 O")).await, Err(ErrorKind::UnexpectedEof));
    let half_body = Answer::raw("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
    assert_eq!(outcome(half_body).await, Err(ErrorKind::UnexpectedEof));

    backend.once("PUT", "/a", Answer::never());
    let mut client = Connection::open(addr).await;
    client.request("PUT", "/a", &[], "body").await;
    backend.reached("PUT", "/a", 6).await;
    assert!(!client.is_closed().await);
}

/// The backend reports bytes between two requests, such as a chunked body's end that is sent twice.
#[tokio::test]
async fn malformed_framing_is_told() {
    let cases = [
        "PUT /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n0\r\n\r\n",
        "GET /a HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        "PUT /a HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "PUT /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxyz\r\n0\r\n\r\n",
        "GET /a HTTP/1.1\r\nHost: a\r\n\r\nGET",
        "\r\nGET /a HTTP/1.1\r\nHost: a\r\n\r\n",
    ];
    for case in cases {
        let backend = Backend::start().await;
        let mut connection = Connection::open(backend.addr()).await;
        connection.send_bytes(case).await;
        connection.half_close().await;
        connection.closed().await;
        until("the connection to be closed", || backend.open_connections() == 0).await;
        let malformed = backend.take_malformed();
        assert_eq!(malformed.len(), 1, "{malformed:?} of {case:?}");
    }
}

/// The request as a tiny HTTP/2 server saw it.
type Seen = JoinHandle<(http::Request<()>, bool, Result<Vec<Bytes>, h2::Error>)>;

/// Accepts one request over h2c, reads its body, answers 200 with what it read.
async fn h2c_server() -> (SocketAddr, Seen) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let seen = tokio::spawn(async move {
        let mut connection = h2::server::handshake(listener.accept().await.unwrap().0).await.unwrap();
        let (request, mut answer) = connection.accept().await.unwrap().unwrap();
        // The connection moves only while a task asks it for more.
        tokio::spawn(async move { while connection.accept().await.is_some() {} });
        let (head, mut stream) = request.into_parts();
        let ended_with_head = stream.is_end_stream();
        let mut pieces = Vec::new();
        while let Some(piece) = stream.data().await {
            match piece {
                Ok(piece) => {
                    stream.flow_control().release_capacity(piece.len()).unwrap();
                    pieces.push(piece);
                }
                Err(error) => return (http::Request::from_parts(head, ()), ended_with_head, Err(error)),
            }
        }
        let response = http::Response::builder().header("x-seen", "yes").body(()).unwrap();
        let body = pieces.concat();
        answer.send_response(response, false).unwrap().send_data(body.into(), true).unwrap();
        (http::Request::from_parts(head, ()), ended_with_head, Ok(pieces))
    });
    (addr, seen)
}

#[tokio::test]
async fn h2c_client_ends_a_stream_with_its_head() {
    let (addr, seen) = h2c_server().await;
    let response = h2c::Connection::open(addr).await.exchange("GET", "/a%2Fb?c", &[("if-match", "\"x\"")], "").await;
    assert_eq!((response.status, response.header("X-Seen")), (200, Some("yes")));
    let (request, ended_with_head, _) = seen.await.unwrap();
    assert_eq!((request.uri().path_and_query().unwrap().as_str(), ended_with_head), ("/a%2Fb?c", true));
    assert_eq!(request.headers()["if-match"], "\"x\"");
}

/// More than the flow control's window, so that the client has to wait for the server to let it go on.
#[tokio::test]
async fn h2c_client_sends_much() {
    let (addr, seen) = h2c_server().await;
    let body = vec![7; 1_000_000];
    let response = h2c::Connection::open(addr).await.exchange("PUT", "/a", &[], &body).await;
    assert_eq!(response.body, body);
    assert!(!seen.await.unwrap().1);
}

#[tokio::test]
async fn h2c_client_ends_a_stream_with_an_empty_frame() {
    let (addr, seen) = h2c_server().await;
    let mut connection = h2c::Connection::open(addr).await;
    let mut stream = connection.begin("PUT", "/a", &[]).await;
    stream.send("one").await;
    stream.end();
    assert_eq!(stream.response().await.text(), "one");
    let (_, _, pieces) = seen.await.unwrap();
    assert_eq!(pieces.unwrap(), ["one", ""]);
}

#[tokio::test]
async fn h2c_client_withholds_a_body_and_resets() {
    let (addr, seen) = h2c_server().await;
    let mut connection = h2c::Connection::open(addr).await;
    let mut stream = connection.begin("PUT", "/a", &[]).await;
    stream.send("half").await;
    assert!(!seen.is_finished());
    stream.reset(Reason::CANCEL);
    let (_, _, pieces) = within("the server to see the reset", seen).await.unwrap();
    assert_eq!(pieces.unwrap_err().reason(), Some(Reason::CANCEL));
}

/// A refusal that keeps all its promises is read; one that breaks any of them stops the test.
#[tokio::test]
async fn refusals_are_held_to_their_promises() {
    let backend = Backend::start().await;
    let good = [
        ("Content-Type", "application/problem+json"),
        ("Cache-Control", "no-store"),
        ("Proxy-Status", "ifmatch; error=http_request_denied; details=\"write-in-flight\""),
        ("Retry-After", "3"),
    ];
    let document = r#"{"type":"urn:ifmatch:problem:write-in-flight","title":"t","status":409,"detail":"d",
        "code":"write-in-flight","retry_after":3,"in_doubt":true}"#;
    let answered = async |status: u16, headers: &[(&str, &str)], body: &str| {
        let answer = Answer::status(status).body(body);
        backend.once("GET", "/a", headers.iter().fold(answer, |answer, (name, value)| answer.header(name, value)));
        get(backend.addr(), "/a").await
    };
    let refusal = answered(409, &good, document).await;
    let problem = refusal.refused(409, "write-in-flight");
    assert_eq!((problem.retry_after_seconds, problem.in_doubt), (Some(3), true));

    let mut broken = Vec::new();
    for left_out in 0..good.len() {
        let headers: Vec<_> = (0..good.len()).filter(|at| *at != left_out).map(|at| good[at]).collect();
        broken.push(answered(409, &headers, document).await);
    }
    broken.push(answered(412, &good, document).await);
    broken.push(answered(409, &good, &document.replace("\"code\":\"write-in-flight\"", "\"code\":\"other\"")).await);
    broken.push(answered(409, &good, &document.replace("\"detail\":\"d\",", "")).await);
    broken.push(answered(409, &[good.as_slice(), &[("ETag", "\"a\"")]].concat(), document).await);
    broken.push(answered(409, &good, "no JSON").await);
    for refusal in broken {
        assert!(std::panic::catch_unwind(|| refusal.problem()).is_err(), "a broken promise passed: {refusal:?}");
    }
}

/// All requests of a race are in flight before any of them is answered.
#[tokio::test]
async fn a_race_sends_all_requests_at_once() {
    let backend = Backend::start().await;
    let gate = Gate::closed();
    let answer = Answer::stored().after(&gate);
    backend.always("PUT", "*", move |_| answer.clone());
    let requests = (0..8).map(|number| request_bytes("PUT", &format!("/{number}"), &[], b"x")).collect();
    let race = tokio::spawn(race(backend.addr(), requests));
    backend.reached("PUT", "*", 8).await;
    gate.open();
    assert!(race.await.unwrap().iter().all(|response| response.status == 201));
    assert_eq!((backend.connections(), backend.content("/7").as_deref()), (8, Some("x")));
}

/// The example of the support's page, and what a proxy shows of itself.
#[tokio::test]
async fn the_proxy_runs_between_client_and_backend() {
    let backend = Backend::start().await;
    let mut proxy = Proxy::to(backend.addr()).route("etag = \"content\"").start().await;
    backend.put("/doc", "one");
    let addr = proxy.addr();
    let tag = get(addr, "/doc").await.etag();

    let held = backend.hold("PUT", "/doc");
    let based_on = tag.clone();
    let writer = tokio::spawn(async move { put_if_match(addr, "/doc", &based_on, "two").await });
    let mut write = held.arrived().await;
    write.apply().await;
    write.answer(Answer::status(204)).await;
    assert_eq!(writer.await.unwrap().status, 204);
    put_if_match(addr, "/doc", &tag, "three").await.refused(412, "precondition-failed");
    let body = vec![0; 20_000_000];
    let unconditional = h2c::Connection::open(addr).await.exchange("PUT", "/doc", &[], &body).await;
    unconditional.refused(428, "precondition-required");
    assert_eq!((backend.count("PUT", "/doc"), backend.content("/doc").as_deref()), (1, Some("two")));

    proxy.signal("TERM");
    assert!(proxy.exit_status().await.success(), "{}", proxy.log());
}

/// While other tests start their servers, no server answers on a free address.
#[test]
fn a_free_address_refuses_connections() {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    Command::new("true").status().expect("there is `true`");
                }
            });
        }
        let answered = (0..2_000).filter(|_| TcpStream::connect(ports::free()).is_ok()).count();
        done.store(true, Ordering::Relaxed);
        assert_eq!(answered, 0);
    });
}
