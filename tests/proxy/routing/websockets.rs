//! WebSocket handshakes on guarded routes (DESIGN, section 4): each is judged as a read, lease and all.

use std::net::SocketAddr;

use crate::support::{
    backend::{Answer, Backend},
    leases::acquire,
    proxy::Proxy,
    raw::{Connection, get},
    response::Response,
};

const SOCKET: &str = "/socket";
const UPGRADE: [(&str, &str); 3] =
    [("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13")];
const SWITCHES: &str = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";

async fn start(lines: &str) -> (Backend, Proxy) {
    let backend = Backend::start().await;
    backend.put(SOCKET, "content");
    let proxy = Proxy::to(backend.addr()).route(lines).start().await;
    (backend, proxy)
}

/// A handshake with these fields.
async fn shake_hands(addr: SocketAddr, fields: &[(&str, &str)]) -> Connection {
    let mut connection = Connection::open(addr).await;
    connection.request("GET", SOCKET, &[&UPGRADE[..], fields].concat(), "").await;
    connection
}

async fn handshake(addr: SocketAddr, fields: &[(&str, &str)]) -> Response {
    let mut connection = shake_hands(addr, fields).await;
    connection.expect_response_to("GET");
    connection.read_response().await
}

/// Checks that a handshake with these fields opens a tunnel, and gives what the backend was asked.
async fn tunnels(backend: &Backend, addr: SocketAddr, fields: &[(&str, &str)]) -> crate::support::backend::Request {
    let upgrade = backend.hold("GET", SOCKET);
    let mut client = shake_hands(addr, fields).await;
    let mut server = upgrade.arrived().await;
    let asked = server.request();
    server.send_bytes(SWITCHES).await;
    let (status, headers) = client.read_head().await;
    assert_eq!((status, headers.get("upgrade")), (101, Some("websocket")));
    server.send_bytes("from the server").await;
    assert_eq!(client.read_bytes(15).await, b"from the server");
    client.send_bytes("from the client").await;
    drop(client);
    server.peer_closed().await;
    assert_eq!(
        backend.take_malformed(),
        ["stray bytes: \"from the client\""],
        "nobody looks at what passes the tunnel"
    );
    asked
}

/// B3: a route that is guarded and says nothing of WebSocket.
#[tokio::test]
async fn an_upgrade_that_is_removed_is_told_of_in_the_log_once() {
    let (backend, proxy) = start("").await;
    backend.always("GET", SOCKET, |_| Answer::status(426).header("Upgrade", "websocket"));
    assert_eq!(get(proxy.addr(), SOCKET).await.status, 426);
    assert!(!proxy.log().contains("websocket = true"), "the client asked for no upgrade");
    for _ in 0..2 {
        assert_eq!(handshake(proxy.addr(), &[]).await.status, 426);
    }
    assert_eq!(proxy.logged(&["WARN", "websocket = true"]).await.len(), 1);
}

/// Otherwise a client that asks for another protocol could read a resource that no client may read.
#[tokio::test]
async fn a_handshake_is_a_read_where_the_route_does_not_say_otherwise() {
    let (backend, proxy) = start("").await;
    let tag = get(proxy.addr(), SOCKET).await.etag();
    let read = handshake(proxy.addr(), &[]).await;
    assert_eq!((read.status, read.text(), read.etag()), (200, "content", tag.clone()));
    assert_eq!(handshake(proxy.addr(), &[("If-None-Match", &tag)]).await.status, 304);
    assert!(backend.requests().iter().all(|request| !request.headers.contains("upgrade")));
}

#[tokio::test]
async fn a_handshake_opens_a_tunnel_where_the_route_says_so() {
    let (backend, proxy) = start("websocket = true").await;
    let asked = tunnels(&backend, proxy.addr(), &[("Lease-Duration", "30"), ("If-None-Match", "\"x\"")]).await;
    assert_eq!(asked.header("upgrade"), Some("websocket"));
    for name in ["if-none-match", "lease-duration"] {
        assert_eq!(asked.header(name), None, "the backend knows nothing of {name}");
    }
}

#[tokio::test]
async fn a_handshake_reads_nothing_that_somebody_elses_lease_guards() {
    for websocket in [false, true] {
        let lines = "policy = \"pessimistic\"\nlease.min = \"1s\"\nlease.guards = [\"read\", \"write\"]";
        let (backend, proxy) = start(&format!("websocket = {websocket}\n{lines}")).await;
        let addr = proxy.addr();
        let grant = acquire(addr, SOCKET, "30").await;
        let before = backend.requests().len();
        handshake(addr, &[]).await.refused(412, "lease-id-missing");
        let other = "11111111-1111-4111-8111-111111111111";
        handshake(addr, &[("Lease-Id", other)]).await.refused(412, "lease-id-mismatch");
        handshake(addr, &[("Lease-Id", "none")]).await.refused(400, "malformed-lease-header");
        assert_eq!(backend.requests().len(), before, "refused means untouched");
        if websocket {
            let asked = tunnels(&backend, addr, &[("Lease-Id", &grant.id)]).await;
            assert_eq!(asked.header("fencing-token"), Some(&*grant.fence.to_string()));
            assert_eq!(asked.header("lease-id"), None);
        } else {
            let read = handshake(addr, &[("Lease-Id", &grant.id)]).await;
            assert_eq!((read.status, read.text()), (200, "content"));
        }
    }
}

/// Only a 101 opens the tunnel: all else is content, and has a label and a verdict.
#[tokio::test]
async fn an_answer_that_opens_no_tunnel_is_that_of_a_read() {
    let (backend, proxy) = start("websocket = true").await;
    let addr = proxy.addr();
    let tag = get(addr, SOCKET).await.etag();
    let read = handshake(addr, &[]).await;
    assert_eq!((read.status, read.text(), read.etag()), (200, "content", tag.clone()));
    assert_eq!(handshake(addr, &[("If-None-Match", &tag)]).await.status, 304);
    handshake(addr, &[("If-Match", "\"other\"")]).await.refused(412, "precondition-failed");
    backend.always("GET", SOCKET, |_| Answer::status(426).header("Upgrade", "websocket").body("use WebSocket"));
    let refused = handshake(addr, &[]).await;
    assert_eq!((refused.status, refused.text(), refused.header("etag")), (426, "use WebSocket", None));
}

#[tokio::test]
async fn a_handshake_that_nobody_answers_is_told_so() {
    let (backend, proxy) = start("websocket = true").await;
    backend.once("GET", SOCKET, Answer::close());
    handshake(proxy.addr(), &[]).await.refused(502, "upstream-failed");
    backend.go_away().await;
    handshake(proxy.addr(), &[]).await.refused(502, "upstream-failed");
}
