//! The unguarded path with long bodies, changed protocols, and clients that go away.

use std::{net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
    time::Instant,
};

use crate::support::{
    backend::{Answer, Backend},
    h2c,
    proxy::{Proxy, Setup},
    raw::{Connection, get, put},
    wait::until,
};

const MEBIBYTE: usize = 1024 * 1024;
const LARGE: usize = 100 * MEBIBYTE;
/// More than the proxy and a few buffers take, and far less than a body.
const MEMORY_MAX_KIB: u64 = 64 * 1024;

fn unguarded(upstream: SocketAddr) -> Setup {
    Proxy::to(upstream).route("policy = \"last-writer-wins\"")
}

/// A body that repeats nowhere, in pieces of one mebibyte.
fn pieces() -> impl Iterator<Item = Vec<u8>> {
    (0..LARGE / MEBIBYTE).map(|number| {
        let mut piece = vec![0; MEBIBYTE];
        blake3::Hasher::new().update(&number.to_le_bytes()).finalize_xof().fill(&mut piece);
        piece
    })
}

fn hash_of_all() -> blake3::Hash {
    pieces().fold(blake3::Hasher::new(), |mut hasher, piece| hasher.update(&piece).clone()).finalize()
}

/// Reads a head, byte by byte so that nothing behind it is taken.
async fn read_head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.expect("a head"));
    }
    String::from_utf8(head).expect("a head of ASCII")
}

/// A server that does this with the connections that it accepts.
async fn server<F: Future<Output = ()> + Send>(
    serve: impl Fn(TcpStream) -> F + Send + 'static,
) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a loopback port");
    let addr = listener.local_addr().expect("a bound listener");
    let task = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            serve(stream).await;
        }
    });
    (addr, task)
}

#[tokio::test]
async fn a_large_download_passes_whole_in_little_memory() {
    let (addr, server) = server(|mut stream| async move {
        read_head(&mut stream).await;
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {LARGE}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.expect("the proxy reads");
        for piece in pieces() {
            stream.write_all(&piece).await.expect("the proxy reads");
        }
    })
    .await;
    let proxy = unguarded(addr).start().await;
    let mut connection = Connection::open(proxy.addr()).await;
    connection.request("GET", "/large", &[], "").await;
    assert_eq!(connection.read_head().await.0, 200);
    let mut hasher = blake3::Hasher::new();
    for _ in 0..LARGE / MEBIBYTE {
        hasher.update(&connection.read_bytes(MEBIBYTE).await);
    }
    assert_eq!(hasher.finalize(), hash_of_all());
    let peak = proxy.peak_memory_kib();
    assert!(peak < MEMORY_MAX_KIB, "{peak} KiB");
    server.abort();
}

#[tokio::test]
async fn a_large_upload_passes_whole_in_little_memory() {
    let (addr, server) = server(|mut stream| async move {
        read_head(&mut stream).await;
        let (mut hasher, mut buffer, mut left) = (blake3::Hasher::new(), vec![0; MEBIBYTE], LARGE);
        while left > 0 {
            let count = stream.read(&mut buffer).await.expect("the body");
            assert!(count > 0, "the body ends {left} bytes early");
            hasher.update(&buffer[..count]);
            left -= count;
        }
        let answer = format!("HTTP/1.1 204 No Content\r\nX-Hash: {}\r\n\r\n", hasher.finalize());
        stream.write_all(answer.as_bytes()).await.expect("the proxy reads");
    })
    .await;
    let proxy = unguarded(addr).start().await;
    let mut connection = Connection::open(proxy.addr()).await;
    connection.send_bytes(format!("PUT /large HTTP/1.1\r\nHost: a\r\nContent-Length: {LARGE}\r\n\r\n")).await;
    for piece in pieces() {
        connection.send_bytes(piece).await;
    }
    let response = connection.read_response().await;
    assert_eq!((response.status, response.header("x-hash")), (204, Some(hash_of_all().to_string().as_str())));
    let peak = proxy.peak_memory_kib();
    assert!(peak < MEMORY_MAX_KIB, "{peak} KiB");
    server.abort();
}

