//! The lease operations, each as one pure step on a record (DESIGN, section 4, "Lease operation").
//!
//! The tables in `dialect/azure/lease_table_tests.rs` specify the effect of each operation in each state, and are the test
//! too.
//!
//! # Design
//!
//! *Why does a client that waits for the holders of shared leases sign the record?* They can come and go so that there is
//! always one beside which its own lease cannot be. While the sign counts, no other client joins them, in any process. A
//! sign decides only who goes first: without it, the lease is as safe.

use std::time::Duration;

use super::{
    Acquire, Action, Command, Denied, Done, Lease, LeaseDuration, LeaseId, LeaseMode, LeaseSet, LeaseState,
    PrincipalName, SHARED_LEASES_MAX, TargetName, Term,
};
use crate::core::{
    policy::LeaseRules,
    records::{
        record::{Availability, Record, Revision, Snapshot, Stamp},
        tree_leases::LeaseReach,
    },
    time::StoreTime,
};

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
    let mut current = Current { has_signed: command.has_signed, ..Current::of(snapshot) };
    let (principal, target) = (command.principal, command.target);
    let (leases, done) = match command.action {
        Action::Acquire(wanted) => {
            if wanted.takes_over {
                current.end_others(wanted.proposed);
            }
            current.acquire(wanted, principal, target, rules)?
        }
        Action::Renew { id, duration } => current.renew((id, duration), principal, rules)?,
        Action::Change { id, proposed } => current.change(id, proposed, principal)?,
        Action::WithdrawDelete { id } => current.withdraw_delete(id, principal)?,
        Action::Release { id } => current.release(id, principal)?,
        Action::Break { period } => current.end(period, |_lease| true)?,
        Action::BreakNamed { id } => current.end(Some(Duration::ZERO), |lease| lease.id == id)?,
    };
    let mut record = current.record_with(leases);
    if done == Done::DeleteWithdrawn {
        record.pending_delete = None;
    }
    if matches!(done, Done::Acquired { is_new: true, .. }) {
        record.fence = Stamp::Itself;
        // The wait for the holders of shared leases is over: no other client joins them while it lasts.
        record.exclusive_awaited_until = None;
    }
    Ok((record, done))
}

/// Breaks the leases as [`step`] does, but for an operator: for any holder, and even if their route does not let clients
/// break them. If there is a fence, only the lease that it names is broken.
///
/// # Errors
///
/// There is no such lease.
pub fn break_leases(snapshot: &Snapshot, period: Duration, fence: Option<Revision>) -> Result<Record, Denied> {
    let current = Current::of(snapshot);
    let is_named = |lease: &Lease| fence.is_none_or(|fence| lease.fence == Stamp::At(fence));
    let (leases, _) = current.end(Some(period), is_named)?;
    Ok(current.record_with(leases))
}

/// Returns the record with the sign that a client waits for the holders of shared leases until this time.
pub fn await_exclusive(snapshot: &Snapshot, until: StoreTime) -> Record {
    let record = snapshot.draft();
    Record { exclusive_awaited_until: record.exclusive_awaited_until.max(Some(until)), ..record }
}

/// The leases after an operation that succeeded, and what it did.
type Changed = (LeaseSet, Done);

/// The leases as they were read.
struct Current<'a> {
    snapshot: &'a Snapshot,
    /// The leases that are held or remembered.
    leases: LeaseSet,
    now: StoreTime,
    /// True if this very client has set the sign that a client waits.
    has_signed: bool,
}

impl<'a> Current<'a> {
    fn of(snapshot: &'a Snapshot) -> Self {
        Self { snapshot, leases: snapshot.lease_draft(), now: snapshot.now, has_signed: false }
    }

    fn record_with(&self, leases: LeaseSet) -> Record {
        Record { leases, ..self.snapshot.draft() }
    }

    /// Returns the leases with a change to one of them.
    fn changed(&self, lease: &Lease, change: impl Fn(&mut Lease)) -> LeaseSet {
        let mut leases = self.leases.clone();
        leases.iter_mut().filter(|other| other.fence == lease.fence).for_each(change);
        leases
    }

    /// Ends the leases that clients hold, except for the one with this id. Their holders can no longer write, and a
    /// write of theirs that is in flight is waited for as for any.
    fn end_others(&mut self, own: Option<LeaseId>) {
        let now = self.now;
        for lease in self.leases.iter_mut().filter(|lease| lease.state(now).is_held() && Some(lease.id) != own) {
            lease.term = Term::Breaking(now);
        }
    }

