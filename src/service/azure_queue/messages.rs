//! Operations on messages, other than to take them.

use std::time::{Duration, UNIX_EPOCH};

use http::{Method, StatusCode};

use super::{
    OperationDone, QueueDocuments,
    documents::OpenedDocument,
    sent::{DocumentCondition, DocumentSent},
};
use crate::{
    core::tags::entity_tag::EntityTag,
    dialect::azure_queue::{
        MessageStanding, Moment, PopReceipt, Queue, QueueMessage, ShownMessage, is_message_id, message_id,
        message_not_found, no_random_numbers, pop_receipt_mismatch, receipt_fields, shown_messages, too_many_changes,
        unreadable,
    },
    entropy::{number_of_answer, random_bytes},
    guard::Halt,
};

/// How often an operation on one message begins anew if its state changes meanwhile.
const ATTEMPTS: usize = 3;

/// The maximum number of messages that one request reads at the backend. Beyond it, the answer has the messages found
/// so far.
pub(super) const READS_MAX: usize = 256;

/// A message with the tag of its state.
pub(super) struct CurrentMessage {
    pub(super) tag: EntityTag,
    pub(super) message: QueueMessage,
}

impl QueueDocuments<'_> {
    /// Put Message.
    pub(super) async fn put(
        &mut self,
        name: &str,
        text: String,
        (life, hidden): (Option<Duration>, Duration),
    ) -> Result<OperationDone, Halt> {
        let queue = self.queue(name).await?;
        let (time, receipt) = (self.service.guard.date(), fresh_receipt()?);
        let now = Moment::of(time);
        let id = message_id(time.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos(), number_of_answer());
        let message = QueueMessage {
            queue: queue.id,
            text,
            inserted: now,
            expires: life.map(|life| now.after(life)),
            visible: now.after(hidden),
            taken: 0,
            receipt: receipt.hash(),
        };
        let mut document = self.open(&Method::PUT, &self.path_of_message(name, &id))?;
        match self.write_message(&mut document, DocumentCondition::None, &message).await? {
            DocumentSent::Done(..) => {
                let shown = [(id, message, ShownMessage::Put(receipt))];
                Ok(OperationDone::with_document(StatusCode::CREATED, shown_messages(&shown)))
            }
            DocumentSent::Absent | DocumentSent::Stale => Err(too_many_changes().into()),
        }
    }

    /// Peek Messages: those that a client could take, without taking them.
    pub(super) async fn peek(&mut self, name: &str, count: usize) -> Result<OperationDone, Halt> {
        let queue = self.queue(name).await?;
        let collection = self.messages(name)?;
        let (mut shown, mut reads, mut start) = (Vec::new(), 0, None);
        'pages: loop {
            let page = self.page(&collection, start.as_ref()).await?;
            for id in page.names.iter().filter(|id| is_message_id(id)) {
                if shown.len() == count || reads == READS_MAX {
                    break 'pages;
                }
                let document = self.open(&Method::GET, &self.path_of_message(name, id))?;
                let seen = self.seen_message(&document).await?;
                if seen.is_some_and(|seen| seen.message.standing(self.now()) != MessageStanding::Visible) {
                    continue;
                }
                reads += 1;
                let Some(CurrentMessage { message, .. }) = self.read_message(&document).await? else { continue };
                if message.queue == queue.id && message.standing(self.now()) == MessageStanding::Visible {
                    shown.push((id.clone(), message, ShownMessage::Peeked));
                }
            }
            reads += 1;
            start = page.next;
            if start.is_none() {
                break;
            }
        }
        Ok(OperationDone::with_document(StatusCode::OK, shown_messages(&shown)))
    }

    /// Update Message.
    pub(super) async fn update(
        &mut self,
        name: &str,
        (id, receipt): (&str, PopReceipt),
        hidden: Duration,
        text: Option<String>,
    ) -> Result<OperationDone, Halt> {
        let queue = self.queue(name).await?;
        let (path, fresh) = (self.path_of_message(name, id), fresh_receipt()?);
        let mut document = self.open(&Method::PUT, &path)?;
        let mut seen = self.seen_message(&document).await?.filter(|_| text.is_some());
        for _ in 0..ATTEMPTS {
            let CurrentMessage { tag, message, .. } = self.proved(&path, (&queue.id, receipt), seen.take()).await?;
            let message = message.updated(self.now(), hidden, fresh, text.clone());
            let condition = DocumentCondition::State(&tag);
            if let DocumentSent::Done(..) = self.write_message(&mut document, condition, &message).await? {
                let fields = receipt_fields(&message, fresh);
                return Ok(OperationDone { fields, ..OperationDone::with_status(StatusCode::NO_CONTENT) });
            }
        }
        Err(too_many_changes().into())
    }

    /// Delete Message.
    pub(super) async fn delete(
        &mut self,
        name: &str,
        (id, receipt): (&str, PopReceipt),
    ) -> Result<OperationDone, Halt> {
        let queue = self.queue(name).await?;
        let path = self.path_of_message(name, id);
        let mut document = self.open(&Method::DELETE, &path)?;
        let mut seen = self.seen_message(&document).await?;
        for _ in 0..ATTEMPTS {
            let CurrentMessage { tag, .. } = self.proved(&path, (&queue.id, receipt), seen.take()).await?;
            match self.remove(&mut document, DocumentCondition::State(&tag)).await? {
                DocumentSent::Done(..) => return Ok(OperationDone::with_status(StatusCode::NO_CONTENT)),
                DocumentSent::Absent => return Err(message_not_found().into()),
                DocumentSent::Stale => {}
            }
        }
        Err(too_many_changes().into())
    }

    /// Removes a message, even if a client has it, unless it is one of another queue.
    pub(super) async fn remove_message(&mut self, path: &str, queue: &Queue) -> Result<(), Halt> {
        let mut document = self.open(&Method::DELETE, path)?;
        let mut seen = self.seen_message(&document).await?.map(|seen| (seen.tag, Some(seen.message)));
        for _ in 0..ATTEMPTS {
            let (tag, message) = if let Some(seen) = seen.take() {
                seen
            } else {
                let document = self.open(&Method::GET, path)?;
                let Some((tag, content)) = self.read(&document).await? else { return Ok(()) };
                (tag, QueueMessage::from_document(&content))
            };
            if message.is_some_and(|message| message.queue != queue.id) {
                return Ok(());
            }
            let removed = self.remove(&mut document, DocumentCondition::State(&tag)).await?;
            if !matches!(removed, DocumentSent::Stale) {
                return Ok(());
            }
        }
        Err(too_many_changes().into())
    }

    /// The message whose last receipt this is. Memory counts only for the right receipt: for any other, the backend is
    /// asked.
    async fn proved(
        &mut self,
        path: &str,
        (queue, receipt): (&str, PopReceipt),
        seen: Option<CurrentMessage>,
    ) -> Result<CurrentMessage, Halt> {
        let is_proved =
            |current: &CurrentMessage| current.message.queue == queue && current.message.is_proved_by(receipt);
        if let Some(seen) = seen.filter(is_proved) {
            return Ok(seen);
        }
        let document = self.open(&Method::GET, path)?;
        let current = self.read_message(&document).await?.filter(|current| current.message.queue == queue);
        let current = current.ok_or_else(message_not_found)?;
        if current.message.standing(self.now()) == MessageStanding::Expired {
            return Err(message_not_found().into());
        }
        if is_proved(&current) { Ok(current) } else { Err(pop_receipt_mismatch().into()) }
    }

    /// Reads a message, and remembers its state.
    pub(super) async fn read_message(&mut self, document: &OpenedDocument) -> Result<Option<CurrentMessage>, Halt> {
        let Some((tag, content)) = self.read(document).await? else { return Ok(None) };
        let message = QueueMessage::from_document(&content).ok_or_else(unreadable)?;
        self.note(document, tag.clone(), memory_of(&message));
        Ok(Some(CurrentMessage { tag, message }))
    }

    /// The current state of a message from memory, without its text.
    async fn seen_message(&mut self, document: &OpenedDocument) -> Result<Option<CurrentMessage>, Halt> {
        let seen = self.seen(document).await?;
        Ok(seen
            .and_then(|(tag, content)| Some(CurrentMessage { tag, message: QueueMessage::from_document(&content)? })))
    }

    /// Writes a message, and remembers its state.
    pub(super) async fn write_message(
        &mut self,
        document: &mut OpenedDocument,
        condition: DocumentCondition<'_>,
        message: &QueueMessage,
    ) -> Result<DocumentSent, Halt> {
        self.write(document, condition, (message.to_document(), memory_of(message))).await
    }
}

/// Returns a receipt that no client can guess.
pub(super) fn fresh_receipt() -> Result<PopReceipt, Halt> {
    Ok(PopReceipt::new(random_bytes().map_err(|_error| no_random_numbers())?))
}

/// Returns the remembered part of a message: all but its text, which may be long.
fn memory_of(message: &QueueMessage) -> Vec<u8> {
    QueueMessage { text: String::new(), ..message.clone() }.to_document()
}
