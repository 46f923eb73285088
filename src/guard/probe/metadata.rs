//! The metadata of a resource, as the document beside it at the upstream holds them.

use http::{Method, StatusCode};
use pingora::http::RequestHeader;
use tokio::time::{Instant, timeout_at};

use super::{Probes, head::probe_head, unreadable::timed_out};
use crate::{
    body::{Body, MemoryUse},
    core::{
        metadata::{DOCUMENT_BYTES_MAX, Metadata, document_target},
        refusal::{Code, Refusal},
        validators::{Modified, tells_absence},
    },
    guard::{refusals, request::Request},
    upstream::{BufferedBody, read_whole},
};

/// The metadata of a resource, with the date of their last change.
#[derive(Clone, Debug, Default)]
pub(crate) struct Described {
    /// The metadata.
    pub(crate) metadata: Metadata,
    /// The modification date of the document, if there is one.
    pub(crate) modified: Option<Modified>,
}

/// Returns the head of a request with this method for the document, with the credentials of the client.
pub(crate) fn document_head(request: &Request, method: Method) -> Result<Box<RequestHeader>, Refusal> {
    let suffix = request.rules.metadata_suffix.as_deref().unwrap_or_default();
    let mut head = probe_head(request, method, true).ok_or_else(refusals::of_field)?;
    let target = document_target(head.raw_path(), suffix);
    head.set_raw_path(&target).map_err(|_error| refusals::of_field())?;
    Ok(head)
}

impl Probes {
    /// Asks for the metadata that a client wants to read, with its credentials. A resource without a document has none.
    pub(crate) async fn metadata(&self, request: &Request) -> Result<Described, Refusal> {
        let head = document_head(request, Method::GET)?;
        timeout_at(Instant::now() + request.rules.probe_timeout, self.read_document(request, head))
            .await
            .map_err(|_elapsed| timed_out())?
    }

    /// Returns the date of the last change of a resource whose content has this date. If the route keeps metadata, it
    /// is the later of two.
    pub(crate) async fn last_change(
        &self,
        request: &Request,
        of_content: Option<Modified>,
        end: Instant,
    ) -> Result<Option<Modified>, Refusal> {
        let Some(of_content) = of_content.filter(|_| request.rules.metadata_suffix.is_some()) else {
            return Ok(of_content);
        };
        let mut head = document_head(request, Method::GET)?;
        self.set_credentials(request, &mut head)?;
        let described = timeout_at(end, self.read_document(request, head)).await.map_err(|_elapsed| timed_out())??;
        Ok(Some(of_content.later(described.modified)))
    }

    async fn read_document(&self, request: &Request, head: Box<RequestHeader>) -> Result<Described, Refusal> {
        let upstream = request.upstream();
        let exchange = self.exchanger.read(upstream, request.to_send(), head, &Body::empty()).await;
        let mut exchange = exchange.map_err(refusals::of_read)?;
        request.affinity.asked(exchange.server());
        match exchange.head().status {
            StatusCode::OK => {}
            status if tells_absence(status) => {
                exchange.discard().await;
                return Ok(Described::default());
            }
            status => {
                exchange.discard().await;
                return Err(unusable(&format!("the upstream answered {} when asked for them", status.as_u16())));
            }
        }
        let modified = Modified::from_headers(&exchange.head().headers);
        let budget = (&self.budget, MemoryUse::Response);
        match read_whole(&mut exchange, DOCUMENT_BYTES_MAX, upstream.timeout, budget).await {
            Ok(BufferedBody::Complete(document)) => {
                exchange.finish().await;
                let metadata = Metadata::from_document(&document.chunks().concat());
                let metadata = metadata.ok_or_else(|| unusable("their document is no JSON object of texts"))?;
                Ok(Described { metadata, modified })
            }
            Ok(BufferedBody::TooLarge(_)) => Err(unusable("their document is too large")),
            Ok(BufferedBody::TooSlow(_)) => Err(timed_out()),
            Err(failure) => Err(refusals::of_read(failure)),
        }
    }
}

fn unusable(why: &str) -> Refusal {
    Refusal::new(Code::UpstreamFailed, format!("the metadata of the resource cannot be read: {why}"))
}
