//! The spelling, for clients, of backend tags that can be coarse, such as a modification time in seconds. It makes sure
//! that no tag outlives the state that it was given for (DESIGN, section 3, rule 2).
//!
//! # Design
//!
//! A tag given to a client must name one state of the resource. A backend whose tags are coarse gives one tag to two
//! states, so the tag alone is not enough. The version of the record is: every write that may have changed the state
//! gives the record a new version. So a tag goes out as `"<tag>~<incarnation>-<version>"`. A client's tag counts only
//! if its suffix is that of the current version and the rest is the tag that the backend shows. The backend gets the
//! tag without the suffix.
//!
//! *When is the suffix left out?* If the record proves that the bare tag names one state:
//!
//! | state of the record | tags go out |
//! |---|---|
//! | no write passed the proxy, and no record of the bucket was forgotten (version 0) | bare |
//! | no other client writes, the tag of the last write was learned, and no earlier state had it | this tag bare, all others with the suffix |
//! | the backend's tags are unique, by the configuration | bare, except those that have come back |
//! | anything else | with the suffix |
//!
//! *Why not the reverse, a suffix only for a tag that is known to have been used before?* The answer to a write may
//! carry no tag. A write that is in doubt, appends, or touches the resource from elsewhere teaches no tag. A record
//! can be forgotten, and its list is bounded. Each of these cases leaves a tag unknown, and an unknown tag must not
//! pass.
//!
//! *Why is it not enough to compare with the tag of the previous state?* Tags made of sizes and seconds can be `t-3`,
//! `t-4`, `t-3` after three writes in one second. So the record lists all tags that went out bare since its first
//! write. These are the tag of the state before that write, and one for each write since. Beyond
//! [`EARLIER_MAX`](super::bare_tags::EARLIER_MAX) tags, all have the suffix.
//!
//! *Why is there no list if others write too?* They may have made states before the first write that no record covers.
//! The tag of such a state went out bare, and the list would not have it.
//!
//! *What of a backend's tag that looks as if it had a suffix?* A client may have sent it as the value of a member. It has
//! a suffix in every state of the record, so it equals no tag that a later state gets.
//!
//! *Why does any other change end that list?* Other changes are a write to another target of the key, one that
//! appends or touches, and one in doubt. Readers at version 0 got the bare tags of all targets, but the list holds
//! those of one.
//!
//! *What happens once a record is forgotten?* Its bucket then has a floor, which is the version of all absent records
//! there. So their tags have the suffix of the floor, and any tag given out before is refused. A store that is lost
//! with its process loses this too, as it loses its marks. Bare tags then count again, but tags with the suffix of an
//! earlier incarnation do not.
//!
//! *Why does this need no request to the backend?* A tag that was not learned has the suffix, and works as well.
//!
//! *What happens to a read beside a write?* Its tag is spelled by the record as it was before the backend was asked. If
//! the read already shows the new state, its tag carries an older version. It is refused, and the client reads again.
//!
//! *What is not promised?* Writers that bypass ifmatch make states that no record covers. Two such states with one tag
//! look like one to every proxy. Also, a list holds the tags of one target. Two targets of one key can change together.
//! The written one may then get the tag that the other one had at version 0, and still has in its new state.

use super::{
    bare_tags::{BareTags, ShortName},
    entity_tag::EntityTag,
    precondition::{Preconditions, RangeCondition, TagCondition},
};
use crate::core::records::record::{Revision, Snapshot};

/// The first byte of a suffix, which separates it from the tag.
const SEPARATOR: u8 = b'~';

/// The number of hexadecimal digits of an incarnation in a suffix.
const INCARNATION_DIGITS: usize = 16;

/// The spelling of a resource's tags for clients, by the current state of its record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spelling {
    /// The spelling of the backend, which gives no tag to two states.
    Own,
    /// A suffix on all tags except some.
    Suffixed {
        /// The suffix of the version.
        suffix: Vec<u8>,
        /// The tags that have none.
        bare: GoesBare,
    },
    /// No tag at all: the record is not known.
    Withheld,
}

