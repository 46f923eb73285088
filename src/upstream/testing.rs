//! Shared parts of this module's tests: upstreams that follow a script, over real sockets.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::Method;
use pingora::http::RequestHeader;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream},
};

use super::{Choice, Exchange, Exchanger, Failure, Purpose, WantedPlace, fields::request_head};
use crate::{
    body::{Body, BodyBudget, Content, MemoryUse, Share},
    config::Upstream,
    core::http::client_address::ClientAddress,
    testing,
};

/// Long enough for any exchange that is meant to succeed.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// The upstream's timeout in tests that wait for it: more than a busy machine takes for what comes before the wait.
pub(super) const SHORT: Duration = Duration::from_secs(1);

impl Exchanger {
    /// Creates two empty pools, with an empty set of upstreams.
    pub(super) fn new() -> Self {
        Self::to(Arc::default())
    }
}

pub(super) async fn listen() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
    let server = listener.local_addr().unwrap().to_string();
    (listener, server)
}

/// Returns an address that refuses connections as long as the socket lives.
pub(super) fn refusing_server() -> (TcpSocket, String) {
    let deaf = TcpSocket::new_v4().unwrap();
    deaf.bind(([127, 0, 0, 1], 0).into()).unwrap();
    let address = deaf.local_addr().unwrap().to_string();
    (deaf, address)
}

pub(super) fn upstream(servers: &[&str]) -> Upstream {
    Upstream {
        name: "test".into(),
        identity: "test".into(),
        connect_timeout: PATIENCE,
        timeout: PATIENCE,
        late_write_window: PATIENCE,
        reuse_idle_writes: PATIENCE,
        read_timeout: PATIENCE,
        write_timeout: PATIENCE,
        ..testing::upstream(servers.iter().map(ToString::to_string).collect())
    }
}

pub(super) fn body(bytes: impl Into<Bytes>) -> Body {
    let (bytes, budget) = (bytes.into(), Arc::new(BodyBudget::new(0, 0)));
    let (len, digest) = (bytes.len() as u64, blake3::hash(&bytes));
    Body::received(Content::Memory(bytes), len, digest, Share::none_of(&budget, MemoryUse::Body))
}

/// A place at any server.
pub(super) const TURN: WantedPlace<'static> = at(Choice::Turn);

/// A place at one of these servers, for a client that is not known.
pub(super) const fn at(choice: Choice<'_>) -> WantedPlace<'_> {
    WantedPlace { choice, client: ClientAddress::Local }
}

/// Returns the head of a request as the upstream receives it.
pub(super) fn head(method: Method, body: &Body) -> Box<RequestHeader> {
    let mut client = RequestHeader::build(method, b"/thing", None).unwrap();
    client.insert_header("Host", "example.com").unwrap();
    request_head(&client, body.len()).unwrap()
}

/// Sends a write over the connection that the exchanger chooses for it.
pub(super) async fn write(
    exchanger: &Exchanger,
    upstream: &Arc<Upstream>,
    method: Method,
    body: &Body,
) -> Result<Exchange, Failure> {
    exchanger.connect(upstream, TURN, Purpose::Write).await?.send(head(method, body), body).await
}

/// Reads a request's head, byte by byte so that nothing after it is consumed. Returns `None` if the connection ends.
pub(super) async fn read_head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    Some(String::from_utf8(head).unwrap())
}

/// Reads a request with its body.
pub(super) async fn read_request(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let head = read_head(stream).await?;
    let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).await.ok()?;
    Some((head, body))
}

/// Answers one request on a new connection with these bytes, and closes it.
pub(super) async fn answer_once(listener: &TcpListener, response: &str) -> (String, Vec<u8>) {
    let (mut stream, _) = listener.accept().await.unwrap();
    let request = read_request(&mut stream).await.expect("a request arrives");
    stream.write_all(response.as_bytes()).await.unwrap();
    request
}

/// Returns the whole body of a response.
pub(super) async fn collect(exchange: &mut Exchange) -> Result<Vec<u8>, Failure> {
    let mut body = Vec::new();
    while let Some(chunk) = exchange.next_chunk().await? {
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}
