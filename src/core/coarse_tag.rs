//! Tags of the backend's that can be coarse, such as a modification time in seconds: how they are spelled for clients,
//! so that none outlives the state that it was given for (DESIGN, section 3, rule 2).
//!
//! # Design
//!
//! A tag given to a client must name one state of the resource. A backend whose tags are coarse gives one tag to two
//! states, so the tag alone does not. The version of the record does: every write that may have changed the state gives
//! it another one. So a tag goes out as `"<tag>~<incarnation>-<version>"`, and a client's tag counts only if its suffix
//! is that of the current version and what stands before it is what the backend shows. The backend gets it without.
//!
//! *When is the suffix left out?* Where the bare tag is shown to be that of one state:
//!
//! | what the record says | tags go out |
//! |---|---|
//! | no write came this way, and nothing of the bucket was forgotten (version 0) | bare |
//! | the tag of the last write was learned, and no earlier state had it | that one bare, each other one with the suffix |
//! | anything else | with the suffix |
//!
//! *Why is the other way round not enough, a suffix where a tag is known to have come before?* The answer to a write may
//! tell no tag. A write in doubt, one that appends, or one that touches from elsewhere teaches none. A record can be
//! forgotten, and its list is bounded. Each of them leaves something unknown, and what is unknown must not pass.
//!
//! *Why is the tag of the state before not enough to compare with?* Sizes and seconds make `t-3`, `t-4`, `t-3` of three
//! writes in one second. So the record names all tags that went out bare since its first write: that of the state before
//! that write, and one for each write since. Beyond [`EARLIER_MAX`](super::bare_tags::EARLIER_MAX) all tags have the suffix.
//!
//! *Why does any other change end that list?* A write to another target of the key, one that appends or touches, one in
//! doubt: readers at version 0 were given the bare tags of all targets, and the list holds those of one.
//!
//! *What of a forgotten record?* Its bucket has a floor then, which is the version of all absent records there. So their
//! tags have the suffix of the floor, and what was given before is refused. A store that is lost with its process knows
//! nothing afterwards, as it knows no marks: bare tags count again, and those with the suffix of an earlier incarnation
//! do not.
//!
//! *Why is nothing asked of the backend for that?* A tag that was not learned has the suffix, and is no worse for it.
//!
//! *What of a read beside a write?* Its tag is spelled by the record as it was before the backend was asked. If it shows
//! the new state already, the tag is that of an older version, is refused, and the client reads again.
//!
//! *What is not promised?* Writers behind ifmatch's back make states that no record knows of. Two of them with one tag
//! are one to every proxy. And a list holds the tags of one target: where two targets of one key change together, the
//! written one may get the very tag that the other one had at version 0, and still has in its new state.

use super::{
    bare_tags::{BareTags, ShortName},
    entity_tag::EntityTag,
    precondition::{Preconditions, RangeCondition, TagCondition},
    record::{Revision, Snapshot},
};

/// What stands between a tag and its suffix.
const SEPARATOR: u8 = b'~';

/// Hexadecimal digits of an incarnation in a suffix.
const INCARNATION_DIGITS: usize = 16;

/// How the tags of a resource are spelled for clients, as its record stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spelling {
    /// As the backend spells them.
    Bare,
    /// With a suffix, but for one.
    Suffixed {
        /// The suffix of the version.
        suffix: Vec<u8>,
        /// The tag that has none.
        except: Option<ShortName>,
    },
    /// Not at all: the record is not known.
    Withheld,
}

impl Spelling {
    /// The spelling of tags that can be coarse, by the record of a store of this incarnation.
    pub fn of(incarnation: u64, snapshot: Option<&Snapshot>) -> Self {
        let Some(snapshot) = snapshot else { return Self::Withheld };
        let except = match &snapshot.record.bare_tags {
            BareTags::All if snapshot.version() == Revision::default() => return Self::Bare,
            BareTags::One(listed) => listed.current,
            BareTags::All | BareTags::None => None,
        };
        let suffix = format!("{}{incarnation:016x}-{}", char::from(SEPARATOR), snapshot.version().0);
        Self::Suffixed { suffix: suffix.into_bytes(), except }
    }

    /// Whether the backend's tags are clients' tags.
    pub fn is_bare(&self) -> bool {
        *self == Self::Bare
    }

    /// A tag of the backend's as clients get it.
    pub fn issued(&self, tag: &EntityTag) -> Option<EntityTag> {
        match self {
            Self::Bare => Some(tag.clone()),
            Self::Suffixed { except, .. } if *except == Some(ShortName::of_tag(tag)) => Some(tag.clone()),
            Self::Suffixed { suffix, .. } => extended(tag, suffix),
            Self::Withheld => None,
        }
    }

    /// A client's tag as the backend is to see it: without the suffix of the current version. A tag of no state, or of an
    /// earlier one, becomes one that the backend never gives.
    pub fn at_backend(&self, presented: &EntityTag) -> EntityTag {
        let (suffix, except) = match self {
            Self::Bare => return presented.clone(),
            Self::Suffixed { suffix, except } => (suffix.as_slice(), *except),
            Self::Withheld => (&[SEPARATOR][..], None),
        };
        if except == Some(ShortName::of_tag(presented)) {
            return presented.clone();
        }
        let stripped = presented.opaque().strip_suffix(suffix).and_then(|opaque| respelled(presented, opaque));
        let issued = stripped.filter(|tag| self.issued(tag).as_ref() == Some(presented));
        issued.or_else(|| extended(presented, suffix)).unwrap_or_else(|| presented.clone())
    }

    /// The conditions of a write as the backend is to see them. `If-None-Match` excludes each state that the backend shows
    /// with one of the tags: after a doubt it may be the very state that the tag was given for.
    pub fn conditions_of_write_at_backend(&self, conditions: &Preconditions) -> Preconditions {
        let if_none_match = match &conditions.if_none_match {
            Some(TagCondition::Tags(tags)) => {
                let bare = |tag: &EntityTag| respelled(tag, bare(tag.opaque())).unwrap_or_else(|| tag.clone());
                Some(TagCondition::Tags(tags.iter().map(bare).collect()))
            }
            other => other.clone(),
        };
        Preconditions { if_none_match, ..self.conditions_at_backend(conditions) }
    }

    /// The conditions of a client as the backend is to see them.
    pub fn conditions_at_backend(&self, conditions: &Preconditions) -> Preconditions {
        let list = |condition: &Option<TagCondition>| match condition {
            Some(TagCondition::Tags(tags)) => {
                Some(TagCondition::Tags(tags.iter().map(|tag| self.at_backend(tag)).collect()))
            }
            other => other.clone(),
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

/// The opaque bytes of a tag without the suffix of a version, if they have one.
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

/// The tag with something behind its opaque bytes.
fn extended(tag: &EntityTag, suffix: &[u8]) -> Option<EntityTag> {
    respelled(tag, &[tag.opaque(), suffix].concat())
}

/// A tag of these bytes, as weak as the other.
fn respelled(tag: &EntityTag, opaque: &[u8]) -> Option<EntityTag> {
    if tag.is_weak() { EntityTag::weak(opaque) } else { EntityTag::strong(opaque) }.ok()
}

#[cfg(test)]
#[path = "coarse_tag_tests.rs"]
mod tests;