/// The tags that go out without a suffix. One that is spelled like a tag with a suffix of the same store always has one:
/// it could equal the tag of a later state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GoesBare {
    /// All do: nothing was written yet.
    All,
    /// All but those of earlier states do: the tags are unique, by the configuration.
    AllBut(Vec<ShortName>),
    /// One does.
    One(ShortName),
    /// None does.
    None,
}

impl GoesBare {
    fn includes(&self, tag: &EntityTag, suffix: &[u8]) -> bool {
        let name = ShortName::of_tag(tag);
        let includes = match self {
            Self::All => true,
            Self::AllBut(earlier) => !earlier.contains(&name),
            Self::One(one) => *one == name,
            Self::None => false,
        };
        includes && !has_suffix_of_store(tag, suffix)
    }
}

impl Spelling {
    /// Returns the spelling of tags that are unique, by the configuration. Those that have come back have the suffix.
    pub fn of_unique(incarnation: u64, snapshot: Option<&Snapshot>) -> Self {
        let recent = |snapshot: &Snapshot| snapshot.record.recent_tags.as_ref().map(|recent| recent.earlier.clone());
        match snapshot.and_then(|snapshot| Some((snapshot, recent(snapshot)?))) {
            Some((snapshot, earlier)) if !earlier.is_empty() => {
                Self::Suffixed { suffix: suffix_of(incarnation, snapshot), bare: GoesBare::AllBut(earlier) }
            }
            _ => Self::Own,
        }
    }

    /// Returns the spelling of tags that can be coarse, by the record of a store of this incarnation.
    pub fn of(incarnation: u64, snapshot: Option<&Snapshot>) -> Self {
        let Some(snapshot) = snapshot else { return Self::Withheld };
        let bare = match &snapshot.record.bare_tags {
            BareTags::All if snapshot.version() == Revision::default() => GoesBare::All,
            BareTags::One(listed) => listed.current.map_or(GoesBare::None, GoesBare::One),
            BareTags::All | BareTags::None => GoesBare::None,
        };
        Self::Suffixed { suffix: suffix_of(incarnation, snapshot), bare }
    }

    /// True if clients get the backend's tags unchanged.
    pub fn is_bare(&self) -> bool {
        matches!(self, Self::Own | Self::Suffixed { bare: GoesBare::All, .. })
    }

    /// True if the backend shows this tag for the current state although an earlier one had it, and tags are unique by
    /// the configuration.
    pub fn is_repeated(&self, tag: &EntityTag) -> bool {
        match self {
            Self::Suffixed { bare: GoesBare::AllBut(earlier), .. } => earlier.contains(&ShortName::of_tag(tag)),
            Self::Own | Self::Suffixed { .. } | Self::Withheld => false,
        }
    }

    /// True if the record shows that a client's tag is of an earlier state, or of none.
    pub fn is_stale(&self, presented: &EntityTag) -> bool {
        match self {
            Self::Own | Self::Withheld => false,
            Self::Suffixed { .. } => self.found_at_backend(presented).is_none(),
        }
    }

    /// Returns a tag of the backend in the form that clients get.
    pub fn issued(&self, tag: &EntityTag) -> Option<EntityTag> {
        match self {
            Self::Own => Some(tag.clone()),
            Self::Suffixed { suffix, bare } if bare.includes(tag, suffix) => Some(tag.clone()),
            Self::Suffixed { suffix, .. } => extended(tag, suffix),
            Self::Withheld => None,
        }
    }

    /// Returns a client's tag in the form that the backend gets: without the suffix of the current version. A tag of no
    /// state, or of an earlier one, becomes a tag that the backend never gives.
    pub fn at_backend(&self, presented: &EntityTag) -> EntityTag {
        let suffix = match self {
            Self::Own => return presented.clone(),
            Self::Suffixed { suffix, .. } => suffix.as_slice(),
            Self::Withheld => &[SEPARATOR][..],
        };
        let found = self.found_at_backend(presented);
        found.or_else(|| extended(presented, suffix)).unwrap_or_else(|| presented.clone())
    }

