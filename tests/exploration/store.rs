//! A store of one record, with its bucket's floor and its clock.

use std::{sync::Arc, time::Duration};

use ifmatch::core::{
    records::record::{Record, Revision, Snapshot, Stamp},
    time::StoreTime,
};

use super::rules::Rules;

/// The length of one step of the clock.
pub const TICK: Duration = Duration::from_millis(1);
/// The longest duration of an exchange.
pub const EXCHANGE: Duration = TICK;
/// How long a mark lasts: an exchange that begins in its first tick ends before the mark does.
pub const MARK: Duration = Duration::from_millis(2);
/// How long the upstream may take to apply an abandoned write. It is longer than the rest of a mark whose owner dies:
/// otherwise a mark that runs out would not have to become a doubt.
pub const LATE_WRITE_WINDOW: Duration = Duration::from_millis(2);

/// A record as it was read, in a form that can be compared.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Seen {
    pub revision: Revision,
    pub record: Record,
    pub now: StoreTime,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Store {
    pub record: Option<(Revision, Record)>,
    pub floor: Revision,
    pub last: Revision,
    pub now: StoreTime,
}

impl Store {
    pub fn new() -> Self {
        let floor = Revision(5);
        Self { record: None, floor, last: floor, now: StoreTime::default() }
    }

    pub fn revision(&self) -> Revision {
        self.record.as_ref().map_or(self.floor, |(revision, _)| *revision)
    }

    pub fn read(&self) -> Snapshot {
        let record = self.record.as_ref().map_or_else(|| Record::absent(self.floor), |(_, record)| record.clone());
        Snapshot::new(self.revision(), record, self.now)
    }

    pub fn see(&self) -> Seen {
        let Snapshot { revision, record, now } = self.read();
        Seen { revision, record: Arc::unwrap_or_clone(record), now }
    }

    /// Swaps a record in, and returns its new revision, or `None` if the swap failed.
    pub fn swap(&mut self, expected: Revision, next: Record) -> Option<Revision> {
        (self.revision() == expected).then(|| {
            self.last = Revision(self.last.0 + 1);
            self.record = Some((self.last, next.resolved(self.last)));
            self.last
        })
    }

    /// Whether a swap against what was seen must fail, now and later: revisions do not come back.
    pub fn has_moved_on(&self, seen: &Seen, rules: &Rules) -> bool {
        let may_come_back = seen.revision == self.floor && !rules.floor_is_raised;
        seen.revision != self.revision() && !may_come_back
    }

    /// Whether there is a record that may be forgotten.
    pub fn may_forget(&self) -> bool {
        self.record.as_ref().is_some_and(|(_, record)| record.is_idle(self.now))
    }

    /// Forgets the record.
    pub fn forget(&mut self, rules: &Rules) {
        if let Some((revision, _)) = self.record.take()
            && rules.floor_is_raised
        {
            self.floor = self.floor.max(revision);
        }
    }

    /// Whether time alone will change the meaning of the record.
    pub fn awaits_time(&self) -> bool {
        let Some((_, record)) = &self.record else { return false };
        let mut marks = record.claim.iter().chain(&record.unclaimed);
        marks.any(|mark| self.now < mark.deadline)
            || record.doubt.is_some_and(|doubt| self.now < doubt.until)
            || record.leases.remembered(self.now).next().is_some()
    }

    /// Returns all revisions in the store.
    pub fn revisions(&mut self) -> Vec<&mut Revision> {
        let mut all = vec![&mut self.floor, &mut self.last];
        if let Some((revision, record)) = &mut self.record {
            all.push(revision);
            all.extend(revisions_of(record));
        }
        all
    }
}

impl Seen {
    pub fn revisions(&mut self) -> Vec<&mut Revision> {
        let mut all = revisions_of(&mut self.record);
        all.push(&mut self.revision);
        all
    }

    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(self.revision, self.record.clone(), self.now)
    }
}

/// Returns all revisions in a record.
fn revisions_of(record: &mut Record) -> Vec<&mut Revision> {
    let of_doubt = record.doubt.as_mut().map(|doubt| &mut doubt.version);
    let of_leases = record.leases.iter_mut().map(|lease| &mut lease.fence);
    let stamps = [&mut record.version, &mut record.touched, &mut record.fence].into_iter();
    let stamps = stamps.chain(of_doubt).chain(of_leases);
    stamps.filter_map(|stamp| if let Stamp::At(revision) = stamp { Some(revision) } else { None }).collect()
}
