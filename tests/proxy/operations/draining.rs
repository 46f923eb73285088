//! SIGTERM with something in flight: requests that have begun are finished, and connections say that they end.

use std::time::{Duration, Instant};

use crate::support::{
    backend::{Answer, Backend},
    gate::Gate,
    h2c,
    proxy::{Proxy, Setup},
    raw::Connection,
    wait::until,
};

fn open(backend: &Backend) -> Setup {
    Proxy::to(backend.addr()).route("policy = \"last-writer-wins\"")
}

/// Tells it to end, and comes back when it accepts nothing more.
async fn terminate(proxy: &Proxy) {
    proxy.signal("TERM");
    until("the listener to close", || std::net::TcpStream::connect(proxy.addr()).is_err()).await;
}

/// RFC 9112 section 9.6: the answer asks the client to send no other request on this connection.
#[tokio::test]
async fn the_last_answer_of_a_connection_says_so() {
    for policy in ["last-writer-wins", "optimistic"] {
        let backend = Backend::start().await;
        let gate = Gate::closed();
        let answer = Answer::status(201).applied().after(&gate);
        backend.always("PUT", "/doc", move |_| answer.clone());
        let mut proxy = Proxy::to(backend.addr()).route(&format!("policy = \"{policy}\"")).start().await;
        let mut connection = Connection::open(proxy.addr()).await;
        assert_eq!(connection.exchange("GET", "/none", &[], "").await.header("connection"), Some("keep-alive"));
        connection.request("PUT", "/doc", &[("If-None-Match", "*")], "one").await;
        backend.reached("PUT", "/doc", 1).await;
        terminate(&proxy).await;
        gate.open();
        let response = connection.read_response().await;
        assert_eq!((response.status, response.header("connection")), (201, Some("close")), "{policy}");
        assert_eq!(connection.closed().await, b"");
        assert_eq!(proxy.exit_status().await.code(), Some(0));
    }
}

#[tokio::test]
async fn a_download_is_sent_to_its_end() {
    let backend = Backend::start().await;
    let mut proxy = open(&backend).start().await;
    let download = backend.hold("GET", "/large");
    let mut connection = Connection::open(proxy.addr()).await;
    connection.request("GET", "/large", &[], "").await;
    let mut held = download.arrived().await;
    held.send_bytes("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n").await;
    assert_eq!(connection.read_head().await.0, 200);
    terminate(&proxy).await;
    held.send_bytes("4\r\ndone\r\n0\r\n\r\n").await;
    assert_eq!(connection.closed().await, b"4\r\nhalf\r\n4\r\ndone\r\n0\r\n\r\n");
    assert_eq!(proxy.exit_status().await.code(), Some(0));
}

/// RFC 9113 section 6.8: streams that were begun are answered, and none is begun any more.
#[tokio::test]
async fn an_http2_connection_ends_with_its_streams() {
    let backend = Backend::start().await;
    let mut proxy = open(&backend).start().await;
    let read = backend.hold("GET", "/slow");
    let mut connection = h2c::Connection::open(proxy.addr()).await;
    let stream = connection.begin_without_body("GET", "/slow", &[]).await;
    let held = read.arrived().await;
    terminate(&proxy).await;
    connection.goes_away().await;
    held.answer(Answer::status(200)).await;
    assert_eq!(stream.response().await.status, 200);
    assert_eq!(proxy.exit_status().await.code(), Some(0));
}

/// Nothing tells a WebSocket that the process ends: it has as long as a request, and no longer.
#[tokio::test]
async fn a_websocket_lasts_until_it_is_closed_or_the_time_is_over() {
    for closes in [true, false] {
        let backend = Backend::start().await;
        let timeout = if closes { "60s" } else { "1s" };
        let mut proxy = open(&backend).server(&format!("shutdown_timeout = \"{timeout}\"")).start().await;
        let upgrade = backend.hold("GET", "/socket");
        let mut connection = Connection::open(proxy.addr()).await;
        let fields = [("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13")];
        connection.request("GET", "/socket", &fields, "").await;
        let mut held = upgrade.arrived().await;
        held.send_bytes("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n").await;
        assert_eq!(connection.read_head().await.0, 101);
        let begin = Instant::now();
        terminate(&proxy).await;
        if closes {
            held.send_bytes("still there").await;
            assert_eq!(connection.read_bytes(11).await, b"still there");
            held.close();
            drop(connection);
        }
        assert_eq!(proxy.exit_status().await.code(), Some(0));
        let took = begin.elapsed();
        assert!(closes || took >= Duration::from_secs(1), "{took:?}");
    }
}
