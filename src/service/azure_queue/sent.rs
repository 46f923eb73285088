//! One request for a document, with the credentials of the client, and its outcome.

use http::{HeaderValue, Method, header};
use pingora::http::RequestHeader;

use crate::{
    body::{Client, MemoryUse},
    core::{
        policy::GuardRules,
        refusal::Code,
        tags::{
            entity_tag::EntityTag,
            precondition::{Preconditions, TagCondition},
            validators::{Validators, tells_absence},
        },
    },
    dialect::azure_queue::unreadable,
    guard::{Answer, Halt, Relayed, Request, Verb, refusals},
    service::{Service, own_request::made_head},
    upstream::{BufferedBody, read_whole},
};

/// The longest document that is read, in bytes: a message of 64 KiB, each character of which is an escape of two.
const DOCUMENT_BYTES_MAX: usize = 160 * 1024;

/// The condition of a write.
#[derive(Clone, Copy)]
pub(super) enum DocumentCondition<'t> {
    /// The state with this tag.
    State(&'t EntityTag),
    /// The absence of the document.
    Absence,
    /// Nothing.
    None,
}

impl DocumentCondition<'_> {
    /// The same as the preconditions of a request.
    pub(super) fn preconditions(self) -> Preconditions {
        match self {
            Self::State(tag) => {
                Preconditions { if_match: Some(TagCondition::Tags(vec![tag.clone()])), ..Preconditions::default() }
            }
            Self::Absence => Preconditions { if_none_match: Some(TagCondition::Any), ..Preconditions::default() },
            Self::None => Preconditions::default(),
        }
    }
}

/// The outcome of a request for a document.
pub(super) enum DocumentSent {
    /// It was carried out. The document, if it was a read, and the tag of its state.
    Done(Option<EntityTag>, Vec<u8>),
    /// There is no document.
    Absent,
    /// The condition is false.
    Stale,
}

impl Service<'_> {
    /// Carries out a request for a document.
    pub(super) async fn send(&self, client: &mut dyn Client, request: &Request) -> Result<DocumentSent, Halt> {
        let verb = if request.method == Method::GET { Verb::Read } else { Verb::Write(None) };
        let relayed = match self.guard.serve(client, request, verb).await {
            Ok(Answer::Relayed(relayed)) | Err(Halt::Denied(relayed)) => *relayed,
            Err(Halt::Refused(refusal)) if refusal.code == Code::PreconditionFailed => return Ok(DocumentSent::Stale),
            Err(halt) => return Err(halt),
            Ok(_) => return Err(unreadable().into()),
        };
        let status = relayed.head.status;
        if status.is_success() {
            let tag = Validators::from_headers(&relayed.head.headers).0.tag;
            let document = if request.method == Method::GET { self.whole(request, relayed).await? } else { Vec::new() };
            return Ok(DocumentSent::Done(tag, document));
        }
        if tells_absence(status) && request.method != Method::PUT {
            relayed.discard().await;
            return Ok(DocumentSent::Absent);
        }
        Err(Halt::Denied(Box::new(relayed)))
    }

    /// Reads the whole of a document.
    async fn whole(&self, request: &Request, relayed: Relayed) -> Result<Vec<u8>, Halt> {
        let mut document = relayed.begun.chunks().concat();
        let Some(mut exchange) = relayed.rest else { return Ok(document) };
        let budget = self.guard.bodies().budget_for(MemoryUse::Response);
        let read = read_whole(&mut exchange, DOCUMENT_BYTES_MAX, request.upstream().timeout, budget).await;
        match read.map_err(refusals::of_read)? {
            BufferedBody::Complete(rest) => {
                exchange.finish().await;
                document.extend(rest.chunks().concat());
                Ok(document)
            }
            BufferedBody::TooLarge(_) | BufferedBody::TooSlow(_) => {
                exchange.discard().await;
                Err(unreadable().into())
            }
        }
    }
}

/// Returns the head of a request for a document, with the credentials of the client.
pub(super) fn head_of(
    received: &RequestHeader,
    (method, path): (&Method, &str),
    rules: &GuardRules,
) -> Result<RequestHeader, Halt> {
    let mut head = made_head(received, (method, path), rules)?;
    if *method == Method::PUT {
        head.insert_header(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))?;
    }
    Ok(head)
}
