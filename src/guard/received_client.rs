//! The client of a request whose head the guard has made, and whose body is there before the request is judged.

use std::sync::Arc;

use bytes::Bytes;
use pingora::http::RequestHeader;

use crate::body::{Body, BoxFuture, Client};

/// A client with another head, and with a body that was received.
pub(crate) struct ReceivedClient<'a> {
    /// The client that waits for the answer.
    pub(crate) client: &'a mut dyn Client,
    /// The head, such as that with the target of the resource that the body names.
    pub(crate) head: Arc<RequestHeader>,
    /// True if content follows this head.
    pub(crate) has_content: bool,
    /// The body, until it is taken.
    pub(crate) body: Option<Body>,
}

impl<'a> ReceivedClient<'a> {
    /// A client that sends only this head.
    pub(crate) fn without_content(client: &'a mut dyn Client, head: RequestHeader) -> Self {
        Self { client, head: Arc::new(head), has_content: false, body: Some(Body::empty()) }
    }
}

impl Client for ReceivedClient<'_> {
    fn head(&self) -> &Arc<RequestHeader> {
        &self.head
    }

    fn has_content(&mut self) -> bool {
        self.has_content
    }

    fn certificate(&self) -> Option<&[u8]> {
        self.client.certificate()
    }

    fn is_secure(&self) -> bool {
        self.client.is_secure()
    }

    fn received(&mut self) -> Option<Body> {
        self.body.take()
    }

    fn invite_content(&mut self) -> BoxFuture<'_, pingora::Result<()>> {
        self.client.invite_content()
    }

    fn next_chunk(&mut self) -> BoxFuture<'_, pingora::Result<Option<Bytes>>> {
        self.client.next_chunk()
    }

    fn gone(&mut self) -> BoxFuture<'_, Box<pingora::Error>> {
        self.client.gone()
    }

    fn has_gone(&mut self) -> bool {
        self.client.has_gone()
    }
}
