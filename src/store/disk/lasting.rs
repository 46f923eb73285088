//! The part of a record that the file keeps.

use std::sync::Arc;

use super::frame::Entries;
use crate::{
    core::{
        lease::Lease,
        records::{
            record::{Record, Revision},
            tree_leases::TreeLease,
        },
        resource::ResourceKey,
        tags::{bare_tags::BareTags, told_dates::FirstDate},
        time::StoreTime,
    },
    store::encoding,
};

/// The part of a record that must survive: its leases, the last fence, the DELETE that waits for the holders, and the
/// list of leases that reach below their collections. There is none if the record has nothing of these but a fence.
#[derive(Clone, Copy)]
pub(super) struct LastingPart<'a> {
    record: &'a Record,
    /// The time when the record was put in.
    since: StoreTime,
}

/// The record that is in force until another one is written. Its lasting part becomes text only if that fails: the text
/// of a lease costs more than all else in its commit.
#[derive(Debug)]
pub(super) struct EarlierRecord {
    pub(super) key: ResourceKey,
    /// The record, and the time when it was put in; `None` if it was absent.
    pub(super) record: Option<(Arc<Record>, StoreTime)>,
    /// The time that its text counts from.
    pub(super) now: StoreTime,
}

impl<'a> LastingPart<'a> {
    /// Returns the lasting part of a record that was put in at this time, if there is one.
    pub(super) fn of(record: &'a Record, since: StoreTime) -> Option<Self> {
        let part = Self { record, since };
        let lasts = record.pending_delete.is_some() || part.leases().next().is_some() || !part.listed().is_empty();
        lasts.then_some(part)
    }

    /// True if a lease of the record lasts.
    ///
    /// A write that takes an ended lease from its holder takes it here when it begins. Otherwise a crash before its end
    /// would bring the lease back, and a renewal would seem to prove that nothing was written. No write takes a lease
    /// that is held.
    fn keeps(self, lease: &Lease) -> bool {
        !self.record.marks().any(|mark| mark.takes(lease, self.since))
    }

    fn leases(self) -> impl Iterator<Item = &'a Lease> {
        self.record.leases.iter().filter(move |lease| self.keeps(lease))
    }

    fn listed(self) -> &'a [TreeLease] {
        self.record.trees.as_deref().map_or(&[], |trees| &trees.leases)
    }

    /// Writes it as a record of its own, with its moments counted from `now`.
    pub(super) fn text(self, now: StoreTime) -> String {
        let Record { pending_delete, fence, trees, .. } = self.record;
        let (leases, pending_delete) = (self.record.leases.only(|lease| self.keeps(lease)), pending_delete.clone());
        // The file says nothing of tags and dates: its reader takes none of an earlier process for the current state's.
        let nothing = Record { bare_tags: BareTags::None, first_date: FirstDate::NONE, ..Record::absent(Revision(0)) };
        let trees = trees.as_ref().and_then(|trees| trees.lasting());
        encoding::encode(&Record { leases, pending_delete, fence: *fence, trees, ..nothing }, now)
    }
}

impl PartialEq for LastingPart<'_> {
    fn eq(&self, other: &Self) -> bool {
        let rest = |part: &Self| (part.record.fence, &part.record.pending_delete);
        rest(self) == rest(other) && self.leases().eq(other.leases()) && self.listed() == other.listed()
    }
}

impl EarlierRecord {
    /// Its lasting part, if there is one.
    pub(super) fn part(&self) -> Option<LastingPart<'_>> {
        self.record.as_ref().and_then(|(record, since)| LastingPart::of(record, *since))
    }

    /// Adds its lasting part to the words that are to be written.
    pub(super) fn put_into(&self, words: &mut Entries) {
        let text = self.part().map(|part| part.text(self.now));
        words.push(self.key.as_str(), text.as_deref());
    }
}
