//! The form in which an idle record takes the least memory.
//!
//! # Design
//!
//! *Why two forms?* A record has room for claims, doubts, leases and waiting processes. Nearly all records that a process
//! holds are idle and have none of them, and a process may hold millions.

use std::sync::Arc;

use super::entry::MemoryEntry;
use crate::core::{
    records::{
        presence::Presence,
        record::{Known, Record, Revision, Snapshot, Stamp, VariantName},
    },
    tags::{
        bare_tags::BareTags,
        http_date::HttpDate,
        told_dates::FirstDate,
        validators::{Modified, Representation, Validators},
    },
    time::StoreTime,
};

/// An idle record in its place.
pub(super) enum IdleEntry {
    /// One that is nothing but versions and what the last write revealed.
    Plain(PlainEntry),
    /// Any other.
    Whole(MemoryEntry),
}

/// An idle record without any part that few records have.
pub(super) struct PlainEntry {
    revision: Revision,
    since: StoreTime,
    version: Revision,
    touched: Revision,
    fence: Revision,
    revealed: PlainRevealed,
    first_date: FirstDate,
    /// True if all tags went out bare, or none.
    all_are_bare: bool,
}

/// The part of a record that the last write has revealed.
enum PlainRevealed {
    /// The state that a write has left of a target, if it is known. Most routes whose tag is the version know nothing
    /// else.
    Left(Option<Presence>),
    /// A representation without a tag of the backend.
    Untagged(VariantName, Option<PlainDate>),
    Other(Box<Revealed>),
}

/// The same in its usual form.
#[derive(Clone)]
pub(super) struct Revealed {
    known: Option<Known>,
    presence: Option<Presence>,
}

/// A modification date that the last write has revealed.
#[derive(Clone, Copy)]
struct PlainDate {
    date: HttpDate,
    strong: bool,
}

impl IdleEntry {
    /// The revision of the record.
    pub(super) fn revision(&self) -> Revision {
        match self {
            Self::Plain(plain) => plain.revision,
            Self::Whole(entry) => entry.revision,
        }
    }

    /// The time when the record was last written or became idle.
    pub(super) fn since(&self) -> StoreTime {
        match self {
            Self::Plain(plain) => plain.since,
            Self::Whole(entry) => entry.since,
        }
    }

    /// The record as it is read at this time.
    pub(super) fn snapshot(&self, now: StoreTime) -> Snapshot {
        Snapshot::new(self.revision(), self.record(), now)
    }

    /// The record in its usual form.
    pub(super) fn record(&self) -> Arc<Record> {
        match self {
            Self::Plain(plain) => Arc::new(plain.record()),
            Self::Whole(entry) => Arc::clone(&entry.record),
        }
    }
}

impl From<MemoryEntry> for IdleEntry {
    fn from(entry: MemoryEntry) -> Self {
        PlainEntry::of(&entry).map_or(Self::Whole(entry), Self::Plain)
    }
}

impl PlainEntry {
    fn of(entry: &MemoryEntry) -> Option<Self> {
        let record = &entry.record;
        is_plain(record).then(|| Self {
            revision: entry.revision,
            since: entry.since,
            version: record.version.resolve(entry.revision),
            touched: record.touched.resolve(entry.revision),
            fence: record.fence.resolve(entry.revision),
            revealed: PlainRevealed::of(record),
            first_date: record.first_date,
            all_are_bare: record.bare_tags == BareTags::All,
        })
    }

    fn record(&self) -> Record {
        let Revealed { known, presence } = self.revealed.whole();
        Record {
            version: Stamp::At(self.version),
            touched: Stamp::At(self.touched),
            fence: Stamp::At(self.fence),
            known,
            presence,
            bare_tags: if self.all_are_bare { BareTags::All } else { BareTags::None },
            first_date: self.first_date,
            ..Record::absent(self.version)
        }
    }
}

impl PlainRevealed {
    fn of(record: &Record) -> Self {
        match (&record.known, record.presence) {
            (None, presence) => Self::Left(presence),
            (
                Some(Known { variant, representation: Representation::Present(Validators { tag: None, modified }) }),
                None,
            ) => Self::Untagged(*variant, modified.map(|Modified { date, strong, .. }| PlainDate { date, strong })),
            (known, presence) => Self::Other(Box::new(Revealed { known: known.clone(), presence })),
        }
    }

