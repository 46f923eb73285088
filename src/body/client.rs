//! The client of a request, as a seam: a session of pingora, or a simulated one.

use std::pin::Pin;

use bytes::Bytes;
use pingora::http::RequestHeader;

/// A wait for something on the other side of a seam.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The client of one request, whose head is here.
pub trait Client: Send {
    /// The head of the request, as it came.
    fn head(&self) -> &RequestHeader;

    /// Whether content follows the head.
    fn has_content(&mut self) -> bool;

    /// The hash of the certificate that the client has proved to have.
    fn certificate(&self) -> Option<&[u8]>;

    /// Tells a client that waits for `100 Continue` (RFC 9110 section 10.1.1) to send its content.
    fn invite_content(&mut self) -> BoxFuture<'_, pingora::Result<()>>;

    /// The next bytes of the content, which may be empty; `None` at its end.
    fn next_chunk(&mut self) -> BoxFuture<'_, pingora::Result<Option<Bytes>>>;

    /// Ends when the client has gone; never while it still has content to send, which alone would tell.
    fn gone(&mut self) -> BoxFuture<'_, Box<pingora::Error>>;
}
