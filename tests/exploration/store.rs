//! A store of one record, with its bucket's floor, and what the process remembers of reads.

use std::time::Duration;

use ifmatch::core::{
    entity_tag::EntityTag,
    record::{Known, Record, Revision, Snapshot, Stamp, VariantName},
    steps::Settlement,
    time::StoreTime,
    validators::{Representation, Validators},
};

use super::rules::Rules;

/// How long one step of the clock is.
pub const TICK: Duration = Duration::from_millis(10);
/// How long the upstream may take to apply what was given up.
pub const LATE_MAX: Duration = TICK;

/// What the content of the resource is: an arbitrary number. The same number is the same bytes.
pub type Content = u8;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Store {
    record: Option<(Revision, Record)>,
    floor: Revision,
    last: Revision,
    pub now: StoreTime,
    /// The content that the last read remembered, with the last event on the data path before it.
    pub remembered: Option<(Revision, Content)>,
}

impl Store {
    pub fn new() -> Self {
        let floor = Revision(5);
        Self { record: None, floor, last: floor, now: StoreTime::default(), remembered: None }
    }

    /// All revisions in it.
    pub fn revisions(&mut self) -> Vec<&mut Revision> {
        let mut all = vec![&mut self.floor, &mut self.last];
        all.extend(self.remembered.as_mut().map(|(touched, _)| touched));
        if let Some((revision, record)) = &mut self.record {
            all.push(revision);
            all.extend(revisions_of(record));
        }
        all
    }

    pub fn read(&self) -> Snapshot {
        let (revision, record) = match &self.record {
            Some((revision, record)) => (*revision, record.clone()),
            None => (self.floor, Record::absent(self.floor)),
        };
        Snapshot { revision, record, now: self.now }
    }

    /// The revision that the record has now, if the swap was done.
    pub fn swap(&mut self, expected: Revision, next: Record) -> Option<Revision> {
        (self.read().revision == expected).then(|| {
            self.last = Revision(self.last.0 + 1);
            self.record = Some((self.last, next.resolved(self.last)));
            self.last
        })
    }

    /// Forgets the record, if it may be.
    pub fn forget(&mut self, rules: &Rules) -> bool {
        let Some((revision, record)) = &self.record else { return false };
        if !record.is_idle(self.now) {
            return false;
        }
        if rules.floor_is_raised {
            self.floor = self.floor.max(*revision);
        }
        self.record = None;
        true
    }

    pub fn remember(&mut self, snapshot: &Snapshot, content: Content) {
        if snapshot.is_quiet() {
            self.remembered = Some((snapshot.touched(), content));
        }
    }

    /// What memory says of the content at this moment.
    pub fn recalled(&self, snapshot: &Snapshot, rules: &Rules) -> Option<Content> {
        let (touched, content) = self.remembered?;
        let is_current = snapshot.is_quiet() && (touched == snapshot.touched() || !rules.reads_are_bound);
        is_current.then_some(content)
    }
}

/// All revisions in a record.
pub fn revisions_of(record: &mut Record) -> Vec<&mut Revision> {
    let of_doubt = record.doubt.as_mut().map(|doubt| &mut doubt.version);
    let stamps = [&mut record.version, &mut record.touched].into_iter().chain(of_doubt);
    stamps.filter_map(|stamp| if let Stamp::At(revision) = stamp { Some(revision) } else { None }).collect()
}

/// The tag of a content.
pub fn content_tag(content: Content) -> EntityTag {
    EntityTag::strong(format!("content{content}")).unwrap()
}

pub fn known(content: Content) -> Known {
    Known { variant: VariantName([0; 16]), representation: present(content_tag(content)) }
}

pub fn present(tag: EntityTag) -> Representation {
    Representation::Present(Validators { tag: Some(tag), modified: None })
}

/// The production step, with one rule or another broken.
pub fn settle(snapshot: &Snapshot, settlement: &Settlement, rules: &Rules) -> Option<Record> {
    use ifmatch::core::steps::{self, Outcome};
    let mut settlement = settlement.clone();
    if !rules.disturbed_is_dropped {
        settlement.marked_at = snapshot.touched();
    }
    if !rules.doubt_holds && settlement.outcome == Outcome::Doubt {
        settlement.outcome = Outcome::Unclear;
    }
    let mut record = steps::settle(snapshot, settlement.clone())?;
    if !rules.unclear_mints && settlement.outcome == Outcome::Unclear {
        record.version = Stamp::At(snapshot.version());
    }
    Some(record)
}
