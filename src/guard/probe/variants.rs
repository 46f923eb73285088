//! Tags of variants other than the one that a write selects (DESIGN, section 6). If-Match passes on any tag that was
//! issued for the current state of the resource, and If-None-Match fails on any.
//!
//! # Design
//!
//! *Why is the upstream asked for the very variant that the tag was issued for?* The tag alone is not enough. Equal
//! bytes have equal tags, even if one variant has these bytes now and another had them long ago.
//!
//! *Why do the upstream's own tags count only within one target?* The content tags of the proxy name their variant. A
//! strong tag of the upstream is unique among the representations of one URI (RFC 9110 section 8.8.1). It is not unique
//! among those of several URIs that one key covers. It could be an old tag of the write's own target. This cannot
//! happen if that target cannot be read at all, with a 400 or a redirect. But 404 is a state, and one that the If-Match
//! of a PUT must not overwrite. Any other method creates nothing there: such a target may act on the resource, as
//! `/orders/1/send` does, and answer POST alone.

use http::Method;
use tokio::time::Instant;

use super::{Probed, Probes};
use crate::{
    core::{
        records::record::Snapshot,
        refusal::Refusal,
        tags::{
            entity_tag::EntityTag,
            head_answer::Aim,
            precondition::{ConditionField, Judgement, Preconditions, TagCondition, judge},
            validators::{Representation, Validators},
        },
    },
    guard::{
        knowledge::issued_variants::{names_variant, tags_of},
        request::Request,
    },
};

/// The question that a probe of the write's own variant leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpenQuestion {
    /// Only `If-Match` is false for that variant.
    OtherTag,
    /// There is no representation.
    Absent,
    /// The variant cannot be read.
    Unreadable,
}

impl OpenQuestion {
    /// The question that this probe leaves open; `None` if the probe decides.
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

impl Probes {
    /// The tag that a write names and that is current for another variant.
    pub(crate) async fn current_elsewhere(
        &self,
        request: &Request,
        snapshot: &Snapshot,
        open: OpenQuestion,
        end: Instant,
    ) -> Option<EntityTag> {
        for tag in tags_of(request) {
            let Some(selection) = self.knowledge.selection_of(request, tag, snapshot.version()) else { continue };
            let is_own = selection.is_that_of(&request.head);
            if is_own || !names_variant(request, &selection) && !is_read_elsewhere(request, open) {
                continue;
            }
            // Boxed, because it is rare.
            let probed = Box::pin(self.probe_until(request, snapshot, (Aim::Verdict, Some(&selection)), end)).await;
            if tag_of(&probed) == Some(tag) {
                return Some(tag.clone());
            }
        }
        None
    }

    /// True if `If-None-Match` of a write names a tag of the current state. The upstream is asked until `end`, and
    /// `current` is the representation that the write selects. A variant that the client may no longer read counts as
    /// unchanged.
    ///
    /// # Errors
    ///
    /// Returns a refusal if the upstream does not report the state, because a write must not pass unjudged.
    pub(crate) async fn is_excluded(
        &self,
        request: &Request,
        snapshot: &Snapshot,
        current: &Representation,
        end: Instant,
    ) -> Result<bool, Refusal> {
        if matches!(current, Representation::Present(_)) && self.knowledge.excludes_version(request, snapshot) {
            return Ok(true);
        }
        for (tag, selection) in self.knowledge.excluded_elsewhere(request, snapshot) {
            let asked = (Aim::Verdict, Some(&*selection));
            // Boxed, because it is rare.
            let probed = Box::pin(self.probe_until(request, snapshot, asked, end)).await;
            match &probed {
                Probed::Current { .. } if tag_of(&probed).is_none_or(|current| !current.weak_matches(&tag)) => {}
                Probed::Current { .. } | Probed::Answer(_) => return Ok(true),
                Probed::Unreadable(refusal) | Probed::Refused(refusal) => return Err(refusal.clone()),
            }
        }
        Ok(false)
    }
}

/// True if the write's own target shows no state of the resource. Only PUT creates a missing resource, so to any other
/// method a target without a representation is one that acts on the resource.
fn is_read_elsewhere(request: &Request, open: OpenQuestion) -> bool {
    open == OpenQuestion::Unreadable || open == OpenQuestion::Absent && request.method != Method::PUT
}

/// The tag that a probe has found.
fn tag_of(probed: &Probed) -> Option<&EntityTag> {
    match probed {
        Probed::Current { representation: Representation::Present(Validators { tag, .. }), .. } => tag.as_ref(),
        _ => None,
    }
}
