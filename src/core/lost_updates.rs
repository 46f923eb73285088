//! Lost updates of one resource on a route that only watches: writes on top of a version that their client had not read.
//!
//! # Design
//!
//! *Why is the count a lower bound?* The count refuses nothing, so it takes only certain cases. The backend applied a
//! write of another client. That write began after the last moment at which this client can have seen the state before
//! it. Then this client wrote. If two events overlap, or one is forgotten, the client counts as a reader of the change.
//!
//! *Why does no table have a row for each client?* A resource remembers a fixed number of readers, writers and tags. So
//! the number of clients costs nothing.

use super::tags::{
    entity_tag::EntityTag,
    parts_hash::PartsHasher,
    precondition::{Preconditions, TagCondition},
};

/// The number of readers of a resource that are remembered. A forgotten reader counts as one that has read as late as any
/// other forgotten one.
const READERS_MAX: usize = 8;

/// The number of tags of a resource whose last appearance is remembered.
const TAGS_MAX: usize = 4;

/// The hash of what tells a client, or a tag, from others.
pub type SightedName = [u8; 16];

/// The number of writes that had begun on a resource at some moment.
pub type WriteMoment = u64;

/// The evidence that a write was based on an earlier version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LostUpdate {
    /// The write named a tag that was last shown before another client's write.
    StaleTag,
    /// The write named no version, and its client has not read the resource since another client's write.
    Unread,
}

/// The version that a write names as its base.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteBasis {
    /// The write names no version, and would overwrite any.
    Unnamed,
    /// The write names one of the versions with these tags.
    Tags(Vec<SightedName>),
    /// The write names something that the tags seen so far cannot tell, such as a date.
    Untold,
}

/// The reads, writes and tags that were seen of one resource.
#[derive(Debug, Default)]
pub struct Sightings {
    begun: WriteMoment,
    /// The readers, the latest at the end.
    readers: Vec<(SightedName, WriteMoment)>,
    /// The latest moment at which a forgotten reader has read.
    forgotten: WriteMoment,
    /// The two clients whose applied writes began last.
    writers: [Option<(SightedName, WriteMoment)>; 2],
    tags: Vec<(SightedName, WriteMoment)>,
}

impl LostUpdate {
    /// The values of the attribute of the metric.
    pub const ALL: [Self; 2] = [Self::StaleTag, Self::Unread];

    /// Returns the word for logs and metrics.
    pub const fn word(self) -> &'static str {
        match self {
            Self::StaleTag => "stale-tag",
            Self::Unread => "unread",
        }
    }
}

impl WriteBasis {
    /// Reads what the conditions of a write say.
    pub fn of(conditions: &Preconditions) -> Self {
        match (&conditions.if_match, &conditions.if_none_match) {
            (Some(TagCondition::Tags(tags)), _) => Self::Tags(tags.iter().map(tag_name).collect()),
            (_, Some(_)) => Self::Untold,
            _ if conditions.if_unmodified_since.is_some() || conditions.has_unreadable_date => Self::Untold,
            _ => Self::Unnamed,
        }
    }
}

impl Sightings {
    /// Notes that a write begins, and returns the moment.
    pub fn begin_write(&mut self) -> WriteMoment {
        self.begun += 1;
        self.begun
    }

    /// Notes that a client sees the state, with its tag. A write that has begun may be part of it.
    pub fn shown(&mut self, client: SightedName, tag: Option<&EntityTag>) {
        let now = self.begun;
        if let Some((_, read)) = noted(&mut self.readers, client, now, READERS_MAX) {
            self.forgotten = self.forgotten.max(read);
        }
        if let Some(tag) = tag {
            noted(&mut self.tags, tag_name(tag), now, TAGS_MAX);
        }
    }

    /// Notes that a write that began at `began` was applied, with the tag of the new state if its answer tells one. Returns
    /// whether it replaced a version that its client had not read.
    pub fn applied(
        &mut self,
        client: SightedName,
        began: WriteMoment,
        basis: &WriteBasis,
        tag: Option<&EntityTag>,
    ) -> Option<LostUpdate> {
        let lost = self.lost_by(client, basis);
        self.wrote(client, began);
        self.shown(client, tag);
        lost
    }

    fn lost_by(&self, client: SightedName, basis: &WriteBasis) -> Option<LostUpdate> {
        let (seen, lost) = match basis {
            WriteBasis::Unnamed => (last(&self.readers, client).unwrap_or(self.forgotten), LostUpdate::Unread),
            WriteBasis::Tags(tags) => {
                (tags.iter().filter_map(|tag| last(&self.tags, *tag)).max()?, LostUpdate::StaleTag)
            }
            WriteBasis::Untold => return None,
        };
        let others = self.writers.iter().flatten().filter(|(writer, _)| *writer != client);
        others.map(|(_, began)| *began).max().filter(|began| *began > seen).map(|_| lost)
    }

    fn wrote(&mut self, client: SightedName, began: WriteMoment) {
        let own = self.writers.iter().flatten().find(|(writer, _)| *writer == client);
        let latest = (client, own.map_or(began, |(_, earlier)| began.max(*earlier)));
        let others = self.writers.into_iter().flatten().filter(|(writer, _)| *writer != client);
        let mut all: Vec<_> = others.chain([latest]).collect();
        all.sort_by_key(|(_, began)| std::cmp::Reverse(*began));
        self.writers = [all.first().copied(), all.get(1).copied()];
    }
}

/// Returns the moment that is noted for a name.
fn last(list: &[(SightedName, WriteMoment)], name: SightedName) -> Option<WriteMoment> {
    list.iter().find(|(noted, _)| *noted == name).map(|(_, moment)| *moment)
}

/// Notes a moment for a name, at the end of the list. Returns what no longer fits in.
fn noted(
    list: &mut Vec<(SightedName, WriteMoment)>,
    name: SightedName,
    moment: WriteMoment,
    max: usize,
) -> Option<(SightedName, WriteMoment)> {
    list.retain(|(noted, _)| *noted != name);
    list.push((name, moment));
    (list.len() > max).then(|| list.remove(0))
}

/// Returns the name of a tag, by which weak and strong tags of one state are one.
fn tag_name(tag: &EntityTag) -> SightedName {
    PartsHasher::default().add(tag.opaque()).half()
}

#[cfg(test)]
#[path = "lost_updates_tests.rs"]
mod tests;
