//! The operations of clients, as requests.

use http::Method;

use crate::{
    azure_queues::QueueStep,
    backend::resource_of,
    client::Request,
    grants::Opening,
    judge::{Knowledge, Seen},
    keys::{COOKIES, Change},
    transfers::{destination_field, destination_of},
    watchers::watch_target,
};

/// An operation of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operation {
    Read,
    Create,
    Put,
    /// Replaces the state, unless it is the one that the client knows.
    Unless,
    Patch,
    Post,
    Delete,
    Acquire,
    /// Takes the next member of a collection.
    Next,
    Renew,
    Change,
    Release,
    Break,
    /// Breaks the streams of the client off.
    HangUp,
    /// Watches the resource.
    Watch,
    /// Takes the right to read from the client.
    Revoke,
    /// Does something with a queue, which builds the request itself.
    OfQueue(QueueStep),
    /// Replaces the content, and removes the metadata.
    Strip,
    /// Replaces the metadata alone.
    Describe,
    /// Copies the resource onto another one.
    Copy,
    /// Moves the resource onto another one.
    Move,
}

/// The operations on resources with metadata.
pub const WITH_METADATA: [Operation; 7] = [
    Operation::Read,
    Operation::Create,
    Operation::Put,
    Operation::Unless,
    Operation::Delete,
    Operation::Strip,
    Operation::Describe,
];

/// The operations on all other resources.
pub const ALL: [Operation; 12] = [
    Operation::Read,
    Operation::Create,
    Operation::Put,
    Operation::Unless,
    Operation::Patch,
    Operation::Post,
    Operation::Delete,
    Operation::Acquire,
    Operation::Renew,
    Operation::Change,
    Operation::Release,
    Operation::Break,
];

/// The details of an operation that its kind leaves open.
#[derive(Clone, Copy, Debug, Default)]
pub struct Manner {
    /// True if a read sends the tag that its client has.
    pub is_conditional: bool,
    /// True if an acquisition holds the lease by a stream, or a watch has one.
    pub holds: bool,
    /// True if it has the id of the lease that the client knows, or a watch that of the states.
    pub resumes: bool,
    /// True if a watch is one of both resources.
    pub watches_both: bool,
    /// True if an acquisition proposes its lease id.
    pub proposes: bool,
    /// The requested duration of a lease, in seconds; `None` for an infinite one.
    pub lasts: Option<u64>,
    /// True if an acquisition lets other clients hold shared leases beside its own.
    pub shares: bool,
    /// The uses that a client with a shared lease makes, and those that it permits to others.
    pub opening: Opening,
    /// The time that an acquisition or a watch may wait, in seconds.
    pub waits: u64,
    /// True if a write has an idempotency key.
    pub has_key: bool,
    /// True if the client sends its last request with an idempotency key again, if it has sent one, instead of a new one.
    pub resends: bool,
    /// True if the request goes to the next process instead of the client's own.
    pub goes_elsewhere: bool,
    /// True if a write that replaces a document is a POST to the list of documents, whose body names the document.
    pub is_named_by_body: bool,
    /// True if a DELETE has no credentials, so that it can wait for the holders of a lease.
    pub is_anonymous: bool,
    /// True if the credentials differ from those of the client's reads.
    pub as_other: bool,
    /// True if a write names the state by its modification date, if its client got one.
    pub by_date: bool,
    /// True if a cookie names the client.
    pub has_session: bool,
    /// True if a COPY or MOVE keeps what is at its destination.
    pub keeps: bool,
    /// The changes of the client in a request that it sends again.
    pub changes: Change,
}

impl Operation {
    pub fn writes(self) -> bool {
        matches!(
            self,
            Self::Create
                | Self::Put
                | Self::Unless
                | Self::Patch
                | Self::Post
                | Self::Delete
                | Self::Strip
                | Self::Describe
                | Self::Copy
                | Self::Move
        )
    }

    /// True if the operation changes a second resource.
    pub fn transfers(self) -> bool {
        matches!(self, Self::Copy | Self::Move)
    }

    pub fn is_of_lease(self) -> bool {
        matches!(self, Self::Acquire | Self::Renew | Self::Change | Self::Release | Self::Break)
    }

    fn replaces(self) -> bool {
        matches!(self, Self::Create | Self::Put | Self::Unless)
    }

    /// True if the client must know the resource.
    pub fn needs_tag(self) -> bool {
        matches!(
            self,
            Self::Put
                | Self::Unless
                | Self::Patch
                | Self::Delete
                | Self::Strip
                | Self::Describe
                | Self::Copy
                | Self::Move
        )
    }

