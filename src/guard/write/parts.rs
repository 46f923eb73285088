//! The requests to the upstream that make up one write. A write to a described resource has up to three.

use http::{Method, header};
use pingora::http::RequestHeader;

use crate::{
    body::Body,
    core::objects::description::{DOCUMENT_TYPE, DocumentChange, KeptDocument, ResourceDescription},
    dialect::description::DescriptionUse,
    guard::{Halt, probe::description::document_head, request::Request},
};

/// The parts of a write besides the main one, whose result the client gets.
pub(super) struct DocumentParts {
    /// The change of the document before the main part.
    pub(super) before: Option<Part>,
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

impl DocumentParts {
    /// Returns the parts of a write with this use of the description that are known before the claim.
    pub(super) fn of(request: &Request, description: &DescriptionUse) -> Result<Self, Halt> {
        let (before, after) = match description {
            DescriptionUse::Removed => (Some(part(request, &DocumentChange::Removed)?), None),
            DescriptionUse::Created(description) => (None, Some(put(request, description)?)),
            _ => (None, None),
        };
        Ok(Self { before, document: None, after })
    }

    /// Adds the parts that depend on the document beside the resource. Returns the head of the main part, if that is the
    /// document itself.
    pub(super) fn complete(
        &mut self,
        request: &Request,
        kept: KeptDocument,
    ) -> Result<Option<Box<RequestHeader>>, Halt> {
        match &request.content.description {
            Some(DescriptionUse::ReplacedAlone(new)) => {
                let Part { head, body } = put(request, &kept.into_description().with(new.clone()))?;
                self.document = Some(body);
                return Ok(Some(head));
            }
            Some(DescriptionUse::ReplacedWithContent(new)) => {
                let (before, after) = kept.around_new_content(new);
                self.before = before.map(|change| part(request, &change)).transpose()?;
                self.after = after.map(|change| part(request, &change)).transpose()?;
            }
            Some(DescriptionUse::Created(_) | DescriptionUse::Removed | DescriptionUse::Shown) | None => {}
        }
        Ok(None)
    }

    /// The heads of the requests for the document.
    pub(super) fn heads(&mut self) -> impl Iterator<Item = &mut Box<RequestHeader>> {
        self.before.iter_mut().chain(&mut self.after).map(|part| &mut part.head)
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
