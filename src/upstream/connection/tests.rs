//! Requests on the wire, interim and early responses, and timeouts.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::Method;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

use super::*;
use crate::{
    config::Upstream,
    upstream::{
        Exchanger, Purpose,
        testing::{
            PATIENCE, SHORT, TURN, answer_once, body, collect, head, listen, read_head, read_request, upstream, write,
        },
    },
};

const TOO_LARGE: &[u8] = b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno";

/// More than any socket buffers hold, so that an upstream that does not read stops the proxy.
fn large_body() -> Body {
    body(vec![7; 64 * 1024 * 1024])
}

/// Returns the status of the answer to a PUT, or why there is none.
async fn put(server: &str, body: &Body, timeout: Duration) -> Result<u16, Failure> {
    let upstream = Arc::new(Upstream { timeout, ..upstream(&[server]) });
    let exchange = write(&Exchanger::new(), &upstream, Method::PUT, body).await?;
    Ok(exchange.head().status.as_u16())
}

/// Runs a script on the first connection. Its return value keeps the connection open.
fn script<F, T>(listener: TcpListener, steps: impl FnOnce(TcpStream) -> F + Send + 'static) -> JoinHandle<T>
where
    F: Future<Output = T> + Send,
    T: Send + 'static,
{
    tokio::spawn(async move { steps(listener.accept().await.unwrap().0).await })
}

#[tokio::test]
async fn the_upstream_gets_the_head_and_the_whole_body() {
    let (listener, server) = listen().await;
    let seen = tokio::spawn(async move { answer_once(&listener, "HTTP/1.1 204 No Content\r\n\r\n").await });
    let bytes: Bytes = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
    assert_eq!(put(&server, &body(bytes.clone()), PATIENCE).await, Ok(204));
    let (request, received) = seen.await.unwrap();
    assert!(request.starts_with("PUT /thing HTTP/1.1\r\n"), "{request}");
    assert!(received == bytes, "the body arrives as it was sent");
}

/// RFC 9110 section 15.2.
#[tokio::test]
async fn interim_responses_are_skipped() {
    let (listener, server) = listen().await;
    let response = "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 201 Created\r\n\
                    Content-Length: 0\r\n\r\n";
    tokio::spawn(async move { answer_once(&listener, response).await });
    assert_eq!(put(&server, &body("x"), PATIENCE).await, Ok(201));
}

#[tokio::test]
async fn an_upstream_that_never_stops_sending_interim_responses_is_given_up() {
    let (listener, server) = listen().await;
    let response = "HTTP/1.1 102 Processing\r\n\r\n".repeat(17) + "HTTP/1.1 204 No Content\r\n\r\n";
    tokio::spawn(async move { answer_once(&listener, &response).await });
    assert_eq!(put(&server, &body("x"), PATIENCE).await, Err(Failure::Abandoned { timed_out: false }));
}

/// RFC 9110 section 15.2.2: the proxy requested no other protocol.
#[tokio::test]
async fn switching_protocols_is_no_answer() {
    let (listener, server) = listen().await;
    // The bytes after it belong to the other protocol, with any content.
    let response = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n\
                    HTTP/1.1 204 No Content\r\n\r\n";
    tokio::spawn(async move { answer_once(&listener, response).await });
    assert_eq!(put(&server, &body("x"), PATIENCE).await, Err(Failure::Abandoned { timed_out: false }));
}

/// RFC 9112 section 6.1: a coding that the proxy did not offer would reach the client undecoded.
#[tokio::test]
async fn an_unknown_transfer_coding_is_no_answer() {
    let (listener, server) = listen().await;
    let response = "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n";
    tokio::spawn(async move { answer_once(&listener, response).await });
    assert_eq!(put(&server, &body("x"), PATIENCE).await, Err(Failure::Abandoned { timed_out: false }));
}

/// RFC 9112 section 9.5: the upstream refuses early and continues reading.
#[tokio::test]
async fn an_early_refusal_ends_the_upload() {
    let (listener, server) = listen().await;
    let received = script(listener, |mut stream| async move {
        read_head(&mut stream).await.unwrap();
        stream.write_all(TOO_LARGE).await.unwrap();
        let mut received = 0;
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(size @ 1..) = stream.read(&mut buffer).await {
            received += size as u64;
        }
        received
    });
    let body = large_body();
    assert_eq!(put(&server, &body, PATIENCE).await, Ok(413));
    assert!(received.await.unwrap() < body.len(), "the rest of the body is not sent");
}

#[tokio::test]
async fn an_early_refusal_is_read_from_a_connection_that_the_upstream_closed() {
    let (listener, server) = listen().await;
    script(listener, |mut stream| async move {
        read_head(&mut stream).await.unwrap();
        stream.write_all(TOO_LARGE).await.unwrap();
    });
    assert_eq!(put(&server, &large_body(), PATIENCE).await, Ok(413));
}

#[tokio::test]
async fn an_early_refusal_is_read_from_an_upstream_that_stopped_reading() {
    let (listener, server) = listen().await;
    let held = script(listener, |mut stream| async move {
        read_head(&mut stream).await.unwrap();
        stream.write_all(TOO_LARGE).await.unwrap();
        stream
    });
    assert_eq!(put(&server, &large_body(), SHORT).await, Ok(413));
    drop(held);
}

#[tokio::test]
async fn the_connection_of_an_early_refusal_is_not_used_again() {
    let (listener, server) = listen().await;
    let rest = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_head(&mut stream).await.unwrap();
        stream.write_all(TOO_LARGE).await.unwrap();
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest).await;
        // The next connection needs a listener, although the first one has ended.
        (rest, listener)
    });
    let (exchanger, upstream) = (Exchanger::new(), Arc::new(upstream(&[&server])));
    let mut exchange = write(&exchanger, &upstream, Method::PUT, &large_body()).await.unwrap();
    assert_eq!(collect(&mut exchange).await.unwrap(), b"no");
    exchange.finish().await;
    let next = exchanger.connect(&upstream, TURN, Purpose::Write).await.unwrap();
    assert!(!next.is_reused(), "nothing was pooled");
    assert!(!rest.await.unwrap().0.is_empty(), "the connection ended after a part of the body");
}

