//! The lease operations, each as one pure step on a record (DESIGN, section 4, "Lease operation").
//!
//! The tables in `table_tests.rs` specify the effect of each operation in each state, and are the test too.

use std::time::Duration;

use super::{HolderLabel, Lease, LeaseDuration, LeaseId, LeaseState, PrincipalName, TargetName, Term};
use crate::core::{
    policy::LeaseRules,
    record::{Availability, Record, Snapshot, Stamp},
    time::StoreTime,
};

/// A client's request for an operation on the lease of a resource.
#[derive(Clone, Debug)]
pub struct Command {
    /// The operation.
    pub action: Action,
    /// The principal of the client, if leases are bound to principals (`lease.bind`).
    pub principal: Option<PrincipalName>,
    /// The target of the lease.
    pub target: TargetName,
}

/// A lease operation.
#[derive(Clone, Debug)]
pub enum Action {
    /// Acquires the lease.
    Acquire(Acquire),
    /// Extends the lease to its full duration from now on.
    Renew {
        /// The id of the holder.
        id: LeaseId,
    },
    /// Gives the lease another id.
    Change {
        /// The id of the holder.
        id: LeaseId,
        /// The new id.
        proposed: LeaseId,
    },
    /// Gives the lease up.
    Release {
        /// The id of the holder.
        id: LeaseId,
    },
    /// Ends the lease for any holder, without its id.
    Break {
        /// The time that the holder has to finish, unless its lease ends before. By default a fixed lease runs to its
        /// end, and an infinite one ends at once.
        period: Option<Duration>,
    },
}

/// The properties of the lease that a client wants to acquire.
#[derive(Clone, Debug)]
pub struct Acquire {
    /// The id that the client has chosen, which makes the acquisition idempotent.
    pub proposed: Option<LeaseId>,
    /// The random id to use if the client has chosen none.
    pub fresh: LeaseId,
    /// The duration. The caller checks that the route allows it ([`LeaseDuration::is_allowed`]).
    pub duration: LeaseDuration,
    /// The label that the holder gives itself.
    pub holder: Option<HolderLabel>,
}

/// The effect of a step, once its record is in the store. The new record then holds the fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// The client holds the lease.
    Acquired {
        /// The id of the lease.
        id: LeaseId,
        /// The time for which it is granted.
        duration: LeaseDuration,
        /// Whether this is a new holding, with a new fence. If not, the holder has repeated its request.
        is_new: bool,
    },
    /// The lease is held for its full duration from now on. Only its holder has written since it was last held.
    Renewed {
        /// The duration of the lease.
        duration: LeaseDuration,
    },
    /// The lease has another id.
    Changed {
        /// The new id.
        id: LeaseId,
    },
    /// The holder gave the lease up.
    Released,
    /// The lease had been released with this id before.
    AlreadyReleased,
    /// The lease is broken, or will be.
    Broken {
        /// The time that its holder still has.
        remaining: Duration,
    },
}

impl Done {
    /// Returns the name of the effect in metrics.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Acquired { is_new: true, .. } => "granted",
            Self::Acquired { is_new: false, .. } => "repeated",
            Self::Renewed { .. } => "renewed",
            Self::Changed { .. } => "changed",
            Self::Released | Self::AlreadyReleased => "released",
            Self::Broken { .. } => "broken",
        }
    }
}

/// Why a step was denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denied {
    /// Another client holds the lease.
    Held {
        /// The time that is left unless the lease is renewed; `None` if it has no end.
        remaining: Option<Duration>,
        /// The label that the holder gave itself.
        holder: Option<HolderLabel>,
        /// Whether the lease is breaking, so that it cannot be renewed.
        is_breaking: bool,
    },
    /// The lease, held or ended, has another id or is bound to another principal.
    IdMismatch,
    /// There is no lease.
    NotPresent,
    /// The lease of this id is breaking: it cannot be acquired, renewed or changed.
    Breaking,
    /// The lease of this id was broken: it cannot be renewed.
    Broken,
    /// The holding would last longer than `lease.max_hold_time`. A lease that is held runs to its end.
    BeyondHoldMax,
    /// Writes are in flight or in doubt. The lease can be granted once they have ended.
    Busy(Availability),
}

