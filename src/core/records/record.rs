//! The record that the store keeps of one resource, and the facts that follow from it (DESIGN, sections 2, 3 and 7).
//!
//! The steps that change a record are in [`steps`](super::steps).
//!
//! # Design
//!
//! *Why two numbers, `version` and `touched`?* `version` names the state of the resource. It is part of version tags,
//! so it changes only when the state may have changed. `touched` names the last event on the data path: a write that
//! began or ended, whether or not it changed anything. What a read has learned is valid only while `touched` stays the
//! same.
//!
//! *Why does a doubt carry a version?* While a doubt lasts, its write may still be applied, so a read meanwhile must
//! not be labelled with a version that outlives the doubt. When the doubt is over, the state needs a new version.
//! Reads never write to the store, so the doubt brings that version along, to take effect by the store's time.

use std::{sync::Arc, time::Duration};

use super::{
    first_attempt::FirstAttempt,
    pending_delete::PendingDelete,
    presence::Presence,
    trees::{LeaseAround, TreeInTheWay, Trees},
};
use crate::core::{
    lease::{Lease, LeaseSet, LeaseState, TargetName},
    tags::{bare_tags::BareTags, recent_tags::RecentTags, told_dates::FirstDate, validators::Representation},
    time::StoreTime,
};

pub use super::{
    availability::Availability,
    revision::{Revision, Stamp},
};

/// The reading of an absent record: the trace of the records that were forgotten in its bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Floor {
    /// The revision of the absent record. No swap that was judged by an earlier one succeeds.
    pub revision: Revision,
    /// The version of the absent record, which is no greater.
    pub version: Revision,
}

impl Floor {
    /// The floor of a bucket in which nothing is remembered from before this revision.
    pub const fn at(revision: Revision) -> Self {
        Self { revision, version: revision }
    }

    /// The later of the two floors, in each number.
    #[must_use]
    pub fn raised_to(self, other: Self) -> Self {
        Self { revision: self.revision.max(other.revision), version: self.version.max(other.version) }
    }
}

/// The mark of one write in flight: a claim, or one of several unclaimed writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mark {
    /// The proxy that made the mark.
    pub owner: u64,
    /// A number by which the owner recognises the mark: it never uses one twice.
    pub nonce: u64,
    /// The time by which the owner must be dead if the mark still exists.
    pub deadline: StoreTime,
    /// The time for which the upstream may still apply this write after it was abandoned, no matter which process takes
    /// the mark over.
    pub late_write_window: Duration,
    /// True if the write leaves an ended lease in place: it is the holder's own write, or one that the lease does not
    /// guard. Any other write takes the ended lease from its holder, who could not know of the write. No write takes a
    /// lease that is held ([`Mark::takes`]).
    pub leaves_lease: bool,
}

impl Mark {
    /// True if both marks belong to one write.
    pub const fn is_same_write(&self, other: &Self) -> bool {
        self.owner == other.owner && self.nonce == other.nonce
    }

    /// The time from which nothing of the write can arrive any more, if its owner has died unnoticed.
    pub fn over_from(&self) -> StoreTime {
        self.deadline.plus(self.late_write_window)
    }

    /// True if this write, if it ended now, would take this lease from its last holder.
    pub fn takes(&self, lease: &Lease, now: StoreTime) -> bool {
        !self.leaves_lease && !lease.state(now).is_held()
    }
}

/// The sign of a process in which a write or a grant waits for its turn at the resource ([`waiting`](super::waiting)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WaitingSign {
    /// The process.
    pub owner: u64,
    /// The time until which the sign counts, unless it is renewed.
    pub until: StoreTime,
}

/// A write whose outcome cannot be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Doubt {
    /// The time until which the upstream may still apply the write.
    pub until: StoreTime,
    /// The version of the resource from that time on.
    pub version: Stamp,
}

/// The name of a variant: a hash of the target, the principal, and what else selects a representation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VariantName(pub [u8; 16]);

/// The tags of one variant that the last settled write revealed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Known {
    /// The variant.
    pub variant: VariantName,
    /// The representation of the variant.
    pub representation: Representation,
}

