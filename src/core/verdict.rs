//! The verdict on a guarded write: its route's demands and its preconditions, together (DESIGN, sections 4 and 5).

use http::Method;

use super::{
    cause::{Reason, Setting, Untagged, named_tags, shortened},
    policy::{GuardRules, TagSource},
    refusal::{Code, Refusal},
    tags::{
        entity_tag::EntityTag,
        precondition::{
            Combination, ConditionField, Judgement, MatchRule, Preconditions, Requirement, TagCondition, judge,
            requirement,
        },
        validators::{Representation, Validators},
    },
};

/// The decision on a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The write may go to the upstream.
    Pass,
    /// The write is refused.
    Refused(Refusal),
    /// There is no resource to write to, and only a PUT could create it. The upstream's own 404 or 410 is the answer,
    /// since preconditions count only if the answer without them would be 2xx (RFC 9110 section 13.2.1).
    Missing,
    /// The verdict depends on what only the upstream can tell.
    AskUpstream,
}

/// One piece of evidence in memory about the current state of the resource.
#[derive(Clone, Debug)]
pub struct Evidence {
    /// The state.
    pub representation: Representation,
    /// How `If-Match` is compared with its tag.
    pub rule: MatchRule,
    /// True if it is about the very variant that the write selects. If not, it counts only if it is a version that
    /// makes `If-Match` true: a version is that of all variants. Another tag may stand for one state of one variant
    /// and for an earlier state of another, since the same bytes have the same tag.
    pub selected: bool,
}

impl Evidence {
    /// True if it tells a modification date that is good for every verdict. A weak one becomes strong with time.
    fn has_strong_date(&self) -> bool {
        match &self.representation {
            Representation::Present(validators) => validators.modified.is_some_and(|modified| modified.strong),
            Representation::Absent => true,
            Representation::Unknown => false,
        }
    }

    /// The tag of the selected representation, as it appears in responses.
    pub fn selected_tag(&self) -> Option<&EntityTag> {
        match &self.representation {
            Representation::Present(validators) if self.selected && self.rule != MatchRule::Version => {
                validators.tag.as_ref()
            }
            _ => None,
        }
    }
}

/// Judges a write by the current representation of its target.
pub fn judge_write(
    guard: &GuardRules,
    method: &Method,
    conditions: &Preconditions,
    current: &Representation,
    rule: MatchRule,
) -> Verdict {
    let demanded = judge_requirement(guard, method, conditions, current);
    if demanded != Verdict::Pass {
        return demanded;
    }
    match judge(method, conditions, current, rule) {
        Judgement::Pass | Judgement::NotModified => Verdict::Pass,
        Judgement::Unknowable => Verdict::AskUpstream,
        Judgement::Failed { field: field @ ConditionField::IfMatch, weak_tag }
            if *current == Representation::Absent
                && let Some(name) = guard.quirks.missing_is_404 =>
        {
            Verdict::Refused(failed(conditions, field, weak_tag, current).called(404, name))
        }
        Judgement::Failed { field: ConditionField::IfMatch, .. }
            if *current == Representation::Absent
                && *method != Method::PUT
                && conditions.combination == Combination::Rfc9110 =>
        {
            Verdict::Missing
        }
        Judgement::Failed { field, weak_tag } => {
            let mut refusal = failed(conditions, field, weak_tag, current);
            if field == ConditionField::IfMatch {
                refusal = because_of_source(refusal, guard, rule, current);
                let reason = refusal.cause_mut().reason;
                refusal.cause_mut().saved_by = setting(reason, conditions, rule)
                    .filter(|(_, conditions, rule)| judge(method, conditions, current, *rule) == Judgement::Pass)
                    .map(|(setting, ..)| setting);
            }
            Verdict::Refused(refusal)
        }
    }
}

