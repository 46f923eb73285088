//! The bytes behind a request on its connection: they are never taken for a part of it, nor for a request that they are
//! not.

use crate::support::{backend::Backend, proxy::Proxy, raw::Connection};

/// A write that would pass if any server took it for a request.
const HIDDEN: &str = "PUT /docs/hidden HTTP/1.1\r\nHost: a\r\nIf-None-Match: *\r\nContent-Length: 6\r\n\r\nhidden";

async fn start() -> (Backend, Proxy) {
    let backend = Backend::start().await;
    backend.put("/docs/1", "current");
    let proxy = Proxy::to(backend.addr()).start().await;
    (backend, proxy)
}

/// Sends a request with the hidden one behind it, and waits until the proxy has closed. Tells the first status.
async fn send(proxy: &Proxy, head: &str, body: &str) -> u16 {
    let mut connection = Connection::open(proxy.addr()).await;
    connection.send_bytes(format!("{head}\r\n{body}{HIDDEN}")).await;
    let status = connection.read_response().await.status;
    connection.half_close().await;
    connection.closed().await;
    status
}

/// RFC 9112 section 6.3: two framings in one request end its connection, no matter which of them is believed.
#[tokio::test]
async fn nothing_follows_a_request_with_two_framings() {
    let (backend, proxy) = start().await;
    for method in ["PUT", "GET", "POST"] {
        let head =
            format!("{method} /docs/1 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n");
        send(&proxy, &head, "0\r\n\r\n").await;
    }
    assert_eq!(backend.count("*", "/docs/hidden"), 0);
}

/// A body that looks like a request is a body, read or refused.
#[tokio::test]
async fn a_body_is_no_request() {
    let (backend, proxy) = start().await;
    let length = HIDDEN.len();
    let with_length = |method: &str| format!("{method} /docs/1 HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n");
    assert_eq!(send(&proxy, &with_length("PUT"), "").await, 428);
    assert_eq!(send(&proxy, &with_length("GET"), "").await, 200);
    assert_eq!(send(&proxy, &with_length("TRACE"), "").await, 405);
    let chunked = "PUT /docs/1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n";
    assert_eq!(send(&proxy, chunked, &format!("{length:x}\r\n")).await, 428);
    let expecting = "PUT /docs/1 HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 90\r\n";
    assert_eq!(send(&proxy, expecting, "").await, 428);
    let old = "GET /docs/1 HTTP/1.0\r\n";
    assert_eq!(send(&proxy, old, "").await, 200);
    assert_eq!(backend.count("*", "/docs/hidden"), 0);
    assert_eq!(backend.seen("GET", "/docs/1")[0].body, HIDDEN.as_bytes());
}

/// RFC 9112 section 9.3.2: a second request is judged like any other, once the first is answered.
#[tokio::test]
async fn a_pipelined_request_is_a_request_of_its_own() {
    let (backend, proxy) = start().await;
    for (method, first, second) in [("GET", 200, 201), ("PUT", 428, 412)] {
        let length = if method == "PUT" { "Content-Length: 0\r\n" } else { "" };
        let mut connection = Connection::open(proxy.addr()).await;
        connection.send_bytes(format!("{method} /docs/1 HTTP/1.1\r\nHost: a\r\n{length}\r\n{HIDDEN}")).await;
        assert_eq!(connection.read_response().await.status, first);
        assert_eq!(connection.read_response().await.status, second);
    }
    assert_eq!(backend.count("PUT", "/docs/hidden"), 1);
}
