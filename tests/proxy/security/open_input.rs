//! A request with two readings is refused on routes that judge nothing too, and ends its connection: the backend behind
//! them may be one that a guarded route leads to.

use std::io::ErrorKind;

use crate::support::{
    backend::Backend,
    frames::{self, Outcome},
    proxy::Proxy,
    raw::Connection,
};

async fn start() -> (Backend, Proxy) {
    let backend = Backend::start().await;
    backend.put("/a", "current");
    let proxy = Proxy::to(backend.addr()).route("policy = \"last-writer-wins\"").start().await;
    (backend, proxy)
}

/// The status of what was sent on a connection of its own, which is closed after it.
async fn status(proxy: &Proxy, request: &[u8]) -> u16 {
    let mut connection = Connection::open(proxy.addr()).await;
    connection.send_bytes(request).await;
    let status = connection.read_response().await.status;
    connection.half_close().await;
    connection.closed().await;
    status
}

/// RFC 9112 section 3.2, RFC 3986 section 3.5.
#[tokio::test]
async fn a_target_with_a_blank_or_a_fragment_takes_no_route() {
    let (backend, proxy) = start().await;
    for target in
        ["/a#b", "/a?b#c", "/#/a", "http://a/a#b", "/a b", "/a?b c", "/a\tb", "/a\x01", "/a\x7f", "/a HTTP/1.1"]
    {
        for method in ["DELETE", "GET"] {
            let request = format!("{method} {target} HTTP/1.1\r\nHost: a\r\n\r\n");
            assert_eq!(status(&proxy, request.as_bytes()).await, 400, "{request:?}");
        }
    }
    assert_eq!(backend.requests().len(), 0);
    assert_eq!(backend.content("/a").as_deref(), Some("current"));
}

/// RFC 9112 section 6.1.
#[tokio::test]
async fn a_body_with_two_codings_takes_no_route() {
    let (backend, proxy) = start().await;
    for (fields, expected) in [
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", 400),
        ("Transfer-Encoding: chunked\r\ntransfer-encoding: Chunked", 400),
        ("Transfer-Encoding: chunked, chunked", 400),
        ("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked", 400),
        ("Transfer_Encoding: chunked\r\nContent-Length: 5", 400),
        ("Transfer-Encoding: gzip, chunked", 501),
    ] {
        let request = format!("PUT /a HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n0\r\n\r\n");
        assert_eq!(status(&proxy, request.as_bytes()).await, expected, "{request:?}");
    }
    assert_eq!(backend.requests().len(), 0);
}

/// RFC 9110 section 8.6: a list of equal lengths is one length, or a fault. A recipient may take it for either.
#[tokio::test]
async fn a_length_is_said_once() {
    let (backend, proxy) = start().await;
    for fields in ["Content-Length: 1, 1", "Content-Length: 1\r\nContent-Length: 1"] {
        let request = format!("PUT /b HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{fields}\r\n\r\nx");
        assert!(matches!(status(&proxy, request.as_bytes()).await, 201 | 204), "{fields:?}");
    }
    let seen = backend.seen("PUT", "/b");
    assert_eq!(seen.len(), 2);
    assert!(seen.iter().all(|request| request.headers.all("content-length") == ["1"]), "{seen:?}");
}

/// RFC 9112 section 7.1. The head of an unjudged request is in flight when its body comes; no body is whole then.
#[tokio::test]
async fn chunks_with_two_readings_end_no_body() {
    let (backend, proxy) = start().await;
    let bodies = [
        "\r\n1\r\nx\r\n0\r\n\r\n",
        ";a\r\nx\r\n0\r\n\r\n",
        "1;a\nb\r\nx\r\n0\r\n\r\n",
        "1;a\0\r\nx\r\n0\r\n\r\n",
        "1\r\nx\r\n\r\n0\r\n\r\n",
    ];
    for body in bodies {
        for at_once in [true, false] {
            let head = "PUT /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
            let mut connection = Connection::open(proxy.addr()).await;
            if at_once {
                connection.send_bytes([head, body].concat()).await;
            } else {
                connection.send_bytes(head).await;
                for byte in body.bytes() {
                    if connection.try_send_bytes([byte]).await.is_err() {
                        break;
                    }
                }
            }
            match connection.try_read_response().await {
                Ok(response) => assert_eq!(response.status, 400, "{body:?}"),
                Err(error) => assert!(matches!(error.kind(), ErrorKind::ConnectionReset), "{body:?}: {error}"),
            }
        }
    }
    assert!(backend.requests().iter().all(|request| !request.complete), "{:?}", backend.requests());
    assert_eq!(backend.content("/a").as_deref(), Some("current"));
}

/// RFC 9112 section 7.1: what is in order passes in any number of pieces, and the connection goes on after it.
#[tokio::test]
async fn a_connection_goes_on_after_chunks_in_order() {
    let (backend, proxy) = start().await;
    let mut connection = Connection::open(proxy.addr()).await;
    for number in 0..3 {
        connection.expect_response_to("PUT");
        let head = format!("PUT /{number} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
        for piece in [&head, "1;a=\"b\"", "\r", "\nx\r\n", "2 \r\nyz", "\r\n0\r\n", "T: x\r\n\r\n"] {
            connection.send_bytes(piece).await;
        }
        assert_eq!(connection.read_response().await.status, 201);
        assert_eq!(backend.content(&format!("/{number}")).as_deref(), Some("xyz"));
        assert_eq!(connection.exchange("GET", &format!("/{number}"), &[], "").await.status, 200);
    }
}

/// RFC 9113 section 8.3.1: HTTP/2 has no request line. What the library takes of a fragment is nothing.
#[tokio::test]
async fn a_blank_in_a_path_of_http_2_takes_no_route() {
    let (backend, proxy) = start().await;
    let head = |path| [(":method", "DELETE"), (":scheme", "http"), (":authority", "a"), (":path", path)];
    for path in ["/a b", "/a\t", "/a\x01", "a", ""] {
        let outcome = frames::outcome(proxy.addr(), &head(path)).await;
        assert!(outcome.is_refusal(), "{path:?}: {outcome:?}");
    }
    assert_eq!(backend.requests().len(), 0);
    assert_eq!(frames::outcome(proxy.addr(), &head("/a#b")).await, Outcome::Answered(204));
    assert_eq!(backend.requests()[0].target, "/a", "docs/http.md tells of it");
}
