//! The part of a record that lists the tags that went out without a suffix ([`coarse_tag`](super::coarse_tag)).

use super::{entity_tag::EntityTag, followed_tags::Followed};

/// The maximum number of tags that a record lists. The list takes at most 128 bytes. A resource that is written often
/// soon fills it, and then has a suffix on every tag.
pub const EARLIER_MAX: usize = 16;

/// A hash that stands for a tag or a target in a record. A resource has few of them, so 64 bits distinguish them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ShortName(pub u64);

impl ShortName {
    /// Returns the short name of a tag. Weak and strong share it, as an intermediary may turn one into the other.
    pub fn of_tag(tag: &EntityTag) -> Self {
        Self::of(tag.opaque())
    }

    /// Returns the short name of a target as it is sent.
    pub fn of_target(target: &[u8]) -> Self {
        Self::of(target)
    }

    fn of(bytes: &[u8]) -> Self {
        let hash = blake3::hash(bytes);
        Self(hash.as_bytes().first_chunk().map_or(0, |half| u64::from_be_bytes(*half)))
    }
}

/// The tags that went out bare, as the record lists them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum BareTags {
    /// All tags go out bare: no write has changed the resource since the store began.
    All,
    /// At most one tag goes out bare.
    One(Listed),
    /// No tag goes out bare: the record does not list all tags that went out earlier.
    #[default]
    None,
}

/// The tags of one target that went out bare since the first write.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Listed {
    /// The target that was written.
    pub target: ShortName,
    /// The tag that goes out bare now, if it was learned and no earlier state had it.
    pub current: Option<ShortName>,
    /// The tags of earlier states.
    pub earlier: Vec<ShortName>,
}

/// The tags of a target before and after a write, if the write has shown them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The target.
    pub target: ShortName,
    /// The state before the write.
    pub before: Before,
    /// The tag after the write, if it was learned under the claim.
    pub after: Option<ShortName>,
    /// The purpose that the tags are followed for.
    pub purpose: Followed,
}

/// The state before a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// The state is not known.
    Unknown,
    /// There was no representation.
    Absent,
    /// The representation had this tag.
    Tag(ShortName),
}

impl BareTags {
    /// Returns the list after a change of the state. `shown` comes from a claimed write; any other change has `None`.
    #[must_use]
    pub fn changed(self, shown: Option<Shown>) -> Self {
        let Some(Shown { target, before, after, .. }) = shown else { return Self::None };
        let listed = match (self, before) {
            (Self::All, Before::Absent) => Listed { target, current: None, earlier: Vec::new() },
            (Self::All, Before::Tag(tag)) => Listed { target, current: None, earlier: vec![tag] },
            (Self::One(listed), _) if listed.target == target => listed,
            _ => return Self::None,
        };
        listed.followed_by(after)
    }
}

impl Listed {
    fn followed_by(self, after: Option<ShortName>) -> BareTags {
        let Self { target, current, mut earlier } = self;
        earlier.extend(current);
        if earlier.len() > EARLIER_MAX {
            return BareTags::None;
        }
        let current = after.filter(|tag| !earlier.contains(tag));
        BareTags::One(Self { target, current, earlier })
    }
}
