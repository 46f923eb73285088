//! Get Messages: the first messages that no client has, each hidden by a write of its own.

use std::time::Duration;

use http::{Method, StatusCode};

use super::{
    OperationDone, QueueDocuments,
    documents::OpenedDocument,
    messages::{READS_MAX, fresh_receipt},
    queues::is_named,
    sent::{DocumentCondition, DocumentSent},
};
use crate::{
    core::members::line::{Dealt, Need},
    dialect::azure_queue::{MessageStanding, Queue, QueueMessage, ShownMessage, is_message_id, shown_messages},
    guard::{Halt, PlaceInLine, Request, refusals, while_client_waits},
    service::next_member::{Collection, is_in_use},
};

/// The number of messages that may fail before their client gets the failure. A message that always fails must not keep
/// the others from all clients. A backend that fails for all messages must not get a request for each.
const FAILURES_MAX: usize = 8;

/// A message that a client has taken.
type TakenMessage = (String, QueueMessage, ShownMessage);

/// The result of a look at a message.
enum MessageLook {
    Taken(Box<TakenMessage>),
    /// It is hidden, or gone, or another client takes it.
    Passed,
    /// It has changed since its index was read.
    Changed,
}

/// A request for messages of one queue.
struct WantedMessages<'q> {
    name: &'q str,
    queue: Queue,
    hidden: Duration,
    /// How many messages may still be read at the backend.
    reads_left: usize,
    /// How many messages have failed.
    failures: usize,
}

