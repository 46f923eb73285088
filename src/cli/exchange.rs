//! One request and its answer, on a connection of their own.

use std::error::Error;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

/// The largest content that is read, in bytes.
const CONTENT_BYTES: usize = 16 * 1024 * 1024;

/// Sends a request on a new connection, and reads its answer.
pub(super) async fn exchange<S>(
    stream: S,
    request: Request<Full<Bytes>>,
) -> Result<Response<Bytes>, Box<dyn Error + Send + Sync>>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // The connection ends with the answer; the request reports how it ended.
    tokio::spawn(async move { drop(connection.await) });
    let (head, content) = sender.send_request(request).await?.into_parts();
    let content = Limited::new(content, CONTENT_BYTES).collect().await?;
    Ok(Response::from_parts(head, content.to_bytes()))
}