    fn acquire(
        &self,
        wanted: Acquire,
        principal: Option<PrincipalName>,
        target: TargetName,
        rules: &LeaseRules,
    ) -> Result<Changed, Denied> {
        let id = wanted.proposed.unwrap_or(wanted.fresh);
        let own = wanted.proposed.and_then(|id| self.leases.proved_by(id, principal));
        let own = own.filter(|lease| lease.state(self.now).is_held());
        if own.is_none() {
            self.must_stay()?;
        }
        if own.is_some_and(|own| own.state(self.now) == LeaseState::Breaking) {
            return Err(Denied::Breaking);
        }
        // A holder that wants to do more, or to forbid others more, is granted another lease.
        let is_new = own.is_none_or(|own| !own.mode.covers(wanted.mode));
        let others = self.leases.only(|lease| lease.state(self.now).is_held() && own != Some(lease));
        self.must_be_shared_by(&others, &wanted, id)?;
        if is_new {
            self.must_be_shared_around(wanted.mode)?;
            self.must_have_place(&others, wanted.mode)?;
            self.must_be_free()?;
        }
        // The time of an infinite holding does not count towards `max_hold_time`. From now on it does.
        let is_infinite = |duration| duration == LeaseDuration::Infinite;
        let is_counted = |lease: &&Lease| !is_infinite(lease.duration) || is_infinite(wanted.duration);
        let granted = own.filter(is_counted).map_or(self.now, |lease| lease.granted);
        let lease = Lease {
            id,
            mode: wanted.mode,
            fence: own.filter(|_| !is_new).map_or(Stamp::Itself, |own| own.fence),
            term: self.held_within(granted, wanted.duration, rules)?,
            duration: wanted.duration,
            granted,
            holder: wanted.holder,
            note: wanted.note,
            keeper: wanted.keeper,
            principal,
            remember_time: rules.remember_time,
            guards: rules.guards,
            target,
        };
        // A lease that begins while no other client holds one leaves nothing to renew.
        let begins = is_new && others.is_empty();
        let mut leases = if begins { LeaseSet::NONE } else { self.leases.clone() };
        // Nor does one that does what an ended lease forbids, or forbids what its holder did.
        leases.retain(|other| other.id == id || other.mode.stands_beside(wanted.mode));
        leases.put(lease, self.now);
        Ok((leases, Done::Acquired { id, duration: wanted.duration, is_new }))
    }

    fn renew(
        &self,
        (id, wanted): (LeaseId, Option<LeaseDuration>),
        principal: Option<PrincipalName>,
        rules: &LeaseRules,
    ) -> Result<Changed, Denied> {
        if self.leases.state(self.now) == LeaseState::Available {
            return Err(Denied::NotPresent);
        }
        let lease = self.leases.proved_by(id, principal).ok_or(Denied::IdMismatch)?;
        match lease.state(self.now) {
            LeaseState::Leased => {}
            LeaseState::Expired => {
                self.must_stay()?;
                self.must_be_shared_around(lease.mode)?;
                self.must_be_unwritten(lease)?;
            }
            LeaseState::Breaking => return Err(Denied::Breaking),
            LeaseState::Broken => return Err(Denied::Broken),
            LeaseState::Available => return Err(Denied::NotPresent),
        }
        let duration = wanted.unwrap_or(lease.duration);
        let term = self.held_within(lease.granted, duration, rules)?;
        let renew = |lease: &mut Lease| (lease.term, lease.duration, lease.keeper) = (term, duration, None);
        Ok((self.changed(lease, renew), Done::Renewed { duration }))
    }

    fn change(&self, id: LeaseId, proposed: LeaseId, principal: Option<PrincipalName>) -> Result<Changed, Denied> {
        if !self.leases.state(self.now).is_held() {
            return Err(Denied::NotPresent);
        }
        let done = Done::Changed { id: proposed };
        let held = |id| self.leases.proved_by(id, principal).filter(|lease| lease.state(self.now).is_held());
        let Some(lease) = held(id) else {
            // A holder that proposes its present id repeats a change whose answer was lost.
            let is_repeated = held(proposed).is_some_and(|lease| lease.state(self.now) == LeaseState::Leased);
            return if is_repeated { Ok((self.leases.clone(), done)) } else { Err(Denied::IdMismatch) };
        };
        if lease.state(self.now) == LeaseState::Breaking {
            return Err(Denied::Breaking);
        }
        let is_taken = self.leases.iter().any(|other| other.id == proposed && other != lease);
        if is_taken {
            return Err(Denied::IdMismatch);
        }
        Ok((self.changed(lease, |lease| (lease.id, lease.keeper) = (proposed, None)), done))
    }

    /// Lets a client that holds the lease withdraw the DELETE that waits for the holders. Once no client holds the
    /// lease, the DELETE may be in flight.
    fn withdraw_delete(&self, id: LeaseId, principal: Option<PrincipalName>) -> Result<Changed, Denied> {
        if !self.leases.state(self.now).is_held() {
            return Err(Denied::NotPresent);
        }
        let own = self.leases.proved_by(id, principal).filter(|lease| lease.state(self.now).is_held());
        own.map(|_own| (self.leases.clone(), Done::DeleteWithdrawn)).ok_or(Denied::IdMismatch)
    }

    fn release(&self, id: LeaseId, principal: Option<PrincipalName>) -> Result<Changed, Denied> {
        let Some(lease) = self.leases.proved_by(id, principal) else {
            let is_over = self.leases.iter().all(|lease| matches!(lease.term, Term::Released(_)));
            return Err(if is_over { Denied::NotPresent } else { Denied::IdMismatch });
        };
        if let Term::Released(_) = lease.term {
            return Ok((self.leases.clone(), Done::AlreadyReleased));
        }
        Ok((self.changed(lease, |lease| lease.term = Term::Released(self.now)), Done::Released))
    }

