//! The view of an observer of a resource: its state, and the changes since the last look (DESIGN, section 8, "Watch").
//!
//! # Design
//!
//! *What is a change of the content?* A new version of the resource. Every settled write makes one, and so does a doubt
//! that is over. A write in flight makes none: it may still be refused. So an observer sees no state that is taken
//! back. An idle record that is forgotten makes a new version without a write. Observers learn of it too, at the cost
//! of one read.
//!
//! *What about a write that no proxy settles?* Its proxy may have died. Its mark stays until another client wants to
//! write, and no version tells whether the write was applied. So an observer gets a notice when nothing of the write
//! can arrive any more. After a start there may be such writes without any mark. Observers get a notice when the time
//! for them is over.
//!
//! *Why does an observer compare leases by their fences?* No other lease of the resource has the same fence, and all
//! clients may see it. The id is a secret.
//!
//! *Why are leases looked at apart from the content?* The record alone shows the leases, at once. The content may need an
//! answer of the backend, which may keep silent. No observer waits for that answer to learn of a lease.
//!
//! *Which of two looks is the older one?* Two records show a resource below a collection, and one look may see a newer
//! record of the resource with an older one of the trees. If either goes back, the observer puts the look aside. The next
//! look differs from it, so the observer hears of it.
//!
//! *Why is a renewal not part of the state?* Only the remaining time differs, which changes all the time. An observer
//! gets a notice of a renewal, but need not get it if it comes back later.

mod held;
mod leases;
mod names;
mod text;

use std::time::Duration;

use crate::core::{
    records::record::{Mark, Revision, Snapshot},
    tags::{entity_tag::EntityTag, parts_hash::PartsHasher},
    time::StoreTime,
};

pub use held::{breaking_event, granted_event, lost_event, refused_event, waiting_event};
pub use leases::LeaseChange;
use leases::SeenLease;
pub use names::{NAMES_MAX, names_in_query};
pub use text::{
    StateId, changed_event, denied_event, denied_json, lease_event, retry_text, state_event, state_json, state_tag,
};

/// The content of a resource, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SeenContent {
    /// There is some, without a tag that a read would answer for certain.
    Unknown,
    /// A read would answer this tag.
    Tagged(EntityTag),
    /// There is none: the backend has just said so.
    Deleted,
}

impl SeenContent {
    /// The content with this tag, if it is known.
    pub fn of(tag: Option<EntityTag>) -> Self {
        tag.map_or(Self::Unknown, Self::Tagged)
    }

    /// The tag that a read would answer.
    pub const fn tag(&self) -> Option<&EntityTag> {
        match self {
            Self::Tagged(tag) => Some(tag),
            Self::Unknown | Self::Deleted => None,
        }
    }
}

/// The result of one look at the content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sight {
    /// The content, as far as it is known.
    pub content: SeenContent,
    /// The number of changes so far that made no new version, because others write too.
    pub changes: u64,
    /// True if a write from before the start of this proxy may still arrive.
    pub is_held_back: bool,
}

impl From<SeenContent> for Sight {
    fn from(content: SeenContent) -> Self {
        Self { content, changes: 0, is_held_back: false }
    }
}

/// The changes between two looks at a resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeenChanges {
    /// True if the content changed, or may have.
    pub content: bool,
    /// The steps of the leases, in the order of their fences.
    pub leases: Vec<LeaseChange>,
}

impl SeenChanges {
    /// True if nothing changed.
    pub fn is_empty(&self) -> bool {
        !self.content && self.leases.is_empty()
    }
}

/// The state of a resource as its observer has seen it last.
#[derive(Clone, Debug)]
pub struct StateObserver {
    version: Revision,
    /// The record whose content was looked at last.
    content_of: SeenRecord,
    sight: Sight,
    /// How many writes have ended without a word of their proxies.
    lost_writes: usize,
    /// The record whose leases were looked at last.
    leases_of: SeenRecord,
    leases: Vec<SeenLease>,
}

/// A record that an observer has looked at.
#[derive(Clone, Copy, Debug)]
struct SeenRecord {
    revision: Revision,
    /// The last end of the write of a tree around the resource that the record takes into account.
    tree_change: Revision,
}

impl SeenRecord {
    fn of(snapshot: &Snapshot) -> Self {
        Self { revision: snapshot.revision, tree_change: snapshot.record.tree_change }
    }

    /// True if this record is older than the other one.
    fn is_older_than(self, other: Self) -> bool {
        self.revision < other.revision || self.tree_change < other.tree_change
    }
}

