//! The evidence that memory has of the current state of a resource.

use std::borrow::Cow;

use http::{HeaderName, HeaderValue};

use super::Knowledge;
use crate::{
    core::{
        policy::{Compare, GuardRules, TagSource},
        records::record::{Revision, Snapshot, VariantName},
        tags::{
            coarse_tag::Spelling,
            entity_tag::EntityTag,
            issued_tag::{is_version_tag, version_tag},
            precondition::{MatchRule, TagCondition},
            validators::{Modified, Representation, Validators},
        },
        verdict::{Evidence, Verdict, judge_from_memory},
    },
    guard::request::Request,
    store::Incarnation,
};

/// The rule by which `If-Match` compares tags of this route.
pub(crate) fn match_rule(rules: &GuardRules) -> MatchRule {
    match (&rules.etag, rules.compare) {
        (TagSource::Version, _) => MatchRule::Version,
        (TagSource::Content, _) => MatchRule::Content,
        (_, Compare::Strong) => MatchRule::Strong,
        (_, Compare::Opaque) => MatchRule::Opaque,
    }
}

/// Validators with the version tag of the representation that a request selects, and without a date.
pub(crate) fn version_tag_of(incarnation: Incarnation, version: Revision, selecting: u32) -> Validators {
    Validators { tag: version_tag(incarnation.0, version, selecting), modified: None }
}

/// The last part of a version tag: a hash of everything that selects the variant, the fields in `Vary` included.
pub(crate) fn selecting_number(variant: VariantName, selecting: &[(HeaderName, Vec<HeaderValue>)]) -> u32 {
    if let ([], [a, b, c, d, ..]) = (selecting, variant.0) {
        // The name of the variant is already a hash.
        return u32::from_be_bytes([a, b, c, d]);
    }
    let mut hasher = blake3::Hasher::new();
    hasher.update(&variant.0);
    for (name, values) in selecting {
        hasher.update(name.as_str().as_bytes());
        for value in values {
            hasher.update(&[0]);
            hasher.update(value.as_bytes());
        }
        hasher.update(&[1]);
    }
    let [a, b, c, d, ..] = *hasher.finalize().as_bytes();
    u32::from_be_bytes([a, b, c, d])
}

/// The evidence that memory has for the verdict on a write. Empty if others may write too, or while a write is
/// pending.
pub(crate) fn evidence(
    request: &Request,
    snapshot: &Snapshot,
    (incarnation, spelling): (Incarnation, &Spelling),
    remembered: Option<&Validators>,
) -> Vec<Evidence> {
    let mut pieces = Vec::new();
    if request.rules().other_writers || !snapshot.has_no_pending_writes() {
        return pieces;
    }
    let version = version_tag_of(incarnation, snapshot.version(), selecting_number(request.labelled_variant(), &[]));
    let dated = |modified: Option<Modified>| modified.map(|modified| modified.by_record(snapshot.record.first_date));
    if let Some(known) = snapshot.known() {
        let representation = match (&known.representation, &request.rules().etag) {
            // The version is the tag, no matter what else memory holds.
            (Representation::Present(validators), TagSource::Version) => {
                Representation::Present(Validators { modified: dated(validators.modified), ..version.clone() })
            }
            (Representation::Present(Validators { tag: Some(tag), modified }), _) => {
                Representation::Present(Validators { tag: spelling.issued(tag), modified: dated(*modified) })
            }
            (Representation::Present(validators), _) => {
                Representation::Present(Validators { modified: dated(validators.modified), ..validators.clone() })
            }
            (representation, _) => representation.clone(),
        };
        let selected = known.variant == request.variant();
        pieces.push(Evidence { representation, rule: match_rule(request.rules()), selected });
    }
    if let (Some(validators), true) = (remembered, request.rules().etag != TagSource::Version) {
        let representation = Representation::Present(validators.clone());
        pieces.push(Evidence { representation, rule: match_rule(request.rules()), selected: true });
    }
    // A tag of the current version was issued for a representation that existed, and any write since would have made
    // another version. So the tag alone decides, whether or not anything else is known of the resource. The version of
    // a deletion is issued to no client, but may be guessed.
    if let (Some(TagCondition::Tags(tags)), None) = (&request.conditions.if_match, &request.conditions.if_none_match)
        && snapshot.presence_of(|| request.target()).is_none_or(|presence| presence.is_present)
    {
        // A body that was too large to hash got a version tag. A list of only version tags is judged by versions
        // alone.
        let selected =
            request.rules().etag == TagSource::Version || tags.iter().all(|tag| is_version_tag(incarnation.0, tag));
        let representation = Representation::Present(version);
        pieces.push(Evidence { representation, rule: MatchRule::Version, selected });
    }
    pieces
}

impl Knowledge {
    /// The verdict by the record and this process's memory. If the write passes, also the tag that it was judged by.
    pub(crate) fn verdict(&self, request: &Request, snapshot: &Snapshot) -> (Verdict, Option<EntityTag>) {
        // The record holds the version, and remembered responses add nothing to it.
        let remembered =
            (request.rules().etag != TagSource::Version).then(|| self.remembered(request, snapshot)).flatten();
        let validators = remembered.as_ref().map(|remembered| &remembered.validators);
        let spelling = self.spelling(request, Some(snapshot));
        let evidence = evidence(request, snapshot, (self.records.incarnation(), &spelling), validators);
        let judging = if request.rules().etag == TagSource::Delegate && !self.backend_judges(request) {
            // The backend should judge its own tags and does not.
            Cow::Owned(GuardRules { etag: TagSource::Upstream, ..GuardRules::clone(request.rules()) })
        } else {
            Cow::Borrowed(request.rules())
        };
        let (mut verdict, judged_by) = judge_from_memory(&judging, &request.method, &request.conditions, &evidence);
        // A refusal that rests on the target's state reveals that state. Only a principal that may know the state
        // gets one.
        if let (Verdict::Refused(refusal), Some(_)) = (&mut verdict, &judged_by) {
            if !self.may_know(request, snapshot) || self.was_issued_elsewhere(request, snapshot) {
                return (Verdict::AskUpstream, None);
            }
            refusal.cause_mut().client_may_know = true;
        }
        // By the way that its write goes, a client would learn whether it has guessed the tag.
        if verdict == Verdict::Pass && judged_by.is_some() && self.is_stranger(request, snapshot) {
            return (Verdict::AskUpstream, None);
        }
        if verdict == Verdict::Pass && self.may_be_excluded(request, snapshot) {
            return (Verdict::AskUpstream, None);
        }
        (verdict, judged_by.and_then(Evidence::selected_tag).cloned())
    }
}
