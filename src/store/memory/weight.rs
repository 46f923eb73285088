//! The memory that a record takes in the process.

use std::{mem::size_of, sync::Arc};

use super::{
    entry::MemoryEntry,
    idle::{IdleEntry, Revealed, has_place_of_revealed, is_plain},
};
use crate::core::{
    lease::Lease,
    records::{
        first_attempt::{FirstAttempt, KeptAnswer},
        pending_delete::{Condition, PendingDelete},
        record::{Known, Mark, Record, Revision, WaitingSign},
        tree_leases::TreeLease,
        trees::{TreeChange, TreeRoot, Trees},
    },
    resource::ResourceKey,
    tags::{
        bare_tags::{BareTags, ShortName},
        recent_tags::RecentTags,
        validators::Representation,
    },
    time::StoreTime,
};

/// The bytes that a record takes in the tables, apart from the record itself: a slot of a hash table that is half full
/// on average, the links of the idle list, an entry in `resting`, and allocator overhead.
const PLACE_BYTES: usize = 192;

/// The same for a record that takes the small form: it has no entry in `resting`, and its slot holds only pointers.
const PLAIN_PLACE_BYTES: usize = 80;

/// Returns the bytes of a record with its key. The same record always weighs the same.
pub(in crate::store) fn weight(key: &ResourceKey, record: &Record) -> u64 {
    let tag = |known: &Known| match &known.representation {
        Representation::Present(validators) => {
            validators.tag.as_ref().map_or(0, |tag| tag.to_header_value().as_bytes().len())
        }
        Representation::Absent | Representation::Unknown => 0,
    };
    let attempt =
        |attempt: &FirstAttempt| size_of::<FirstAttempt>() + attempt.answer.as_ref().map_or(0, KeptAnswer::bytes);
    let bare_tags = match &record.bare_tags {
        BareTags::One(listed) => listed.earlier.len() * size_of::<ShortName>(),
        BareTags::All | BareTags::None => 0,
    };
    let recent = |recent: &RecentTags| size_of::<RecentTags>() + recent.earlier.len() * size_of::<ShortName>();
    let lease = |lease: &Lease| {
        let holder = lease.holder.as_ref().map_or(0, |label| label.as_str().len());
        size_of::<Lease>() + holder + lease.note.as_ref().map_or(0, |note| note.as_str().len())
    };
    let delete = |delete: &PendingDelete| {
        size_of::<PendingDelete>() + delete.conditions.len() * size_of::<Condition>() + delete.bytes()
    };
    let trees = |trees: &Trees| {
        let (roots, changes) = (trees.roots.len(), trees.changes.len());
        let lists = roots * size_of::<TreeRoot>() + changes * size_of::<TreeChange>();
        size_of::<Trees>() + lists + trees.leases.len() * size_of::<TreeLease>() + trees.bytes()
    };
    let lists = [
        record.unclaimed.len() * size_of::<Mark>(),
        record.waiting.len() * size_of::<WaitingSign>(),
        record.known.as_ref().map_or(0, tag),
        bare_tags,
        record.recent_tags.as_deref().map_or(0, recent),
        record.leases.iter().map(lease).sum(),
        record.attempt.as_deref().map_or(0, attempt),
        record.pending_delete.as_deref().map_or(0, delete),
        record.trees.as_deref().map_or(0, trees),
    ];
    let place = match is_plain(record) {
        true if has_place_of_revealed(record) => PLAIN_PLACE_BYTES + size_of::<IdleEntry>() + size_of::<Revealed>(),
        true => PLAIN_PLACE_BYTES + size_of::<IdleEntry>(),
        false => PLACE_BYTES + size_of::<MemoryEntry>() + size_of::<Record>(),
    };
    (place + size_of::<ResourceKey>() + key.as_str().len() + lists.iter().sum::<usize>()) as u64
}

impl MemoryEntry {
    /// Weighs a record for its place.
    pub(super) fn weighed(key: &ResourceKey, revision: Revision, record: Arc<Record>, since: StoreTime) -> Self {
        Self { revision, bytes: weight(key, &record), record, since }
    }
}

impl IdleEntry {
    /// The entry of this key in its usual form.
    pub(super) fn entry(&self, key: &ResourceKey) -> MemoryEntry {
        match self {
            Self::Plain(_) => MemoryEntry::weighed(key, self.revision(), self.record(), self.since()),
            Self::Whole(entry) => entry.clone(),
        }
    }

