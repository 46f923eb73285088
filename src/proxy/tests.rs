//! The proxy over real connections, with a guard that refuses everything.

use std::{
    io::{Read as _, Write as _},
    net::{Shutdown, TcpStream},
    sync::mpsc,
};

use bytes::Bytes;

use crate::testing::{PATIENCE, Proxy, answer_ok, backend, guard, read_message, route};

const LARGE: usize = 20 * 1024 * 1024;

fn refusing() -> Proxy {
    Proxy::start(vec![route("/docs/{id}", Some(guard()), &["127.0.0.1:9".parse().expect("an address")])])
}

/// Sends a body in pieces until it is sent or the connection breaks. Returns whether it was sent.
fn send_body(stream: &mut TcpStream, length: usize) -> bool {
    let piece = vec![b'x'; 64 * 1024];
    (0..length / piece.len()).all(|_| stream.write_all(&piece).is_ok())
}

/// RFC 9112 section 9.3: a refusal is no reason to close a connection.
#[test]
fn a_connection_survives_the_refusal_of_a_small_request() {
    let proxy = refusing();
    let mut stream = proxy.connect();
    for _ in 0..2 {
        stream.write_all(b"PUT /docs/1 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello").expect("it is read");
        let (head, body) = read_message(&mut stream);
        assert!(head.starts_with("HTTP/1.1 428 ") && head.contains("Connection: keep-alive"), "{head}");
        assert!(body.starts_with(b"{"), "{}", body.escape_ascii());
    }
}

/// RFC 9110 section 9.3.2: the same head, without the body.
#[test]
fn a_refusal_of_head_has_no_body_and_keeps_the_connection() {
    let proxy = refusing();
    let mut stream = proxy.connect();
    stream.write_all(b"HEAD /docs/1 HTTP/1.1\r\nHost: a\r\n\r\nGET /docs/1 HTTP/1.0\r\n\r\n").expect("it is read");
    stream.shutdown(Shutdown::Write).expect("a half-closed connection");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("text");
    let (first, next) = answer.split_once("\r\n\r\n").expect("the head of an answer");
    assert!(first.starts_with("HTTP/1.1 502 ") && next.starts_with("HTTP/1.1 502 "), "{answer}");
}

/// RFC 9457 and RFC 9209: the contents of each refusal.
#[test]
fn a_refusal_is_a_problem_that_no_cache_keeps() {
    let proxy = refusing();
    let mut stream = proxy.connect();
    stream.write_all(b"TRACE /docs/1 HTTP/1.1\r\nHost: a\r\n\r\n").expect("it is read");
    let (head, body) = read_message(&mut stream);
    for field in [
        "HTTP/1.1 405 Method Not Allowed\r\n",
        "Content-Type: application/problem+json\r\n",
        "Cache-Control: no-store\r\n",
        "Proxy-Status: ifmatch; error=http_request_denied; details=\"method-not-allowed\"\r\n",
        "Allow: GET, HEAD, OPTIONS, PUT, POST, PATCH, DELETE\r\n",
    ] {
        assert!(head.contains(field), "{field:?} in {head}");
    }
    assert!(!head.contains("Server"), "{head}");
    let problem: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
    assert_eq!(problem["code"], "method-not-allowed");
}

/// A client that reads only after it has sent everything sees the answer and no reset.
#[test]
fn a_refusal_of_a_large_upload_reaches_a_client_that_reads_last() {
    let proxy = refusing();
    let mut stream = proxy.connect();
    write!(stream, "PUT /docs/1 HTTP/1.1\r\nHost: a\r\nContent-Length: {LARGE}\r\n\r\n").expect("it is read");
    assert!(send_body(&mut stream, LARGE), "the whole body was taken");
    let (head, _) = read_message(&mut stream);
    assert!(head.starts_with("HTTP/1.1 428 ") && head.contains("Connection: close"), "{head}");
    assert_eq!(stream.read(&mut [0]).expect("an orderly end"), 0);
}

