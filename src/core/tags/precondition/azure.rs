//! The verdict by the rules of Azure Blob Storage, which differ from those of RFC 9110.

use http::Method;

use super::{
    ConditionField, Judgement, MatchRule, Preconditions,
    compare::{is_excluded, matches_by, names_current, names_current_weakly, reads},
};
use crate::core::tags::validators::Representation;

/// Judges conditions that are combined as Azure allows:
///
/// * a read passes if `If-Match` and `If-Unmodified-Since` are both true; its copy is current if it has
///   `If-None-Match` or `If-Modified-Since`, and none of them is true;
/// * a write passes if its one condition is true. Beside `If-Match`, `If-Unmodified-Since` does not count, nor does
///   `If-Modified-Since` beside `If-None-Match`.
///
/// A missing resource meets no `If-Match`, and every other condition. If the representation has no date to compare
/// with, the verdict stays open: a request that would overwrite must not pass because of that.
pub(super) fn judge(
    method: &Method,
    conditions: &Preconditions,
    current: &Representation,
    rule: MatchRule,
) -> Judgement {
    let representation = match current {
        Representation::Present(validators) => Some(validators),
        Representation::Absent => None,
        Representation::Unknown if conditions.is_empty() => return Judgement::Pass,
        Representation::Unknown => return Judgement::Unknowable,
    };
    let (is_read, modified) = (reads(method), representation.and_then(|validators| validators.modified));
    let is_there = representation.is_some();
    let failed = |field| Judgement::Failed { field, weak_tag: false };
    if let Some(condition) = &conditions.if_match
        && !names_current(condition, representation, |tag, current| matches_by(rule, tag, current))
    {
        let weak_tag = names_current_weakly(condition, representation, rule);
        return Judgement::Failed { field: ConditionField::IfMatch, weak_tag };
    }
    let unmodified_since = conditions.if_unmodified_since.filter(|_| is_there);
    if let Some(since) = unmodified_since.filter(|_| is_read || conditions.if_match.is_none()) {
        match modified {
            None => return Judgement::Unknowable,
            Some(modified) if !modified.admits(since) => return failed(ConditionField::IfUnmodifiedSince),
            Some(_) => {}
        }
    }
    let none_matches = conditions.if_none_match.as_ref().map(|condition| {
        !names_current(condition, representation, |tag, current| is_excluded(method, rule, tag, current))
    });
    let since = conditions.if_modified_since.filter(|_| is_there).filter(|_| is_read || none_matches.is_none());
    let was_modified = match (since, modified) {
        (None, _) => None,
        (Some(_), None) => return Judgement::Unknowable,
        (Some(since), Some(modified)) => Some(modified.date > since),
    };
    match (none_matches, was_modified) {
        (Some(true), _) | (_, Some(true)) | (None, None) => Judgement::Pass,
        _ if is_read => Judgement::NotModified,
        (Some(false), _) => failed(ConditionField::IfNoneMatch),
        (None, Some(false)) => failed(ConditionField::IfModifiedSince),
    }
}

#[cfg(test)]
#[path = "azure_tests.rs"]
mod tests;