    /// True if the client must hold the lease.
    pub fn needs_lease(self) -> bool {
        matches!(self, Self::Renew | Self::Change | Self::Release)
    }

    fn method(self) -> Method {
        match self {
            Self::Read | Self::Next | Self::Watch | Self::OfQueue(_) => Method::GET,
            Self::Create | Self::Put | Self::Unless | Self::Renew | Self::Strip | Self::Describe => Method::PUT,
            Self::Patch | Self::Change => Method::PATCH,
            Self::Post | Self::Acquire => Method::POST,
            Self::Delete | Self::Release | Self::Break => Method::DELETE,
            Self::Copy => "COPY".parse().unwrap(),
            Self::Move => "MOVE".parse().unwrap(),
            Self::HangUp | Self::Revoke => unreachable!("nothing is sent"),
        }
    }

    /// Builds the request number `number` of a client with this knowledge.
    pub fn request(
        self,
        number: usize,
        target: &str,
        known: &Knowledge,
        lease: Option<&String>,
        manner: Manner,
    ) -> Request {
        // A request of the proxy itself has only the fields that a backend needs.
        let mut fields = vec![("x-sent-by", "client".to_owned())];
        let is_anonymous = manner.is_anonymous && self == Self::Delete;
        if !is_anonymous {
            fields.push(("authorization", if manner.as_other { "other" } else { "usual" }.to_owned()));
        }
        if manner.has_session {
            fields.push(("cookie", COOKIES.to_owned()));
        }
        let seen = known.seen.get(target);
        let mut tagged = |name, seen: Option<&Seen>| fields.extend(seen.map(|seen| (name, seen.tag.clone())));
        match self {
            Self::Read if manner.is_conditional => tagged("if-none-match", seen),
            Self::Copy if !manner.is_conditional => {}
            Self::Put | Self::Patch | Self::Delete | Self::Strip | Self::Describe | Self::Copy | Self::Move => {
                match seen.and_then(|seen| seen.date.clone()).filter(|_| manner.by_date) {
                    Some(date) => fields.push(("if-unmodified-since", date)),
                    None => tagged("if-match", seen),
                }
            }
            Self::Unless => tagged("if-none-match", seen),
            Self::Create => fields.push(("if-none-match", "*".to_owned())),
            Self::Acquire | Self::Next => {
                fields.extend(manner.holds.then(|| ("accept", "text/event-stream".to_owned())));
                let lasts = manner.lasts.map_or("infinite".to_owned(), |seconds| seconds.to_string());
                fields.push(("lease-duration", lasts));
                if manner.shares {
                    fields.push(("lease-mode", "shared".to_owned()));
                    fields.extend(manner.opening.fields());
                }
                if manner.waits > 0 {
                    fields.push(("prefer", format!("wait={}", manner.waits)));
                }
            }
            Self::Change => fields.push(("proposed-lease-id", id(number))),
            Self::Break => fields.push(("lease-break-period", "0".to_owned())),
            _ => {}
        }
        let lease_id = match self {
            Self::Acquire if manner.resumes => lease.cloned(),
            Self::Acquire => manner.proposes.then(|| id(number)),
            Self::Break | Self::Next | Self::Watch => None,
            Self::Renew | Self::Change | Self::Release => Some(lease.cloned().unwrap_or_else(|| id(999))),
            _ => lease.cloned(),
        };
        fields.extend(lease_id.map(|id| ("lease-id", id)));
        if self.transfers() {
            fields.push(("destination", destination_field(target, number.is_multiple_of(2))));
            fields.extend(manner.keeps.then(|| ("overwrite", "F".to_owned())));
            let other = known.leases.get(&resource_of(destination_of(target)));
            fields.extend(other.map(|id| ("destination-lease-id", id.clone())));
        }
        if self.writes() && manner.has_key && !is_anonymous {
            fields.push(("idempotency-key", format!("\"{number}\"")));
        }
        let target = match self {
            Self::Watch => watch_target(target, manner),
            _ if self.is_of_lease() => format!("/.leases{target}"),
            _ => target.to_owned(),
        };
        let has_none = matches!(self, Self::Delete | Self::Describe | Self::Copy | Self::Move);
        let body = (self.writes() && !has_none).then(|| number.to_string());
        let is_named_by_body = manner.is_named_by_body && self.replaces();
        Request { method: self.method(), target, fields, body, is_named_by_body, describes: self == Self::Describe }
    }
}

/// Returns a lease id that a client chose.
fn id(number: usize) -> String {
    format!("00000000-0000-4000-8000-{number:012}")
}