/// The record that the store keeps of one resource.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// The version of the resource.
    pub version: Stamp,
    /// The last time that a write began or ended.
    pub touched: Stamp,
    /// The validators that the last settled write revealed; `None` if they are unknown.
    pub known: Option<Known>,
    /// The state of its target that the last settled write has left; `None` if that is unknown.
    pub presence: Option<Presence>,
    /// The backend's tags that clients were given without a suffix.
    pub bare_tags: BareTags,
    /// The tags of the last states of a target whose tags are unique, by the configuration.
    pub recent_tags: Option<Box<RecentTags>>,
    /// The first modification date that clients cannot have got for an earlier state.
    pub first_date: FirstDate,
    /// The claim.
    pub claim: Option<Mark>,
    /// The unclaimed writes in flight.
    pub unclaimed: Vec<Mark>,
    /// The doubt that holds the resource.
    pub doubt: Option<Doubt>,
    /// The leases, held or remembered.
    pub leases: LeaseSet,
    /// The time until which a client waits for the holders of shared leases, so that no other client joins them.
    pub exclusive_awaited_until: Option<StoreTime>,
    /// The DELETE that waits until no client holds the lease. Until it is done, the resource is only for those that do.
    pub pending_delete: Option<Box<PendingDelete>>,
    /// The fence of the last granted lease.
    pub fence: Stamp,
    /// The processes that wait for their turn, in order of arrival.
    pub waiting: Vec<WaitingSign>,
    /// The first attempt at a write that came with an idempotency key. The record of a resource has none.
    pub attempt: Option<Box<FirstAttempt>>,
    /// The last end of the write of a tree around the resource that this record takes into account.
    pub tree_change: Revision,
    /// The trees of the upstream. The record of a resource has none.
    pub trees: Option<Box<Trees>>,
}

/// A record as the store returned it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The record's revision; for an absent record, the revision of its bucket's floor.
    pub revision: Revision,
    /// The record, or what absence means. A store in memory shares it with all who read it.
    pub record: Arc<Record>,
    /// The store's time when the record was read.
    pub now: StoreTime,
    /// The write of a tree around the resource that is in the way of others.
    pub above: Option<TreeInTheWay>,
    /// The leases of collections around the resource that reach it.
    pub leases_around: Vec<LeaseAround>,
}

impl Record {
    /// Returns the meaning of an absent record if all records forgotten in its bucket had earlier revisions.
    pub const fn absent(floor: Revision) -> Self {
        Self::absent_above(Floor::at(floor))
    }

    /// Returns the meaning of an absent record, given the floor of its bucket.
    pub const fn absent_above(floor: Floor) -> Self {
        Self {
            version: Stamp::At(floor.version),
            touched: Stamp::At(floor.revision),
            known: None,
            presence: None,
            bare_tags: if floor.version.0 == 0 { BareTags::All } else { BareTags::None },
            recent_tags: None,
            first_date: if floor.version.0 == 0 { FirstDate::ANY } else { FirstDate::NONE },
            claim: None,
            unclaimed: Vec::new(),
            doubt: None,
            leases: LeaseSet::NONE,
            exclusive_awaited_until: None,
            pending_delete: None,
            fence: Stamp::At(floor.revision),
            waiting: Vec::new(),
            attempt: None,
            tree_change: Revision(0),
            trees: None,
        }
    }

    /// True if the record tells nothing that its absence would not: a write that was not applied has left it so.
    /// `touched` is not compared, since a store that forgets the record keeps it as the revision of the floor.
    pub fn says_no_more_than_absence(&self, floor: Floor) -> bool {
        let is_past = matches!(self.fence, Stamp::At(fence) if fence <= floor.revision);
        // The version alone tells most records apart, and costs less than a record to compare with.
        is_past
            && self.version == Stamp::At(floor.version)
            && *self == Self { touched: self.touched, fence: self.fence, ..Self::absent_above(floor) }
    }

    /// Writes the record's own revision into it.
    pub fn resolve(&mut self, own: Revision) {
        for stamp in [&mut self.version, &mut self.touched, &mut self.fence] {
            *stamp = Stamp::At(stamp.resolve(own));
        }
        self.leases.resolve(own);
        if let Some(doubt) = &mut self.doubt {
            doubt.version = Stamp::At(doubt.version.resolve(own));
        }
        if let Some(trees) = &mut self.trees {
            trees.resolve(own);
        }
    }

    /// The same record with its own revision written into it.
    #[must_use]
    pub fn resolved(mut self, own: Revision) -> Self {
        self.resolve(own);
        self
    }

    /// True if no write is in flight or in doubt.
    pub fn has_no_pending_writes(&self, now: StoreTime) -> bool {
        self.has_no_marks() && self.doubt.is_none_or(|doubt| doubt.until <= now)
    }

    /// True if the record may be forgotten: no write is in flight or in doubt, no lease is held or remembered, no
    /// DELETE waits, and no retry can be recognised by it. A list of trees is never forgotten.
    ///
    /// The mark of a dead owner counts until nothing of its write can arrive any more. Perhaps no other write comes
    /// there, and none takes the mark over. The floor then names another state than the version before the mark.
    pub fn is_idle(&self, now: StoreTime) -> bool {
        self.idle_from().is_some_and(|from| from <= now)
    }