impl StateObserver {
    /// An observer that sees this state first.
    pub fn new(snapshot: &Snapshot, sight: impl Into<Sight>) -> Self {
        let record = SeenRecord::of(snapshot);
        Self {
            version: snapshot.version(),
            content_of: record,
            sight: sight.into(),
            lost_writes: lost_writes(snapshot),
            leases_of: record,
            leases: leases::seen(snapshot),
        }
    }

    /// Looks at the resource again, and returns what changed since the last look. A look at an older record changes
    /// nothing.
    pub fn look(&mut self, snapshot: &Snapshot, sight: impl Into<Sight>) -> SeenChanges {
        let leases = self.look_at_leases(snapshot);
        SeenChanges { content: self.look_at_content(snapshot, sight), leases }
    }

    /// Looks at the leases alone, and returns their steps since the last look.
    pub fn look_at_leases(&mut self, snapshot: &Snapshot) -> Vec<LeaseChange> {
        let record = SeenRecord::of(snapshot);
        if record.is_older_than(self.leases_of) {
            return Vec::new();
        }
        self.leases_of = record;
        let before = std::mem::replace(&mut self.leases, leases::seen(snapshot));
        leases::changes(&before, &self.leases, snapshot)
    }

    /// Looks at the content alone, and returns whether it changed since the last look, or may have.
    pub fn look_at_content(&mut self, snapshot: &Snapshot, sight: impl Into<Sight>) -> bool {
        let (record, version, lost_writes) = (SeenRecord::of(snapshot), snapshot.version(), lost_writes(snapshot));
        if record.is_older_than(self.content_of) {
            return false;
        }
        self.content_of = record;
        let before = std::mem::replace(&mut self.sight, sight.into());
        let is_new = version != self.version
            || self.sight.changes != before.changes
            || lost_writes > self.lost_writes
            || before.is_held_back && !self.sight.is_held_back;
        (self.version, self.lost_writes) = (version, lost_writes);
        if !is_new && self.sight.content == SeenContent::Unknown {
            self.sight.content = before.content.clone();
        }
        let has_new_tag = before.content != SeenContent::Unknown && self.sight.content != before.content;
        is_new || has_new_tag
    }

    /// Returns the content, as far as it is known.
    pub const fn content(&self) -> &SeenContent {
        &self.sight.content
    }

    /// Adds the parts that tell this state from others. `by_tag` is true if the content can change without a new
    /// version.
    fn add_to(&self, hasher: &mut PartsHasher, by_tag: bool) {
        hasher.add(&self.version.0.to_le_bytes());
        hasher.add(&self.lost_writes.to_le_bytes()).add(&[u8::from(self.sight.is_held_back)]);
        if by_tag {
            match &self.sight.content {
                SeenContent::Tagged(tag) => hasher.add(tag.to_header_value().as_bytes()),
                SeenContent::Deleted => hasher.add(b""),
                SeenContent::Unknown => hasher.add(&self.sight.changes.to_le_bytes()),
            };
        }
        for lease in &self.leases {
            hasher.add(&lease.fence.0.to_le_bytes()).add(lease.state.word().as_bytes());
        }
    }
}

/// Returns the time after which a resource looks different without any change of its record.
pub fn next_change(snapshot: &Snapshot) -> Option<Duration> {
    let ends = snapshot.leases().flat_map(|lease| [lease.end(), lease.forgotten_from()]).flatten();
    let moments = ends.chain(snapshot.record.doubt.map(|doubt| doubt.until)).chain(ends_of_marks(snapshot));
    moments.filter(|&moment| moment > snapshot.now).min().map(|moment| snapshot.now.until(moment))
}

/// True if two looks at a record show every observer the same.
pub fn looks_same(one: &Snapshot, other: &Snapshot) -> bool {
    one.version() == other.version()
        && one.record.tree_change == other.record.tree_change
        && leases::seen(one) == leases::seen(other)
        && lost_writes(one) == lost_writes(other)
}

/// How many writes have ended without a word of their proxies.
fn lost_writes(snapshot: &Snapshot) -> usize {
    ends_of_marks(snapshot).filter(|end| *end <= snapshot.now).count()
}

/// The moments from which nothing of a write in flight can arrive any more, although its mark is still there: in the record
/// of the resource, or in that of the trees around it.
fn ends_of_marks(snapshot: &Snapshot) -> impl Iterator<Item = StoreTime> + '_ {
    let of_tree = snapshot.above.and_then(|above| above.mark_over_from);
    snapshot.record.marks().map(Mark::over_from).chain(of_tree)
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
