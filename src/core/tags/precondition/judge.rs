//! The verdict on preconditions (RFC 9110 section 13.2.2).

use http::Method;

use super::{
    Combination, ConditionField, Preconditions, RangeCondition, TagCondition, azure,
    compare::{MatchRule, is_excluded, matches_by, names_current, names_current_weakly, reads},
};
use crate::core::tags::{
    http_date::HttpDate,
    validators::{Representation, Validators},
};

/// The result of judging the preconditions of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// All preconditions are true, or none counts.
    Pass,
    /// The client's copy is current: 304.
    NotModified,
    /// A precondition is false: 412.
    Failed {
        /// The first false one.
        field: ConditionField,
        /// True if `If-Match` named the current tag, but weakly.
        weak_tag: bool,
    },
    /// A precondition counts, and the current representation is unknown.
    Unknowable,
}

/// Judges the preconditions of a request against the current representation, in this order:
///
/// 1. CONNECT, OPTIONS and TRACE select no representation: all are ignored (section 13.2.1).
/// 2. `If-Match`, else `If-Unmodified-Since`. If false: failed.
/// 3. `If-None-Match`. If false: not modified for GET and HEAD, else failed. For a write every tag of the current state
///    counts as the current one: the write must not overwrite the state that it excludes, whichever client got the tag.
/// 4. Without `If-None-Match` and for GET and HEAD, `If-Modified-Since`. If false: not modified.
///
/// A date is ignored if there is no representation, or if the representation has no modification date: both sections
/// leave no choice. A write that carries only a date then passes here, and is stopped only by
/// [`requirement`](super::requirement). `If-Unmodified-Since` is false for a date that may be that of an earlier state
/// ([`Modified::admits`](crate::core::tags::validators::Modified::admits)).
///
/// Every condition that counts is unknowable against [`Representation::Unknown`]. That includes a list of weak tags in
/// `If-Match` that no tag can match: why it failed depends on the current tag.
///
/// If the upstream would refuse the request without its conditions too, such as with 401 or 404, that answer takes
/// precedence (section 13.2.1). It is up to the caller to find that out.
pub fn judge(method: &Method, conditions: &Preconditions, current: &Representation, rule: MatchRule) -> Judgement {
    if conditions.combination == Combination::Azure {
        return azure::judge(method, conditions, current, rule);
    }
    let counting = Counting::of(method, conditions);
    let representation = match current {
        Representation::Present(validators) => Some(validators),
        Representation::Absent => None,
        Representation::Unknown if counting.is_empty() => return Judgement::Pass,
        Representation::Unknown => return Judgement::Unknowable,
    };
    if let Some(condition) = counting.matching
        && !names_current(condition, representation, |tag, current| matches_by(rule, tag, current))
    {
        let weak_tag = names_current_weakly(condition, representation, rule);
        return Judgement::Failed { field: ConditionField::IfMatch, weak_tag };
    }
    let modified = representation.and_then(|validators| validators.modified);
    if let (Some(since), Some(modified)) = (counting.unmodified_since, modified)
        && !modified.admits(since)
    {
        return Judgement::Failed { field: ConditionField::IfUnmodifiedSince, weak_tag: false };
    }
    if let Some(condition) = counting.none_matching
        && names_current(condition, representation, |tag, current| is_excluded(method, rule, tag, current))
    {
        let failed = Judgement::Failed { field: ConditionField::IfNoneMatch, weak_tag: false };
        return if reads(method) { Judgement::NotModified } else { failed };
    }
    match (counting.modified_since, modified) {
        (Some(since), Some(modified)) if modified.date <= since => Judgement::NotModified,
        _ => Judgement::Pass,
    }
}

/// True if `Range` is to be obeyed (section 13.1.5); if not, the response is the whole representation.
///
/// Without `If-Range` it is. A tag is compared strongly. A date is true only if it is exactly the current one, and the
/// current one is strong and of no earlier state.
pub fn range_applies(conditions: &Preconditions, current: &Representation) -> bool {
    let Some(condition) = &conditions.if_range else { return true };
    let Representation::Present(Validators { tag, modified }) = current else { return false };
    match condition {
        RangeCondition::Tag(wanted) => tag.as_ref().is_some_and(|tag| tag.strong_matches(wanted)),
        RangeCondition::Date(wanted) => modified.is_some_and(|modified| modified.names_state(*wanted)),
        RangeCondition::Malformed => false,
    }
}

