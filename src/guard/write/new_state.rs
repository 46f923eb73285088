//! The state of a resource after a write, learned under its claim (DESIGN, section 6).

use http::{Method, StatusCode};
use pingora::http::ResponseHeader;
use tokio::time::{Instant, timeout_at};

use super::Writes;
use crate::{
    body::Body,
    core::{
        policy::{OnWrite, TagAfterWrite, TagSource},
        records::record::Known,
        tags::{
            bare_tags::ShortName,
            entity_tag::EntityTag,
            validators::{Modified, Representation, Validators, tells_absence},
        },
    },
    dialect::description::DescriptionUse,
    guard::{
        claim::Settled,
        knowledge::{
            derived_tag::{stated_tag, tag_of, tag_of_bytes},
            issued_tags::BodyKind,
            responses::is_shareable,
            selection::Selection,
        },
        probe::{
            body_tag::{Keep, Tagged},
            is_selected_by_name,
            kept_bodies::kind_of_body,
        },
        read::label::too_large,
        request::Request,
    },
    upstream::{BufferedBody, Exchange},
};

/// The state after an applied write.
pub(crate) struct NewState {
    /// The representation after the write. Its version tag is not known before the write is settled.
    representation: Representation,
    /// True if the answer to the write may carry the tag.
    may_answer: bool,
    /// True if the record may keep the representation.
    may_keep: bool,
    /// The selection of the representation, if it was read.
    selection: Option<Selection>,
    /// The kind of the body that the tag was made of, if the representation was not read.
    told_of: Option<BodyKind>,
}

impl NewState {
    /// The modification date, if it was learned.
    pub(crate) fn modified(&self) -> Option<Modified> {
        match &self.representation {
            Representation::Present(validators) => validators.modified,
            Representation::Absent | Representation::Unknown => None,
        }
    }

    /// True if the target has no representation.
    pub(crate) fn is_absent(&self) -> bool {
        self.representation == Representation::Absent
    }

    /// The tag that the write's target has now, as the backend spells it, if it was learned.
    pub(crate) fn entity_tag(&self) -> Option<&EntityTag> {
        match &self.representation {
            Representation::Present(validators) => validators.tag.as_ref(),
            Representation::Absent | Representation::Unknown => None,
        }
    }

    /// The short name of that tag.
    pub(crate) fn tag(&self) -> Option<ShortName> {
        self.entity_tag().map(ShortName::of_tag)
    }

    /// Returns the part that the record keeps. It keeps nothing if others write too, since it would not be trusted. It
    /// never keeps that the resource is absent, since a POST elsewhere may create it.
    pub(crate) fn to_keep(&self, request: &Request) -> Option<Known> {
        let representation = || match &self.representation {
            Representation::Present(Validators { tag, modified }) => {
                Representation::Present(Validators { tag: tag.clone(), modified: modified.map(Modified::kept) })
            }
            other => other.clone(),
        };
        let known = || Known { variant: request.variant(), representation: representation() };
        (self.may_keep && !self.is_absent() && !request.rules().other_writers).then(known)
    }
}

/// True if the answer to an applied write describes its target. The answer to a POST may describe a resource that it
/// has created (RFC 9110 section 15.3.2). A tag of the target would label something else.
pub(crate) fn describes_target(method: &Method) -> bool {
    matches!(*method, Method::PUT | Method::PATCH)
}

/// The tag in the body of the answer to a write, if the route's tags come from a member of JSON texts.
fn version_in_body(request: &Request, whole: &BufferedBody) -> Option<EntityTag> {
    match (&request.rules().etag, whole) {
        (TagSource::Json(_), BufferedBody::Complete(body)) => tag_of(request.rules(), body, None),
        _ => None,
    }
}

impl Writes {
    /// Learns the new state of a resource: from the response to the write, else by reading it again. Returns `None` if
    /// it must not be learned, or could not be.
    pub(crate) async fn new_state(
        &self,
        request: &Request,
        (response, whole): (&ResponseHeader, &BufferedBody),
        body: &Body,
    ) -> Option<NewState> {
        if describes_target(&request.method) {
            let tag = stated_tag(request, &response.headers).or_else(|| version_in_body(request, whole));
            if tag.is_some() {
                let representation = Representation::Present(Validators { tag, modified: None });
                return Some(NewState {
                    representation,
                    may_answer: true,
                    may_keep: is_shareable(&response.headers),
                    selection: None,
                    told_of: None,
                });
            }
        }
        if request.removes_target() || request.only_reads_target() {
            return None;
        }
        let kind = (request.method == Method::PUT).then(|| kind_of_body(request)).flatten();
        if let Some(told) = kind.and_then(|kind| self.state_as_sent(request, body, kind)) {
            return Some(told);
        }
        self.read_again(request, Some((body, kind))).await
    }

    /// Learns the new state of the destination of a COPY or MOVE, whose answer does not show it.
    pub(crate) async fn new_state_of_destination(&self, destination: &Request) -> Option<NewState> {
        self.read_again(destination, None).await
    }