    /// The time from which the record may be forgotten if it stays unchanged; `None` if time alone does not suffice.
    pub fn idle_from(&self) -> Option<StoreTime> {
        if self.pending_delete.is_some() || self.trees.is_some() {
            return None;
        }
        let ends = self.marks().map(Mark::over_from).chain(self.doubt.map(|doubt| doubt.until));
        let from = ends.chain(self.attempt.as_ref().map(|attempt| attempt.until)).max().unwrap_or_default();
        self.leases.forgotten_from().map(|forgotten| forgotten.max(from))
    }

    /// True if the record holds a moment of the store's time.
    pub fn has_moments(&self) -> bool {
        let of_state = !self.has_no_marks() || self.doubt.is_some() || !self.leases.is_empty();
        self.attempt.is_some() || of_state || !self.waiting.is_empty() || self.exclusive_awaited_until.is_some()
    }

    /// The marks of all writes in flight.
    pub fn marks(&self) -> impl Iterator<Item = &Mark> + Clone {
        self.claim.iter().chain(&self.unclaimed)
    }

    fn has_no_marks(&self) -> bool {
        self.claim.is_none() && self.unclaimed.is_empty()
    }
}

impl Snapshot {
    /// Creates the snapshot of a record that was read, or written, at this time.
    pub fn new(revision: Revision, record: impl Into<Arc<Record>>, now: StoreTime) -> Self {
        Self { revision, record: record.into(), now, above: None, leases_around: Vec::new() }
    }

    /// A copy of the record, to be changed, with its own revision written into it.
    pub fn draft(&self) -> Record {
        Record::clone(&self.record).resolved(self.revision)
    }

    /// The version of the resource when the record was read.
    pub fn version(&self) -> Revision {
        let stamp = match self.record.doubt {
            Some(doubt) if doubt.until <= self.now => doubt.version,
            _ => self.record.version,
        };
        stamp.resolve(self.revision)
    }

    /// The revision of the last event on the data path.
    pub fn touched(&self) -> Revision {
        self.record.touched.resolve(self.revision)
    }

    /// True if the known state can be trusted: no write is in flight or in doubt.
    pub fn has_no_pending_writes(&self) -> bool {
        self.above.is_none() && self.record.has_no_pending_writes(self.now)
    }

    /// True if the record is still the same as in an earlier snapshot. No tree around the resource has changed since,
    /// or was leased or given up.
    pub fn is_that_of(&self, earlier: &Self) -> bool {
        self.revision == earlier.revision
            && self.record.tree_change == earlier.record.tree_change
            && self.leases_around == earlier.leases_around
    }

    /// The leases that are held or remembered.
    pub fn leases(&self) -> impl Iterator<Item = &Lease> {
        self.record.leases.remembered(self.now)
    }

    /// A copy of the leases that are held or remembered, to be changed, with the record's own revision written into it.
    pub fn lease_draft(&self) -> LeaseSet {
        self.record.leases.only(|lease| lease.is_remembered(self.now)).resolved(self.revision)
    }

    /// The lease that is held or remembered; of several, the one that keeps others away for longest.
    pub fn lease(&self) -> Option<&Lease> {
        self.record.leases.foremost(self.now)
    }

    /// True if a client waits for the holders of shared leases, for longer than this.
    pub fn is_exclusive_awaited(&self, longer_than: Duration) -> bool {
        self.record.exclusive_awaited_until.is_some_and(|until| self.now.until(until) > longer_than)
    }

    /// The leases that clients hold.
    pub fn held_leases(&self) -> impl Iterator<Item = &Lease> {
        self.record.leases.held(self.now)
    }

    /// The lease that was granted with this fence, if it is still held.
    pub fn held_lease(&self, fence: Revision) -> Option<&Lease> {
        self.held_leases().find(|lease| lease.fence.resolve(self.revision) == fence)
    }

    /// The DELETE that waits for the holders of the lease, if there is none left.
    pub fn due_delete(&self) -> Option<&PendingDelete> {
        self.record.pending_delete.as_deref().filter(|_| !self.lease_state().is_held())
    }

    /// The state of the resource by its leases when the record was read.
    pub fn lease_state(&self) -> LeaseState {
        self.record.leases.state(self.now)
    }

    /// The fence of the last granted lease; for a forgotten record, a later number. A grant gives a greater one.
    pub fn fence(&self) -> Revision {
        self.record.fence.resolve(self.revision)
    }

    /// Returns the known state of the resource, while it can be trusted.
    pub fn known(&self) -> Option<&Known> {
        self.record.known.as_ref().filter(|_| self.has_no_pending_writes())
    }

    /// Returns the state of this target that the last write has left, while it can be trusted: `None` if it is unknown.
    pub fn presence_of(&self, target: impl FnOnce() -> TargetName) -> Option<Presence> {
        let presence = self.record.presence.filter(|_| self.has_no_pending_writes())?;
        (presence.target == target()).then_some(presence)
    }
}