    fn whole(&self) -> Revealed {
        match self {
            Self::Left(presence) => Revealed { known: None, presence: *presence },
            Self::Untagged(variant, modified) => {
                let modified =
                    modified.map(|PlainDate { date, strong }| Modified { date, strong, first: FirstDate::NONE });
                let representation = Representation::Present(Validators { tag: None, modified });
                Revealed { known: Some(Known { variant: *variant, representation }), presence: None }
            }
            Self::Other(revealed) => Revealed::clone(revealed),
        }
    }
}

/// True if a record takes the small form: it has nothing but versions and what the last write revealed. The parts are
/// named one by one, so that none is forgotten.
pub(super) fn is_plain(record: &Record) -> bool {
    let Record {
        version: _,
        touched: _,
        fence: _,
        known: _,
        presence: _,
        first_date: _,
        recent_tags,
        bare_tags,
        claim,
        unclaimed,
        doubt,
        leases,
        exclusive_awaited_until,
        pending_delete,
        waiting,
        attempt,
        tree_change,
        trees,
    } = record;
    let is_unmarked = claim.is_none() && unclaimed.is_empty() && doubt.is_none() && waiting.is_empty();
    let is_unleased = leases.is_empty() && exclusive_awaited_until.is_none() && pending_delete.is_none();
    let is_unlisted = recent_tags.is_none() && trees.is_none() && *tree_change == Revision(0);
    is_unmarked && is_unleased && is_unlisted && attempt.is_none() && !matches!(bare_tags, BareTags::One(_))
}

/// True if the small form keeps what the last write revealed in a place of its own.
pub(super) fn has_place_of_revealed(record: &Record) -> bool {
    let is_untagged =
        |known: &Known| matches!(known.representation, Representation::Present(Validators { tag: None, .. }));
    record.known.as_ref().is_some_and(|known| record.presence.is_some() || !is_untagged(known))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::{lease::testing::TARGET, resource::ResourceKey, tags::entity_tag::EntityTag};

    fn known(representation: Representation) -> Known {
        Known { variant: VariantName([7; 16]), representation }
    }

    #[test]
    fn an_idle_record_is_the_same_in_either_form() {
        let (key, stamp) = (ResourceKey::from_text("a"), |number| Stamp::At(Revision(number)));
        let base = Record { version: stamp(1), touched: stamp(2), fence: stamp(3), ..Record::absent(Revision(0)) };
        let modified = Some(Modified { date: HttpDate::from_unix_seconds(5), strong: true, first: FirstDate::NONE });
        let tag = EntityTag::strong("a").ok();
        let untagged = || Representation::Present(Validators { tag: None, modified });
        for record in [
            base.clone(),
            Record { bare_tags: BareTags::None, ..base.clone() },
            Record { first_date: FirstDate::of_number(7), ..base.clone() },
            Record { known: Some(known(Representation::Absent)), ..base.clone() },
            Record { presence: Some(Presence::removed(TARGET)), ..base.clone() },
            Record { presence: Some(Presence::present(TARGET)), known: Some(known(untagged())), ..base.clone() },
            Record { known: Some(known(untagged())), ..base.clone() },
            Record { known: Some(known(Representation::Present(Validators { tag, modified }))), ..base.clone() },
            Record { exclusive_awaited_until: Some(StoreTime::from_milliseconds(9)), ..base },
        ] {
            let (revision, since, record) = (Revision(4), StoreTime::from_milliseconds(6), Arc::new(record));
            let idle = IdleEntry::from(MemoryEntry::weighed(&key, revision, record.clone(), since));
            assert_eq!((idle.revision(), idle.since(), idle.record()), (revision, since, record.clone()));
            assert_eq!(matches!(idle, IdleEntry::Plain(_)), is_plain(&record));
            let entry = idle.entry(&key);
            assert_eq!(entry.bytes, idle.bytes(&key));
            assert_eq!((entry.revision, entry.since, entry.record), (revision, since, record));
        }
    }

    /// An idle resource takes at most 200 bytes beside its key, so that ten million fit into four gigabytes.
    #[test]
    fn the_small_form_is_small() {
        assert!(size_of::<IdleEntry>() <= 96, "{}", size_of::<IdleEntry>());
    }
}
