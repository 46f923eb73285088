//! Tags in a write's conditions that were issued for a variant other than the one that the write selects (DESIGN,
//! section 6).

use std::sync::Arc;

use super::{Knowledge, issued_tags::BodyKind, selection::Selection};
use crate::{
    core::{
        policy::{Compare, TagSource},
        records::record::{Revision, Snapshot},
        tags::{entity_tag::EntityTag, issued_tag::is_tag_of_version, precondition::TagCondition},
    },
    guard::request::Request,
};

/// The number of tags of a request that the proxy looks for among other variants. Each may cost a request to the
/// upstream.
const TAGS_MAX: usize = 4;

impl Knowledge {
    /// The selection of the representation that a tag was issued for at this version.
    pub(crate) fn selection_of(&self, request: &Request, tag: &EntityTag, version: Revision) -> Option<Arc<Selection>> {
        self.issued.selection_of(request, tag, version)
    }

    /// Remembers a tag that is sent to a client, with the selection of its representation.
    pub(crate) fn was_given_out(&self, request: &Request, tag: &EntityTag, snapshot: &Snapshot, selection: Selection) {
        self.was_told(request, tag, snapshot, (selection, None));
    }

    /// The same. If the body of that tag has not been read, its kind is named.
    pub(crate) fn was_told(
        &self,
        request: &Request,
        tag: &EntityTag,
        snapshot: &Snapshot,
        seen: (Selection, Option<BodyKind>),
    ) {
        self.issued.remember(request, tag, snapshot.version(), seen);
    }

    /// Returns the kinds of the bodies that the tags of a write were made of. It leaves out bodies that have been read
    /// since, and those of a resource that a write has changed.
    pub(crate) fn kinds_told(&self, request: &Request, snapshot: &Snapshot) -> impl Iterator<Item = BodyKind> {
        tags_of(request).filter_map(|tag| self.issued.kind_told(request, tag, snapshot.version()))
    }

    /// True if `If-None-Match` of a write may name a tag of the current state other than that of the selected
    /// variant. The tag can be that of another variant, or of the version if the body could not be hashed when it was
    /// read.
    pub(crate) fn may_be_excluded(&self, request: &Request, snapshot: &Snapshot) -> bool {
        self.excludes_version(request, snapshot) || self.excluded_elsewhere(request, snapshot).next().is_some()
    }

    /// True if `If-None-Match` names the version although the route usually issues another kind of tag.
    pub(crate) fn excludes_version(&self, request: &Request, snapshot: &Snapshot) -> bool {
        let incarnation = self.records.incarnation().0;
        request.rules().etag.needs_body()
            && !request.rules().other_writers
            && excluded_tags(request).iter().any(|tag| is_tag_of_version(incarnation, snapshot.version(), tag))
    }

    /// The tags in `If-None-Match` that were issued for other variants of the current state, with the selections of
    /// these variants.
    pub(crate) fn excluded_elsewhere(
        &self,
        request: &Request,
        snapshot: &Snapshot,
    ) -> impl Iterator<Item = (EntityTag, Arc<Selection>)> {
        // A tag that is compared weakly may have been weakened on the way.
        let unweakened = |tag: &EntityTag| tag.is_weak().then(|| EntityTag::strong(tag.opaque()).ok()).flatten();
        let as_issued = move |tag: &EntityTag| unweakened(tag).into_iter().chain([tag.clone()]);
        let tags = excluded_tags(request).iter().take(TAGS_MAX).flat_map(as_issued);
        tags.filter_map(move |tag| {
            let selection = self.issued.selection_of(request, &tag, snapshot.version())?;
            let is_elsewhere = !selection.is_that_of(&request.head) && names_variant(request, &selection);
            is_elsewhere.then_some((tag, selection))
        })
    }

    /// True if a write names a tag that was once issued here. If no other variant has that tag now, the tag is stale.
    pub(crate) fn was_issued(&self, request: &Request) -> bool {
        tags_of(request).any(|tag| self.issued.knows(request, tag))
    }

    /// True if a write names a tag that was issued for another variant of the current state. Then the knowledge of
    /// the write's own variant does not decide.
    pub(crate) fn was_issued_elsewhere(&self, request: &Request, snapshot: &Snapshot) -> bool {
        let mut selections =
            tags_of(request).filter_map(|tag| self.issued.selection_of(request, tag, snapshot.version()));
        selections.any(|selection| !selection.is_that_of(&request.head))
    }
}

/// True if tags distinguish this variant from the one that a write selects.
pub(crate) fn names_variant(request: &Request, selection: &Selection) -> bool {
    request.rules().etag == TagSource::Content || selection.has_target_of(&request.head)
}

/// The tags in `If-None-Match` of a write. Empty if the upstream judges them, or if the route's tags are versions,
/// which all variants share.
fn excluded_tags(request: &Request) -> &[EntityTag] {
    match (&request.conditions.if_none_match, &request.rules().etag) {
        (_, TagSource::Version | TagSource::Delegate) => &[],
        (Some(TagCondition::Tags(tags)), _) => tags,
        _ => &[],
    }
}

/// The tags in `If-Match` that could belong to other variants. Versions are left out, because all variants share
/// them.
pub(crate) fn tags_of(request: &Request) -> impl Iterator<Item = &EntityTag> {
    let tags = match &request.conditions.if_match {
        Some(TagCondition::Tags(tags)) if request.rules().etag != TagSource::Version => tags.as_slice(),
        _ => &[],
    };
    let takes_weak = request.rules().compare == Compare::Opaque;
    tags.iter().filter(move |tag| takes_weak || !tag.is_weak()).take(TAGS_MAX)
}
