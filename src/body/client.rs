//! The client of a request, as a seam: a session of either protocol, or a simulated client.

use std::sync::Arc;

use bytes::Bytes;
use pingora::http::RequestHeader;

use super::Body;
use crate::box_future::BoxFuture;

/// The client of one request, whose head has arrived.
pub trait Client: Send {
    /// The head of the request, as received. It is shared, because few requests change what they forward of it.
    fn head(&self) -> &Arc<RequestHeader>;

    /// True if content follows the head.
    fn has_content(&mut self) -> bool;

    /// The hash of the certificate that the client has proved to own.
    fn certificate(&self) -> Option<&[u8]>;

    /// True if its connection is one of TLS.
    fn is_secure(&self) -> bool {
        false
    }

    /// Tells a client that waits for `100 Continue` (RFC 9110 section 10.1.1) to send its content.
    fn invite_content(&mut self) -> BoxFuture<'_, pingora::Result<()>>;

    /// The whole content, if it was received before the request was judged.
    fn received(&mut self) -> Option<Body> {
        None
    }

    /// The next bytes of the content, which may be empty; `None` at its end.
    fn next_chunk(&mut self) -> BoxFuture<'_, pingora::Result<Option<Bytes>>>;

    /// Completes when the client has gone. While the client still has content to send it never completes, since only
    /// reading that content would tell.
    fn gone(&mut self) -> BoxFuture<'_, Box<pingora::Error>>;

    /// True if the client has gone already.
    fn has_gone(&mut self) -> bool;
}
