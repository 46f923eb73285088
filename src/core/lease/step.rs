//! Every lease operation, as one pure step on a record (DESIGN, section 4, "Lease operation").
//!
//! What each does in each state is the table in `table_tests.rs`, which is the test too.

use std::time::Duration;

use super::{HolderLabel, Lease, LeaseDuration, LeaseId, LeaseState, PrincipalName, TargetName, Term};
use crate::core::{
    policy::LeaseRules,
    record::{Availability, Record, Snapshot, Stamp},
    time::StoreTime,
};

/// What a client wants of the lease of a resource.
#[derive(Clone, Debug)]
pub struct Command {
    /// What.
    pub action: Action,
    /// The principal that it comes from, where leases are bound to theirs (`lease.bind`).
    pub principal: Option<PrincipalName>,
    /// The target whose lease it is about.
    pub target: TargetName,
}

/// A lease operation.
#[derive(Clone, Debug)]
pub enum Action {
    /// To get the lease.
    Acquire(Acquire),
    /// To hold it for its duration from now on.
    Renew {
        /// The id of the holder.
        id: LeaseId,
    },
    /// To give it another id.
    Change {
        /// The id of the holder.
        id: LeaseId,
        /// The new one.
        proposed: LeaseId,
    },
    /// To give it up.
    Release {
        /// The id of the holder.
        id: LeaseId,
    },
    /// To end it for its holder, whoever that is.
    Break {
        /// How long the holder has to finish, unless its lease ends before; by default to the end of a fixed lease, and
        /// no time where there is none.
        period: Option<Duration>,
    },
}

/// What an acquired lease is to be.
#[derive(Clone, Debug)]
pub struct Acquire {
    /// The id that the client has chosen; it makes the acquisition idempotent.
    pub proposed: Option<LeaseId>,
    /// The id where the client has chosen none: random.
    pub fresh: LeaseId,
    /// For how long. That the route allows it is the caller's part ([`LeaseDuration::is_allowed`]).
    pub duration: LeaseDuration,
    /// What the holder calls itself.
    pub holder: Option<HolderLabel>,
}

/// What a step has done, once its record is in the store. The fence is that of the record then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// The lease is held.
    Acquired {
        /// Its id.
        id: LeaseId,
        /// For how long.
        duration: LeaseDuration,
        /// Whether it is a new holding, with a new fence. If not, the holder has repeated itself.
        is_new: bool,
    },
    /// It is held for its duration from now on. Nothing was written since it was last held, but by its holder.
    Renewed {
        /// Its duration.
        duration: LeaseDuration,
    },
    /// It has another id.
    Changed {
        /// The new one.
        id: LeaseId,
    },
    /// It was given up.
    Released,
    /// It had been released by this id before.
    AlreadyReleased,
    /// It is broken, or will be.
    Broken {
        /// How long its holder still has.
        remaining: Duration,
    },
}

impl Done {
    /// Its name in metrics.
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

/// Why a step cannot be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denied {
    /// Another holds the lease.
    Held {
        /// For how long, unless it is renewed; `None` until it is given up.
        remaining: Option<Duration>,
        /// What the holder calls itself.
        holder: Option<HolderLabel>,
        /// Whether it is breaking, so that it cannot be renewed.
        is_breaking: bool,
    },
    /// There is a lease, held or ended, of another id; or it is bound to another principal.
    IdMismatch,
    /// There is no lease.
    NotPresent,
    /// The lease of this id is breaking: it cannot be acquired, renewed or changed.
    Breaking,
    /// The lease of this id was broken: it cannot be renewed.
    Broken,
    /// The holding would last longer than `lease.hold_max`. What is held runs to its end.
    BeyondHoldMax,
    /// Writes are in flight or in doubt; the lease can be granted when they are not.
    Busy(Availability),
}

/// Does one lease operation on the record as it was read; the record is to be swapped in. The operation does not touch
/// what the record keeps of writes.
///
/// Only a grant to somebody who does not hold the lease waits for writes. So does the renewal of a lease that has run
/// out, for writes that are not its holder's: they were let through because nobody held it, and would be applied under
/// its nose.
///
/// # Errors
///
/// The lease is not in a state for it, or not the client's, or writes are in the way.
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

/// Breaks the lease as [`step`] does, for an operator: whoever holds it, and whatever its route lets clients do. The
/// duration is how long its holder still has.
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
        // What was held without an end was not counted; from now on it is.
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
            remember: rules.remember,
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
        // Who proposes the id that it has already repeats a change whose answer was lost.
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

    /// Breaks the lease. It can bring the end forward, never put it off.
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

    /// The lease, unless it is none.
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
        let is_within = end.is_none_or(|end| end <= granted.plus(rules.hold_max));
        is_within.then_some(Term::Held(end)).ok_or(Denied::BeyondHoldMax)
    }

    fn must_be_free(&self) -> Result<(), Denied> {
        match self.snapshot.availability() {
            Availability::Free => Ok(()),
            availability => Err(Denied::Busy(availability)),
        }
    }

    /// Whether no write is in flight that could take a lease that has run out from its holder. One in doubt has done so
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
