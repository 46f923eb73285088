//! The operations on queues and messages: a closed list.

use std::time::Duration;

use http::{HeaderMap, Method};

use super::{
    PopReceipt, is_message_id,
    name::{MESSAGES, check},
    parameters::Parameters,
    refusals::{message_not_found, pop_receipt_mismatch},
};
use crate::{
    core::{http::request_target::split_query, objects::metadata::Metadata, refusal::Refusal},
    dialect::{Incoming, Intent, azure},
};

const WEEK: i64 = 7 * 24 * 60 * 60;

/// How long a message lasts by default.
const DEFAULT_LIFE: Duration = Duration::from_secs(WEEK.unsigned_abs());

/// How long a message is hidden by default after it is taken.
const DEFAULT_HIDDEN: Duration = Duration::from_secs(30);

/// The most messages that one request takes or shows.
const MESSAGES_MAX: i64 = 32;

/// The most queues on a page, which is also the default.
const QUEUES_MAX: usize = 5_000;

/// The most queues on a page with metadata. Each of them costs a request to the backend.
const READ_QUEUES_MAX: usize = 100;

/// A request that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueCall {
    /// The path of the account, without a slash at its end. It is empty if there is none.
    pub account: String,
    /// The operation.
    pub operation: QueueOperation,
}

/// The operations that are served. There are no others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueueOperation {
    /// List Queues.
    List(QueueList),
    /// One on the queue with this name, or on its messages.
    Of(String, QueueOf),
}

/// A page of queues that a client wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueList {
    /// The beginning of their names.
    pub prefix: String,
    /// The name after which the page begins.
    pub after: Option<String>,
    /// How many there may be.
    pub max_queues: usize,
    /// True if the client wants their metadata.
    pub shows_metadata: bool,
}

/// The operations on one queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueueOf {
    /// Create Queue.
    Create(Metadata),
    /// Delete Queue.
    Delete,
    /// Get Queue Metadata.
    ReadMetadata,
    /// Set Queue Metadata.
    SetMetadata(Metadata),
    /// Put Message: how long it lasts, unless it has no end, and how long it is hidden.
    Put(Option<Duration>, Duration),
    /// Get Messages: how many, and how long they are hidden.
    Take(usize, Duration),
    /// Peek Messages: how many.
    Peek(usize),
    /// Clear Messages.
    Clear,
    /// Update Message: its id, and how long it is hidden.
    Update(String, PopReceipt, Duration),
    /// Delete Message: its id.
    DeleteMessage(String, PopReceipt),
}

impl QueueCall {
    /// Reads a request.
    ///
    /// # Errors
    ///
    /// It is no operation that is served, or one of its parameters is invalid.
    pub fn of(request: Incoming<'_>) -> Result<Self, Refusal> {
        let (path, query) = split_query(request.target);
        let parameters = Parameters::read(query.unwrap_or_default())?;
        let path = str::from_utf8(path).map_err(|_error| azure::bad_method())?;
        let path = path.strip_suffix('/').unwrap_or(path);
        if parameters.value("restype").is_some() {
            let detail = "The properties and statistics of the service are not served here: this proxy keeps none.";
            return Err(azure::not_served(detail));
        }
        if parameters.value("comp") == Some("list") {
            let operation = match *request.method {
                Method::GET => QueueOperation::List(QueueList::read(&parameters)?),
                _ => return Err(azure::bad_method()),
            };
            return Ok(Self { account: path.to_owned(), operation });
        }
        let (queue_path, messages) = split_messages(path);
        let (account, queue) = queue_path.rsplit_once('/').unwrap_or_default();
        check(queue)?;
        let of_queue = match messages {
            PathEnd::Queue => on_queue(request.method, &parameters, request.headers)?,
            PathEnd::Messages => on_messages(request.method, &parameters)?,
            PathEnd::Message(id) => on_message(request.method, &parameters, id)?,
        };
        Ok(Self { account: account.to_owned(), operation: QueueOperation::Of(queue.to_owned(), of_queue) })
    }
}

impl QueueOperation {
    /// The name of the operation in Azure's documentation, and its purpose.
    pub const fn facts(&self) -> (&'static str, Intent) {
        match self {
            Self::List(_) => ("List Queues", Intent::List),
            Self::Of(_, of_queue) => match of_queue {
                QueueOf::Create(_) => ("Create Queue", Intent::Write),
                QueueOf::Delete => ("Delete Queue", Intent::Write),
                QueueOf::ReadMetadata => ("Get Queue Metadata", Intent::Read),
                QueueOf::SetMetadata(_) => ("Set Queue Metadata", Intent::Write),
                QueueOf::Put(..) => ("Put Message", Intent::Write),
                QueueOf::Take(..) => ("Get Messages", Intent::Write),
                QueueOf::Peek(_) => ("Peek Messages", Intent::Read),
                QueueOf::Clear => ("Clear Messages", Intent::Write),
                QueueOf::Update(..) => ("Update Message", Intent::Write),
                QueueOf::DeleteMessage(..) => ("Delete Message", Intent::Write),
            },
        }
    }
}

