//! A resource with a lease, for tests: a model of a store with one record.

use std::time::Duration;

use super::{
    Acquire, Action, Command, Denied, Done, LeaseDuration, LeaseId, LeaseMode, ShareMode, Standing, TargetName, Usage,
    step,
};
use crate::core::{
    policy::{AbsentLease, LeaseAuth, LeaseGuards, LeaseRules},
    records::{
        presence::Presence,
        record::{Mark, Record, Revision, Snapshot},
        steps::{Outcome, Settlement, claim, settle},
    },
    time::StoreTime,
};

/// Returns the rules of the documentation, with infinite leases allowed too.
pub(crate) fn rules() -> LeaseRules {
    let seconds = Duration::from_secs;
    LeaseRules {
        prefix: "/.leases".to_owned(),
        guards: LeaseGuards::Write,
        auth: LeaseAuth::None,
        bind: true,
        sharing_violation: false,
        show: false,
        acquire_on_read: false,
        shared: true,
        delete_pending: true,
        client_break: true,
        absent: AbsentLease::Allow,
        remember_time: seconds(600),
        max_per_principal: 100,
        max_per_address: 1_000,
        default: seconds(30),
        min: seconds(15),
        max: seconds(60),
        infinite: true,
        required: false,
        max_wait: seconds(30),
        max_waiters: 64,
        max_hold_time: seconds(3_600),
        linger: seconds(5),
    }
}

/// The target of all operations and deletions.
pub(crate) const TARGET: TargetName = TargetName([7; 16]);

/// Returns an id made of this byte, repeated.
pub(crate) fn id(number: u8) -> LeaseId {
    LeaseId::from_random([number; 16])
}

/// Returns a fixed duration.
pub(crate) fn fixed(seconds: u64) -> LeaseDuration {
    LeaseDuration::Fixed(Duration::from_secs(seconds))
}

pub(crate) fn acquire(proposed: Option<LeaseId>, duration: LeaseDuration) -> Action {
    acquisition(proposed, LeaseMode::Exclusive, duration)
}

pub(crate) fn share(proposed: LeaseId, duration: LeaseDuration) -> Action {
    acquisition(Some(proposed), LeaseMode::SHARED, duration)
}

/// Opens the resource for these uses, and lets others make those.
pub(crate) fn open(proposed: LeaseId, access: &[Usage], share: &[Usage]) -> Action {
    let set = |usages: &[Usage]| usages.iter().copied().collect();
    acquisition(Some(proposed), LeaseMode::Shared(ShareMode { access: set(access), share: set(share) }), fixed(60))
}

pub(crate) fn acquisition(proposed: Option<LeaseId>, mode: LeaseMode, duration: LeaseDuration) -> Action {
    Action::Acquire(Acquire {
        proposed,
        fresh: id(0xff),
        mode,
        duration,
        holder: None,
        note: None,
        keeper: None,
        takes_over: false,
    })
}

/// A resource, in a store that gives each swap the next revision.
pub(crate) struct Resource {
    pub(crate) snapshot: Snapshot,
    pub(crate) rules: LeaseRules,
    next_nonce: u64,
}

impl Resource {
    pub(crate) fn new() -> Self {
        let floor = Revision(7);
        let now = StoreTime::from_milliseconds(1_000_000);
        Self { snapshot: Snapshot::new(floor, Record::absent(floor), now), rules: rules(), next_nonce: 0 }
    }

    /// Swaps a record in, which goes through the same steps as in a store. Returns its revision.
    pub(crate) fn swap(&mut self, record: Record) -> Revision {
        let revision = Revision(self.snapshot.revision.0 + 1);
        self.snapshot = Snapshot::new(revision, record.resolved(revision), self.snapshot.now);
        revision
    }

    pub(crate) fn pass(&mut self, after: Duration) {
        self.snapshot.now = self.snapshot.now.plus(after);
    }

    pub(crate) fn pass_seconds(&mut self, seconds: u64) {
        self.pass(Duration::from_secs(seconds));
    }

    /// Does a lease operation without a principal.
    pub(crate) fn lease(&mut self, action: Action) -> Result<Done, Denied> {
        let (record, done) =
            step(&self.snapshot, Command { action, principal: None, target: TARGET, has_signed: false }, &self.rules)?;
        self.swap(record);
        Ok(done)
    }

    /// Does a lease operation that is not denied.
    pub(crate) fn must(&mut self, action: Action) -> Done {
        self.lease(action).expect("the step is possible")
    }

    /// Begins a write with this standing.
    pub(crate) fn begin(&mut self, standing: Standing) -> (Mark, Revision) {
        self.next_nonce += 1;
        let deadline = self.snapshot.now.plus(Duration::from_secs(1_000_000));
        let (nonce, leaves_lease) = (self.next_nonce, standing.leaves_lease());
        let mark = Mark { owner: 1, nonce, deadline, late_write_window: Duration::from_secs(1), leaves_lease };
        let record = claim(&self.snapshot, mark).expect("the resource is free");
        (mark, self.swap(record))
    }

    /// Ends a write. A doubt lasts for a second.
    pub(crate) fn end(&mut self, (mark, marked_at): (Mark, Revision), outcome: Outcome, removes: bool) {
        self.end_leaving((mark, marked_at), outcome, removes.then_some(Presence::removed(TARGET)));
    }

    /// Ends a write that leaves this if it is applied.
    pub(crate) fn end_leaving(
        &mut self,
        (mark, marked_at): (Mark, Revision),
        outcome: Outcome,
        leaves: Option<Presence>,
    ) {
        let settlement = Settlement { mark, marked_at, outcome, leaves, learned: None, shown: None, end: None };
        let record = settle(&self.snapshot, settlement).expect("the mark is there");
        self.swap(record);
    }
}