/// Pingora 0.9.1 would end the chunked body twice, and the second end would be the next request of that connection.
#[tokio::test]
async fn an_h2c_upload_that_ends_with_an_empty_frame_is_ended_once() {
    let backend = Backend::start().await;
    let proxy = unguarded(backend.addr()).start().await;
    let mut connection = h2c::Connection::open(proxy.addr()).await;
    for body in ["hello", ""] {
        let mut stream = connection.begin("PUT", "/a", &[]).await;
        if !body.is_empty() {
            stream.send(body).await;
        }
        stream.end();
        let status = stream.response().await.status;
        assert!(matches!(status, 201 | 204), "{status}");
        assert_eq!(backend.content("/a").as_deref(), Some(body));
    }
    drop(proxy);
    until("the backend to have read all", || backend.open_connections() == 0).await;
    assert_eq!(backend.take_malformed(), [""; 0]);
}

/// A server that changes to an echo of bytes, and tells what it was asked.
async fn echo() -> (SocketAddr, JoinHandle<()>) {
    server(|mut stream| async move {
        let head = read_head(&mut stream).await.to_ascii_lowercase();
        assert!(head.contains("\r\nupgrade: websocket\r\n") && head.contains("\r\nconnection: upgrade\r\n"), "{head}");
        // The length has no meaning here (RFC 9110 section 8.6), but some servers write one.
        let answer = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                      Content-Length: 0\r\n\r\n";
        stream.write_all(answer.as_bytes()).await.expect("the proxy reads");
        let (mut reader, mut writer) = stream.split();
        // Ends when the proxy closes.
        let _over = tokio::io::copy(&mut reader, &mut writer).await;
    })
    .await
}

/// RFC 6455: on a guarded route too, if the route permits it.
#[tokio::test]
async fn p22_a_websocket_passes() {
    for policy in ["policy = \"last-writer-wins\"", "policy = \"optimistic\"\nwebsocket = true"] {
        let (addr, server) = echo().await;
        let proxy = Proxy::to(addr).route(policy).start().await;
        let mut connection = Connection::open(proxy.addr()).await;
        let upgrade = [("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13")];
        connection.request("GET", "/socket", &upgrade, "").await;
        let (status, headers) = connection.read_head().await;
        assert_eq!((status, headers.get("upgrade")), (101, Some("websocket")), "{policy}");
        assert_eq!(headers.get("content-length"), None, "{policy}");
        for message in ["one", "two, a longer one"] {
            connection.send_bytes(message).await;
            assert_eq!(connection.read_bytes(message.len()).await, message.as_bytes(), "{policy}");
        }
        connection.half_close().await;
        assert_eq!(connection.closed().await, b"", "{policy}");
        server.abort();
    }
}

/// DESIGN, section 4: a connection that changed its protocol could carry anything.
#[tokio::test]
async fn upgrade_is_removed_from_guarded_requests_and_they_are_judged() {
    let backend = Backend::start().await;
    backend.put("/doc", "current");
    let proxy = Proxy::to(backend.addr()).start().await;
    for protocol in ["websocket", "h2c", "TLS/1.0"] {
        let upgrade = [("Connection", "Upgrade"), ("Upgrade", protocol)];
        put(proxy.addr(), "/doc", &upgrade, "x").await.refused(428, "precondition-required");
        let create = [upgrade[0], upgrade[1], ("If-None-Match", "*")];
        let target = format!("/new/{protocol}");
        assert_eq!(put(proxy.addr(), &target, &create, "whole").await.status, 201);
        assert_eq!(backend.content(&target).as_deref(), Some("whole"));
    }
    let requests = backend.requests();
    assert_eq!(backend.count("PUT", "*"), 3);
    assert!(requests.iter().all(|request| !request.headers.contains("upgrade")), "{requests:?}");
}