/// RFC 9110 section 10.1.1: a final status instead of 100 (Continue).
#[test]
fn a_client_that_expects_100_is_refused_before_it_sends_a_byte() {
    let proxy = refusing();
    for length in [5, LARGE] {
        let mut stream = proxy.connect();
        let expect = format!("Content-Length: {length}\r\nExpect: 100-continue\r\n\r\n");
        write!(stream, "PUT /docs/1 HTTP/1.1\r\nHost: a\r\n{expect}").expect("it is read");
        let (head, _) = read_message(&mut stream);
        assert!(head.starts_with("HTTP/1.1 428 ") && head.contains("Connection: close"), "{head}");
        assert_eq!(stream.read(&mut [0]).expect("an orderly end"), 0);
    }
}

/// RFC 9113 section 8.1: the answer is not followed by a reset of the stream.
#[test]
fn a_refusal_of_an_upload_reaches_an_http_2_client() {
    let proxy = refusing();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    for length in [5, LARGE] {
        let status = runtime.block_on(async {
            let stream = tokio::net::TcpStream::connect(proxy.address).await.expect("the proxy listens");
            stream.set_nodelay(true).expect("an option");
            let (mut client, connection) = h2::client::handshake(stream).await.expect("HTTP/2");
            let connection = tokio::spawn(connection);
            let request = http::Request::put("http://a/docs/1").body(()).expect("a request");
            let (response, mut body) = client.send_request(request, false).expect("a stream");
            send_h2(&mut body, length).await;
            let response = response.await.expect("an answer");
            let status = response.status();
            let mut content = response.into_body();
            while let Some(chunk) = content.data().await {
                let chunk = chunk.expect("a body without a reset");
                content.flow_control().release_capacity(chunk.len()).expect("capacity");
            }
            connection.abort();
            status
        });
        assert_eq!(status, 428, "of {length} bytes");
    }
}

async fn send_h2(body: &mut h2::SendStream<Bytes>, length: usize) {
    let mut left = length;
    while left > 0 {
        body.reserve_capacity(left.min(64 * 1024));
        let capacity = std::future::poll_fn(|context| body.poll_capacity(context)).await;
        let capacity = capacity.expect("the stream is open").expect("and was not reset");
        body.send_data(Bytes::from(vec![b'x'; capacity]), left == capacity).expect("a frame");
        left -= capacity;
    }
}

/// DESIGN, section 3, rule 6: a pooled connection that swallows a write is not answered by sending it again.
#[test]
fn a_write_on_a_dead_pooled_connection_is_sent_once() {
    let (seen, requests) = mpsc::channel();
    let address = backend(move |mut stream| {
        let seen = seen.clone();
        std::thread::spawn(move || {
            seen.send(answer_ok(&mut stream)).expect("the test listens");
            // Takes the next request and dies without an answer.
            seen.send(read_message(&mut stream).0).expect("the test listens");
        });
    });
    let proxy = Proxy::start(vec![route("/{*rest}", None, &[address])]);
    let mut stream = proxy.connect();
    stream.write_all(b"DELETE /1 HTTP/1.1\r\nHost: a\r\n\r\n").expect("it is read");
    assert!(read_message(&mut stream).0.starts_with("HTTP/1.1 200 "));
    stream.write_all(b"PUT /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi").expect("it is read");
    let (head, body) = read_message(&mut stream);
    assert!(head.starts_with("HTTP/1.1 502 "), "{head}");
    let problem: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
    assert_eq!((problem["code"].as_str(), problem["in_doubt"].as_bool()), (Some("upstream-failed"), Some(true)));
    let seen: Vec<String> = requests.try_iter().map(|head| head.chars().take(4).collect()).collect();
    assert_eq!(seen, ["DELE", "PUT "]);
}