    /// Returns the backend's tag that a client got as `presented`, by the current record.
    fn found_at_backend(&self, presented: &EntityTag) -> Option<EntityTag> {
        let Self::Suffixed { suffix, bare } = self else { return None };
        let stripped = presented.opaque().strip_suffix(suffix.as_slice());
        let stripped = stripped.and_then(|opaque| presented.respelled(opaque));
        let issued = stripped.filter(|tag| self.issued(tag).as_ref() == Some(presented));
        issued.or_else(|| bare.includes(presented, suffix).then(|| presented.clone()))
    }

    /// Returns the conditions of a write in the form that the backend gets. `If-None-Match` excludes every state that
    /// the backend shows with one of the tags. After a doubt, that may be the very state that the tag was given for.
    pub fn conditions_of_write_at_backend(&self, conditions: &Preconditions) -> Preconditions {
        if *self == Self::Own {
            return conditions.clone();
        }
        let bare = |tag: &EntityTag| tag.respelled(bare(tag.opaque())).unwrap_or_else(|| tag.clone());
        let if_none_match = conditions.if_none_match.as_ref().map(|condition| condition.with_tags(bare));
        Preconditions { if_none_match, ..self.conditions_at_backend(conditions) }
    }

    /// Returns a client's conditions in the form that the backend gets.
    pub fn conditions_at_backend(&self, conditions: &Preconditions) -> Preconditions {
        let list = |condition: &Option<TagCondition>| {
            condition.as_ref().map(|condition| condition.with_tags(|tag| self.at_backend(tag)))
        };
        let if_range = match &conditions.if_range {
            Some(RangeCondition::Tag(tag)) => Some(RangeCondition::Tag(self.at_backend(tag))),
            other => other.clone(),
        };
        Preconditions {
            if_match: list(&conditions.if_match),
            if_none_match: list(&conditions.if_none_match),
            if_range,
            ..conditions.clone()
        }
    }
}

/// Returns the suffix of the current version.
fn suffix_of(incarnation: u64, snapshot: &Snapshot) -> Vec<u8> {
    format!("{}{incarnation:016x}-{}", char::from(SEPARATOR), snapshot.version().0).into_bytes()
}

/// True if a tag ends like one with a suffix of the store that `suffix` is of.
fn has_suffix_of_store(tag: &EntityTag, suffix: &[u8]) -> bool {
    let own = tag.opaque().strip_prefix(bare(tag.opaque())).unwrap_or_default();
    let of_store = suffix.get(..INCARNATION_DIGITS + 2);
    of_store.is_some_and(|of_store| own.starts_with(of_store))
}

/// Returns the opaque bytes of a tag without the suffix of a version, if they have one.
pub fn bare(opaque: &[u8]) -> &[u8] {
    let Some(at) = opaque.iter().rposition(|octet| *octet == SEPARATOR) else { return opaque };
    let (tag, suffix) = opaque.split_at(at);
    let is_suffix = match suffix.get(1..).unwrap_or_default().split_at_checked(INCARNATION_DIGITS) {
        Some((incarnation, [b'-', version @ ..])) => {
            incarnation.iter().all(u8::is_ascii_hexdigit)
                && !version.is_empty()
                && version.iter().all(u8::is_ascii_digit)
        }
        _ => false,
    };
    if is_suffix { tag } else { opaque }
}

/// Returns the tag with `suffix` appended to its opaque bytes.
fn extended(tag: &EntityTag, suffix: &[u8]) -> Option<EntityTag> {
    tag.respelled(&[tag.opaque(), suffix].concat())
}

#[cfg(test)]
#[path = "coarse_tag_tests.rs"]
mod tests;
