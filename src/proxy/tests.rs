//! The proxy over real connections, with a guard that refuses everything.

use std::{
    io::{Read as _, Write as _},
    net::{Shutdown, TcpStream},
    sync::mpsc,
};

use bytes::Bytes;

use super::testing::{Proxy, answer_ok, backend, guard, read_message, route};

const LARGE: usize = 20 * 1024 * 1024;

fn refusing() -> Proxy {
    Proxy::start(vec![route("/docs/{id}", Some(guard()), &["127.0.0.1:9".parse().expect("an address")])])
}

/// Sends a body in pieces until it is sent or the connection is broken, and says whether it was sent.
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
        assert!(head.starts_with("HTTP/1.1 412 ") && head.contains("Connection: keep-alive"), "{head}");
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
    assert!(answer.starts_with("HTTP/1.1 412 ") && answer.ends_with("\r\n\r\n"), "{answer}");
}

/// RFC 9457 and RFC 9209: what each refusal carries.
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
    assert!(head.starts_with("HTTP/1.1 412 ") && head.contains("Connection: close"), "{head}");
    assert_eq!(stream.read(&mut [0]).expect("an orderly end"), 0);
}

/// RFC 9110 section 10.1.1: a final status instead of 100 (Continue).
#[test]
fn a_client_that_expects_100_is_refused_before_it_sends_a_byte() {
    let proxy = refusing();
    let mut stream = proxy.connect();
    write!(stream, "PUT /docs/1 HTTP/1.1\r\nHost: a\r\nContent-Length: {LARGE}\r\nExpect: 100-continue\r\n\r\n")
        .expect("it is read");
    let (head, _) = read_message(&mut stream);
    assert!(head.starts_with("HTTP/1.1 412 ") && head.contains("Connection: close"), "{head}");
    assert_eq!(stream.read(&mut [0]).expect("an orderly end"), 0);
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
        assert_eq!(status, 412, "of {length} bytes");
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
    stream.write_all(b"GET /1 HTTP/1.1\r\nHost: a\r\n\r\n").expect("it is read");
    assert!(read_message(&mut stream).0.starts_with("HTTP/1.1 200 "));
    stream.write_all(b"PUT /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi").expect("it is read");
    let (head, body) = read_message(&mut stream);
    assert!(head.starts_with("HTTP/1.1 502 ") && head.contains("Connection: close"), "{head}");
    let problem: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
    assert_eq!((problem["code"].as_str(), problem["in_doubt"].as_bool()), (Some("upstream-failed"), Some(true)));
    let seen: Vec<String> = requests.try_iter().map(|head| head.chars().take(4).collect()).collect();
    assert_eq!(seen, ["GET ", "PUT "]);
}
