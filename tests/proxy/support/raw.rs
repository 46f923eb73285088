//! An HTTP/1.1 client that sends exactly the bytes of a test.

use std::{collections::VecDeque, io, net::SocketAddr, sync::Arc};

use tokio::{io::AsyncWriteExt, net::TcpStream, sync::Barrier};

use super::{
    message::{Framing, Head, Headers, Reader, Wire, compose, latin1, malformed},
    response::Response,
    wait::within,
};

/// One connection. Responses come in the order of the requests; pipelining is allowed.
pub struct Connection {
    wire: Wire,
    /// The methods of the requests whose responses are still to come: a response to HEAD has no body.
    methods: VecDeque<String>,
}

impl Connection {
    pub async fn open(addr: SocketAddr) -> Self {
        Self::try_open(addr).await.expect("the server accepts")
    }

    /// The same for a server that may not be there.
    pub async fn try_open(addr: SocketAddr) -> io::Result<Self> {
        let stream = within("a connection", TcpStream::connect(addr)).await?;
        Ok(Self { wire: Wire::new(stream), methods: VecDeque::new() })
    }

    /// Sends bytes. The peer must take them; see [`Self::try_send_bytes`] for one that may have closed.
    pub async fn send_bytes(&mut self, bytes: impl AsRef<[u8]>) {
        self.try_send_bytes(bytes).await.expect("the peer takes what is sent");
    }

    pub async fn try_send_bytes(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        within("the peer to take what is sent", self.wire.writer.write_all(bytes.as_ref())).await
    }

    /// Sends a request: see [`request_bytes`] for the fields that are added.
    pub async fn request(&mut self, method: &str, target: &str, headers: &[(&str, &str)], body: impl AsRef<[u8]>) {
        self.expect_response_to(method);
        self.send_bytes(request_bytes(method, target, headers, body.as_ref())).await;
    }

    /// Sends a request and reads its response.
    pub async fn exchange(
        &mut self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: impl AsRef<[u8]>,
    ) -> Response {
        self.try_exchange(method, target, headers, body).await.expect("a response")
    }

    /// Sends a request and reads its response, both at once: a server may answer before it has read everything, and
    /// may close then. After such an answer the connection is of no further use.
    pub async fn try_exchange(
        &mut self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: impl AsRef<[u8]>,
    ) -> io::Result<Response> {
        self.exchange_bytes(method, &request_bytes(method, target, headers, body.as_ref())).await
    }

    async fn exchange_bytes(&mut self, method: &str, bytes: &[u8]) -> io::Result<Response> {
        let Wire { reader, writer } = &mut self.wire;
        let both = async {
            let response = read_response(reader, method);
            tokio::pin!(response);
            tokio::select! {
                biased;
                // A write that fails is no reason not to look for the answer: it may have come before the close.
                _sent_or_not = writer.write_all(bytes) => response.await,
                early = &mut response => early,
            }
        };
        within("a response", both).await
    }

    /// Tells which method the next response answers, if the request was sent as bytes; GET is assumed else.
    pub fn expect_response_to(&mut self, method: &str) {
        self.methods.push_back(method.to_owned());
    }

    /// The next final response, with the 1xx responses before it.
    pub async fn read_response(&mut self) -> Response {
        self.try_read_response().await.expect("a response")
    }

    /// The same, if the server may close instead (`UnexpectedEof`, `ConnectionReset`).
    pub async fn try_read_response(&mut self) -> io::Result<Response> {
        let method = self.methods.pop_front().unwrap_or_else(|| "GET".to_owned());
        within("a response or a close", read_response(&mut self.wire.reader, &method)).await
    }

    /// The status and fields of the next head alone, also of a 1xx response.
    pub async fn read_head(&mut self) -> (u16, Headers) {
        let head = within("a head", self.wire.reader.read_head()).await.expect("a head");
        let head = head.expect("a head and not a close");
        (status(&head).expect("a status line"), head.headers)
    }

    /// The next `count` bytes, for those who read a body piece by piece.
    pub async fn read_bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        let read = self.wire.reader.read_body(Framing::Length(count), |piece| bytes.extend(piece));
        within("bytes of a body", read).await.expect("the body goes on");
        bytes
    }

    /// True if the server has closed by now; unread bytes before the close count as open.
    pub async fn is_closed(&mut self) -> bool {
        let Wire { reader, .. } = &mut self.wire;
        tokio::select! {
            biased;
            read = reader.fill() => reader.unread().is_empty() && !read.unwrap_or(false),
            () = tokio::task::yield_now() => false,
        }
    }

    /// Waits until the server closes, by FIN or RST, and gives back what it sent before.
    pub async fn closed(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        let read = self.wire.reader.read_body(Framing::UntilClose, |piece| rest.extend(piece));
        match within("the server to close", read).await {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::ConnectionReset, "{error}"),
        }
        rest
    }

    /// Sends FIN: nothing more is sent, and answers can still be read.
    pub async fn half_close(&mut self) {
        self.try_half_close().await.expect("the connection is open");
    }

    pub async fn try_half_close(&mut self) -> io::Result<()> {
        self.wire.writer.shutdown().await
    }

    /// Closes with RST.
    pub fn reset(self) {
        self.wire.reset();
    }
}

