//! A client of the resource, and where its request stands.

use ifmatch::core::{
    record::{Mark, Revision},
    steps::Outcome,
    time::StoreTime,
};

use super::{
    route::{Content, Given, Presented, lease_id},
    store::Seen,
};

/// What a client is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// It reads, and writes with the tag that it got.
    Writer,
    /// Its write appends, and is judged by nothing but the lease.
    Poster,
    /// It takes the lease, reads, may renew the lease once, writes with it, and releases it.
    Holder,
    /// It writes without a precondition and without a lease.
    Plain,
}

/// A lease operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    Acquire,
    Renew,
    Release,
}

/// Whether its write leaves a lease that has ended as it is.
pub type LeavesLease = bool;

/// Where a client stands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// It is about to read.
    Begins,
    /// The record was read for it, and the upstream is to be asked; unless the content was taken already.
    Reads(Seen, Option<Content>),
    /// Its write has come in.
    Asks,
    /// The verdict depends on the upstream.
    Probes(Seen, LeavesLease),
    /// The verdict is that it passes.
    Marks(Seen, LeavesLease),
    /// Its mark is in the record.
    Sends,
    /// Its write is with the upstream.
    IsSent { at: StoreTime },
    /// It is applied; the resource may be read again.
    IsApplied,
    /// What was learned, if anything.
    Settles(Outcome, Option<Content>),
    /// The record was read to settle.
    Swaps(Outcome, Option<Content>, Seen),
    /// Its lease operation has come in.
    Wants(Operation),
    /// The record was read for the operation, which is possible.
    Operates(Operation, Seen),
    /// It has an answer.
    Done,
    /// Its proxy has died during its write: it sees a broken connection.
    Dead,
}

/// A write that is marked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Write {
    pub mark: Mark,
    pub marked_at: Revision,
    /// Whether another one was granted the lease since.
    pub is_overtaken: bool,
    /// Whether something was appended since.
    pub is_beside: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Client {
    pub role: Role,
    /// The proxy that it talks to.
    pub proxy: usize,
    /// What it writes.
    pub content: Content,
    pub step: Step,
    /// What it has read.
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
            // The second one brings the first content back.
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

    /// Whether its mark is in the record, as far as its proxy knows.
    pub fn is_marked(&self) -> bool {
        matches!(self.step, Step::Sends | Step::IsSent { .. } | Step::IsApplied | Step::Settles(..) | Step::Swaps(..))
    }

    /// The record as it was read for the step.
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

    /// All revisions that it knows of.
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