impl QueueDocuments<'_> {
    /// Get Messages.
    pub(super) async fn take(&mut self, name: &str, count: usize, hidden: Duration) -> Result<OperationDone, Halt> {
        let queue = self.queue(name).await?;
        let mut wanted = WantedMessages { name, queue, hidden, reads_left: READS_MAX, failures: 0 };
        let collection = self.messages(name)?;
        let folder = self.open(&Method::GET, collection.members.path())?.request;
        let mut taken: Vec<TakenMessage> = Vec::new();
        while taken.len() < count {
            match self.take_next(&mut wanted, &collection, &folder).await {
                Ok(Some(next)) => taken.push(next),
                Ok(None) => break,
                // The client must not lose the messages that it has taken already.
                Err(halt @ Halt::Broken(_)) => return Err(halt),
                Err(_) if !taken.is_empty() => break,
                Err(halt) => return Err(halt),
            }
        }
        Ok(OperationDone::with_document(StatusCode::OK, shown_messages(&taken)))
    }

    /// Takes the first message that no client has; `None` if there is none.
    async fn take_next(
        &mut self,
        wanted: &mut WantedMessages<'_>,
        collection: &Collection,
        folder: &Request,
    ) -> Result<Option<TakenMessage>, Halt> {
        let guard = self.service.guard;
        let (place, mut failed) = (guard.stand_in_line(folder, &collection.members), None);
        loop {
            if self.client.has_gone() {
                return Err(Halt::Broken(pingora::Error::new_down(pingora::ErrorType::ConnectionClosed)));
            }
            match place.need(false) {
                Need::Look(dealt) => match self.look(wanted, &place, &dealt).await {
                    Ok(MessageLook::Taken(taken)) => {
                        place.serve();
                        return Ok(Some(*taken));
                    }
                    Ok(MessageLook::Changed) if place.set_aside() => {}
                    Ok(MessageLook::Changed | MessageLook::Passed) => place.skip(None),
                    Err(halt @ Halt::Broken(_)) => return Err(halt),
                    Err(halt) => {
                        wanted.failures += 1;
                        if wanted.failures >= FAILURES_MAX {
                            return Err(halt);
                        }
                        failed = Some(halt);
                        place.skip(None);
                    }
                },
                Need::Page | Need::Pass if wanted.reads_left == 0 => return failed.map_or(Ok(None), Err),
                Need::Page | Need::Pass => {
                    wanted.reads_left -= 1;
                    let newest = || guard.records().newest_seen();
                    let turn = while_client_waits(self.client, place.turn_to_read(false, newest)).await?;
                    if let Some(turn) = turn {
                        let reading = self.service.read_index(folder, collection, turn.start.as_ref());
                        let page = while_client_waits(self.client, reading).await??;
                        turn.show(page);
                    }
                }
                Need::Nothing => return failed.map_or(Ok(None), Err),
            }
        }
    }

    /// Looks at a message that was dealt to the client, and takes it if no other client has it.
    async fn look(
        &mut self,
        wanted: &mut WantedMessages<'_>,
        place: &PlaceInLine,
        dealt: &Dealt,
    ) -> Result<MessageLook, Halt> {
        let id = &dealt.file;
        if !is_message_id(id) {
            return Ok(MessageLook::Passed);
        }
        let (guard, path) = (self.service.guard, self.path_of_message(wanted.name, id));
        let document = self.open(&Method::GET, &path)?;
        let snapshot =
            guard.record_without_dead_marks(&document.request).await.map_err(|error| refusals::of_store(&error))?;
        if !snapshot.has_no_pending_writes() {
            return Ok(MessageLook::Passed);
        }
        let seen =
            guard.seen(&document.request, &snapshot).and_then(|(_, content)| QueueMessage::from_document(&content));
        match seen.map(|message| message.standing(self.now())) {
            Some(MessageStanding::Hidden(_)) => return Ok(MessageLook::Passed),
            None if snapshot.touched() > place.newest() && !dealt.is_last_resort => return Ok(MessageLook::Changed),
            _ => {}
        }
        if wanted.reads_left == 0 {
            return Ok(MessageLook::Passed);
        }
        wanted.reads_left -= 1;
        match self.take_message(wanted, (id, &path), &document).await {
            Err(Halt::Refused(refusal)) if is_in_use(&refusal) => Ok(MessageLook::Passed),
            Err(Halt::Denied(relayed)) if relayed.head.status == StatusCode::FORBIDDEN => {
                relayed.discard().await;
                Ok(MessageLook::Passed)
            }
            looked => looked,
        }
    }

    /// True if the queue with this name is that of a message by now.
    async fn is_of_current_queue(&mut self, name: &str, message: &QueueMessage) -> Result<bool, Halt> {
        match self.queue(name).await {
            Ok(current) => Ok(current.id == message.queue),
            Err(Halt::Refused(refusal)) if is_named(&refusal, "QueueNotFound") => Ok(false),
            Err(halt) => Err(halt),
        }
    }

    /// Reads a message, and takes it if no client has it.
    async fn take_message(
        &mut self,
        wanted: &WantedMessages<'_>,
        (id, path): (&str, &str),
        document: &OpenedDocument,
    ) -> Result<MessageLook, Halt> {
        let Some(current) = self.read_message(document).await? else { return Ok(MessageLook::Passed) };
        let (now, message) = (self.now(), current.message);
        let is_of_queue = message.queue == wanted.queue.id;
        match message.standing(now) {
            MessageStanding::Visible if is_of_queue => {}
            MessageStanding::Hidden(_) if is_of_queue => return Ok(MessageLook::Passed),
            // The queue may have been made anew since it was read.
            _ if !is_of_queue && self.is_of_current_queue(wanted.name, &message).await? => {
                return Ok(MessageLook::Passed);
            }
            _ => {
                let mut document = self.open(&Method::DELETE, path)?;
                self.remove(&mut document, DocumentCondition::State(&current.tag)).await?;
                return Ok(MessageLook::Passed);
            }
        }
        let receipt = fresh_receipt()?;
        let taken = message.taken(now, wanted.hidden, receipt);
        let mut document = self.open(&Method::PUT, path)?;
        match self.write_message(&mut document, DocumentCondition::State(&current.tag), &taken).await? {
            DocumentSent::Done(..) => {
                Ok(MessageLook::Taken(Box::new((id.to_owned(), taken, ShownMessage::Taken(receipt)))))
            }
            DocumentSent::Absent | DocumentSent::Stale => Ok(MessageLook::Passed),
        }
    }
}