#[tokio::test]
async fn an_early_success_does_not_end_the_upload() {
    let (listener, server) = listen().await;
    let received = script(listener, |mut stream| async move {
        let head = read_head(&mut stream).await.unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await.unwrap();
        let length: u64 = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")?.parse().ok()).unwrap();
        tokio::io::copy(&mut (&mut stream).take(length), &mut tokio::io::sink()).await.unwrap()
    });
    let body = large_body();
    assert_eq!(put(&server, &body, PATIENCE).await, Ok(200));
    assert_eq!(received.await.unwrap(), body.len());
}

/// Such an upstream may still act on what it has, and what looks like a second answer is the content of the first.
#[tokio::test]
async fn an_early_success_of_an_upstream_that_stopped_reading_leaves_the_outcome_unknown() {
    for (write_timeout, timeout) in [(SHORT, PATIENCE), (PATIENCE, SHORT)] {
        let (listener, server) = listen().await;
        let held = script(listener, |mut stream| async move {
            read_head(&mut stream).await.unwrap();
            let refusal = "HTTP/1.1 412 Precondition Failed\r\nContent-Length: 0\r\n\r\n";
            let success = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{refusal}", refusal.len());
            stream.write_all(success.as_bytes()).await.unwrap();
            // More than any socket buffers hold, so that the answer is read before the upload stands still.
            let _ = tokio::io::copy(&mut (&mut stream).take(32 * 1024 * 1024), &mut tokio::io::sink()).await;
            stream
        });
        let upstream = Arc::new(Upstream { timeout, write_timeout, ..upstream(&[&server]) });
        let exchange = write(&Exchanger::new(), &upstream, Method::PUT, &large_body()).await;
        let status = exchange.map(|exchange| exchange.head().status.as_u16());
        assert_eq!(status, Err(Failure::Abandoned { timed_out: true }), "{write_timeout:?} {timeout:?}");
        drop(held);
    }
}

#[tokio::test]
async fn an_upstream_that_does_not_answer_is_given_up_after_its_timeout() {
    let (listener, server) = listen().await;
    let held = script(listener, |mut stream| async move {
        read_request(&mut stream).await.unwrap();
        stream
    });
    assert_eq!(put(&server, &body("x"), SHORT).await, Err(Failure::Abandoned { timed_out: true }));
    drop(held);
}

#[tokio::test]
async fn an_upstream_that_does_not_read_is_given_up_after_its_timeout() {
    let (listener, server) = listen().await;
    let held = script(listener, |stream| async move { stream });
    assert_eq!(put(&server, &large_body(), SHORT).await, Err(Failure::Abandoned { timed_out: true }));
    drop(held);
}

#[tokio::test]
async fn an_upstream_that_closes_without_an_answer_leaves_the_outcome_unknown() {
    let (listener, server) = listen().await;
    script(listener, |mut stream| async move { read_request(&mut stream).await.map(|_| ()) });
    assert_eq!(put(&server, &body("x"), PATIENCE).await, Err(Failure::Abandoned { timed_out: false }));
}

#[tokio::test]
async fn a_head_that_cannot_be_written_is_not_sent() {
    let (_listener, server) = listen().await;
    let upstream = Arc::new(upstream(&[&server]));
    let connected = Exchanger::new().connect(&upstream, TURN, Purpose::Write).await.unwrap();
    let mut head = head(Method::PUT, &body("x"));
    head.set_version(http::Version::HTTP_3);
    let failure = connected.send(head, &body("x")).await.err();
    assert_eq!(failure, Some(Failure::NotSent { timed_out: false }));
}