/// Judges a write by the remembered state of its target, and returns [`Verdict::AskUpstream`] if that is not enough. If
/// the upstream judges itself (`delegate`), only the further demands of the route are judged here. The evidence is the
/// state by which the write passes or is refused. Without evidence the verdict shows nothing of the target.
pub fn judge_from_memory<'a>(
    guard: &GuardRules,
    method: &Method,
    conditions: &Preconditions,
    evidence: &'a [Evidence],
) -> (Verdict, Option<&'a Evidence>) {
    // No backend knows the dates that clients got before a write.
    let names_date = conditions.if_match.is_none() && conditions.if_unmodified_since.is_some();
    if guard.etag == TagSource::Delegate && names_date {
        return (Verdict::AskUpstream, None);
    }
    if guard.etag == TagSource::Delegate {
        return (judge_requirement(guard, method, conditions, &Representation::Unknown), None);
    }
    let without_knowledge = judge_write(guard, method, conditions, &Representation::Unknown, MatchRule::Strong);
    if without_knowledge != Verdict::AskUpstream {
        return (without_knowledge, None);
    }
    let any_variant_counts = conditions.if_match.is_some() && conditions.if_none_match.is_none();
    let mut verdict = (Verdict::AskUpstream, None);
    let needs_date = names_date || conditions.if_match.is_none() && conditions.if_modified_since.is_some();
    for piece in evidence.iter().filter(|piece| !needs_date || piece.has_strong_date()) {
        match judge_write(guard, method, conditions, &piece.representation, piece.rule) {
            Verdict::Pass if piece.selected || any_variant_counts && piece.rule == MatchRule::Version => {
                return (Verdict::Pass, Some(piece));
            }
            refused @ Verdict::Refused(_) if piece.selected => verdict = (refused, Some(piece)),
            _ => {}
        }
    }
    verdict
}

/// Judges only whether a write carries what its route demands.
fn judge_requirement(
    guard: &GuardRules,
    method: &Method,
    conditions: &Preconditions,
    current: &Representation,
) -> Verdict {
    match requirement(guard.demand(method), guard.allow_any, conditions, current) {
        Requirement::Satisfied => Verdict::Pass,
        Requirement::Missing => Verdict::Refused(required(guard, conditions)),
        Requirement::NeedsExistence => Verdict::AskUpstream,
    }
}

/// The refusal of a write without the precondition that its route demands.
pub fn required(guard: &GuardRules, conditions: &Preconditions) -> Refusal {
    let any = if guard.allow_any { " (or If-Match: * for whatever is there)" } else { "" };
    let elsewhere = guard.version_sources.iter().map(|source| [", or its version in ".to_owned(), source.phrase()]);
    let elsewhere = elsewhere.flatten().collect::<String>();
    let (reason, why) = match conditions.if_match {
        Some(TagCondition::Any) => {
            (Reason::AnyTagNotAllowed, "an asterisk in If-Match names no version, and this route has no allow_any: ")
        }
        None if conditions.if_unmodified_since.is_some() || conditions.has_unreadable_date => {
            let why = "If-Unmodified-Since does not count, because it is not a single date or the resource has no \
                       modification date: ";
            (Reason::UnusableDate, why)
        }
        _ => (Reason::NoPrecondition, ""),
    };
    Refusal::new(
        Code::PreconditionRequired,
        format!(
            "{why}read the resource, then send its ETag in If-Match{any}{elsewhere}; to create a resource that must not \
             exist yet, send If-None-Match: *"
        ),
    )
    .because(reason)
}

/// Adds to the refusal of a write why the client got no tag when it last read or wrote the resource.
pub fn untagged(mut refusal: Refusal, why: Untagged) -> Refusal {
    refusal.cause_mut().untagged = Some(why);
    if refusal.code == Code::PreconditionRequired {
        refusal.detail = format!("there was no ETag to send in If-Match, because {}", why.because()).into();
    }
    refusal
}

/// Adds to the refusal of a write that each of the last reads has shown another state.
pub fn changing(mut refusal: Refusal) -> Refusal {
    let detail = format!(
        "{}. The resource has changed at each of its last reads, although nothing was written: if its body contains a \
         time or a token, the operator names that member in ignore_json, or takes the tag from another source (etag)",
        refusal.detail
    );
    refusal.detail = detail.into();
    refusal
}

/// The refusal of a write whose `If-None-Match` names a tag of the current state that belongs to another
/// variant.
pub fn excluded(conditions: &Preconditions) -> Refusal {
    failed(conditions, ConditionField::IfNoneMatch, false, &Representation::Unknown)
}

/// The refusal of a read whose precondition is false.
pub fn failed_read(conditions: &Preconditions, field: ConditionField, current: &Representation) -> Refusal {
    let detail = "the representation differs from that of the precondition; read it again";
    let refusal = Refusal::new(Code::PreconditionFailed, detail).because(reason(conditions, field, false, current));
    with_tags(refusal, conditions, current)
}

