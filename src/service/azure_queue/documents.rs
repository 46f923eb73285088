//! The documents of queues and messages: each is read and written by the guard, as a resource of its own.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, StatusCode};
use pingora::http::RequestHeader;

use super::sent::{DocumentCondition, DocumentSent, head_of};
use crate::{
    body::{Body, Client},
    core::{
        http::request_target::{AmbiguousTarget, KeptInNames, NormalPath, normalize},
        members::index_form::IndexForm,
        refusal::{Code, Refusal},
        route::MembersFolder,
        tags::entity_tag::EntityTag,
    },
    dialect::{
        azure_queue::{Moment, Queue, queue_not_found, unknown_state, unreadable},
        native,
    },
    guard::{Halt, ReceivedClient, Request, incoming, refusals, rules_of},
    routing::GuardedRequest,
    service::{Service, next_member::Collection},
};

/// A document that a client has opened for requests with one method.
pub(super) struct OpenedDocument {
    /// The head with the path by which clients know it.
    head: Arc<RequestHeader>,
    pub(super) request: Request,
}

/// The documents below one account, with the rights of one client.
pub(super) struct QueueDocuments<'a> {
    pub(super) service: &'a Service<'a>,
    pub(super) client: &'a mut dyn Client,
    guarded: &'a GuardedRequest,
    account: String,
}

impl<'a> QueueDocuments<'a> {
    pub(super) fn new(
        service: &'a Service<'a>,
        client: &'a mut dyn Client,
        guarded: &'a GuardedRequest,
        account: String,
    ) -> Self {
        Self { service, client, guarded, account }
    }

    /// The moment by which messages are judged.
    pub(super) fn now(&self) -> Moment {
        Moment::of(self.service.guard.date())
    }

    /// The path of a queue's document.
    pub(super) fn path_of_queue(&self, queue: &str) -> String {
        format!("{}/{queue}.json", self.account)
    }

    /// The path of a message's document.
    pub(super) fn path_of_message(&self, queue: &str, id: &str) -> String {
        format!("{}/{queue}/{id}", self.account)
    }

    /// The path of the account, as its client knows it.
    pub(super) fn account(&self) -> &str {
        &self.account
    }

    /// The documents of all queues.
    pub(super) fn queues(&self) -> Result<Collection, Halt> {
        Collection::with(MembersFolder::of(&normal(&self.account)?, ".json"), self.guarded)
    }

    /// The documents of the messages of a queue.
    pub(super) fn messages(&self, queue: &str) -> Result<Collection, Halt> {
        let folder = normal(&format!("{}/{queue}", self.account))?;
        Collection::with(MembersFolder::of(&folder, ""), self.guarded)
    }

    /// Opens a document for requests with this method.
    pub(super) fn open(&mut self, method: &Method, path: &str) -> Result<OpenedDocument, Halt> {
        let head = head_of(self.client.head(), (method, path), rules_of(self.guarded)?)?;
        let guarded = self.service.guarded_here(&head, self.guarded, elsewhere)?;
        let rules = rules_of(&guarded)?;
        let call = native::call(incoming(&head, &guarded), rules, false)?;
        let has_content = *method == Method::PUT;
        let mut client = ReceivedClient { client: &mut *self.client, head: head.into(), has_content, body: None };
        let request = self.service.guard.request(&mut client, &guarded, rules, call)?;
        Ok(OpenedDocument { head: client.head, request })
    }

    /// Sends the request for a document, with this content.
    async fn send(&mut self, document: &OpenedDocument, content: Vec<u8>) -> Result<DocumentSent, Halt> {
        let OpenedDocument { head, request } = document;
        let (has_content, body) = (request.content.follows, Some(Body::made(content)));
        let mut client = ReceivedClient { client: &mut *self.client, head: head.clone(), has_content, body };
        self.service.send(&mut client, request).await
    }

    /// Reads a document that is opened for GET.
    pub(super) async fn read(&mut self, document: &OpenedDocument) -> Result<Option<(EntityTag, Vec<u8>)>, Halt> {
        match self.send(document, Vec::new()).await? {
            DocumentSent::Done(Some(tag), content) => Ok(Some((tag, content))),
            DocumentSent::Done(None, _) => {
                // A dead process may have left a mark.
                let record = self.service.guard.record_without_dead_marks(&document.request).await;
                record.map_err(|error| refusals::of_store(&error))?;
                Err(unknown_state().into())
            }
            DocumentSent::Absent | DocumentSent::Stale => Ok(None),
        }
    }

