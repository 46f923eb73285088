//! An HTTP/2 client without TLS (prior knowledge, RFC 9113 section 3.3) that sends single frames.

use std::net::SocketAddr;

use bytes::Bytes;
use h2::{
    Reason, SendStream,
    client::{ResponseFuture, SendRequest},
};
use tokio::{net::TcpStream, task::JoinHandle};

use super::{message::Headers, response::Response, wait::within};

/// One connection; its streams may be used at the same time.
pub struct Connection {
    requests: SendRequest<Bytes>,
    driver: JoinHandle<()>,
}

/// A request whose HEADERS frame is sent and whose stream is open.
pub struct Stream {
    body: SendStream<Bytes>,
    response: ResponseFuture,
}

impl Connection {
    pub async fn open(addr: SocketAddr) -> Self {
        let stream = within("a connection", TcpStream::connect(addr)).await.expect("the server accepts");
        stream.set_nodelay(true).expect("TCP_NODELAY");
        let handshake = within("an HTTP/2 handshake", h2::client::handshake(stream)).await;
        let (requests, connection) = handshake.expect("an HTTP/2 handshake");
        // How the connection ends is seen by its streams.
        let driver = tokio::spawn(async move { drop(connection.await) });
        Self { requests, driver }
    }

    /// Waits until the server takes no more streams (GOAWAY).
    pub async fn goes_away(&self) {
        let refuses = async {
            while std::future::poll_fn(|context| self.requests.clone().poll_ready(context)).await.is_ok() {
                tokio::task::yield_now().await;
            }
        };
        within("the server to take no more streams", refuses).await;
    }

    /// Sends HEADERS without `END_STREAM`: a body may follow. A target without an authority is one of `test`.
    pub async fn begin(&mut self, method: &str, target: &str, headers: &[(&str, &str)]) -> Stream {
        self.send_head(method, target, headers, false).await
    }

    /// Sends HEADERS with `END_STREAM`: there is no body.
    pub async fn begin_without_body(&mut self, method: &str, target: &str, headers: &[(&str, &str)]) -> Stream {
        self.send_head(method, target, headers, true).await
    }

    /// Sends a request and reads its response. Without a body `END_STREAM` is on HEADERS, else on the last DATA frame.
    pub async fn exchange(
        &mut self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: impl AsRef<[u8]>,
    ) -> Response {
        let body = body.as_ref();
        if body.is_empty() {
            return self.begin_without_body(method, target, headers).await.response().await;
        }
        let mut stream = self.begin(method, target, headers).await;
        // A server may answer, and stop reading, before it has read all: the response tells.
        let _sent_or_not = stream.try_send(body, true).await;
        stream.response().await
    }

    async fn send_head(&mut self, method: &str, target: &str, headers: &[(&str, &str)], end: bool) -> Stream {
        let host = if target.starts_with('/') { "http://test" } else { "" };
        let mut request = http::Request::builder().method(method).uri(format!("{host}{target}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.version(http::Version::HTTP_2).body(()).expect("a request");
        let ready = within("room for a stream", self.requests.clone().ready()).await;
        let (response, body) = ready.expect("an open connection").send_request(request, end).expect("a request");
        Stream { body, response }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Stream {
    /// Sends DATA frames up to the limit of flow control, without `END_STREAM`.
    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.try_send(bytes, false).await.expect("the server takes the body");
    }

    /// Sends DATA frames, `END_STREAM` on the last of them.
    pub async fn send_last(&mut self, bytes: impl AsRef<[u8]>) {
        self.try_send(bytes, true).await.expect("the server takes the body");
    }

    /// Sends `END_STREAM` on an empty DATA frame.
    pub fn end(&mut self) {
        self.body.send_data(Bytes::new(), true).expect("an open stream");
    }

    /// The same as [`Self::send`] and [`Self::send_last`], if the server may have reset the stream.
    pub async fn try_send(&mut self, bytes: impl AsRef<[u8]>, end: bool) -> Result<(), h2::Error> {
        let mut rest = Bytes::copy_from_slice(bytes.as_ref());
        while !rest.is_empty() {
            self.body.reserve_capacity(rest.len());
            let capacity = std::future::poll_fn(|context| self.body.poll_capacity(context));
            let Some(capacity) = within("flow control to let a body go", capacity).await.transpose()? else {
                return Err(Reason::STREAM_CLOSED.into());
            };
            let piece = rest.split_to(capacity.min(rest.len()));
            self.body.send_data(piece, end && rest.is_empty())?;
        }
        Ok(())
    }

    /// Sends `RST_STREAM`.
    pub fn reset(mut self, reason: Reason) {
        self.body.send_reset(reason);
    }

    /// Waits for the status of the final response; sending may go on.
    pub async fn status(&mut self) -> u16 {
        within("a response", &mut self.response).await.expect("a response").status().as_u16()
    }

    pub async fn response(self) -> Response {
        self.try_response().await.expect("a response")
    }

    /// Ends the request as soon as the head of the response is there, before its declared length, as curl does. What came
    /// of the response, and the reset that such an end earns where it came before the rest.
    pub async fn cut_short(mut self) -> (Response, Option<h2::Error>) {
        within("a response", async {
            let (head, mut stream) = (&mut self.response).await.expect("a response").into_parts();
            self.body.send_data(Bytes::new(), true).expect("the stream is open");
            let (mut body, mut reset) = (Vec::new(), None);
            while let (None, Some(piece)) = (&reset, stream.data().await) {
                match piece {
                    Ok(piece) => body.extend(piece),
                    Err(error) => reset = Some(error),
                }
            }
            let headers = fields(&head.headers);
            let status = head.status.as_u16();
            (Response { status, headers, body, trailers: Headers::default(), informational: Vec::new() }, reset)
        })
        .await
    }

    /// The response, if the server may reset the stream instead.
    pub async fn try_response(mut self) -> Result<Response, h2::Error> {
        within("a response", async {
            let mut informational = Vec::new();
            while let Some(early) = self.response_head().await {
                let early = early?;
                informational.push((early.status().as_u16(), fields(early.headers())));
            }
            let (head, mut stream) = (&mut self.response).await?.into_parts();
            let mut body = Vec::new();
            while let Some(piece) = stream.data().await {
                let piece = piece?;
                stream.flow_control().release_capacity(piece.len())?;
                body.extend(piece);
            }
            let trailers = stream.trailers().await?.as_ref().map(fields).unwrap_or_default();
            Ok(Response { status: head.status.as_u16(), headers: fields(&head.headers), body, trailers, informational })
        })
        .await
    }

    async fn response_head(&mut self) -> Option<Result<http::Response<()>, h2::Error>> {
        std::future::poll_fn(|context| self.response.poll_informational(context)).await
    }
}

fn fields(map: &http::HeaderMap) -> Headers {
    let field = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
        (name.to_string(), super::message::latin1(value.as_bytes()))
    };
    Headers(map.iter().map(field).collect())
}