    /// The bytes that the record of this key takes.
    pub(super) fn bytes(&self, key: &ResourceKey) -> u64 {
        match self {
            Self::Plain(_) => weight(key, &self.record()),
            Self::Whole(entry) => entry.bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::core::{
        lease::testing::{Resource, TARGET, fixed, id, share},
        records::{
            first_attempt::SentWrite,
            record::{Doubt, Stamp, VariantName},
            tree_leases::LeaseReach,
            trees::TreeEffect,
        },
        tags::{bare_tags::Listed, entity_tag::EntityTag, validators::Validators},
    };

    fn in_doubt() -> Record {
        let doubt = Doubt { until: StoreTime::default(), version: Stamp::Itself };
        Record { doubt: Some(doubt), ..Record::absent(Revision(0)) }
    }

    /// The small form was measured by `make bench-resources`, with keys of 24 bytes: 206 to 218 bytes each.
    #[test]
    fn a_record_weighs_what_was_measured_and_its_key() {
        let weigh = |length: usize, record: &Record| weight(&ResourceKey::from_text(&"k".repeat(length)), record);
        let (plain, whole) = (Record::absent(Revision(0)), in_doubt());
        assert!((200..=224).contains(&weigh(24, &plain)), "{}: measure it again", weigh(24, &plain));
        assert!((596..=704).contains(&weigh(24, &whole)), "{}: measure it again", weigh(24, &whole));
        assert_eq!(weigh(60_000, &plain) - weigh(0, &plain), 60_000);
    }

    #[test]
    fn all_that_grows_with_a_record_weighs() {
        let (key, plain) = (ResourceKey::from_text("a"), in_doubt());
        let mark = Mark {
            owner: 1,
            nonce: 1,
            deadline: StoreTime::default(),
            late_write_window: Duration::ZERO,
            leaves_lease: false,
        };
        let tag = EntityTag::strong("t".repeat(1_000)).ok();
        let representation = Representation::Present(Validators { tag, modified: None });
        let listed = Listed { target: ShortName(1), current: None, earlier: vec![ShortName(2); 16] };
        let answer = KeptAnswer { status: 200, fields: Vec::new(), body: Some(vec![0; 1_000].into()) };
        let (sent, until) = (SentWrite::default(), StoreTime::default());
        let attempt = FirstAttempt { sent, until, answer: Some(answer) };
        let mut shared = Resource::new();
        for number in [1, 2] {
            shared.must(share(id(number), fixed(60)));
        }
        let target = vec![b'a'; 1_000].into();
        let conditions = [("if-match".into(), (*b"1").into())].into();
        let delete = PendingDelete { host: (*b"docs.test").into(), target, name: TARGET, conditions };
        let pending_bytes = size_of::<PendingDelete>() + size_of::<Condition>() + 1_018;
        let root = || "u:/a".into();
        let trees = Trees {
            roots: vec![TreeRoot { key: root(), is_read: false }],
            changes: vec![TreeChange { root: root(), at: Stamp::Itself, effect: TreeEffect::Changed }],
            leases: vec![TreeLease { root: root(), fence: Revision(1), reach: LeaseReach::Tree }],
            ..Trees::default()
        };
        let trees_bytes =
            size_of::<Trees>() + size_of::<TreeRoot>() + size_of::<TreeChange>() + size_of::<TreeLease>() + 12;
        let plain_bytes = weight(&key, &plain);
        for (heavier, bytes) in [
            (Record { unclaimed: vec![mark; 100], ..plain.clone() }, 100 * size_of::<Mark>()),
            (Record { waiting: vec![WaitingSign { owner: 1, until: StoreTime::default() }], ..plain.clone() }, 16),
            (Record { known: Some(Known { variant: VariantName([0; 16]), representation }), ..plain.clone() }, 1_002),
            (Record { attempt: Some(Box::new(attempt)), ..plain.clone() }, size_of::<FirstAttempt>() + 1_000),
            (Record { leases: shared.snapshot.draft().leases, ..plain.clone() }, 2 * size_of::<Lease>()),
            (Record { pending_delete: Some(Box::new(delete)), ..plain.clone() }, pending_bytes),
            (Record { trees: Some(Box::new(trees)), ..plain.clone() }, trees_bytes),
            (Record { bare_tags: BareTags::One(listed), ..plain }, 128),
        ] {
            assert_eq!(weight(&key, &heavier) - plain_bytes, bytes as u64, "{heavier:?}");
        }
        let (idle, tag) = (Record::absent(Revision(0)), EntityTag::strong("t".repeat(1_000)).ok());
        let representation = Representation::Present(Validators { tag, modified: None });
        let tagged = Record { known: Some(Known { variant: VariantName([0; 16]), representation }), ..idle.clone() };
        assert_eq!(weight(&key, &tagged) - weight(&key, &idle), size_of::<Revealed>() as u64 + 1_002);
    }
}
