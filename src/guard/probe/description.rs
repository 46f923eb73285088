//! The description of a resource, as the document beside it at the upstream holds it.

use http::{Method, StatusCode};
use pingora::http::RequestHeader;
use tokio::time::{Instant, timeout_at};

use super::{Probes, head::probe_head, unreadable::timed_out};
use crate::{
    body::{Body, MemoryUse},
    core::{
        objects::description::{
            DOCUMENT_BYTES_MAX, KeptDocument, ResourceDescription, is_dated_by_document, last_change,
        },
        refusal::{Code, Refusal},
        tags::validators::{Modified, tells_absence},
    },
    guard::{refusals, request::Request},
    upstream::{BufferedBody, read_whole},
};

/// The document beside a resource, with the date of its last change.
#[derive(Clone, Debug, Default)]
pub(crate) struct Described {
    /// The document.
    pub(crate) kept: KeptDocument,
    /// The modification date of the document, if there is one.
    pub(crate) modified: Option<Modified>,
}

/// Returns the head of a request with this method for the document, with the credentials of the client.
pub(crate) fn document_head(request: &Request, method: Method) -> Result<Box<RequestHeader>, Refusal> {
    let mut head = probe_head(request, method, true).ok_or_else(refusals::of_field)?;
    let target = request.rules().document_target(head.raw_path());
    head.set_raw_path(&target).map_err(|_error| refusals::of_field())?;
    Ok(head)
}

impl Probes {
    /// Asks for the description that a client wants to read, with its credentials. A resource without a document has
    /// an empty one.
    pub(crate) async fn description(&self, request: &Request) -> Result<Described, Refusal> {
        let head = document_head(request, Method::GET)?;
        let described = self.read_document(request, head, Instant::now() + request.rules().probe.timeout).await?;
        match described.kept {
            KeptDocument::Unreadable => Err(unusable("its document is no JSON object of texts, or is too large")),
            KeptDocument::Absent | KeptDocument::Readable(_) => Ok(described),
        }
    }

    /// Asks for the document beside a resource that is about to be written.
    pub(crate) async fn kept_document(&self, request: &Request) -> Result<KeptDocument, Refusal> {
        let mut head = document_head(request, Method::GET)?;
        self.set_credentials(request, &mut head)?;
        Ok(self.read_document(request, head, Instant::now() + request.rules().probe.timeout).await?.kept)
    }

    /// Returns the date of the last change of a resource whose content has this date, if the route keeps descriptions. It
    /// depends on that of the document too.
    pub(crate) async fn last_change(
        &self,
        request: &Request,
        of_content: Option<Modified>,
        end: Instant,
    ) -> Result<Option<Modified>, Refusal> {
        let target = request.head.raw_path();
        if !is_dated_by_document(target, of_content) {
            return Ok(of_content);
        }
        let mut head = document_head(request, Method::GET)?;
        self.set_credentials(request, &mut head)?;
        let described = self.read_document(request, head, end).await?;
        Ok(last_change(target, of_content, described.modified))
    }

    async fn read_document(
        &self,
        request: &Request,
        head: Box<RequestHeader>,
        end: Instant,
    ) -> Result<Described, Refusal> {
        timeout_at(end, self.ask_for_document(request, head)).await.map_err(|_elapsed| timed_out())?
    }

    async fn ask_for_document(&self, request: &Request, head: Box<RequestHeader>) -> Result<Described, Refusal> {
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
                return Err(unusable(&format!("the upstream answered {} when asked for it", status.as_u16())));
            }
        }
        let modified = Modified::from_headers(&exchange.head().headers);
        let budget = (&self.budget, MemoryUse::Response);
        match read_whole(&mut exchange, DOCUMENT_BYTES_MAX, upstream.timeout, budget).await {
            Ok(BufferedBody::Complete(document)) => {
                exchange.finish().await;
                let description = ResourceDescription::from_document(&document.chunks().concat());
                let kept = description.map_or(KeptDocument::Unreadable, KeptDocument::Readable);
                Ok(Described { kept, modified })
            }
            Ok(BufferedBody::TooLarge(_)) => {
                exchange.discard().await;
                Ok(Described { kept: KeptDocument::Unreadable, modified })
            }
            Ok(BufferedBody::TooSlow(_)) => Err(timed_out()),
            Err(failure) => Err(refusals::of_read(failure)),
        }
    }
}

fn unusable(why: &str) -> Refusal {
    Refusal::new(Code::UpstreamFailed, format!("the description of the resource cannot be read: {why}"))
}
