//! The time when this process first saw each record. The moments in the record count from that time.
//!
//! A record's moments are written as distances from the time of writing. A reader can only be sure that this was no
//! later than the time when it first saw the record. Counted from then, nothing ends early, and everything ends as late
//! as the reader was. All reads must count from the same time, or the end would never come.

use std::num::NonZeroUsize;

use lru::LruCache;
use parking_lot::Mutex;

use crate::core::{
    records::record::{Record, Revision},
    resource::ResourceKey,
    time::StoreTime,
};

/// The times of first sight of all records that hold moments.
pub(super) struct FirstSeen {
    /// One entry for each resource, so that there are no more than the store has records. If an entry is evicted
    /// anyway, an end comes later.
    seen: Mutex<LruCache<ResourceKey, (Revision, StoreTime)>>,
}

impl FirstSeen {
    /// Creates a table with room for this many records.
    pub(super) fn new(capacity: usize) -> Self {
        let capacity = NonZeroUsize::new(capacity).unwrap_or(NonZeroUsize::MIN);
        // The cache reserves nothing ahead of its use.
        let mut seen = LruCache::unbounded();
        seen.resize(capacity);
        Self { seen: Mutex::new(seen) }
    }

    /// Returns the time that moments count from, in the record with this revision, which was seen `now`.
    pub(super) fn base(&self, key: &ResourceKey, revision: Revision, now: StoreTime) -> StoreTime {
        let mut seen = self.seen.lock();
        match seen.get(key) {
            Some((known, base)) if *known == revision => now.min(*base),
            _ => now,
        }
    }

    /// Remembers the time that moments were counted from. Of two times for one revision the earlier stays, because both
    /// are after the time of writing.
    pub(super) fn note(&self, key: &ResourceKey, revision: Revision, base: StoreTime, record: &Record) {
        let mut seen = self.seen.lock();
        match seen.get_mut(key) {
            // A later answer has overtaken this one.
            Some((known, _)) if *known > revision => {}
            Some((known, earlier)) if *known == revision => *earlier = base.min(*earlier),
            _ if record.has_moments() => {
                seen.put(key.clone(), (revision, base));
            }
            _ => {
                seen.pop(key);
            }
        }
    }

    /// Forgets a record that no longer exists.
    pub(super) fn forget(&self, key: &ResourceKey) {
        self.seen.lock().pop(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::records::record::{Doubt, Stamp};

    fn at(milliseconds: u64) -> StoreTime {
        StoreTime::from_milliseconds(milliseconds)
    }

    fn key() -> ResourceKey {
        ResourceKey::from_text("a")
    }

    fn doubted() -> Record {
        Record { doubt: Some(Doubt { until: at(9), version: Stamp::Itself }), ..Record::absent(Revision(0)) }
    }

    #[test]
    fn every_read_of_a_revision_counts_from_the_first() {
        let first_seen = FirstSeen::new(10);
        assert_eq!(first_seen.base(&key(), Revision(1), at(5)), at(5));
        first_seen.note(&key(), Revision(1), at(5), &doubted());
        assert_eq!(first_seen.base(&key(), Revision(1), at(8)), at(5));
        assert_eq!(first_seen.base(&key(), Revision(2), at(8)), at(8));
    }

    #[test]
    fn an_earlier_sight_is_the_better_one() {
        let first_seen = FirstSeen::new(10);
        first_seen.note(&key(), Revision(1), at(5), &doubted());
        first_seen.note(&key(), Revision(1), at(3), &doubted());
        first_seen.note(&key(), Revision(1), at(4), &doubted());
        assert_eq!(first_seen.base(&key(), Revision(1), at(8)), at(3));
    }

    #[test]
    fn a_late_answer_does_not_replace_what_is_newer() {
        let first_seen = FirstSeen::new(10);
        first_seen.note(&key(), Revision(2), at(5), &doubted());
        first_seen.note(&key(), Revision(1), at(6), &doubted());
        assert_eq!(first_seen.base(&key(), Revision(2), at(8)), at(5));
    }

    #[test]
    fn records_without_moments_take_no_room() {
        let first_seen = FirstSeen::new(1);
        first_seen.note(&key(), Revision(1), at(5), &doubted());
        let other = ResourceKey::from_text("b");
        first_seen.note(&other, Revision(2), at(6), &Record::absent(Revision(0)));
        assert_eq!(first_seen.base(&key(), Revision(1), at(8)), at(5));
        first_seen.note(&key(), Revision(3), at(7), &Record::absent(Revision(0)));
        assert_eq!(first_seen.base(&key(), Revision(3), at(8)), at(8));
    }
}
