//! Tags of other variants than the one that a write selects (DESIGN, section 6): If-Match passes on any tag that was
//! issued for the current state of the resource, and If-None-Match fails on any.
//!
//! # Design
//!
//! *Why is the upstream asked, for the very variant that the tag was issued for?* The tag alone is not enough: the same
//! bytes have the same tag, those that one variant has now and those that another one had long ago.
//!
//! *Why do tags of the upstream's own count only within one target?* Content tags of ours name their variant. A strong
//! tag of the upstream is unique among the representations of one URI (RFC 9110 section 8.8.1), not among those of
//! several URIs that one key covers: it could be an old one of the write's own target. It is not where that target
//! cannot be read at all, with a 400 or a redirect; but 404 is a state, and one that If-Match must not overwrite.

use std::sync::Arc;

use tokio::time::Instant;

use super::{Aim, Probed};
use crate::{
    core::{
        entity_tag::EntityTag,
        issued_tag::is_tag_of_version,
        policy::{Compare, TagSource, Writers},
        precondition::{ConditionField, Judgement, Preconditions, TagCondition, judge},
        record::Snapshot,
        refusal::Refusal,
        validators::{Representation, Validators},
    },
    guard::{Guard, knowledge::selection::Selection, request::Request},
};

/// How many tags of a request are looked for among other variants; each may be a question to the upstream.
const TAGS_MAX: usize = 4;

/// What a probe of the write's own variant leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpenQuestion {
    /// `If-Match` alone is false there.
    OtherTag,
    /// There is no representation.
    Absent,
    /// It cannot be read.
    Unreadable,
}

impl OpenQuestion {
    /// What this probe leaves open; `None` if it decides the matter.
    pub(crate) fn after(request: &Request, probed: &Probed) -> Option<Self> {
        let conditions = &request.conditions;
        if !matches!(conditions.if_match, Some(TagCondition::Tags(_))) {
            return None;
        }
        match probed {
            Probed::Current { representation, rule, .. } => {
                let others = Preconditions { if_match: None, if_unmodified_since: None, ..conditions.clone() };
                let judged = judge(&request.method, conditions, representation, *rule);
                let is_open = matches!(judged, Judgement::Failed { field: ConditionField::IfMatch, .. })
                    && judge(&request.method, &others, representation, *rule) == Judgement::Pass;
                let is_absent = *representation == Representation::Absent;
                is_open.then_some(if is_absent { Self::Absent } else { Self::OtherTag })
            }
            Probed::Unreadable(_) => conditions.if_none_match.is_none().then_some(Self::Unreadable),
            Probed::Answer(_) | Probed::Refused(_) => None,
        }
    }
}

impl Guard {
    /// The tag of another variant that a write names and that is current there.
    pub(crate) async fn current_elsewhere(
        &self,
        request: &Request,
        snapshot: &Snapshot,
        open: OpenQuestion,
        end: Instant,
    ) -> Option<EntityTag> {
        for tag in tags_of(request) {
            let Some(selection) = self.issued.selection_of(request, tag, snapshot.version()) else { continue };
            let is_own = selection.is_that_of(&request.head);
            if is_own || !names_variant(request, &selection) && open != OpenQuestion::Unreadable {
                continue;
            }
            // Boxed: it is rare.
            let probed = Box::pin(self.probe_until(request, snapshot, (Aim::Verdict, Some(&selection)), end)).await;
            if tag_of(&probed) == Some(tag) {
                return Some(tag.clone());
            }
        }
        None
    }

    /// Whether `If-None-Match` of a write may name a tag of the current state although it does not name that of what the
    /// write selects: of another variant, or of the version, where a body could not be hashed when it was read.
    pub(crate) fn may_be_excluded(&self, request: &Request, snapshot: &Snapshot) -> bool {
        self.excludes_version(request, snapshot) || self.excluded_elsewhere(request, snapshot).next().is_some()
    }