    /// Returns the state that a PUT of this body leaves, if a re-read would only show the content that was sent.
    fn state_as_sent(&self, request: &Request, body: &Body, kind: BodyKind) -> Option<NewState> {
        let has_tag = body.len() <= request.rules().max_hash_size_bytes as u64;
        if !has_tag || request.rules().on_write == OnWrite::Omit {
            return None;
        }
        let vary = self.probes.spared_reread(request, kind)?;
        let selection = self.probes.selection_of_bytes(request, &vary)?;
        let tag = tag_of_bytes(&body.digest(), selection.number(request));
        self.knowledge.is_tagged(request);
        Some(NewState {
            representation: Representation::Present(Validators { tag, modified: None }),
            may_answer: true,
            may_keep: false,
            selection: Some(selection),
            told_of: Some(kind),
        })
    }

    /// Reads the resource again, always by GET, since HEAD may show another tag (rule 19). The bytes are needed if the
    /// tag comes from them. They also show whether the backend stores the bytes of a PUT unchanged.
    async fn read_again(&self, request: &Request, sent: Option<(&Body, Option<BodyKind>)>) -> Option<NewState> {
        if request.rules().on_write == OnWrite::Omit {
            return None;
        }
        let must_be_verbatim = request.method == Method::PUT
            && sent.is_some()
            && request.rules().tag_after_write == TagAfterWrite::Verbatim
            && !request.content.is_description_alone();
        let needs_body = must_be_verbatim || request.rules().etag.needs_body();
        let end = Instant::now() + request.rules().probe.timeout;
        let asked = timeout_at(end, self.probes.ask(request, Method::GET, needs_body, None)).await.ok()?.ok()?;
        let (mut exchange, selection) = (asked.exchange, asked.selection);
        let status = exchange.head().status;
        let may_keep =
            is_shareable(&exchange.head().headers) && is_selected_by_name(request.rules(), &exchange.head().headers);
        if tells_absence(status) {
            let representation = Representation::Absent;
            return Some(NewState { representation, may_answer: false, may_keep, selection: None, told_of: None });
        }
        if status != StatusCode::OK {
            return None;
        }
        let mut validators = Validators::from_headers(&exchange.head().headers).0;
        validators.tag = stated_tag(request, &exchange.head().headers);
        let mut is_verbatim = true;
        if needs_body {
            let (tag, digest) = self.tag_again(request, &mut exchange, &selection, end).await?;
            validators.tag = validators.tag.or(tag);
            is_verbatim = sent.is_none_or(|(body, _)| digest == body.digest());
            if let Some((_, Some(kind))) = sent {
                self.probes.was_reread(request, kind, &exchange.head().headers, is_verbatim);
            }
            exchange.finish().await;
        } else {
            exchange.discard().await;
        }
        let leaves_none = || request.content.description.as_ref().is_some_and(DescriptionUse::leaves_none);
        if request.rules().keeps_descriptions() && !leaves_none() {
            validators.modified = self.probes.last_change(request, validators.modified, end).await.ok()?;
        }
        if validators.tag.is_some() {
            self.knowledge.is_tagged(request);
        }
        let may_answer = !must_be_verbatim || is_verbatim;
        let representation = Representation::Present(validators);
        Some(NewState { representation, may_answer, may_keep, selection: Some(selection), told_of: None })
    }

    /// Returns the tag and the digest of a body that was read again.
    async fn tag_again(
        &self,
        request: &Request,
        exchange: &mut Exchange,
        selection: &Selection,
        end: Instant,
    ) -> Option<(Option<EntityTag>, blake3::Hash)> {
        let (rules, wait) = (request.rules(), end.saturating_duration_since(Instant::now()));
        let wanted = (selection.number(request), Keep::Nothing);
        match self.probes.tag_body(rules, exchange, wanted, wait).await.ok()? {
            Tagged::Whole { tag, digest, .. } => Some((tag, digest)),
            // Without other writers the tag of such a body is its version.
            Tagged::TooLarge if rules.etag.needs_body() && rules.other_writers => {
                self.knowledge.was_left_untagged(request, too_large(exchange));
                None
            }
            _ => None,
        }
    }

    /// Returns the tag for the answer to an applied write. On a PUT it tells the client that the backend stores the
    /// bytes that were sent (RFC 9110 section 9.3.4). Returns `None` if an unclaimed write came between. The tag could
    /// then stand for its changes, which the client has not seen and would overwrite.
    pub(crate) fn tag_after_write(
        &self,
        request: &Request,
        learned: Option<NewState>,
        settled: Option<&Settled>,
    ) -> Option<EntityTag> {
        // If the write could not be settled, the record has it as a doubt, and the answer carries no tag (rule 12).
        let settled = settled.filter(|settled| settled.undisturbed)?;
        let may_answer = learned.as_ref().is_some_and(|learned| learned.may_answer);
        if request.rules().etag == TagSource::Version {
            let is_present = !learned.as_ref().is_some_and(NewState::is_absent);
            let is_wanted = may_answer || request.rules().tag_after_write == TagAfterWrite::Always;
            let tag = self.knowledge.version_tag(request, &settled.snapshot, &[]);
            return tag.filter(|_| is_wanted && is_present);
        }
        let NewState { representation, selection, told_of, .. } = learned?;
        let tag = match representation {
            Representation::Present(validators) if may_answer => validators.tag,
            _ => None,
        };
        let spelling = self.knowledge.spelling(request, Some(&settled.snapshot));
        let tag = self.knowledge.issue(request, &spelling, &tag?);
        if let (Some(tag), Some(selection)) = (&tag, selection) {
            self.knowledge.was_told(request, tag, &settled.snapshot, (selection, told_of));
        }
        tag
    }
}
