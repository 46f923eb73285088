//! The leases that clients were granted, by the answers that they got.

use std::time::Duration;

use tokio::time::Instant;

use crate::{
    client::Request,
    judge::{Entry, field},
    operation::Operation,
    trees::{collection_of, is_member},
};

/// A lease that a client was granted.
#[derive(Clone, Debug)]
pub struct Grant {
    pub resource: String,
    pub ids: Vec<String>,
    pub fence: u64,
    /// The duration from `since` on; `None` for an infinite lease.
    pub lasts: Option<Duration>,
    pub since: Instant,
    /// The moment when the client first got its answer.
    pub answered: u64,
    /// The request whose stream holds the lease. It is held until the client hears of its loss.
    pub stream: Option<usize>,
    /// True if a client requested the end of the lease.
    pub is_over: bool,
    /// True if other clients may hold shared leases beside it.
    pub is_shared: bool,
    /// The uses that its holder makes, and those that it permits to others.
    pub opening: Opening,
    /// The time after which the lease has ended for certain; `None` if that is unknown.
    pub ends_by: Option<Instant>,
}

/// The uses that the holder of a shared lease makes, and those that it permits to others: changes too, or only reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    does: bool,
    lets: bool,
}

impl Opening {
    pub const ALL: [Self; 4] = [
        Self { does: true, lets: true },
        Self { does: false, lets: true },
        Self { does: true, lets: false },
        Self { does: false, lets: false },
    ];

    /// The fields by which a client asks for it.
    pub fn fields(self) -> impl Iterator<Item = (&'static str, String)> {
        let fields = [("lease-access", self.does), ("lease-share", self.lets)];
        fields.into_iter().filter(|(_, all)| !all).map(|(name, _)| (name, "read".to_owned()))
    }

    pub fn of(request: &Request) -> Self {
        Self { does: field(request, "lease-access").is_none(), lets: field(request, "lease-share").is_none() }
    }

    pub fn stands_beside(self, other: Self) -> bool {
        (self.lets || !other.does) && (other.lets || !self.does)
    }

    /// True if the holder may do what a request does.
    pub fn permits(self, entry: &Entry) -> bool {
        self.does || entry.operation == Operation::Read
    }
}

impl Default for Opening {
    fn default() -> Self {
        Self::ALL[0]
    }
}

impl Grant {
    pub fn is_held(&self, at: Instant) -> bool {
        !self.is_over && self.lasts.is_none_or(|lasts| at < self.since + lasts)
    }

    /// True if the lease is one of this resource, or of the collection that it is in.
    pub fn reaches(&self, resource: &str) -> bool {
        self.resource == resource || is_member(resource, &self.resource)
    }

    pub fn is_of(&self, entry: &Entry) -> bool {
        self.reaches(&entry.resource) && entry.lease.as_ref().is_some_and(|id| self.ids.contains(id))
    }

    /// True if this lease keeps off a request that was made under one of the other leases.
    pub fn keeps_off(&self, entry: &Entry, grants: &[Self]) -> bool {
        let may_be_held = |own: &Self| own.ends_by.is_none_or(|end| entry.invoked_at < end);
        let are_shared = |own: &Self| own.is_shared && self.is_shared && own.opening.stands_beside(self.opening);
        let shares = |own: &Self| are_shared(own) && own.is_of(entry) && may_be_held(own);
        self.reaches(&entry.resource) && !self.is_of(entry) && !grants.iter().any(shares)
    }

    /// True if the fence that came with a write of the holder is right. With shared leases it is that of the last grant, and
    /// the lock of a collection around the resource is a grant too. The answer to a LOCK tells none.
    pub fn has_sent(&self, fence: Option<u64>) -> bool {
        let is_later = self.is_shared || self.fence == 0 || collection_of(&self.resource).is_some();
        fence.is_some_and(|fence| fence == self.fence || is_later && fence > self.fence)
    }
}
