//! The requests to the upstream that make up one write. A write to a described resource has up to three.

use http::{Method, header};
use pingora::http::RequestHeader;

use super::send::head_of_write;
use crate::{
    body::Body,
    core::{
        lease::Standing,
        objects::description::{DOCUMENT_TYPE, DocumentChange, KeptDocument, ResourceDescription},
        records::record::Revision,
    },
    dialect::description::DescriptionUse,
    guard::{Halt, lease::usage::send_fence, probe::description::document_head, request::Request},
};

/// The parts of a write, in their order.
pub(super) struct Parts {
    /// The change of the document before the main part.
    pub(super) before: Option<Part>,
    /// The part whose result the client gets.
    pub(super) main: Box<RequestHeader>,
    /// The content of the main part, if it is not that of the request.
    pub(super) document: Option<Body>,
    /// The change of the document after the main part.
    pub(super) after: Option<Part>,
}

/// A request to the upstream for a document.
pub(super) struct Part {
    /// The head.
    pub(super) head: Box<RequestHeader>,
    /// The document, or nothing.
    pub(super) body: Body,
}

impl Parts {
    /// Returns the parts of a write with this body that are known before the claim.
    pub(super) fn of(request: &Request, body: &Body) -> Result<Self, Halt> {
        let (before, after) = match &request.content.description {
            DescriptionUse::Removed => (Some(part(request, &DocumentChange::Removed)?), None),
            DescriptionUse::Created(description) => (None, Some(put(request, description)?)),
            _ => (None, None),
        };
        Ok(Self { before, main: head_of_write(request, body)?, document: None, after })
    }

    /// Adds the parts that depend on the document beside the resource.
    pub(super) fn complete(&mut self, request: &Request, kept: KeptDocument) -> Result<(), Halt> {
        match &request.content.description {
            DescriptionUse::ReplacedAlone(new) => {
                let Part { head, body } = put(request, &kept.into_description().with(new.clone()))?;
                (self.main, self.document) = (head, Some(body));
            }
            DescriptionUse::ReplacedWithContent(new) => {
                let (before, after) = kept.around_new_content(new);
                self.before = before.map(|change| part(request, &change)).transpose()?;
                self.after = after.map(|change| part(request, &change)).transpose()?;
            }
            DescriptionUse::Created(_) | DescriptionUse::Removed | DescriptionUse::None | DescriptionUse::Shown => {}
        }
        Ok(())
    }

    /// Adds the fence of the lease that the client holds to each part, so that the upstream can check each.
    pub(super) fn send_fence(&mut self, standing: Standing, fence: Revision) -> pingora::Result<()> {
        let others = self.before.iter_mut().chain(&mut self.after).map(|part| &mut part.head);
        others.chain([&mut self.main]).try_for_each(|head| send_fence(head, standing, fence))
    }
}

/// Returns the part that changes the document.
fn part(request: &Request, change: &DocumentChange) -> Result<Part, Halt> {
    match change {
        DocumentChange::Written(description) => put(request, description),
        DocumentChange::Removed => Ok(Part { head: document_head(request, Method::DELETE)?, body: Body::empty() }),
    }
}

/// Returns the part that writes the document.
fn put(request: &Request, description: &ResourceDescription) -> Result<Part, Halt> {
    let body = Body::made(description.to_document());
    let mut head = document_head(request, Method::PUT)?;
    // They are for a reader.
    for name in [header::CACHE_CONTROL, header::ACCEPT_ENCODING] {
        head.remove_header(&name);
    }
    head.insert_header(header::CONTENT_TYPE, DOCUMENT_TYPE)?;
    head.insert_header(header::CONTENT_LENGTH, body.len())?;
    Ok(Part { head, body })
}
