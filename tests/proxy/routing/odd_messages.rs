//! Odd messages to guarded resources and to others. The tables show the fate of a message.

use std::net::SocketAddr;

use crate::support::{
    backend::{Answer, Backend},
    h2c,
    leases::{Grant, acquire, is_in_line, leasing_versions, release},
    proxy::Proxy,
    raw::{Connection, get},
};

/// The part of the proxy that has the exchange with the backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exchange {
    Guarded,
    Forwarded,
}

const EXCHANGES: [Exchange; 2] = [Exchange::Guarded, Exchange::Forwarded];

impl Exchange {
    fn target(self) -> &'static str {
        if self == Self::Guarded { "/guarded" } else { "/open" }
    }

    fn read(self) -> String {
        format!("GET {} HTTP/1.1\r\nHost: a\r\n\r\n", self.target())
    }
}

async fn start() -> (Backend, Proxy) {
    let backend = Backend::start().await;
    let open = "\n[[routes]]\npath = \"/open\"\nupstream = \"backend\"\npolicy = \"last-writer-wins\"\n";
    let setup = Proxy::to(backend.addr()).upstream("timeout = \"3s\"").route("etag = \"content\"");
    let file = setup.on_one_thread().configuration();
    let proxy = Proxy::start(&(file + open)).await;
    backend.put("/guarded", "one");
    backend.put("/open", "one");
    (backend, proxy)
}

/// Returns the answer that a client gets for a read if the backend answers with these bytes: the status with the
/// content, or with the part of it before the connection broke off.
async fn read_of(backend: &Backend, proxy: &Proxy, exchange: Exchange, answer: &str) -> String {
    backend.always("GET", exchange.target(), {
        let answer = answer.to_owned();
        move |_| Answer::raw(&answer)
    });
    let mut connection = Connection::open(proxy.addr()).await;
    connection.send_bytes(exchange.read()).await;
    match connection.try_read_response().await {
        Ok(response) if response.status >= 400 => format!("{} {}", response.status, response.problem().code),
        Ok(response) => {
            let tagged = if response.headers.get("etag").is_some() { " tagged" } else { "" };
            format!("{} {}{tagged}", response.status, response.text())
        }
        Err(error) => format!("broken off: {:?}", error.kind()),
    }
}

const FAILED: &str = "502 upstream-failed";
const BROKEN_OFF: &str = "broken off: UnexpectedEof";
const PLAIN: &str = "200 one";
const TAGGED: &str = "200 one tagged";
const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

