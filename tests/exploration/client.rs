//! A client of the resource, and the state of its request.

use ifmatch::core::{
    records::{
        record::{Mark, Revision},
        steps::Outcome,
    },
    time::StoreTime,
};

use super::{
    route::{Content, Given, Presented, lease_id},
    store::Seen,
};

/// The part that a client plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Reads, and writes with the tag that it got.
    Writer,
    /// Writes by appending; only the lease judges that write.
    Poster,
    /// Takes the lease, reads, may renew the lease once, writes with it, and releases it.
    Holder,
    /// Writes without a precondition and without a lease.
    Plain,
}

/// A lease operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    Acquire,
    Renew,
    Release,
}

/// Whether a write leaves an ended lease unchanged.
pub type LeavesLease = bool;

/// The next step of a client.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// The client is about to read.
    Begins,
    /// The record has been read for the client; the upstream comes next, unless the content was read before the record.
    Reads(Seen, Option<Content>),
    /// The client's write has arrived.
    Asks,
    /// The verdict on the write depends on the upstream.
    Probes(Seen, LeavesLease),
    /// The write has passed.
    Marks(Seen, LeavesLease),
    /// The mark of the write is in the record.
    Sends,
    /// The write is with the upstream.
    IsSent { at: StoreTime },
    /// The write is applied; the resource may be read again.
    IsApplied,
    /// The write has ended; the content is what was learned, if anything.
    Settles(Outcome, Option<Content>),
    /// The record has been read to settle the write.
    Swaps(Outcome, Option<Content>, Seen),
    /// The client's lease operation has arrived.
    Wants(Operation),
    /// The record has been read for the operation, which is possible.
    Operates(Operation, Seen),
    /// The client has an answer.
    Done,
    /// The proxy has died during the write: the client sees a broken connection.
    Dead,
}

/// A marked write.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Write {
    pub mark: Mark,
    pub marked_at: Revision,
    /// Whether another client was granted the lease since.
    pub is_overtaken: bool,
    /// Whether another write has appended since.
    pub is_beside: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Client {
    pub role: Role,
    /// The proxy that the client uses.
    pub proxy: usize,
    /// The content that the client writes.
    pub content: Content,
    pub step: Step,
    /// The state that the client has read.
    pub given: Option<Given>,
    pub write: Option<Write>,
    pub may_renew: bool,
}

impl Client {
    pub fn new(index: usize, role: Role) -> Self {
        let step = match role {
            Role::Writer => Step::Begins,
            Role::Poster | Role::Plain => Step::Asks,
            Role::Holder => Step::Wants(Operation::Acquire),
        };
        Self {
            role,
            proxy: index % 2,
            // The second client writes the first content again.
            content: [1, 0, 2][index],
            step,
            given: None,
            write: None,
            may_renew: role == Role::Holder,
        }
    }

    pub fn is_over(&self) -> bool {
        matches!(self.step, Step::Done | Step::Dead)
    }

    pub fn presented(&self, index: usize) -> Presented {
        Presented {
            base: self.given.filter(|_| self.role == Role::Writer),
            lease_id: (self.role == Role::Holder).then(|| lease_id(index)),
        }
    }

    /// Whether the client's mark is in the record, as far as its proxy knows.
    pub fn is_marked(&self) -> bool {
        matches!(self.step, Step::Sends | Step::IsSent { .. } | Step::IsApplied | Step::Settles(..) | Step::Swaps(..))
    }

    /// Returns the record as it was read for the step.
    pub fn seen(&mut self) -> Option<&mut Seen> {
        match &mut self.step {
            Step::Reads(seen, _)
            | Step::Probes(seen, _)
            | Step::Marks(seen, _)
            | Step::Swaps(_, _, seen)
            | Step::Operates(_, seen) => Some(seen),
            _ => None,
        }
    }

    /// Returns all revisions that the client knows.
    pub fn revisions(&mut self) -> Vec<&mut Revision> {
        let mut all = self.given.as_mut().map(|given| &mut given.version).into_iter().collect::<Vec<_>>();
        all.extend(self.write.as_mut().map(|write| &mut write.marked_at));
        match &mut self.step {
            Step::Reads(seen, _)
            | Step::Probes(seen, _)
            | Step::Marks(seen, _)
            | Step::Swaps(_, _, seen)
            | Step::Operates(_, seen) => all.extend(seen.revisions()),
            _ => {}
        }
        all
    }
}
