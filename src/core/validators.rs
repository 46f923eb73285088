//! What is known of the current representation of a resource (RFC 9110 section 8.8).

use super::{entity_tag::EntityTag, http_date::HttpDate};

/// A modification date and how far it can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Modified {
    /// The `Last-Modified` date.
    pub date: HttpDate,
    /// Whether it is strong by RFC 9110 section 8.8.2.2: at least a second older than the response that carried it.
    pub strong: bool,
}

/// The validators of one representation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Validators {
    /// The entity-tag, if the representation has one.
    pub tag: Option<EntityTag>,
    /// The modification date, if it has one.
    pub modified: Option<Modified>,
}

/// What is known of a resource's current representation. The three are never the same thing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Representation {
    /// Nothing: only the upstream can tell.
    #[default]
    Unknown,
    /// There is none.
    Absent,
    /// There is one, with these validators (perhaps none).
    Present(Validators),
}