impl QueueList {
    fn read(parameters: &Parameters) -> Result<Self, Refusal> {
        let shows_metadata = match parameters.value("include") {
            None | Some("") => false,
            Some("metadata") => true,
            Some(_) => return Err(azure::bad_query("include")),
        };
        let most = if shows_metadata { READ_QUEUES_MAX } else { QUEUES_MAX };
        let wanted = parameters.number("maxresults", (1, i64::MAX))?;
        let wanted = wanted.and_then(|wanted| usize::try_from(wanted).ok()).unwrap_or(most);
        let text = |name| parameters.value(name).filter(|text| !text.is_empty()).map(str::to_owned);
        let (prefix, after) = (text("prefix").unwrap_or_default(), text("marker"));
        Ok(Self { prefix, after, max_queues: wanted.min(most), shows_metadata })
    }
}

/// The resource that a path names after the queue.
enum PathEnd<'p> {
    /// The queue itself.
    Queue,
    /// Its messages.
    Messages,
    /// The message with this id.
    Message(&'p str),
}

/// Splits a path into that of the queue, and what it names behind that.
fn split_messages(path: &str) -> (&str, PathEnd<'_>) {
    let parts = path.rsplit_once('/');
    if let Some((queue, MESSAGES)) = parts.filter(|(queue, _)| !queue.is_empty()) {
        return (queue, PathEnd::Messages);
    }
    let message = parts.and_then(|(messages, id)| Some((messages.strip_suffix("/messages")?, id)));
    match message.filter(|(queue, _)| !queue.is_empty()) {
        Some((queue, id)) => (queue, PathEnd::Message(id)),
        None => (path, PathEnd::Queue),
    }
}

fn on_queue(method: &Method, parameters: &Parameters, headers: &HeaderMap) -> Result<QueueOf, Refusal> {
    match (parameters.value("comp"), method) {
        (None, &Method::PUT) => Ok(QueueOf::Create(azure::read_metadata(headers)?)),
        (None, &Method::DELETE) => Ok(QueueOf::Delete),
        (Some("metadata"), &Method::GET | &Method::HEAD) => Ok(QueueOf::ReadMetadata),
        (Some("metadata"), &Method::PUT) => Ok(QueueOf::SetMetadata(azure::read_metadata(headers)?)),
        (Some("acl"), _) => {
            let detail = "Access policies of queues are not served here: the backend decides who may read and write.";
            Err(azure::not_served(detail))
        }
        (None | Some("metadata"), _) => Err(azure::bad_method()),
        (Some(_), _) => Err(azure::bad_query("comp")),
    }
}

fn on_messages(method: &Method, parameters: &Parameters) -> Result<QueueOf, Refusal> {
    let count = || {
        let count = parameters.number("numofmessages", (1, MESSAGES_MAX))?;
        Ok::<_, Refusal>(count.and_then(|count| usize::try_from(count).ok()).unwrap_or(1))
    };
    match (*method).as_str() {
        "POST" => {
            let life = match parameters.number("messagettl", (-1, i64::MAX))? {
                None => Some(DEFAULT_LIFE),
                Some(-1) => None,
                Some(0) => return Err(azure::bad_query("messagettl")),
                Some(seconds) => Some(Duration::from_secs(seconds.unsigned_abs())),
            };
            let hidden = parameters.seconds("visibilitytimeout", (0, WEEK))?.unwrap_or_default();
            if life.is_some_and(|life| hidden >= life) {
                return Err(azure::bad_query("visibilitytimeout"));
            }
            Ok(QueueOf::Put(life, hidden))
        }
        "GET" if parameters.value("peekonly").is_some_and(|peeks| peeks.eq_ignore_ascii_case("true")) => {
            Ok(QueueOf::Peek(count()?))
        }
        "GET" => {
            let hidden = parameters.seconds("visibilitytimeout", (1, WEEK))?;
            Ok(QueueOf::Take(count()?, hidden.unwrap_or(DEFAULT_HIDDEN)))
        }
        "DELETE" => Ok(QueueOf::Clear),
        _ => Err(azure::bad_method()),
    }
}

fn on_message(method: &Method, parameters: &Parameters, id: &str) -> Result<QueueOf, Refusal> {
    if !matches!(*method, Method::PUT | Method::DELETE) {
        return Err(azure::bad_method());
    }
    let receipt = parameters.required("popreceipt")?;
    let receipt = PopReceipt::parse(receipt);
    let hidden = match *method {
        Method::PUT => {
            parameters.required("visibilitytimeout")?;
            parameters.seconds("visibilitytimeout", (0, WEEK))?
        }
        _ => None,
    };
    if !is_message_id(id) {
        return Err(message_not_found());
    }
    let (id, receipt) = (id.to_owned(), receipt.ok_or_else(pop_receipt_mismatch)?);
    Ok(match hidden {
        Some(hidden) => QueueOf::Update(id, receipt, hidden),
        None => QueueOf::DeleteMessage(id, receipt),
    })
}

#[cfg(test)]
#[path = "operation_tests.rs"]
mod tests;
