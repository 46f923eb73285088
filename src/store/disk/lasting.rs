//! The part of a record that the file keeps.

use super::frame::Entries;
use crate::{
    core::{
        lease::{Lease, LeaseSet},
        pending_delete::PendingDelete,
        record::{Record, Revision, Stamp},
        resource::ResourceKey,
        time::StoreTime,
    },
    store::encoding,
};

/// The part of a record that must survive: its leases, the last fence, and the DELETE that waits for the holders.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LastingPart {
    leases: LeaseSet,
    pending_delete: Option<Box<PendingDelete>>,
    fence: Stamp,
}

/// The lasting part of a record that is in force until another one is written. It becomes text only if that fails: the
/// text of a lease costs more than all else in its commit.
#[derive(Debug)]
pub(super) struct EarlierPart {
    pub(super) key: ResourceKey,
    pub(super) part: Option<LastingPart>,
    /// The time that its text counts from.
    pub(super) now: StoreTime,
}

impl LastingPart {
    /// Returns the lasting part of a record that was put in at this time, if there is one.
    ///
    /// A write that takes an ended lease from its holder takes it here when it begins. Otherwise a crash before its end
    /// would bring the lease back, and a renewal would seem to prove that nothing was written. No write takes a lease
    /// that is held.
    pub(super) fn of(record: &Record, since: StoreTime) -> Option<Self> {
        let is_taken = |lease: &Lease| record.marks().any(|mark| mark.takes(lease, since));
        let leases: LeaseSet = record.leases.iter().filter(|lease| !is_taken(lease)).cloned().collect();
        let pending_delete = record.pending_delete.clone();
        let lasts = !leases.is_empty() || pending_delete.is_some();
        lasts.then_some(Self { leases, pending_delete, fence: record.fence })
    }

    /// Writes it as a record of its own, with its moments counted from `now`.
    pub(super) fn text(self, now: StoreTime) -> String {
        let Self { leases, pending_delete, fence } = self;
        encoding::encode(&Record { leases, pending_delete, fence, ..Record::absent(Revision(0)) }, now)
    }
}

impl EarlierPart {
    /// Adds it to the words that are to be written.
    pub(super) fn put_into(self, words: &mut Entries) {
        let text = self.part.map(|part| part.text(self.now));
        words.push(self.key.as_str(), text.as_deref());
    }
}
