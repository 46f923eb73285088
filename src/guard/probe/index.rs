//! The index of a collection, with the credentials of the client that wants a member of it.

use http::Method;
use pingora::http::RequestHeader;

use super::{Probes, head::probe_head};
use crate::{
    body::{Body, MemoryUse},
    core::{
        refusal::{Code, Refusal},
        tags::validators::tells_absence,
    },
    guard::{Halt, refusals, request::Request},
    upstream::{BufferedBody, read_whole},
};

/// The document that shows an index.
pub(crate) enum IndexDocument {
    /// The document.
    Read(Vec<u8>),
    /// There is no such collection.
    Absent,
}

impl Probes {
    /// Asks for an index of at most this number of bytes. `describe` writes the target and the fields of the question.
    pub(crate) async fn index(
        &self,
        request: &Request,
        (method, content): (Method, &str),
        bytes_max: usize,
        describe: impl FnOnce(&mut RequestHeader) -> pingora::Result<()>,
    ) -> Result<IndexDocument, Halt> {
        let mut head = probe_head(request, method, true).ok_or_else(refusals::of_field)?;
        describe(&mut head)?;
        let (upstream, body) = (request.upstream(), Body::made(content.into()));
        if !body.is_empty() {
            head.insert_header(http::header::CONTENT_LENGTH, body.len())?;
        }
        let exchange = self.exchanger.read(upstream, request.to_send(), head, &body).await;
        let mut exchange = exchange.map_err(refusals::of_read)?;
        match exchange.head().status.as_u16() {
            200 | 207 => {}
            _ if tells_absence(exchange.head().status) => {
                exchange.discard().await;
                return Ok(IndexDocument::Absent);
            }
            _ => return Err(self.upstreams_own(request, exchange).await),
        }
        let budget = (&self.budget, MemoryUse::Response);
        match read_whole(&mut exchange, bytes_max, upstream.timeout, budget).await.map_err(refusals::of_read)? {
            BufferedBody::Complete(document) => {
                exchange.finish().await;
                Ok(IndexDocument::Read(document.chunks().concat()))
            }
            BufferedBody::TooLarge(_) => Err(unusable("is longer than the proxy reads").into()),
            BufferedBody::TooSlow(_) => Err(unusable("does not arrive in time").into()),
        }
    }
}

fn unusable(why: &str) -> Refusal {
    Refusal::new(Code::UpstreamFailed, format!("the index of the collection {why}"))
}