/// Does one lease operation on the record as it was read. The caller swaps the returned record in. The operation leaves
/// the record's data on writes unchanged.
///
/// A grant to a client that does not hold the lease must wait for writes. The renewal of a lease that has run out must
/// wait too, for writes that are not its holder's. They were admitted because no client held the lease, and could be
/// applied during the renewed term.
///
/// # Errors
///
/// The lease does not allow the operation in its state, belongs to another client, or has to wait for writes.
pub fn step(snapshot: &Snapshot, command: Command, rules: &LeaseRules) -> Result<(Record, Done), Denied> {
    let current = Current::of(snapshot);
    let (principal, target) = (command.principal, command.target);
    let (lease, done) = match command.action {
        Action::Acquire(wanted) => current.acquire(wanted, principal, target, rules)?,
        Action::Renew { id } => current.renew(id, principal, rules)?,
        Action::Change { id, proposed } => current.change(id, proposed, principal)?,
        Action::Release { id } => current.release(id, principal)?,
        Action::Break { period } => current.end(period)?,
    };
    let mut record = current.record_with(lease);
    if matches!(done, Done::Acquired { is_new: true, .. }) {
        record.fence = Stamp::Itself;
    }
    Ok((record, done))
}

/// Breaks the lease as [`step`] does, but for an operator: for any holder, and even if its route does not let clients
/// break it. The returned duration is the time that its holder still has.
///
/// # Errors
///
/// There is no lease.
pub fn break_lease(snapshot: &Snapshot, period: Duration) -> Result<(Record, Duration), Denied> {
    let current = Current::of(snapshot);
    let (lease, _) = current.end(Some(period))?;
    let remaining = lease.remaining(snapshot.now).unwrap_or_default();
    Ok((current.record_with(lease), remaining))
}

/// The lease as it was read.
struct Current<'a> {
    snapshot: &'a Snapshot,
    lease: Option<&'a Lease>,
    state: LeaseState,
    now: StoreTime,
}

impl<'a> Current<'a> {
    fn of(snapshot: &'a Snapshot) -> Self {
        Self { snapshot, lease: snapshot.lease(), state: snapshot.lease_state(), now: snapshot.now }
    }

    fn record_with(&self, lease: Lease) -> Record {
        Record { lease: Some(lease), ..self.snapshot.record.clone().resolved(self.snapshot.revision) }
    }

    fn acquire(
        &self,
        wanted: Acquire,
        principal: Option<PrincipalName>,
        target: TargetName,
        rules: &LeaseRules,
    ) -> Result<(Lease, Done), Denied> {
        let id = wanted.proposed.unwrap_or(wanted.fresh);
        let held = self.lease.filter(|_| self.state.is_held());
        let is_holder = held.is_some_and(|lease| wanted.proposed.is_some() && lease.is_proved_by(id, principal));
        match held {
            Some(_) if is_holder && self.state == LeaseState::Breaking => return Err(Denied::Breaking),
            Some(lease) if !is_holder => return Err(self.held(lease)),
            Some(_) => {}
            None => self.must_be_free()?,
        }
        // The time of an infinite holding does not count towards `max_hold_time`. From now on it does.
        let is_infinite = |duration| duration == LeaseDuration::Infinite;
        let is_counted = |lease: &&Lease| !is_infinite(lease.duration) || is_infinite(wanted.duration);
        let granted = held.filter(is_counted).map_or(self.now, |lease| lease.granted);
        let lease = Lease {
            id,
            term: self.held_within(granted, wanted.duration, rules)?,
            duration: wanted.duration,
            granted,
            holder: wanted.holder,
            principal,
            remember_time: rules.remember_time,
            guards: rules.guards,
            target,
        };
        Ok((lease, Done::Acquired { id, duration: wanted.duration, is_new: held.is_none() }))
    }

