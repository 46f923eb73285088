//! Leases as data: the part of a record that describes a lease, and the state that follows from it (DESIGN, sections
//! 2, 4 and 8).
//!
//! [`step`] does every lease operation. [`judge_use`] decides whether a lease permits a read or a write.
//!
//! # Design
//!
//! *Why is the state computed?* A record changes only by a swap, but time passes without one. So a record keeps the
//! points in time. The store's time at a read determines the state.
//!
//! *Why is `remember` part of the lease?* The store must decide on its own when it may forget a record, and it has no
//! access to the configuration.
//!
//! *Why are `guards` and `target` part of the lease?* Several routes and targets can reach one key. The route that
//! grants a lease decides which uses the lease guards, and a route that grants none must learn that from the record.
//! Also, only a deletion of the leased target itself ends the lease, not one of a part that shares the key.
//!
//! *Why does re-acquiring a held lease keep its fence?* A fence orders holders: a later holder has the greater number.
//! As long as no other client was granted the lease in between, there is no other holder to distinguish. A holder that
//! repeats a request whose answer was lost must not outdate its own writes in flight. The same holds for renewing a
//! lease that ran out but was granted to no other client. A lease that is acquired after its end is a new holding, with
//! a new fence, even if its id is the same.

use std::time::Duration;

use super::{
    policy::{LeaseGuards, LeaseRules},
    records::revision::Stamp,
    time::StoreTime,
};

mod begun;
pub mod field_names;
mod holder;
mod id;
mod keeper;
mod lease_set;
mod mode;
mod note;
mod operation;
mod step;
mod take_back;
mod target;
mod usage;
mod view;

#[cfg(test)]
pub(crate) mod testing;

pub use begun::{BegunLease, begun, without_lease};
pub use holder::{HolderLabel, MalformedLabel};
pub use id::{LeaseId, MalformedLeaseId};
pub use keeper::{KeeperName, KeptLease, KeptLeaseState, LeaseLoss};
pub use lease_set::{LeaseSet, SHARED_LEASES_MAX};
pub use mode::{LeaseMode, ShareMode};
pub use note::{LeaseNote, NOTE_BYTES_MAX, TooLongNote};
pub use operation::{Acquire, Action, Command, Denied, Done};
pub use step::{await_exclusive, break_leases, step};
pub use take_back::{LostGrant, take_back};
pub use target::TargetName;
pub use usage::{Standing, Usage, Usages, UseDenied, judge_use};
pub use view::{PublicLease, rounded_up};

/// The name of a principal: a hash of its credentials.
pub type PrincipalName = [u8; 16];

/// The time for which a lease is granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LeaseDuration {
    /// The lease is held for this long, unless it is renewed.
    Fixed(Duration),
    /// The lease is held until it is released or broken.
    Infinite,
}

impl LeaseDuration {
    /// True if a client may request this duration (`lease.min`, `lease.max`, `lease.infinite`).
    pub fn is_allowed(self, rules: &LeaseRules) -> bool {
        match self {
            Self::Fixed(duration) => (rules.min..=rules.max).contains(&duration),
            Self::Infinite => rules.infinite,
        }
    }

    fn end(self, now: StoreTime) -> Option<StoreTime> {
        match self {
            Self::Fixed(duration) => Some(now.plus(duration)),
            Self::Infinite => None,
        }
    }
}

/// The stage of a lease's life, with the time at which it ends or ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Term {
    /// The lease is held until this time. `None`: until it is released or broken.
    Held(Option<StoreTime>),
    /// The lease was broken, and its holder has until this time to finish.
    Breaking(StoreTime),
    /// The lease was released at this time.
    Released(StoreTime),
}

/// The state of a resource's lease at a given time. Of several leases, the one with the greatest state counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LeaseState {
    /// There is no lease.
    Available,
    /// The lease was broken. Its id is remembered.
    Broken,
    /// The lease ran out. Its id is remembered, so its holder may still renew it.
    Expired,
    /// A client holds the lease until the break takes effect, and cannot renew it.
    Breaking,
    /// A client holds the lease.
    Leased,
}

impl LeaseState {
    /// Returns the word for the state.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Available => "available",
            Self::Leased => "leased",
            Self::Breaking => "breaking",
            Self::Broken => "broken",
            Self::Expired => "expired",
        }
    }

    /// True if a client holds the lease.
    pub const fn is_held(self) -> bool {
        matches!(self, Self::Leased | Self::Breaking)
    }
}

/// A lease of one resource, or the memory of one that has ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lease {
    /// The secret that proves the lease.
    pub id: LeaseId,
    /// The mode of the lease: if it is shared, other clients may hold shared leases of the resource too.
    pub mode: LeaseMode,
    /// The revision of the record in which the lease was granted: no other lease of the resource has it.
    pub fence: Stamp,
    /// The stage of the lease's life.
    pub term: Term,
    /// The time for which the lease was granted, and for which each renewal extends it.
    pub duration: LeaseDuration,
    /// The time at which this holding of the lease began.
    pub granted: StoreTime,
    /// The label that its holder gave itself.
    pub holder: Option<HolderLabel>,
    /// The service's note about the lease.
    pub note: Option<LeaseNote>,
    /// The stream that renews it for its client, unless the client has done something about the lease itself since.
    pub keeper: Option<KeeperName>,
    /// The only principal that may use the lease, if it is bound to one.
    pub principal: Option<PrincipalName>,
    /// The time for which the lease is remembered after its end.
    pub remember_time: Duration,
    /// The uses that the lease guards, on every route.
    pub guards: LeaseGuards,
    /// The target that the lease was acquired by.
    pub target: TargetName,
}

impl Lease {
    /// Returns the state by the store's time.
    pub fn state(&self, now: StoreTime) -> LeaseState {
        match (self.term, self.end()) {
            (Term::Released(_), _) => LeaseState::Available,
            _ if !self.is_remembered(now) => LeaseState::Available,
            (Term::Held(_), Some(end)) if end <= now => LeaseState::Expired,
            (Term::Held(_), _) => LeaseState::Leased,
            (Term::Breaking(end), _) if end <= now => LeaseState::Broken,
            (Term::Breaking(_), _) => LeaseState::Breaking,
        }
    }

    /// Returns how long the lease will still be held unless it is renewed; `None` if it has no end.
    pub fn remaining(&self, now: StoreTime) -> Option<Duration> {
        self.end().map(|end| now.until(end))
    }

    /// True if the lease is held, or still remembered.
    pub fn is_remembered(&self, now: StoreTime) -> bool {
        self.forgotten_from().is_none_or(|forgotten| now < forgotten)
    }

    /// Returns the time from which the lease no longer counts, unless it is changed; `None` if it has no end.
    pub fn forgotten_from(&self) -> Option<StoreTime> {
        self.end().map(|end| end.plus(self.remember_time))
    }

    /// True if the bearer of this id holds the lease.
    pub fn is_proved_by(&self, id: LeaseId, principal: Option<PrincipalName>) -> bool {
        self.id == id && self.is_for(principal)
    }

    /// True if a principal may use the lease.
    fn is_for(&self, principal: Option<PrincipalName>) -> bool {
        self.principal.is_none() || self.principal == principal
    }

    /// Returns the time at which the lease ends or ended, unless it is renewed; `None` if it has no end.
    pub const fn end(&self) -> Option<StoreTime> {
        match self.term {
            Term::Held(end) => end,
            Term::Breaking(end) | Term::Released(end) => Some(end),
        }
    }
}

#[cfg(test)]
#[path = "lease_tests.rs"]
mod tests;
