//! Clients behind a balancer of connections, which names them by the PROXY protocol.

use std::{fs, net::SocketAddr, process::Command};

use tokio::task::spawn_blocking;

use crate::support::{
    backend::Backend,
    child::Child,
    ports,
    proxy::Proxy,
    raw::{Connection, get, request_bytes},
    tls::{Curl, Office, Secure},
    wait::within,
};

const DOC: &str = "/doc";
const BALANCERS: &str = "proxy_protocol = [\"127.0.0.1\"]";
const NAMED: &str = "PROXY TCP4 192.0.2.7 127.0.0.1 12345 8080\r\n";

async fn backend() -> Backend {
    let backend = Backend::start().await;
    backend.put(DOC, "one");
    backend
}

/// A proxy that tells its backend the address of each client.
async fn proxy(backend: &Backend, lines: &str) -> Proxy {
    Proxy::to(backend.addr()).server(lines).upstream("forwarded = \"x-forwarded\"").start().await
}

/// The client that the backend was told of in its last request.
fn told(backend: &Backend) -> Option<String> {
    backend.requests().last().and_then(|request| request.header("X-Forwarded-For").map(str::to_owned))
}

#[tokio::test]
async fn the_client_that_a_balancer_names_is_the_client() {
    let backend = backend().await;
    let proxy = proxy(&backend, BALANCERS).await;
    let mut connection = Connection::open(proxy.addr()).await;
    connection.send_bytes(NAMED).await;
    // The header is for the connection, and so for each of its requests.
    for _ in 0..2 {
        assert_eq!(connection.exchange("GET", DOC, &[], "").await.status, 200);
        assert_eq!(told(&backend).as_deref(), Some("192.0.2.7"));
    }
    proxy.logged(&["client=192.0.2.7:12345"]).await;
}

#[tokio::test]
async fn a_check_of_the_balancer_itself_comes_from_the_balancer() {
    let backend = backend().await;
    let proxy = proxy(&backend, BALANCERS).await;
    let mut connection = Connection::open(proxy.addr()).await;
    connection.send_bytes("PROXY UNKNOWN\r\n").await;
    assert_eq!(connection.exchange("GET", DOC, &[], "").await.status, 200);
    assert_eq!(told(&backend).as_deref(), Some("127.0.0.1"));
}

#[tokio::test]
async fn a_balancer_that_names_no_client_gets_no_answer() {
    let backend = backend().await;
    let proxy = proxy(&backend, BALANCERS).await;
    let mut connection = Connection::open(proxy.addr()).await;
    connection.send_bytes(request_bytes("GET", DOC, &[], b"")).await;
    assert_eq!(connection.closed().await, b"", "a balancer that may name a client must");
    proxy.logged(&["reason=\"proxy-header\"", "send-proxy"]).await;
    assert_eq!(backend.count("GET", DOC), 0);
}

/// A client that may name one can pass for any other.
#[tokio::test]
async fn nobody_else_can_name_a_client() {
    let backend = backend().await;
    let proxy = proxy(&backend, "proxy_protocol = [\"192.0.2.0/24\"]").await;
    let mut connection = Connection::open(proxy.addr()).await;
    connection.send_bytes([NAMED.as_bytes(), &request_bytes("GET", DOC, &[], b"")].concat()).await;
    let answer = connection.closed().await;
    assert!(answer.starts_with(b"HTTP/1.1 400 "), "{}", answer.escape_ascii());
    assert_eq!(get(proxy.addr(), DOC).await.status, 200);
    assert_eq!(told(&backend).as_deref(), Some("127.0.0.1"));
}

/// The balancer has the connections of all clients, and each client its own share.
#[tokio::test]
async fn each_client_behind_a_balancer_has_its_share() {
    let backend = backend().await;
    let proxy = proxy(&backend, &format!("{BALANCERS}\nmax_connections_per_client = 1")).await;
    let named = |client: &str| format!("PROXY TCP4 {client} 127.0.0.1 12345 8080\r\n");
    let mut open = Vec::new();
    for client in ["192.0.2.7", "192.0.2.8"] {
        let mut connection = Connection::open(proxy.addr()).await;
        connection.send_bytes(named(client)).await;
        assert_eq!(connection.exchange("GET", DOC, &[], "").await.status, 200, "{client}");
        open.push(connection);
    }
    let mut second = Connection::open(proxy.addr()).await;
    second.send_bytes(named("192.0.2.7")).await;
    assert_eq!(second.closed().await, b"");
    proxy.logged(&["reason=\"client\"", "client=192.0.2.7"]).await;
}