    /// Breaks these leases. A break can bring an end forward, but never put it off.
    fn end(&self, period: Option<Duration>, is_meant: impl Fn(&Lease) -> bool) -> Result<Changed, Denied> {
        let asked = period.map(|period| self.now.plus(period));
        let (mut leases, mut last) = (self.leases.clone(), None);
        let is_there = |lease: &Lease| lease.state(self.now) != LeaseState::Available;
        for lease in leases.iter_mut().filter(|lease| is_there(lease) && is_meant(lease)) {
            let until = match (lease.state(self.now), lease.end(), asked) {
                (LeaseState::Expired, ..) | (_, None, None) => self.now,
                (LeaseState::Broken, Some(end), _) | (_, Some(end), None) => end,
                (_, Some(end), Some(asked)) => end.min(asked),
                (_, None, Some(asked)) => asked,
            };
            lease.term = Term::Breaking(until);
            last = last.max(Some(until));
        }
        let last = last.ok_or(Denied::NotPresent)?;
        Ok((leases, Done::Broken { remaining: self.now.until(last) }))
    }

    fn held_within(&self, granted: StoreTime, duration: LeaseDuration, rules: &LeaseRules) -> Result<Term, Denied> {
        let end = duration.end(self.now);
        let is_within = end.is_none_or(|end| end <= granted.plus(rules.max_hold_time));
        is_within.then_some(Term::Held(end)).ok_or(Denied::BeyondHoldMax)
    }

    /// Fails if another client holds a lease beside which this one cannot be. An id belongs to one lease.
    fn must_be_shared_by(&self, others: &LeaseSet, wanted: &Acquire, id: LeaseId) -> Result<(), Denied> {
        let is_shared = |lease: &Lease| lease.mode.stands_beside(wanted.mode) && lease.id != id;
        self.must_not_meet(&others.only(|lease| !is_shared(lease)))
    }

    /// Fails if another client holds the lease of a tree around the resource beside which this one cannot be.
    fn must_be_shared_around(&self, mode: LeaseMode) -> Result<(), Denied> {
        let around = self.snapshot.held_around(LeaseReach::Tree).map(|around| &around.lease);
        let is_shared = |lease: &&Lease| lease.mode.stands_beside(mode);
        self.must_not_meet(&around.filter(|lease| !is_shared(lease)).cloned().collect())
    }

    fn must_not_meet(&self, in_the_way: &LeaseSet) -> Result<(), Denied> {
        let Some(lease) = in_the_way.foremost(self.now) else { return Ok(()) };
        Err(Denied::Held {
            remaining: self.remaining(in_the_way),
            holder: lease.holder.clone(),
            is_breaking: lease.state(self.now) == LeaseState::Breaking,
        })
    }

    /// Fails if a client waits until the holders of shared leases have left, or if as many clients hold them as may.
    fn must_have_place(&self, others: &LeaseSet, mode: LeaseMode) -> Result<(), Denied> {
        let awaited = self.snapshot.record.exclusive_awaited_until.filter(|until| self.now < *until);
        match awaited {
            Some(until) if mode.is_shared() && !self.has_signed => {
                Err(Denied::NoPlace { remaining: Some(self.now.until(until)) })
            }
            _ if others.iter().count() >= SHARED_LEASES_MAX => {
                let first = others.iter().filter_map(|lease| lease.remaining(self.now)).min();
                Err(Denied::NoPlace { remaining: first })
            }
            _ => Ok(()),
        }
    }

    /// Returns the time until the last of the leases ends.
    fn remaining(&self, leases: &LeaseSet) -> Option<Duration> {
        leases.iter().try_fold(Duration::ZERO, |longest, lease| Some(lease.remaining(self.now)?.max(longest)))
    }

    /// Fails if the resource is deleted as soon as no client holds the lease.
    fn must_stay(&self) -> Result<(), Denied> {
        if self.snapshot.record.pending_delete.is_some() { Err(Denied::DeletePending) } else { Ok(()) }
    }

    fn must_be_free(&self) -> Result<(), Denied> {
        match self.snapshot.availability() {
            Availability::Free => Ok(()),
            availability => Err(Denied::Busy(availability)),
        }
    }

    /// Fails if a write in flight could take a lease that has run out from its holder. A write in doubt has done so
    /// already.
    fn must_be_unwritten(&self, lease: &Lease) -> Result<(), Denied> {
        let is_taken = self.snapshot.record.marks().any(|mark| mark.takes(lease, self.now));
        if is_taken { Err(Denied::Busy(self.snapshot.availability())) } else { Ok(()) }
    }
}

#[cfg(test)]
#[path = "shared_tests.rs"]
mod shared_tests;

#[cfg(test)]
#[path = "share_mode_tests.rs"]
mod share_mode_tests;

#[cfg(test)]
#[path = "property_tests.rs"]
mod property_tests;
