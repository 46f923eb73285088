//! The precondition that a write must carry by the rule of its route (RFC 6585 section 3).

use super::{Preconditions, TagCondition};
use crate::core::{policy::Require, tags::validators::Representation};

/// The result of [`requirement`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// The write carries what the route requires.
    Satisfied,
    /// The write does not: 428.
    Missing,
    /// The current representation decides, and is unknown.
    NeedsExistence,
}

/// Returns whether a write carries the precondition that `require` demands.
///
/// A precondition counts if it protects from a lost update. These count: tags in `If-Match`, or `*` with `allow_any`;
/// `If-None-Match: *`; a lease that counts for it in the dialect; and an `If-Unmodified-Since` that was really compared
/// with a modification date. The verdict on the condition itself decides whether the date is good enough. Beside an
/// `If-Match` a date is never compared. Tags in `If-None-Match` do not count: they let every other state be
/// overwritten.
pub fn requirement(
    require: Require,
    allow_any: bool,
    conditions: &Preconditions,
    current: &Representation,
) -> Requirement {
    let counts = match &conditions.if_match {
        Some(TagCondition::Tags(_)) => true,
        Some(TagCondition::Any) => allow_any,
        None => date_is_compared(conditions, current),
    };
    if require == Require::Never
        || counts
        || conditions.lease_suffices
        || conditions.if_none_match == Some(TagCondition::Any)
    {
        return Requirement::Satisfied;
    }
    let date_may_count = conditions.if_match.is_none() && conditions.if_unmodified_since.is_some();
    match (current, require) {
        (Representation::Absent, Require::Existing) => Requirement::Satisfied,
        (Representation::Unknown, Require::Existing) => Requirement::NeedsExistence,
        (Representation::Unknown, _) if date_may_count => Requirement::NeedsExistence,
        _ => Requirement::Missing,
    }
}

fn date_is_compared(conditions: &Preconditions, current: &Representation) -> bool {
    match current {
        Representation::Present(validators) => {
            conditions.if_unmodified_since.is_some() && validators.modified.is_some()
        }
        Representation::Absent | Representation::Unknown => false,
    }
}
