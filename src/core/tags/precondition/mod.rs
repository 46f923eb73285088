//! Preconditions: what a request demands of the current representation (RFC 9110 section 13).
//!
//! [`Preconditions::parse`] reads them, [`judge`] and [`range_applies`] decide them, and [`requirement`] tells whether
//! a write carries enough of them.

mod azure;
mod compare;
mod judge;
mod lenient;
mod parse;
mod requirement;
mod restore;

use std::fmt;

use super::entity_tag::EntityTag;
use crate::core::tags::http_date::HttpDate;

pub use compare::MatchRule;
pub use judge::{Judgement, judge, range_applies};
pub use lenient::well_written;
pub use parse::{MalformedList, MalformedPrecondition};
pub use requirement::{Requirement, requirement};

/// The value of `If-Match` or `If-None-Match`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TagCondition {
    /// `*`: any current representation.
    Any,
    /// A list of tags; never empty.
    Tags(Vec<EntityTag>),
}

impl TagCondition {
    /// Returns the condition with another tag for each of its tags.
    pub(super) fn with_tags(&self, other: impl Fn(&EntityTag) -> EntityTag) -> Self {
        match self {
            Self::Any => Self::Any,
            Self::Tags(tags) => Self::Tags(tags.iter().map(other).collect()),
        }
    }
}

/// The value of `If-Range`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RangeCondition {
    /// One tag.
    Tag(EntityTag),
    /// One date.
    Date(HttpDate),
    /// Neither a tag nor a date: never true.
    Malformed,
}

/// The rules by which conditions are combined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Combination {
    /// RFC 9110 section 13.2.2.
    #[default]
    Rfc9110,
    /// Azure Blob Storage.
    Azure,
}

/// The conditional fields of one request; `None` stands for a field that is absent or must be ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preconditions {
    /// `If-Match` (section 13.1.1).
    pub if_match: Option<TagCondition>,
    /// `If-None-Match` (section 13.1.2).
    pub if_none_match: Option<TagCondition>,
    /// `If-Modified-Since` (section 13.1.3).
    pub if_modified_since: Option<HttpDate>,
    /// `If-Unmodified-Since` (section 13.1.4).
    pub if_unmodified_since: Option<HttpDate>,
    /// True if `If-Unmodified-Since` is present but not a single date, and so must be ignored.
    pub has_unreadable_date: bool,
    /// `If-Range` (section 13.1.5).
    pub if_range: Option<RangeCondition>,
    /// True if the request names a lease that stands for the condition that its route demands. Without the lease it is
    /// refused in any case.
    pub lease_suffices: bool,
    /// The rules by which the conditions are judged.
    pub combination: Combination,
}

/// A conditional field that can make a request fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConditionField {
    /// `If-Match`.
    IfMatch,
    /// `If-Unmodified-Since`.
    IfUnmodifiedSince,
    /// `If-None-Match`.
    IfNoneMatch,
    /// `If-Modified-Since`.
    IfModifiedSince,
}

impl ConditionField {
    /// The field's name as it is usually written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::IfMatch => "If-Match",
            Self::IfUnmodifiedSince => "If-Unmodified-Since",
            Self::IfNoneMatch => "If-None-Match",
            Self::IfModifiedSince => "If-Modified-Since",
        }
    }
}

impl fmt::Display for ConditionField {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
