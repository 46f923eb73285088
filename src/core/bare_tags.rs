//! What a record says of the tags that went out without a suffix ([`coarse_tag`](super::coarse_tag)).

use super::entity_tag::EntityTag;

/// The most tags that a record names: a resource that is written often has each tag with its suffix soon, and pays with
/// 128 bytes at the most.
pub const EARLIER_MAX: usize = 16;

/// A hash that stands for a tag or a target in a record: 64 bits tell the few of one resource apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ShortName(pub u64);

impl ShortName {
    /// That of a tag, weak or strong: something on the way may have made one of the other.
    pub fn of_tag(tag: &EntityTag) -> Self {
        Self::of(tag.opaque())
    }

    /// That of a target as it is sent.
    pub fn of_target(target: &[u8]) -> Self {
        Self::of(target)
    }

    fn of(bytes: &[u8]) -> Self {
        let hash = blake3::hash(bytes);
        Self(hash.as_bytes().first_chunk().map_or(0, |half| u64::from_be_bytes(*half)))
    }
}

/// What a record says of the tags that went out bare.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum BareTags {
    /// No write has changed the resource since the store began: each tag of it goes out bare.
    All,
    /// One does at the most.
    One(Listed),
    /// None does: not all that went out earlier are known.
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
    /// Those of earlier states.
    pub earlier: Vec<ShortName>,
}

/// What a write has shown of the tags of its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The target.
    pub target: ShortName,
    /// Before it.
    pub before: Before,
    /// After it, where it was learned under the claim.
    pub after: Option<ShortName>,
}

/// The state before a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// Not known.
    Unknown,
    /// There was no representation.
    Absent,
    /// It had this tag.
    Tag(ShortName),
}

impl BareTags {
    /// What holds after a change of the state, by a claimed write that has shown this, or by something else.
    #[must_use]
    pub fn changed(self, shown: Option<Shown>) -> Self {
        let Some(Shown { target, before, after }) = shown else { return Self::None };
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
