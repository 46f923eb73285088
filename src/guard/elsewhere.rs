//! Tags of other variants than the one that a write selects (DESIGN, section 6): If-Match passes on any tag that was
//! issued for the current state of the resource.
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

use tokio::time::Instant;

use super::{
    Guards,
    probe::{Aim, Probed},
    request::Request,
};
use crate::core::{
    entity_tag::EntityTag,
    policy::{Compare, Guard, TagSource},
    precondition::{Field, Judgement, Preconditions, TagCondition, judge},
    record::Snapshot,
    validators::{Representation, Validators},
};

/// How many tags of a request are looked for among other variants; each may be a question to the upstream.
const TAGS_MAX: usize = 4;

/// What a probe of the write's own variant leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Open {
    /// `If-Match` alone is false there.
    OtherTag,
    /// There is no representation.
    Absent,
    /// It cannot be read.
    Unreadable,
}

impl Open {
    /// What this probe leaves open; `None` if it decides the matter.
    pub(super) fn after(request: &Request, probed: &Probed) -> Option<Self> {
        let conditions = &request.conditions;
        if !matches!(conditions.if_match, Some(TagCondition::Tags(_))) {
            return None;
        }
        match probed {
            Probed::Current { representation, rule, .. } => {
                let others = Preconditions { if_match: None, if_unmodified_since: None, ..conditions.clone() };
                let judged = judge(&request.method, conditions, representation, *rule);
                let is_open = matches!(judged, Judgement::Failed { field: Field::IfMatch, .. })
                    && judge(&request.method, &others, representation, *rule) == Judgement::Pass;
                let is_absent = *representation == Representation::Absent;
                is_open.then_some(if is_absent { Self::Absent } else { Self::OtherTag })
            }
            Probed::Unreadable(_) => conditions.if_none_match.is_none().then_some(Self::Unreadable),
            Probed::Answer(_) | Probed::Refused(_) => None,
        }
    }
}

impl Guards {
    /// The tag of another variant that a write names and that is current there.
    pub(super) async fn current_elsewhere(
        &self,
        request: &Request,
        guard: &Guard,
        snapshot: &Snapshot,
        open: Open,
        end: Instant,
    ) -> Option<EntityTag> {
        for tag in tags_of(request, guard) {
            let Some(selection) = self.issued.selection_of(request, tag, snapshot.version()) else { continue };
            let is_own = selection.is_that_of(&request.head);
            let names_variant = guard.etag == TagSource::Content || selection.has_target_of(&request.head);
            if is_own || !names_variant && open != Open::Unreadable {
                continue;
            }
            // Boxed: it is rare.
            let probed =
                Box::pin(self.probe_until(request, guard, snapshot, (Aim::Verdict, Some(&selection)), end)).await;
            if let Probed::Current {
                representation: Representation::Present(Validators { tag: Some(current), .. }),
                ..
            } = &probed
                && current == tag
            {
                return Some(current.clone());
            }
        }
        None
    }

    /// Whether a write names a tag that was once issued here: where it is not current elsewhere, it is stale.
    pub(super) fn was_issued(&self, request: &Request, guard: &Guard) -> bool {
        tags_of(request, guard).any(|tag| self.issued.knows(request, tag))
    }

    /// Whether a write names a tag that was issued for another variant of the current state, so that what is known of
    /// its own variant does not decide.
    pub(super) fn was_issued_elsewhere(&self, request: &Request, guard: &Guard, snapshot: &Snapshot) -> bool {
        let mut selections =
            tags_of(request, guard).filter_map(|tag| self.issued.selection_of(request, tag, snapshot.version()));
        selections.any(|selection| !selection.is_that_of(&request.head))
    }
}

/// The tags in `If-Match` that could be those of other variants. A version is that of all of them anyway.
fn tags_of<'a>(request: &'a Request, guard: &Guard) -> impl Iterator<Item = &'a EntityTag> {
    let tags = match &request.conditions.if_match {
        Some(TagCondition::Tags(tags)) if guard.etag != TagSource::Version => tags.as_slice(),
        _ => &[],
    };
    let takes_weak = guard.compare == Compare::Opaque;
    tags.iter().filter(move |tag| takes_weak || !tag.is_weak()).take(TAGS_MAX)
}
