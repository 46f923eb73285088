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
//! | the tag of the last write was learned, and no earlier state had it | this tag bare, all others with the suffix |
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
    record::{Revision, Snapshot},
};

/// The first byte of a suffix, which separates it from the tag.
const SEPARATOR: u8 = b'~';

/// The number of hexadecimal digits of an incarnation in a suffix.
const INCARNATION_DIGITS: usize = 16;

/// The spelling of a resource's tags for clients, by the current state of its record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spelling {
    /// The spelling of the backend.
    Bare,
    /// A suffix on all tags except one.
    Suffixed {
        /// The suffix of the version.
        suffix: Vec<u8>,
        /// The tag that has none.
        except: Option<ShortName>,
    },
    /// No tag at all: the record is not known.
    Withheld,
}

impl Spelling {
    /// Returns the spelling of tags that can be coarse, by the record of a store of this incarnation.
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

    /// Whether clients get the backend's tags unchanged.
    pub fn is_bare(&self) -> bool {
        *self == Self::Bare
    }

    /// Returns a tag of the backend in the form that clients get.
    pub fn issued(&self, tag: &EntityTag) -> Option<EntityTag> {
        match self {
            Self::Bare => Some(tag.clone()),
            Self::Suffixed { except, .. } if *except == Some(ShortName::of_tag(tag)) => Some(tag.clone()),
            Self::Suffixed { suffix, .. } => extended(tag, suffix),
            Self::Withheld => None,
        }
    }

    /// Returns a client's tag in the form that the backend gets: without the suffix of the current version. A tag of no
    /// state, or of an earlier one, becomes a tag that the backend never gives.
    pub fn at_backend(&self, presented: &EntityTag) -> EntityTag {
        let (suffix, except) = match self {
            Self::Bare => return presented.clone(),
            Self::Suffixed { suffix, except } => (suffix.as_slice(), *except),
            Self::Withheld => (&[SEPARATOR][..], None),
        };
        if except == Some(ShortName::of_tag(presented)) {
            return presented.clone();
        }
        let stripped = presented.opaque().strip_suffix(suffix).and_then(|opaque| presented.respelled(opaque));
        let issued = stripped.filter(|tag| self.issued(tag).as_ref() == Some(presented));
        issued.or_else(|| extended(presented, suffix)).unwrap_or_else(|| presented.clone())
    }

    /// Returns the conditions of a write in the form that the backend gets. `If-None-Match` excludes every state that
    /// the backend shows with one of the tags. After a doubt, that may be the very state that the tag was given for.
    pub fn conditions_of_write_at_backend(&self, conditions: &Preconditions) -> Preconditions {
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