fn failed(conditions: &Preconditions, field: ConditionField, weak_tag: bool, current: &Representation) -> Refusal {
    let detail = match (field, current) {
        (ConditionField::IfMatch, _) if weak_tag => {
            "If-Match holds a weak tag, which is never equal in If-Match although it names the current state: something \
             between you and this proxy weakened it (often compression); send the tag as it was issued, without W/"
        }
        (ConditionField::IfMatch, Representation::Absent) => {
            "the resource no longer exists; to create it again, send If-None-Match: *"
        }
        (ConditionField::IfMatch, Representation::Present(validators)) if validators.tag.is_none() => {
            "the current representation has no tag that could match; read it again"
        }
        (ConditionField::IfMatch, _) => {
            "the resource was changed since you read it: read it again, apply your change to what you get, and send \
             its new ETag in If-Match"
        }
        (ConditionField::IfNoneMatch, _) => {
            "the resource exists already; to change it, read it and send its ETag in If-Match"
        }
        (ConditionField::IfUnmodifiedSince, _) if !is_later(conditions, current) => {
            "that date may be the one of an earlier state, because a write may have ended since it was told: read the \
             resource again, and send its ETag in If-Match, which names one state"
        }
        (ConditionField::IfUnmodifiedSince, _) => {
            "the resource was changed after that date: read it again, and preferably send its ETag in If-Match"
        }
        (ConditionField::IfModifiedSince, _) => "the resource was not changed since that date",
    };
    let refusal = Refusal::new(Code::PreconditionFailed, detail).because(reason(conditions, field, weak_tag, current));
    with_tags(refusal, conditions, current)
}

/// True if the modification date is later than the one in `If-Unmodified-Since`.
fn is_later(conditions: &Preconditions, current: &Representation) -> bool {
    match (current, conditions.if_unmodified_since) {
        (Representation::Present(Validators { modified: Some(modified), .. }), Some(since)) => modified.date > since,
        _ => false,
    }
}

/// Adds to the refusal of a write by `If-Match` that no tag can match, if that is due to the source of the route's
/// tags. Another read of the resource would then help no client.
fn because_of_source(refusal: Refusal, guard: &GuardRules, rule: MatchRule, current: &Representation) -> Refusal {
    let Representation::Present(Validators { tag, .. }) = current else { return refusal };
    match (tag, &guard.etag) {
        (Some(tag), _) if tag.is_weak() && rule == MatchRule::Strong => {
            let detail = "the current tag is a weak one of the backend, and If-Match never matches a weak tag, with W/ \
                          or without: the operator of this proxy can set compare = \"opaque\" on this route if each \
                          state has a tag of its own";
            Refusal { detail: detail.into(), ..refusal }.because(Reason::BackendTagWeak)
        }
        (None, TagSource::Json(pointer)) => {
            let detail = format!(
                "the current representation has no version: its member {pointer}, from which this route takes its tags \
                 (etag), is absent, null, a boolean, a list or an object. No If-Match matches until it is a text or a \
                 number"
            );
            Refusal { detail: detail.into(), ..refusal }
        }
        _ => refusal,
    }
}

/// The setting that helps against this reason, and the conditions and the rule that count with it.
fn setting(
    reason: Option<Reason>,
    conditions: &Preconditions,
    rule: MatchRule,
) -> Option<(Setting, Preconditions, MatchRule)> {
    let mut conditions = conditions.clone();
    match reason? {
        Reason::WeakTag => {
            conditions.restore(&[], true);
            Some((Setting::AcceptWeakOwn, conditions, rule))
        }
        Reason::BackendTagWeak => Some((Setting::CompareOpaque, conditions, MatchRule::Opaque)),
        _ => None,
    }
}

/// The reason why a precondition is false.
fn reason(conditions: &Preconditions, field: ConditionField, weak_tag: bool, current: &Representation) -> Reason {
    match (field, current) {
        (ConditionField::IfMatch, _) if weak_tag => Reason::WeakTag,
        (ConditionField::IfMatch, Representation::Absent) => Reason::ResourceMissing,
        (ConditionField::IfMatch, Representation::Present(Validators { tag: None, .. })) => Reason::NoCurrentTag,
        (ConditionField::IfMatch, _) => Reason::StaleTag,
        (ConditionField::IfNoneMatch, _) => Reason::ResourceExists,
        (ConditionField::IfUnmodifiedSince, _) if is_later(conditions, current) => Reason::ChangedSinceDate,
        (ConditionField::IfUnmodifiedSince, _) => Reason::AmbiguousDate,
        (ConditionField::IfModifiedSince, _) => Reason::UnchangedSinceDate,
    }
}

/// Adds the tags that the verdict compared.
fn with_tags(mut refusal: Refusal, conditions: &Preconditions, current: &Representation) -> Refusal {
    let cause = refusal.cause_mut();
    cause.sent_tag = named_tags(conditions);
    if let Representation::Present(Validators { tag: Some(tag), .. }) = current {
        cause.current_tag = Some(shortened(tag).into());
    }
    refusal
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
