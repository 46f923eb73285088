//! Operations on queues.

use std::time::{Duration, Instant};

use http::{Method, StatusCode};
use uuid::Builder;

use super::{
    OperationDone, QueueDocuments,
    sent::{DocumentCondition, DocumentSent},
};
use crate::{
    core::{
        members::index_page::{IndexPage, PageStart},
        objects::metadata::Metadata,
        refusal::Refusal,
    },
    dialect::azure_queue::{
        ListedQueue, Queue, QueueList, is_message_id, is_queue_name, no_random_numbers, queue_exists, queue_not_found,
        shown_queues, too_many_changes, too_much_to_clear,
    },
    entropy::random_bytes,
    guard::Halt,
    service::next_member::Collection,
};

/// How often an operation begins anew if others write the document of the queue.
const ATTEMPTS: usize = 8;

/// How many pages of an index one request reads. Each has 1,000 names.
const PAGES_MAX: usize = 100;

/// How many pages are counted. Messages behind them make the count too small, which is approximate anyway.
const COUNTED_PAGES_MAX: usize = 20;

/// How long one request deletes messages. Clients repeat it after that.
const CLEARING_MAX: Duration = Duration::from_secs(20);

impl QueueDocuments<'_> {
    /// Create Queue.
    pub(super) async fn create_queue(&mut self, name: &str, metadata: Metadata) -> Result<OperationDone, Halt> {
        let id = Builder::from_random_bytes(random_bytes().map_err(|_error| no_random_numbers())?).into_uuid();
        let document = Queue { id: id.to_string(), metadata: metadata.clone() }.to_document();
        self.make_folders(name).await?;
        let mut opened = self.open(&Method::PUT, &self.path_of_queue(name))?;
        for _ in 0..ATTEMPTS {
            let contents = (document.clone(), document.clone());
            let written = self.write(&mut opened, DocumentCondition::Absence, contents).await?;
            if let DocumentSent::Done(..) = written {
                return Ok(OperationDone::with_status(StatusCode::CREATED));
            }
            match self.read_queue(name).await {
                Ok((_, queue)) if queue.metadata == metadata => {
                    return Ok(OperationDone::with_status(StatusCode::NO_CONTENT));
                }
                Ok(_) => return Err(queue_exists().into()),
                // It is gone again.
                Err(Halt::Refused(refusal)) if is_named(&refusal, "QueueNotFound") => {}
                Err(halt) => return Err(halt),
            }
        }
        Err(too_many_changes().into())
    }

    /// Delete Queue. Messages that are left belong to no queue, and none of a later queue with this name.
    pub(super) async fn delete_queue(&mut self, name: &str) -> Result<OperationDone, Halt> {
        let mut document = self.open(&Method::DELETE, &self.path_of_queue(name))?;
        for _ in 0..ATTEMPTS {
            // Some servers tell no absence when they are asked to delete.
            let (tag, queue) = self.read_queue(name).await?;
            match self.remove(&mut document, DocumentCondition::State(&tag)).await? {
                DocumentSent::Done(..) => {
                    // They are invisible already.
                    let _ = self.remove_messages(name, &queue).await;
                    return Ok(OperationDone::with_status(StatusCode::NO_CONTENT));
                }
                DocumentSent::Absent => return Err(queue_not_found().into()),
                DocumentSent::Stale => {}
            }
        }
        Err(too_many_changes().into())
    }

    /// Set Queue Metadata: the last one to set them wins, as with Azure.
    pub(super) async fn set_metadata(&mut self, name: &str, metadata: Metadata) -> Result<OperationDone, Halt> {
        let mut opened = self.open(&Method::PUT, &self.path_of_queue(name))?;
        for _ in 0..ATTEMPTS {
            let (tag, queue) = self.read_queue(name).await?;
            let document = Queue { metadata: metadata.clone(), ..queue }.to_document();
            let contents = (document.clone(), document);
            if let DocumentSent::Done(..) = self.write(&mut opened, DocumentCondition::State(&tag), contents).await? {
                return Ok(OperationDone::with_status(StatusCode::NO_CONTENT));
            }
        }
        Err(too_many_changes().into())
    }

    /// Clear Messages.
    pub(super) async fn clear(&mut self, name: &str) -> Result<OperationDone, Halt> {
        let queue = self.queue(name).await?;
        if self.remove_messages(name, &queue).await? {
            Ok(OperationDone::with_status(StatusCode::NO_CONTENT))
        } else {
            Err(too_much_to_clear().into())
        }
    }

    /// Removes the messages of a queue, and none of a later queue with this name. `false` if the time is over before all are
    /// removed.
    async fn remove_messages(&mut self, name: &str, queue: &Queue) -> Result<bool, Halt> {
        let (collection, end) = (self.messages(name)?, Instant::now() + CLEARING_MAX);
        let mut start = None;
        for _ in 0..PAGES_MAX {
            let page = self.page(&collection, start.as_ref()).await?;
            for id in page.names.iter().filter(|id| is_message_id(id)) {
                if Instant::now() > end {
                    return Ok(false);
                }
                self.remove_message(&self.path_of_message(name, id), queue).await?;
            }
            start = page.next;
            if start.is_none() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Counts the messages of a queue.
    pub(super) async fn count(&mut self, name: &str) -> Result<usize, Halt> {
        let collection = self.messages(name)?;
        let (mut start, mut count) = (None, 0);
        for _ in 0..COUNTED_PAGES_MAX {
            let page = self.page(&collection, start.as_ref()).await?;
            count += page.names.iter().filter(|id| is_message_id(id)).count();
            start = page.next;
            if start.is_none() {
                break;
            }
        }
        Ok(count)
    }

    /// List Queues.
    pub(super) async fn list_queues(&mut self, list: &QueueList) -> Result<OperationDone, Halt> {
        let mut names = self.names_of_queues(list).await?;
        let has_more = names.len() > list.max_queues;
        names.truncate(list.max_queues);
        let next = names.last().filter(|_| has_more).cloned();
        let mut queues = Vec::with_capacity(names.len());
        for name in names {
            let metadata = match list.shows_metadata.then_some(()) {
                None => None,
                Some(()) => match self.read_queue(&name).await {
                    Ok((_, queue)) => Some(queue.metadata),
                    // It is gone by now.
                    Err(Halt::Refused(refusal)) if is_named(&refusal, "QueueNotFound") => continue,
                    Err(halt) => return Err(halt),
                },
            };
            queues.push(ListedQueue { name, metadata });
        }
        let endpoint = format!("{}/", self.account());
        Ok(OperationDone::with_document(StatusCode::OK, shown_queues(list, &endpoint, &queues, next.as_deref())))
    }

    /// The names of the queues on a page, and of one more if there is one.
    async fn names_of_queues(&mut self, list: &QueueList) -> Result<Vec<String>, Halt> {
        let collection = self.queues()?;
        let (mut start, mut names) = (None, Vec::new());
        for _ in 0..PAGES_MAX {
            let page = self.page(&collection, start.as_ref()).await?;
            let listed = page.names.iter().filter_map(|file| file.strip_suffix(".json"));
            let is_behind = |name: &str| list.after.as_deref().is_none_or(|after| name > after);
            let wanted = listed.filter(|name| is_queue_name(name) && name.starts_with(&list.prefix) && is_behind(name));
            names.extend(wanted.map(str::to_owned));
            start = page.next;
            if start.is_none() {
                break;
            }
        }
        // The order of the files is another one: a hyphen comes before the dot of their end.
        names.sort_unstable();
        names.truncate(list.max_queues.saturating_add(1));
        Ok(names)
    }

    /// Reads a page of an index.
    pub(super) async fn page(&mut self, collection: &Collection, start: Option<&PageStart>) -> Result<IndexPage, Halt> {
        let folder = self.open(&Method::GET, collection.members.path())?;
        self.service.read_index(&folder.request, collection, start).await
    }
}

/// True if a refusal has this name of Azure.
pub(super) fn is_named(refusal: &Refusal, code: &str) -> bool {
    refusal.service.is_some_and(|service| service.code == code)
}
