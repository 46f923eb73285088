//! A request without its content, for what a service asks in the name of a client.

use std::sync::Arc;

use bytes::Bytes;
use pingora::http::RequestHeader;

use crate::{body::Client, box_future::BoxFuture};

/// A request without content whose client waits elsewhere.
pub(crate) struct HeadAlone {
    head: Arc<RequestHeader>,
    certificate: Option<Vec<u8>>,
}

impl HeadAlone {
    /// Returns the request of a client, without its content.
    pub(crate) fn of(client: &dyn Client) -> Self {
        Self { head: Arc::clone(client.head()), certificate: client.certificate().map(<[u8]>::to_vec) }
    }

    /// Returns another request of the same client.
    pub(crate) fn with(&self, head: RequestHeader) -> Self {
        Self { head: Arc::new(head), certificate: self.certificate.clone() }
    }
}

impl Client for HeadAlone {
    fn head(&self) -> &Arc<RequestHeader> {
        &self.head
    }

    fn has_content(&mut self) -> bool {
        false
    }

    fn certificate(&self) -> Option<&[u8]> {
        self.certificate.as_deref()
    }

    fn invite_content(&mut self) -> BoxFuture<'_, pingora::Result<()>> {
        Box::pin(async { Ok(()) })
    }

    fn next_chunk(&mut self) -> BoxFuture<'_, pingora::Result<Option<Bytes>>> {
        Box::pin(async { Ok(None) })
    }

    fn gone(&mut self) -> BoxFuture<'_, Box<pingora::Error>> {
        Box::pin(std::future::pending())
    }

    fn has_gone(&mut self) -> bool {
        false
    }
}