    /// Whether it does, as the upstream tells up to `end`; `current` is what the write selects. A variant that the client
    /// may not read any more counts as unchanged.
    ///
    /// # Errors
    ///
    /// The upstream does not tell: a write must not pass for that.
    pub(crate) async fn is_excluded(
        &self,
        request: &Request,
        snapshot: &Snapshot,
        current: &Representation,
        end: Instant,
    ) -> Result<bool, Refusal> {
        if matches!(current, Representation::Present(_)) && self.excludes_version(request, snapshot) {
            return Ok(true);
        }
        for (tag, selection) in self.excluded_elsewhere(request, snapshot) {
            let asked = (Aim::Verdict, Some(&*selection));
            // Boxed: it is rare.
            let probed = Box::pin(self.probe_until(request, snapshot, asked, end)).await;
            match &probed {
                Probed::Current { .. } if tag_of(&probed).is_none_or(|current| !current.weak_matches(&tag)) => {}
                Probed::Current { .. } | Probed::Answer(_) => return Ok(true),
                Probed::Unreadable(refusal) | Probed::Refused(refusal) => return Err(refusal.clone()),
            }
        }
        Ok(false)
    }

    /// Whether `If-None-Match` names the version, where another kind of tag is the usual one.
    fn excludes_version(&self, request: &Request, snapshot: &Snapshot) -> bool {
        let incarnation = self.records.incarnation().0;
        request.rules.etag.needs_body()
            && request.rules.writers == Writers::Exclusive
            && excluded_tags(request).iter().any(|tag| is_tag_of_version(incarnation, snapshot.version(), tag))
    }

    /// The tags in `If-None-Match` that were issued for other variants of the current state, with what selects these.
    fn excluded_elsewhere(
        &self,
        request: &Request,
        snapshot: &Snapshot,
    ) -> impl Iterator<Item = (EntityTag, Arc<Selection>)> {
        // What is compared weakly may have been weakened on the way.
        let unweakened = |tag: &EntityTag| tag.is_weak().then(|| EntityTag::strong(tag.opaque()).ok()).flatten();
        let as_issued = move |tag: &EntityTag| unweakened(tag).into_iter().chain([tag.clone()]);
        let tags = excluded_tags(request).iter().take(TAGS_MAX).flat_map(as_issued);
        tags.filter_map(move |tag| {
            let selection = self.issued.selection_of(request, &tag, snapshot.version())?;
            let is_elsewhere = !selection.is_that_of(&request.head) && names_variant(request, &selection);
            is_elsewhere.then_some((tag, selection))
        })
    }

    /// Whether a write names a tag that was once issued here: where it is not current elsewhere, it is stale.
    pub(crate) fn was_issued(&self, request: &Request) -> bool {
        tags_of(request).any(|tag| self.issued.knows(request, tag))
    }

    /// Whether a write names a tag that was issued for another variant of the current state, so that what is known of
    /// its own variant does not decide.
    pub(crate) fn was_issued_elsewhere(&self, request: &Request, snapshot: &Snapshot) -> bool {
        let mut selections =
            tags_of(request).filter_map(|tag| self.issued.selection_of(request, tag, snapshot.version()));
        selections.any(|selection| !selection.is_that_of(&request.head))
    }
}

/// The tag that a probe has found.
fn tag_of(probed: &Probed) -> Option<&EntityTag> {
    match probed {
        Probed::Current { representation: Representation::Present(Validators { tag, .. }), .. } => tag.as_ref(),
        _ => None,
    }
}

/// Whether a tag tells this variant from the one that a write selects.
fn names_variant(request: &Request, selection: &Selection) -> bool {
    request.rules.etag == TagSource::Content || selection.has_target_of(&request.head)
}

/// The tags in `If-None-Match` of a write, unless the upstream judges them, or they are all of one kind: a version is that
/// of all variants.
fn excluded_tags(request: &Request) -> &[EntityTag] {
    match (&request.conditions.if_none_match, &request.rules.etag) {
        (_, TagSource::Version | TagSource::Delegate) => &[],
        (Some(TagCondition::Tags(tags)), _) => tags,
        _ => &[],
    }
}

/// The tags in `If-Match` that could be those of other variants. A version is that of all of them anyway.
fn tags_of(request: &Request) -> impl Iterator<Item = &EntityTag> {
    let tags = match &request.conditions.if_match {
        Some(TagCondition::Tags(tags)) if request.rules.etag != TagSource::Version => tags.as_slice(),
        _ => &[],
    };
    let takes_weak = request.rules.compare == Compare::Opaque;
    tags.iter().filter(move |tag| takes_weak || !tag.is_weak()).take(TAGS_MAX)
}