/// One request on a connection of its own.
pub async fn send(
    addr: SocketAddr,
    method: &str,
    target: &str,
    headers: &[(&str, &str)],
    body: impl AsRef<[u8]>,
) -> Response {
    Connection::open(addr).await.exchange(method, target, headers, body).await
}

/// GET on a connection of its own.
pub async fn get(addr: SocketAddr, target: &str) -> Response {
    send(addr, "GET", target, &[], "").await
}

/// PUT on a connection of its own.
pub async fn put(addr: SocketAddr, target: &str, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Response {
    send(addr, "PUT", target, headers, body).await
}

/// PUT with If-Match, on a connection of its own.
pub async fn put_if_match(addr: SocketAddr, target: &str, tag: &str, body: impl AsRef<[u8]>) -> Response {
    put(addr, target, &[("If-Match", tag)], body).await
}

/// PUT with If-Match, again and again until no write in flight or in doubt holds it back.
pub async fn put_when_free(addr: SocketAddr, target: &str, tag: &str, body: &str) -> Response {
    let judged = async {
        loop {
            let response = put_if_match(addr, target, tag, body).await;
            if response.status != 409 {
                return response;
            }
            response.refused(409, "write-in-flight");
        }
    };
    within("a write that is held back to be judged", judged).await
}

/// Sends requests (see [`request_bytes`]) at the same moment, each over a connection of its own that is open before. The
/// responses come back in the order of the requests; none of these may be HEAD.
pub async fn race(addr: SocketAddr, requests: Vec<Vec<u8>>) -> Vec<Response> {
    race_through(&[addr], requests).await
}

/// The same, if the requests go to these servers in turn.
pub async fn race_through(addrs: &[SocketAddr], requests: Vec<Vec<u8>>) -> Vec<Response> {
    let start = Arc::new(Barrier::new(requests.len()));
    let racers: Vec<_> = requests
        .into_iter()
        .zip(addrs.iter().copied().cycle())
        .map(|(request, addr)| {
            let start = Arc::clone(&start);
            tokio::spawn(async move {
                let mut connection = Connection::open(addr).await;
                start.wait().await;
                connection.exchange_bytes("", &request).await.expect("a response")
            })
        })
        .collect();
    let mut responses = Vec::with_capacity(racers.len());
    for racer in racers {
        responses.push(racer.await.expect("a racer reaches its end"));
    }
    responses
}

/// A request's bytes. `Host: test` is added if the fields name none, and Content-Length where there is a body and
/// the fields do not say how it ends. A body in the chunked coding is given with its chunks.
pub fn request_bytes(method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let named = |name: &str| headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
    let length = body.len().to_string();
    let mut all = Vec::new();
    if !named("host") {
        all.push(("Host", "test"));
    }
    all.extend(headers);
    let expects_body = !body.is_empty() || matches!(method, "PUT" | "POST" | "PATCH");
    if expects_body && !named("content-length") && !named("transfer-encoding") {
        all.push(("Content-Length", &length));
    }
    compose(&format!("{method} {target} HTTP/1.1"), &all, body)
}

async fn read_response(reader: &mut Reader, method: &str) -> io::Result<Response> {
    let mut informational = Vec::new();
    let (status, headers) = loop {
        let early = || io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed instead of answering");
        let head = reader.read_head().await?.ok_or_else(early)?;
        match status(&head)? {
            status @ (100 | 102..200) => informational.push((status, head.headers)),
            status => break (status, head.headers),
        }
    };
    let mut body = Vec::new();
    let mut trailers = Headers::default();
    if method != "HEAD" && !matches!(status, 101 | 204 | 304) {
        let framing = Framing::of(&headers, Framing::UntilClose)?;
        trailers = reader.read_body(framing, |piece| body.extend(piece)).await?;
    }
    Ok(Response { status, headers, body, trailers, informational })
}

fn status(head: &Head) -> io::Result<u16> {
    let line = &head.start_line;
    let code = line.strip_prefix("HTTP/1.1 ").or_else(|| line.strip_prefix("HTTP/1.0 "));
    let code = code.and_then(|rest| rest.get(..3)).and_then(|code| code.parse().ok());
    code.ok_or_else(|| malformed("a status line", latin1(&head.bytes)))
}
