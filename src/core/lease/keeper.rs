//! A lease that a stream holds: the proxy renews it for the client, and gives it up when the client has gone.
//!
//! # Design
//!
//! *Why does the lease name its keeper?* A client whose stream broke off can come back by another stream, of any
//! process, or renew the lease itself. Each of these replaces the name in the record. So the swap by which the keeper
//! of the old stream would give the lease up shows that another one keeps it.
//!
//! *Why is a lease found by its fence?* Its client can give it another id, and it remains the same holding.

use std::{num::NonZeroU64, time::Duration};

use super::{Lease, LeaseState, Term};
use crate::core::{
    lease::LeaseDuration,
    records::record::{Record, Revision, Snapshot},
};

/// The random name of the keeper of a lease: the stream by which its client holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeeperName(NonZeroU64);

impl KeeperName {
    /// Makes a name of a random number.
    pub const fn of(number: u64) -> Self {
        match NonZeroU64::new(number) {
            Some(number) => Self(number),
            None => Self(NonZeroU64::MIN),
        }
    }

    /// Returns the number.
    pub const fn number(self) -> u64 {
        self.0.get()
    }
}

/// A lease, as its keeper knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptLease {
    /// The fence of the lease, which no other lease of the resource has.
    pub fence: Revision,
    /// The name of the keeper.
    pub keeper: KeeperName,
    /// The longest time for which the client may hold the lease.
    pub max_hold_time: Duration,
}

/// The state of a lease that a stream holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptLeaseState {
    /// The client holds the lease, for this time unless it is renewed.
    Held(Duration),
    /// The lease is being broken, and its client has this time to finish.
    Breaking(Duration),
    /// The client has lost the lease.
    Lost(LeaseLoss),
}

/// The reason why the client of a stream has lost its lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseLoss {
    /// It was broken.
    Broken,
    /// It ran out.
    Expired,
    /// The client has released it.
    Released,
    /// The record does not show it: the resource was deleted, or the store has lost the lease.
    Ended,
    /// Another stream has taken it up.
    TakenUp,
    /// The store has not answered before the end of the lease.
    Unknown,
    /// The upstream has ended the client's right to use the resource.
    Denied,
}

impl LeaseLoss {
    /// Returns the word for the reason.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Broken => "broken",
            Self::Expired => "expired",
            Self::Released => "released",
            Self::Ended => "ended",
            Self::TakenUp => "taken-up",
            Self::Unknown => "unknown",
            Self::Denied => "denied",
        }
    }
}

impl KeptLeaseState {
    /// Returns the state to send to a client that got the other state before. If the next client has the lease already,
    /// the record does not show how this one ended.
    #[must_use]
    pub const fn after(self, told: Self) -> Self {
        match (self, told) {
            (Self::Lost(LeaseLoss::Ended), Self::Breaking(_)) => Self::Lost(LeaseLoss::Broken),
            (state, _) => state,
        }
    }
}

impl KeptLease {
    /// Looks at the lease in a record.
    pub fn look(&self, snapshot: &Snapshot) -> KeptLeaseState {
        let Some(lease) = self.lease(snapshot) else { return KeptLeaseState::Lost(LeaseLoss::Ended) };
        let remaining = lease.remaining(snapshot.now).unwrap_or(Duration::MAX);
        match (lease.state(snapshot.now), lease.term) {
            (LeaseState::Leased | LeaseState::Breaking, _) if lease.keeper.is_some_and(|name| name != self.keeper) => {
                KeptLeaseState::Lost(LeaseLoss::TakenUp)
            }
            (LeaseState::Leased, _) => KeptLeaseState::Held(remaining),
            (LeaseState::Breaking, _) => KeptLeaseState::Breaking(remaining),
            (_, Term::Held(_)) => KeptLeaseState::Lost(LeaseLoss::Expired),
            (_, Term::Breaking(_)) => KeptLeaseState::Lost(LeaseLoss::Broken),
            (_, Term::Released(_)) => KeptLeaseState::Lost(LeaseLoss::Released),
        }
    }

    /// Returns the record with a later end of the lease; `None` if the client does not hold the lease, or may not hold
    /// it for longer. A lease that was broken or has run out stays so.
    pub fn renewed(&self, snapshot: &Snapshot) -> Option<Record> {
        let KeptLeaseState::Held(_) = self.look(snapshot) else { return None };
        let later = |lease: &Lease| {
            let LeaseDuration::Fixed(duration) = lease.duration else { return None };
            let end = snapshot.now.plus(duration).min(lease.granted.plus(self.max_hold_time));
            lease.end().is_some_and(|before| before < end).then_some(end)
        };
        let end = self.lease(snapshot).and_then(later)?;
        Some(self.changed(snapshot, Term::Held(Some(end))))
    }

    /// Whether no renewal can make the lease last longer: its client may not hold it for longer.
    pub fn is_in_last_term(&self, snapshot: &Snapshot) -> bool {
        let last = |lease: &Lease| lease.granted.plus(self.max_hold_time);
        self.lease(snapshot).is_none_or(|lease| lease.end().is_none_or(|end| last(lease) <= end))
    }

    /// Returns the record without the client as a holder; `None` if the lease has ended, or if its client has taken it up
    /// elsewhere.
    pub fn released(&self, snapshot: &Snapshot) -> Option<Record> {
        let lease = self.lease(snapshot).filter(|lease| lease.state(snapshot.now).is_held())?;
        (lease.keeper == Some(self.keeper)).then(|| self.changed(snapshot, Term::Released(snapshot.now)))
    }

    fn lease<'a>(&self, snapshot: &'a Snapshot) -> Option<&'a Lease> {
        snapshot.record.leases.iter().find(|lease| self.is_of(lease, snapshot))
    }

    fn is_of(&self, lease: &Lease, snapshot: &Snapshot) -> bool {
        lease.fence.resolve(snapshot.revision) == self.fence
    }

    fn changed(&self, snapshot: &Snapshot, term: Term) -> Record {
        let mut leases = snapshot.lease_draft();
        leases.iter_mut().filter(|lease| self.is_of(lease, snapshot)).for_each(|lease| lease.term = term);
        Record { leases, ..snapshot.draft() }
    }
}

#[cfg(test)]
#[path = "keeper_tests.rs"]
mod tests;