/// How long a connection of this first message stays open.
async fn open_for(addr: SocketAddr, message: &'static [u8]) -> Duration {
    let begin = Instant::now();
    let mut connection = Connection::open(addr).await;
    connection.send_bytes(message).await;
    connection.closed().await;
    begin.elapsed()
}

#[tokio::test]
async fn idle_connections_are_closed() {
    let backend = Backend::start().await;
    let proxy = unguarded(backend.addr()).server("keepalive_timeout = \"1s\"").start().await;
    let h2_preface_and_settings = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    // The last three say nothing, or not enough to tell which protocol they speak.
    let messages: [&[u8]; 5] =
        [b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n", h2_preface_and_settings, b"", b"GET", b"PRI * HTTP/2.0"];
    let addr = proxy.addr();
    let connections = messages.map(|message| (message, tokio::spawn(open_for(addr, message))));
    for (message, open) in connections {
        let open = open.await.expect("the connection is closed");
        let message = message.escape_ascii();
        assert!((Duration::from_millis(900)..Duration::from_secs(19)).contains(&open), "{open:?} after \"{message}\"");
    }
}

/// A request may be shorter than the preface of HTTP/2: health checks of load balancers are. Without a Host, as HTTP/1.0
/// allows, the backend gets the name of the server.
#[tokio::test]
async fn a_short_request_is_answered() {
    for policy in ["last-writer-wins", "optimistic"] {
        let backend = Backend::start().await;
        let proxy = Proxy::to(backend.addr()).route(&format!("policy = \"{policy}\"")).start().await;
        for (method, request) in [("GET", "GET / HTTP/1.0\r\n\r\n"), ("OPTIONS", "OPTIONS / HTTP/1.0\r\n\r\n")] {
            let mut connection = Connection::open(proxy.addr()).await;
            connection.expect_response_to(method);
            connection.send_bytes(request).await;
            assert!(connection.read_response().await.headers.contains("via"), "{policy} {method}");
            let request = &backend.seen(method, "/")[0];
            assert_eq!(request.header("host"), Some(backend.addr().to_string().as_str()), "{policy} {method}");
            assert_eq!(request.header("via"), Some("1.0 ifmatch"), "{policy} {method}");
        }
    }
}

/// A client that vanishes takes nothing with it but its own exchange.
#[tokio::test]
async fn a_client_that_aborts_breaks_no_other() {
    let backend = Backend::start().await;
    let proxy = unguarded(backend.addr()).start().await;
    backend.put("/doc", "current");
    backend.always("GET", "/large", |_| Answer::status(200).body(vec![b'x'; 4 * MEBIBYTE]));
    let mut other = Connection::open(proxy.addr()).await;
    assert_eq!(other.exchange("GET", "/doc", &[], "").await.text(), "current");

    let mut download = Connection::open(proxy.addr()).await;
    download.request("GET", "/large", &[], "").await;
    assert_eq!(download.read_head().await.0, 200);
    download.read_bytes(1000).await;
    download.reset();
    let mut upload = Connection::open(proxy.addr()).await;
    upload.send_bytes("PUT /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf").await;
    backend.reached("PUT", "/upload", 1).await;
    upload.reset();
    let mut h2_upload = h2c::Connection::open(proxy.addr()).await;
    let stream = h2_upload.begin("PUT", "/h2", &[]).await;
    backend.reached("PUT", "/h2", 1).await;
    stream.reset(h2::Reason::CANCEL);

    assert_eq!(other.exchange("GET", "/doc", &[], "").await.text(), "current");
    assert_eq!(h2_upload.exchange("GET", "/doc", &[], "").await.text(), "current");
    assert_eq!(get(proxy.addr(), "/doc").await.text(), "current");
    let is_broken_off = |target: &&str| backend.events().contains(&format!("PUT {target} broken off"));
    until("uploads to be broken off", || ["/upload", "/h2"].iter().all(is_broken_off)).await;
    assert_eq!(backend.content("/upload"), None);
    assert!(!proxy.log().contains("panicked"));
}