/// The conditions that are not overruled by another condition or by the method.
#[derive(Default)]
struct Counting<'a> {
    matching: Option<&'a TagCondition>,
    unmodified_since: Option<HttpDate>,
    none_matching: Option<&'a TagCondition>,
    modified_since: Option<HttpDate>,
}

impl<'a> Counting<'a> {
    fn of(method: &Method, conditions: &'a Preconditions) -> Self {
        if matches!(*method, Method::CONNECT | Method::OPTIONS | Method::TRACE) {
            return Self::default();
        }
        let (matching, none_matching) = (conditions.if_match.as_ref(), conditions.if_none_match.as_ref());
        Self {
            matching,
            unmodified_since: conditions.if_unmodified_since.filter(|_| matching.is_none()),
            none_matching,
            modified_since: conditions.if_modified_since.filter(|_| none_matching.is_none() && reads(method)),
        }
    }

    fn is_empty(&self) -> bool {
        self.matching.is_none()
            && self.unmodified_since.is_none()
            && self.none_matching.is_none()
            && self.modified_since.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::tags::entity_tag::EntityTag;

    const BYTES: &str = "0123456789abcdef0123456789abcdef";
    const OTHERS: &str = "0123456789abcdef0123456789abcdee";

    fn judged(method: &Method, rule: MatchRule, current: &str, excluded: &str, combination: Combination) -> Judgement {
        let tag = |text: &str| EntityTag::parse(text.as_bytes()).unwrap();
        let if_none_match = Some(TagCondition::Tags(vec![tag(excluded)]));
        let conditions = Preconditions { if_none_match, combination, ..Preconditions::default() };
        let current = Representation::Present(Validators { tag: Some(tag(current)), modified: None });
        judge(method, &conditions, &current, rule)
    }

    /// A write that is wanted unless the state is still the excluded one: every tag of a state names that state.
    #[test]
    fn if_none_match_of_a_write_is_false_for_each_tag_of_the_current_state() {
        let (version, content) = (MatchRule::Version, MatchRule::Content);
        for (rule, current, excluded, is_excluded) in [
            (version, "\"i-7-a\"".to_owned(), "\"i-7-b\"".to_owned(), true),
            (version, "\"i-7-a\"".to_owned(), "W/\"i-7-b\"".to_owned(), true),
            (version, "\"i-7-a\"".to_owned(), "\"i-8-a\"".to_owned(), false),
            (version, "\"i-7-a\"".to_owned(), "\"j-7-a\"".to_owned(), false),
            (content, format!("\"{BYTES}-00000001\""), format!("\"{BYTES}-00000002\""), true),
            (content, format!("\"{BYTES}\""), format!("W/\"{BYTES}-00000002\""), true),
            (content, format!("\"{BYTES}\""), format!("\"{OTHERS}\""), false),
            (MatchRule::Strong, "\"i-7-a\"".to_owned(), "W/\"i-7-a\"".to_owned(), true),
            (MatchRule::Strong, "\"i-7-a\"".to_owned(), "\"i-7-b\"".to_owned(), false),
            (MatchRule::Strong, "\"t~00000000000000ab-12\"".to_owned(), "\"t\"".to_owned(), true),
            (MatchRule::Strong, "\"t~00000000000000ab-12\"".to_owned(), "\"t~00000000000000ab-7\"".to_owned(), true),
            (MatchRule::Strong, "\"t~00000000000000ab-12\"".to_owned(), "\"u~00000000000000ab-12\"".to_owned(), false),
            (MatchRule::Opaque, "\"t\"".to_owned(), "\"t~b-7\"".to_owned(), false),
        ] {
            for method in [Method::PUT, Method::PATCH, Method::DELETE] {
                for combination in [Combination::Rfc9110, Combination::Azure] {
                    let failed = Judgement::Failed { field: ConditionField::IfNoneMatch, weak_tag: false };
                    let expected = if is_excluded { failed } else { Judgement::Pass };
                    let judged = judged(&method, rule, &current, &excluded, combination);
                    assert_eq!(judged, expected, "{method} {combination:?}: {excluded} of {current}");
                }
            }
        }
    }

    /// A read requests one variant, and its copy is current only if it is of that variant.
    #[test]
    fn if_none_match_of_a_read_is_false_for_the_tag_of_its_variant_alone() {
        for combination in [Combination::Rfc9110, Combination::Azure] {
            let read = |excluded| judged(&Method::GET, MatchRule::Version, "\"i-7-a\"", excluded, combination);
            assert_eq!(read("\"i-7-b\""), Judgement::Pass);
            assert_eq!(read("W/\"i-7-a\""), Judgement::NotModified);
        }
    }
}