#[tokio::test]
async fn the_header_comes_before_the_handshake_of_tls() {
    const NAME: &str = "proxy.example";
    let (office, backend) = (Office::new(), backend().await);
    let secure = Secure::start(Proxy::to(backend.addr()).server(BALANCERS), &[office.issue(&[NAME])], "").await;
    for flag in ["--http1.1", "--http2"] {
        let curl = || Curl::new("GET").trust(&office.ca()).arg(flag);
        assert_eq!(curl().arg("--haproxy-protocol").response(NAME, secure.addr, DOC).await.status, 200, "{flag}");
        assert_ne!(curl().send(NAME, secure.addr, DOC).await.code, 0, "{flag}");
    }
}

/// Behind the header comes the preface of HTTP/2, which a client may send at once.
#[tokio::test]
async fn the_header_comes_before_http_2_without_tls() {
    let backend = backend().await;
    let proxy = proxy(&backend, BALANCERS).await;
    let mut curl = Command::new("curl");
    curl.args([
        "--silent",
        "--fail",
        "--http2-prior-knowledge",
        "--haproxy-protocol",
        "--write-out",
        " %{http_version}",
    ]);
    curl.arg(format!("http://{}{DOC}", proxy.addr()));
    let output = within("curl", spawn_blocking(move || curl.output())).await.expect("no panic").expect("curl runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "one 2");
}

/// It gets the time that a head has.
#[tokio::test]
async fn a_header_that_does_not_end_ends_its_connection() {
    let backend = backend().await;
    let proxy = proxy(&backend, &format!("{BALANCERS}\nheader_timeout = \"1s\"")).await;
    for beginning in [&NAMED.as_bytes()[..20], b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c"] {
        let mut connection = Connection::open(proxy.addr()).await;
        connection.send_bytes(beginning).await;
        assert_eq!(connection.closed().await, b"", "{}", beginning.escape_ascii());
    }
    assert_eq!(backend.count("GET", DOC), 0);
}

/// A `HAProxy` that passes connections on, with this option for its server.
async fn haproxy(proxy: SocketAddr, option: &str) -> (Child, SocketAddr, tempfile::TempDir) {
    let (directory, listen) = (tempfile::tempdir().expect("a directory"), ports::free());
    let path = directory.path().join("haproxy.cfg");
    let text = format!(
        "defaults\n  mode tcp\n  timeout connect 5s\n  timeout client 50s\n  timeout server 50s\n\
         listen all\n  bind {listen}\n  server one {proxy} {option}\n"
    );
    fs::write(&path, text).expect("a file");
    let mut command = Command::new("haproxy");
    command.args(["-db", "-f"]).arg(&path);
    let mut haproxy = Child::spawn("haproxy", &mut command, directory.path().join("log"));
    haproxy.accepts(listen).await.unwrap_or_else(|status| panic!("it ended: {status}"));
    (haproxy, listen, directory)
}

#[tokio::test]
async fn a_real_balancer_names_its_clients_in_both_versions() {
    let backend = backend().await;
    let proxy = proxy(&backend, BALANCERS).await;
    for option in ["send-proxy", "send-proxy-v2", "send-proxy-v2 proxy-v2-options crc32c,unique-id"] {
        let (_haproxy, listen, _directory) = haproxy(proxy.addr(), option).await;
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--fail", "--interface", "127.0.0.9"]).arg(format!("http://{listen}{DOC}"));
        let output = within("curl", spawn_blocking(move || curl.output())).await.expect("no panic").expect("curl runs");
        assert_eq!(output.stdout, b"one", "{option}");
        assert_eq!(told(&backend).as_deref(), Some("127.0.0.9"), "{option}");
    }
}
