//! The tag of a response, and the knowledge that the response adds (DESIGN, section 3, rule 2).

use http::{HeaderName, HeaderValue, Method, StatusCode};
use pingora::http::ResponseHeader;

use super::{
    Knowledge,
    derived_tag::{stated_tag, tag_of},
    responses::{Remembered, is_shareable, not_modified_fields},
    selection::Selection,
};
use crate::{
    core::{
        policy::TagSource,
        records::record::Snapshot,
        tags::{
            entity_tag::EntityTag,
            told_dates::FirstDate,
            validators::{Modified, Validators},
        },
    },
    guard::request::Request,
    upstream::BufferedBody,
};

impl Knowledge {
    /// The validators of a response, with the tag that the client gets. A version tag comes from the record as it was
    /// read before the upstream was asked. It may be older than the content, but is never newer.
    pub(crate) fn label(
        &self,
        request: &Request,
        snapshot: Option<&Snapshot>,
        head: &ResponseHeader,
        whole: &BufferedBody,
        selecting: Option<&[(HeaderName, Vec<HeaderValue>)]>,
    ) -> Validators {
        // All variants share the version.
        let selection = (request.rules().etag != TagSource::Version)
            .then(|| Selection::of(request.rules(), &request.head, &head.headers));
        let spelling = self.spelling(request, snapshot);
        let issued = |tag: EntityTag| self.issue(request, &spelling, &tag);
        let version_tag = || self.version_tag(request, snapshot?, selecting.unwrap_or_default());
        let tag = match (&request.rules().etag, whole) {
            (TagSource::Upstream | TagSource::Delegate | TagSource::Header(_), _) => {
                stated_tag(request, &head.headers).and_then(issued)
            }
            (TagSource::Version, _) => version_tag(),
            (TagSource::Content | TagSource::Json(_), BufferedBody::Complete(body)) => {
                tag_of(request.rules(), body, selection.as_ref().and_then(|selection| selection.number(request)))
                    .and_then(issued)
            }
            (TagSource::Content | TagSource::Json(_), _) if !request.rules().other_writers => version_tag(),
            (TagSource::Content | TagSource::Json(_), _) => None,
        };
        if let (Some(tag), Some(snapshot), Some(selection)) = (&tag, snapshot, selection) {
            self.was_given_out(request, tag, snapshot, selection);
        }
        let modified = Modified::from_headers(&head.headers).map(|modified| modified.by_record(first_date(snapshot)));
        Validators { tag, modified }
    }

    /// Remembers a response in this process, for the principal that received it.
    pub(crate) fn learn_from_read(
        &self,
        request: &Request,
        snapshot: &Snapshot,
        head: &ResponseHeader,
        validators: &Validators,
        selecting: Option<Vec<(HeaderName, Vec<HeaderValue>)>>,
    ) {
        let is_selected = matches!(head.status, StatusCode::OK | StatusCode::NOT_MODIFIED);
        // The client gets the state that HEAD shows, but nothing of it is kept to judge other clients by (rule 19).
        let is_of_get = request.method != Method::HEAD || request.rules().etag.needs_body();
        let may_remember = is_selected
            && is_of_get
            && request.is_named_by_head()
            && snapshot.has_no_pending_writes()
            && is_shareable(&head.headers);
        let (Some(selecting), Some(_), true) = (selecting, &validators.tag, may_remember) else { return };
        let earlier = self.remembered(request, snapshot);
        if earlier.is_some_and(|earlier| earlier.is_as_good(validators, snapshot.now, request.rules())) {
            return;
        }
        let remembered = Remembered {
            touched: snapshot.touched(),
            selecting,
            validators: validators.clone(),
            fields: not_modified_fields(&head.headers),
            until: snapshot.now.plus(request.rules().identity_ttl),
        };
        self.memory.remember(request.variant(), remembered);
    }
}

/// The first date that counts, by the record as it was read. Without a record none does.
pub(crate) fn first_date(snapshot: Option<&Snapshot>) -> FirstDate {
    snapshot.map_or(FirstDate::NONE, |snapshot| snapshot.record.first_date)
}