/// RFC 9112 sections 6.1 and 7.1, RFC 9110 sections 15.2 and 15.2.2
#[tokio::test]
async fn odd_answers_of_the_upstream() {
    let (backend, proxy) = start().await;
    let coded = |coding: &str| format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: {coding}\r\n\r\n3\r\none\r\n0\r\n\r\n");
    let interim = |count: usize| {
        let early = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".repeat(count);
        format!("{early}HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none")
    };
    let switched = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n";
    let single = format!("{CHUNKED}1\r\no\r\n1\r\nn\r\n1\r\ne\r\n0\r\n\r\n");
    // The answer of the backend, and that of the proxy by each exchange.
    let cases: [(&str, String, [&str; 2]); 11] = [
        ("chunks", coded("chunked"), [TAGGED, PLAIN]),
        ("a coding that nobody asked for", coded("gzip"), [FAILED, FAILED]),
        ("an unknown coding", coded("xchunked"), [FAILED, FAILED]),
        ("the coding twice", coded("chunked, chunked"), [FAILED, FAILED]),
        ("another coding before it", coded("gzip, chunked"), [FAILED, FAILED]),
        ("a tunnel that nobody asked for", switched.to_owned(), [FAILED, FAILED]),
        ("interim responses", interim(16), [TAGGED, PLAIN]),
        ("interim responses without end", interim(17), [FAILED, FAILED]),
        ("chunks of one byte", single, [TAGGED, PLAIN]),
        ("a chunk without a size", format!("{CHUNKED}3\r\none\r\n\r\n\r\n"), [FAILED, BROKEN_OFF]),
        ("no last chunk", format!("{CHUNKED}3\r\none\r\n"), [FAILED, BROKEN_OFF]),
    ];
    let mut wrong = Vec::new();
    for (what, answer, outcomes) in cases {
        for (exchange, expected) in EXCHANGES.into_iter().zip(outcomes) {
            let found = read_of(&backend, &proxy, exchange, &answer).await;
            if found != expected {
                wrong.push(format!("{what}, {exchange:?}: {found:?} and not {expected:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// RFC 9112 sections 2.2 and 9.3.2: more than a request, in one piece with it. The answer is that of the request. It tells
/// that the connection ends, unless nothing or a whole head follows.
#[tokio::test]
async fn more_than_a_request_does_not_change_its_answer() {
    let (_backend, proxy) = start().await;
    for exchange in EXCHANGES {
        let next = "GET /open HTTP/1.1\r\nHost: a\r\n\r\n";
        for (more, rest) in [("X", None), (&next[..9], None), ("\r\n", Some(next)), (next, Some(""))] {
            let mut connection = Connection::open(proxy.addr()).await;
            connection.send_bytes(exchange.read() + more).await;
            let response = connection.read_response().await;
            let found = (response.status, response.text(), response.headers.all("connection"));
            let told = if rest.is_some() { "keep-alive" } else { "close" };
            assert_eq!(found, (200, "one", vec![told]), "{exchange:?} {more:?}");
            let Some(rest) = rest else {
                assert_eq!(connection.closed().await, b"", "{exchange:?} {more:?}");
                continue;
            };
            connection.send_bytes(rest).await;
            assert_eq!(connection.read_response().await.text(), "one", "{exchange:?} {more:?}");
        }
    }
}

/// The same, if the rest comes while the request is with the backend.
#[tokio::test]
async fn more_than_a_request_does_not_end_its_exchange() {
    let (backend, proxy) = start().await;
    for exchange in EXCHANGES {
        for more in ["X", "\r\n"] {
            let held = backend.hold("GET", exchange.target());
            let mut connection = Connection::open(proxy.addr()).await;
            connection.send_bytes(exchange.read()).await;
            let held = held.arrived().await;
            connection.send_bytes(more).await;
            is_read(proxy.addr()).await;
            held.answer(Answer::stored()).await;
            assert_eq!(connection.read_response().await.status, 200, "{exchange:?} {more:?}");
        }
    }
}

/// Waits until the one thread of the proxy has read what was sent to it.
async fn is_read(addr: SocketAddr) {
    for _ in 0..3 {
        assert_eq!(get(addr, "/none").await.status, 404);
    }
}

/// RFC 7240 section 4.3: a wait for a lease goes on, and what came with it is no end of the client.
#[tokio::test]
async fn more_than_a_request_does_not_end_a_wait_for_a_lease() {
    let backend = Backend::start().await;
    backend.put("/doc", "one");
    let proxy = leasing_versions(&backend).on_one_thread().start().await;
    for (more, told) in [("X", "close"), ("\r\n", "keep-alive")] {
        let first = acquire(proxy.addr(), "/doc", "60").await;
        let probes = backend.count("HEAD", "/doc");
        let mut waiting = Connection::open(proxy.addr()).await;
        waiting.request("POST", "/.leases/doc", &[("Prefer", "wait=20"), ("Lease-Duration", "60")], "").await;
        backend.reached("HEAD", "/doc", probes + 1).await;
        is_in_line(proxy.addr(), "/doc").await;
        waiting.send_bytes(more).await;
        is_in_line(proxy.addr(), "/doc").await;
        release(proxy.addr(), "/doc", &first.id).await;
        let granted = waiting.read_response().await;
        assert_eq!((granted.status, granted.headers.all("connection")), (201, vec![told]), "{more:?}");
        release(proxy.addr(), "/doc", &Grant::of(&granted).id).await;
    }
}

/// RFC 9113 section 8.2.3: HTTP/2 splits Cookie, and HTTP/1.1 has one line.
#[tokio::test]
async fn cookies_of_http_2_become_one_line() {
    let (backend, proxy) = start().await;
    let mut connection = h2c::Connection::open(proxy.addr()).await;
    for exchange in EXCHANGES {
        let response = connection.exchange("GET", exchange.target(), &[("cookie", "a=1"), ("cookie", "b=2")], "").await;
        assert_eq!(response.status, 200);
        let seen = backend.seen("GET", exchange.target()).pop().expect("a read");
        assert_eq!(seen.headers.all("cookie"), ["a=1; b=2"], "{exchange:?}");
    }
}

/// RFC 9110 section 7.8: without `Connection`, the field is not for the next hop.
#[tokio::test]
async fn an_upgrade_without_a_connection_opens_nothing() {
    let (backend, proxy) = start().await;
    for exchange in EXCHANGES {
        let mut connection = Connection::open(proxy.addr()).await;
        let response = connection.exchange("GET", exchange.target(), &[("Upgrade", "websocket")], "").await;
        assert_eq!((response.status, response.text()), (200, "one"), "{exchange:?}");
        let seen = backend.seen("GET", exchange.target()).pop().expect("a read");
        assert_eq!(seen.header("upgrade"), None, "{exchange:?}");
    }
}
