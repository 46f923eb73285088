//! Leases as data: what a record keeps of one, and what can be read off it (DESIGN, sections 2, 4 and 8).
//!
//! [`step`] is every lease operation, [`judge_use`] the word of a lease on a read or a write.
//!
//! # Design
//!
//! *Why is the state computed?* A record changes by a swap alone, and time passes without one. So a record keeps the
//! moments, and the store's time at a reading says which state they make.
//!
//! *Why does `remember` stand in the lease?* The store must know by itself when a record may be forgotten, and knows no
//! configuration.
//!
//! *Why do `guards` and `target` stand in the lease?* A key may be reached by several routes and targets. What a lease keeps
//! others from was said by the route that granted it, and has to be known to one that grants none; and only a deletion of
//! the very target that was leased takes the lease with it, not one of a part that shares the key.
//!
//! *Why does re-acquiring a held lease keep its fence?* A fence orders holders: the one that is granted a lease later
//! has the greater number. As long as nobody else was granted the lease in between, there is nobody to tell the holder
//! from, and its writes that are under way with the number that it has must not become stale by its own repetition of
//! a request whose answer was lost. The same holds for renewing a lease that ran out but was given to nobody else. A
//! lease that is acquired after its end is a new holding, with a new fence, whatever its id is.

use std::time::Duration;

use super::{
    policy::{LeaseGuards, LeaseRules},
    time::StoreTime,
};

mod holder;
mod id;
mod step;
mod take_back;
mod target;
mod usage;

#[cfg(test)]
pub(crate) mod testing;

pub use holder::{HolderLabel, MalformedLabel};
pub use id::{LeaseId, MalformedLeaseId};
pub use step::{Acquire, Action, Command, Denied, Done, break_lease, step};
pub use take_back::{LostGrant, take_back};
pub use target::TargetName;
pub use usage::{Standing, Usage, UseDenied, judge_use};

/// The name of a principal: a hash of its credentials.
pub type PrincipalName = [u8; 16];

/// For how long a lease is granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LeaseDuration {
    /// For this long, unless it is renewed.
    Fixed(Duration),
    /// Until it is released or broken.
    Infinite,
}

impl LeaseDuration {
    /// Whether a client may ask for it (`lease.min`, `lease.max`, `lease.infinite`).
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

/// How far a lease has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Term {
    /// It is held until this moment; without one, until it is given up.
    Held(Option<StoreTime>),
    /// It was broken, and its holder has until this moment to finish.
    Breaking(StoreTime),
    /// It was released at this moment.
    Released(StoreTime),
}

/// The state of a resource's lease at some moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LeaseState {
    /// There is no lease.
    Available,
    /// Somebody holds it.
    Leased,
    /// Somebody holds it until the break takes effect, and cannot renew it.
    Breaking,
    /// It was broken. Its id is remembered.
    Broken,
    /// It ran out. Its id is remembered: its holder may still renew it.
    Expired,
}

impl LeaseState {
    /// Whether somebody holds the lease.
    pub const fn is_held(self) -> bool {
        matches!(self, Self::Leased | Self::Breaking)
    }
}

/// The lease of one resource, or what is remembered of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lease {
    /// What proves it.
    pub id: LeaseId,
    /// How far it has come.
    pub term: Term,
    /// For how long it was granted, and is renewed.
    pub duration: LeaseDuration,
    /// When this holding of it began.
    pub granted: StoreTime,
    /// What its holder calls itself.
    pub holder: Option<HolderLabel>,
    /// The only principal that it is of use to, if it is bound to one.
    pub principal: Option<PrincipalName>,
    /// How long it is remembered after its end.
    pub remember: Duration,
    /// What it keeps others from, by whatever route they come.
    pub guards: LeaseGuards,
    /// The target that it was acquired by.
    pub target: TargetName,
}

impl Lease {
    /// Its state by the store's time.
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

    /// How long it will still be held unless it is renewed; `None` for ever.
    pub fn remaining(&self, now: StoreTime) -> Option<Duration> {
        self.end().map(|end| now.until(end))
    }

    /// Whether it is held, or still remembered.
    pub fn is_remembered(&self, now: StoreTime) -> bool {
        self.forgotten_from().is_none_or(|forgotten| now < forgotten)
    }

    /// From when on nothing of it counts any more, unless it is changed; `None` for one without an end.
    pub fn forgotten_from(&self) -> Option<StoreTime> {
        self.end().map(|end| end.plus(self.remember))
    }

    /// Whether the bearer of this id is its holder.
    pub fn is_proved_by(&self, id: LeaseId, principal: Option<PrincipalName>) -> bool {
        self.id == id && self.is_for(principal)
    }

    /// Whether it is of use to a principal.
    fn is_for(&self, principal: Option<PrincipalName>) -> bool {
        self.principal.is_none() || self.principal == principal
    }

    fn end(&self) -> Option<StoreTime> {
        match self.term {
            Term::Held(end) => end,
            Term::Breaking(end) | Term::Released(end) => Some(end),
        }
    }
}

#[cfg(test)]
#[path = "lease_tests.rs"]
mod tests;
