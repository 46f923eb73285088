//! The requests to the upstream that make up one write. A write to a resource with metadata has two.

use http::{Method, header};
use pingora::http::RequestHeader;

use super::send::head_of_write;
use crate::{
    body::Body,
    core::{
        lease::Standing,
        metadata::{DOCUMENT_TYPE, Metadata},
        record::Revision,
    },
    dialect::metadata::MetadataUse,
    guard::{answer::Answer, lease::usage::send_fence, probe::metadata::document_head, request::Request},
};

/// The parts of a write, in their order.
pub(super) struct Parts {
    /// The removal of the metadata of a resource that is about to be removed.
    pub(super) removal: Option<Part>,
    /// The part that the client is told of.
    pub(super) main: Box<RequestHeader>,
    /// The content of the main part, if it is not that of the request.
    pub(super) document: Option<Body>,
    /// The change of the metadata of a resource whose content has been replaced.
    pub(super) change: Option<Part>,
}

/// A request to the upstream for a document with metadata.
pub(super) struct Part {
    /// The head.
    pub(super) head: Box<RequestHeader>,
    /// The document, or nothing.
    pub(super) body: Body,
}

impl Parts {
    /// Returns the parts of a write with this body.
    pub(super) fn of(request: &Request, body: &Body) -> Result<Self, Answer> {
        let (mut removal, mut change) = (None, None);
        match &request.content.metadata {
            MetadataUse::ReplacedAlone(metadata) => {
                let Part { head, body } = put(request, metadata)?;
                return Ok(Self { removal, main: head, document: Some(body), change });
            }
            MetadataUse::ReplacedWithContent(metadata) if !metadata.is_empty() => {
                change = Some(put(request, metadata)?);
            }
            MetadataUse::ReplacedWithContent(_) => change = Some(delete(request)?),
            MetadataUse::Removed => removal = Some(delete(request)?),
            MetadataUse::None | MetadataUse::Shown => {}
        }
        Ok(Self { removal, main: head_of_write(request, body)?, document: None, change })
    }

    /// Adds the fence of the lease that the client holds to each part, so that the upstream can check each.
    pub(super) fn send_fence(&mut self, standing: Standing, fence: Revision) -> pingora::Result<()> {
        let others = self.removal.iter_mut().chain(&mut self.change).map(|part| &mut part.head);
        others.chain([&mut self.main]).try_for_each(|head| send_fence(head, standing, fence))
    }
}

/// Returns the part that writes the document.
fn put(request: &Request, metadata: &Metadata) -> Result<Part, Answer> {
    let body = Body::made(metadata.to_document());
    let mut head = document_head(request, Method::PUT)?;
    // They are for a reader.
    for name in [header::CACHE_CONTROL, header::ACCEPT_ENCODING] {
        head.remove_header(&name);
    }
    head.insert_header(header::CONTENT_TYPE, DOCUMENT_TYPE)?;
    head.insert_header(header::CONTENT_LENGTH, body.len())?;
    Ok(Part { head, body })
}

/// Returns the part that removes the document.
fn delete(request: &Request) -> Result<Part, Answer> {
    Ok(Part { head: document_head(request, Method::DELETE)?, body: Body::empty() })
}