    /// Writes a document that is open for PUT, and remembers the necessary part of it.
    pub(super) async fn write(
        &mut self,
        document: &mut OpenedDocument,
        condition: DocumentCondition<'_>,
        (content, memory): (Vec<u8>, Vec<u8>),
    ) -> Result<DocumentSent, Halt> {
        document.request.demand(condition.preconditions());
        let sent = self.send(document, content).await?;
        if let DocumentSent::Done(Some(tag), _) = &sent {
            self.note(document, tag.clone(), memory);
        }
        Ok(sent)
    }

    /// Removes a document that is opened for DELETE.
    pub(super) async fn remove(
        &mut self,
        document: &mut OpenedDocument,
        condition: DocumentCondition<'_>,
    ) -> Result<DocumentSent, Halt> {
        document.request.demand(condition.preconditions());
        self.send(document, Vec::new()).await
    }

    /// Makes the folders of a queue, if the backend does not make them itself (RFC 4918 section 9.7.1).
    pub(super) async fn make_folders(&mut self, queue: &str) -> Result<(), Halt> {
        if rules_of(self.guarded)?.index != IndexForm::WebDav {
            return Ok(());
        }
        let mkcol = Method::from_bytes(b"MKCOL").map_err(|_error| refusals::of_field())?;
        let account = self.account.clone();
        let of_account: Vec<usize> =
            account.match_indices('/').skip(1).map(|(end, _)| end).chain([account.len()]).collect();
        let folders = of_account.into_iter().filter_map(|end| account.get(..end)).filter(|folder| !folder.is_empty());
        for folder in folders.map(str::to_owned).chain([format!("{account}/{queue}")]) {
            let folder = self.open(&mkcol, &folder)?;
            match self.send(&folder, Vec::new()).await {
                // It is there already.
                Err(Halt::Denied(relayed)) if relayed.head.status == StatusCode::METHOD_NOT_ALLOWED => {
                    relayed.discard().await;
                }
                Err(halt) => return Err(halt),
                Ok(_) => {}
            }
        }
        Ok(())
    }

    /// Returns the remembered state of a document, if it is the current one, no matter why the document is open.
    pub(super) async fn seen(&mut self, document: &OpenedDocument) -> Result<Option<(EntityTag, Bytes)>, Halt> {
        let (guard, request) = (self.service.guard, &document.request);
        let snapshot = guard.record_of(request).await.map_err(|error| refusals::of_store(&error))?;
        Ok(guard.seen(request, &snapshot))
    }

    /// Remembers the part of a document that was read or written.
    pub(super) fn note(&self, document: &OpenedDocument, tag: EntityTag, memory: Vec<u8>) {
        self.service.guard.note_seen(&document.request, tag, Bytes::from(memory));
    }

    /// Reads a queue.
    pub(super) async fn read_queue(&mut self, name: &str) -> Result<(EntityTag, Queue), Halt> {
        let document = self.open(&Method::GET, &self.path_of_queue(name))?;
        self.read_opened_queue(&document).await
    }

    async fn read_opened_queue(&mut self, document: &OpenedDocument) -> Result<(EntityTag, Queue), Halt> {
        let (tag, content) = self.read(document).await?.ok_or_else(queue_not_found)?;
        let queue = Queue::from_document(&content).ok_or_else(unreadable)?;
        self.note(document, tag.clone(), content);
        Ok((tag, queue))
    }

    /// The queue of messages, perhaps from memory: the backend is asked about each message anyway.
    pub(super) async fn queue(&mut self, name: &str) -> Result<Queue, Halt> {
        let document = self.open(&Method::GET, &self.path_of_queue(name))?;
        let seen = self.seen(&document).await?.and_then(|(_, content)| Queue::from_document(&content));
        match seen {
            Some(queue) => Ok(queue),
            None => Ok(self.read_opened_queue(&document).await?.1),
        }
    }
}

fn normal(path: &str) -> Result<NormalPath, Halt> {
    let path = if path.is_empty() { "/" } else { path };
    let ambiguous = |ambiguous: AmbiguousTarget| Refusal::new(Code::AmbiguousTarget, ambiguous.to_string());
    Ok(normalize(path.as_bytes(), KeptInNames::ALL).map_err(ambiguous)?)
}

fn elsewhere() -> Refusal {
    let detail = "The path of the queue, or of its messages, takes a route without dialect = \"azure-queue\", or to another \
                  server: one route has to take all paths below the account.";
    Refusal::new(Code::NotSupported, detail)
}