/// RFC 9110 sections 7.6.2 and 7.6.3: end-to-end fields pass an unguarded route as they came, and Via is appended.
#[test]
fn an_unguarded_route_leaves_end_to_end_fields_alone() {
    let (seen, requests) = mpsc::channel();
    let address = backend(move |mut stream| {
        seen.send(read_message(&mut stream).0).expect("the test listens");
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nETag: W/\"1\"\r\nVia: 1.1 inner\r\nContent-Length: 0\r\n\r\n")
            .expect("the proxy reads");
    });
    let proxy = Proxy::start(vec![route("/{*rest}", None, &[address])]);
    let mut stream = proxy.connect();
    let fields = ["If-Match: \"a\"", "If-Match: W/\"b\", *", "If-Range: \"c\"", "Range: bytes=0-1", "Lease-Id: d"];
    let target = "PUT /%61//b/../c;d?e=%2F HTTP/1.1\r\n";
    write!(stream, "{target}Host: a\r\n{}\r\nFencing-Token: 9\r\nContent-Length: 0\r\n\r\n", fields.join("\r\n"))
        .expect("it is read");
    let (response, _) = read_message(&mut stream);
    let request = requests.recv_timeout(PATIENCE).expect("a request");
    assert!(request.starts_with(target), "{request}");
    let received: Vec<&str> = request.lines().collect();
    for field in fields {
        assert!(received.contains(&field), "{field} in {request}");
    }
    let request = request.to_ascii_lowercase();
    assert!(request.contains("via: 1.1 ifmatch") && !request.contains("fencing-token"), "{request}");
    assert!(
        response.contains("ETag: W/\"1\"") && response.to_ascii_lowercase().contains("via: 1.1 inner"),
        "{response}"
    );
    assert!(response.to_ascii_lowercase().contains("via: 1.1 ifmatch"), "{response}");
}

/// RFC 9112 section 7.1: the end of a chunked body is sent once, even if HTTP/2 ended it with an empty frame that came
/// alone.
#[test]
fn an_upload_that_ends_with_an_empty_frame_is_framed_once() {
    let (seen, bytes) = mpsc::channel();
    let (arrived, hello) = tokio::sync::oneshot::channel();
    let mut arrived = Some(arrived);
    let address = backend(move |mut stream| {
        let mut received = Vec::new();
        while !received.ends_with(b"\r\n0\r\n\r\n") {
            let mut octet = [0];
            stream.read_exact(&mut octet).expect("a chunked request");
            received.extend(octet);
            if received.ends_with(b"hello") {
                arrived.take().expect("one greeting").send(()).expect("the test listens");
            }
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").expect("the proxy reads");
        // The next bytes on this connection are those of the next request.
        let mut next = [0; 4];
        stream.read_exact(&mut next).expect("the next request");
        seen.send(next).expect("the test listens");
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").expect("the proxy reads");
    });
    let proxy = Proxy::start(vec![route("/{*rest}", None, &[address])]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let stream = tokio::net::TcpStream::connect(proxy.address).await.expect("the proxy listens");
        let (mut client, connection) = h2::client::handshake(stream).await.expect("HTTP/2");
        tokio::spawn(connection);
        let request = http::Request::put("http://a/1").body(()).expect("a request");
        let (response, mut body) = client.send_request(request, false).expect("a stream");
        body.send_data(Bytes::from_static(b"hello"), false).expect("a frame");
        hello.await.expect("the backend gets the piece");
        body.send_data(Bytes::new(), true).expect("a frame");
        assert_eq!(response.await.expect("an answer").status(), 200);
        let request = http::Request::delete("http://a/1").body(()).expect("a request");
        let (response, _) = client.send_request(request, true).expect("a stream");
        assert_eq!(response.await.expect("an answer").status(), 200);
    });
    assert_eq!(&bytes.recv_timeout(PATIENCE).expect("a second request"), b"DELE");
}

/// A server that cannot be connected to has seen nothing: the next one may be tried, even with a write.
#[test]
fn a_write_goes_to_the_next_server_when_one_is_down() {
    // Bound but not listening, so that no other process gets its port.
    let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
    socket.bind(([127, 0, 0, 1], 0).into()).expect("a free port");
    let dead = socket.local_addr().expect("its address");
    let alive = backend(|mut stream| {
        read_message(&mut stream);
        // An end without a word could meet the second write: its outcome would be unknown.
        let answer = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
        stream.write_all(answer).expect("the proxy reads");
    });
    let proxy = Proxy::start(vec![route("/{*rest}", None, &[dead, alive])]);
    for _ in 0..2 {
        let mut stream = proxy.connect();
        stream.write_all(b"PUT /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi").expect("it is read");
        let (head, _) = read_message(&mut stream);
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    }
}