    fn renew(
        &self,
        id: LeaseId,
        principal: Option<PrincipalName>,
        rules: &LeaseRules,
    ) -> Result<(Lease, Done), Denied> {
        let lease = self.remembered()?;
        if !lease.is_proved_by(id, principal) {
            return Err(Denied::IdMismatch);
        }
        match self.state {
            LeaseState::Leased => {}
            LeaseState::Expired => self.must_be_unwritten()?,
            LeaseState::Breaking => return Err(Denied::Breaking),
            LeaseState::Broken => return Err(Denied::Broken),
            LeaseState::Available => return Err(Denied::NotPresent),
        }
        let term = self.held_within(lease.granted, lease.duration, rules)?;
        Ok((Lease { term, ..lease.clone() }, Done::Renewed { duration: lease.duration }))
    }

    fn change(
        &self,
        id: LeaseId,
        proposed: LeaseId,
        principal: Option<PrincipalName>,
    ) -> Result<(Lease, Done), Denied> {
        let lease = self.lease.filter(|_| self.state.is_held()).ok_or(Denied::NotPresent)?;
        // A holder that proposes its present id repeats a change whose answer was lost.
        let is_repeated = self.state == LeaseState::Leased && lease.is_proved_by(proposed, principal);
        if !lease.is_proved_by(id, principal) && !is_repeated {
            return Err(Denied::IdMismatch);
        }
        if self.state == LeaseState::Breaking {
            return Err(Denied::Breaking);
        }
        Ok((Lease { id: proposed, ..lease.clone() }, Done::Changed { id: proposed }))
    }

    fn release(&self, id: LeaseId, principal: Option<PrincipalName>) -> Result<(Lease, Done), Denied> {
        let lease = self.lease.ok_or(Denied::NotPresent)?;
        let is_holder = lease.is_proved_by(id, principal);
        match lease.term {
            Term::Released(_) if is_holder => Ok((lease.clone(), Done::AlreadyReleased)),
            Term::Released(_) => Err(Denied::NotPresent),
            _ if is_holder => Ok((Lease { term: Term::Released(self.now), ..lease.clone() }, Done::Released)),
            _ => Err(Denied::IdMismatch),
        }
    }

    /// Breaks the lease. A break can bring its end forward, but never put it off.
    fn end(&self, period: Option<Duration>) -> Result<(Lease, Done), Denied> {
        let lease = self.remembered()?;
        let asked = period.map(|period| self.now.plus(period));
        let until = match (self.state, lease.end(), asked) {
            (LeaseState::Expired, ..) | (_, None, None) => self.now,
            (LeaseState::Broken, Some(end), _) | (_, Some(end), None) => end,
            (_, Some(end), Some(asked)) => end.min(asked),
            (_, None, Some(asked)) => asked,
        };
        let done = Done::Broken { remaining: self.now.until(until) };
        Ok((Lease { term: Term::Breaking(until), ..lease.clone() }, done))
    }

    /// Returns the lease if it is held or remembered.
    fn remembered(&self) -> Result<&Lease, Denied> {
        self.lease.filter(|_| self.state != LeaseState::Available).ok_or(Denied::NotPresent)
    }

    fn held(&self, lease: &Lease) -> Denied {
        Denied::Held {
            remaining: lease.remaining(self.now),
            holder: lease.holder.clone(),
            is_breaking: self.state == LeaseState::Breaking,
        }
    }

    fn held_within(&self, granted: StoreTime, duration: LeaseDuration, rules: &LeaseRules) -> Result<Term, Denied> {
        let end = duration.end(self.now);
        let is_within = end.is_none_or(|end| end <= granted.plus(rules.max_hold_time));
        is_within.then_some(Term::Held(end)).ok_or(Denied::BeyondHoldMax)
    }

    fn must_be_free(&self) -> Result<(), Denied> {
        match self.snapshot.availability() {
            Availability::Free => Ok(()),
            availability => Err(Denied::Busy(availability)),
        }
    }

    /// Fails if a write in flight could take a lease that has run out from its holder. A write in doubt has done so
    /// already.
    fn must_be_unwritten(&self) -> Result<(), Denied> {
        let is_taken = |lease| self.snapshot.record.marks().any(|mark| mark.takes(lease, self.now));
        if self.lease.is_some_and(is_taken) { Err(Denied::Busy(self.snapshot.availability())) } else { Ok(()) }
    }
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod table_tests;

#[cfg(test)]
#[path = "property_tests.rs"]
mod property_tests;
