//! Parts of representations that have the proxy's own tags (RFC 9110 sections 13.1.5 and 14).
//!
//! # Design
//!
//! A client joins parts with the same tag, so a part must be of the very state that its tag names.
//!
//! | tag | how the proxy gets a part |
//! |---|---|
//! | of the whole body | the proxy holds the body, and cuts the part out of it |
//! | of some of the body | not at all: bytes that the tag does not cover may differ |
//! | none, or that of the version, because the body is too large to hash | requested instead of the whole, as soon as the head shows the size |
//! | of the version | requested if no write is in flight; the whole, if something was written meanwhile |
//! | of a field | requested; the whole, if the field of the part is not what `If-Range` names |
//! | the upstream's | the upstream decides |
//! | a coarse one | as for its source; the whole, if something was written meanwhile |
//!
//! *Why is the upstream never asked for several ranges of a large body?* Few clients want that, and the proxy does
//! not need it: an answer with the whole is always right.

use std::ops::Range;

use http::{Method, StatusCode, header};
use pingora::http::{RequestHeader, ResponseHeader};

use super::Reads;
use crate::{
    body::content_length,
    core::{
        http::range::{WantedRange, wanted},
        policy::{GuardRules, TagSource},
        records::record::Snapshot,
        tags::{
            precondition::{RangeCondition, range_applies},
            validators::{Modified, Representation, Validators, tag_from_field},
        },
    },
    guard::{Answer, Halt, Relayed, knowledge::label::first_date, request::Request},
    upstream::{BufferedBody, Exchange},
};

/// Fields that describe a whole representation or the content of one message.
const OF_CONTENT: [header::HeaderName; 3] = [
    header::CONTENT_LENGTH,
    header::HeaderName::from_static("content-digest"),
    header::HeaderName::from_static("content-md5"),
];

/// Fields that describe a representation, for a response that carries none.
const OF_REPRESENTATION: [header::HeaderName; 6] = [
    header::ETAG,
    header::LAST_MODIFIED,
    header::CONTENT_TYPE,
    header::CONTENT_ENCODING,
    header::CONTENT_LANGUAGE,
    header::CONTENT_LOCATION,
];

/// The same request for the whole, if the client requests a part.
pub(crate) fn whole_head(request: &Request, head: &RequestHeader) -> Option<Box<RequestHeader>> {
    request.head.headers.contains_key(header::RANGE).then(|| {
        let mut whole = Box::new(head.clone());
        whole.remove_header(&header::RANGE);
        whole
    })
}

impl Reads {
    /// The request for a part, if the whole was requested for the sake of its tag but is too large for one.
    pub(crate) fn part_instead(
        &self,
        request: &Request,
        snapshot: Option<&Snapshot>,
        whole: &RequestHeader,
        response: &ResponseHeader,
    ) -> Option<Box<RequestHeader>> {
        let length = content_length(&response.headers)?;
        let is_too_large = names_bytes(request.rules()) && length > request.rules().max_hash_size_bytes as u64;
        let fields = &request.head.headers;
        if !is_too_large
            || request.method != Method::GET
            || response.status != StatusCode::OK
            || wanted(fields, length) == WantedRange::Whole
            // The version tag is that of a state that is about to change.
            || !request.rules().other_writers && snapshot.is_some_and(|snapshot| !snapshot.has_no_pending_writes())
        {
            return None;
        }
        let applies = if let Some(RangeCondition::Tag(_)) = &request.conditions.if_range {
            self.knowledge.version_range_applies(request, snapshot)
        } else {
            let modified = modified(response, snapshot);
            range_applies(&request.conditions, &Representation::Present(Validators { tag: None, modified }))
        };
        let mut part = Box::new(whole.clone());
        part.insert_header(header::RANGE, fields.get(header::RANGE)?.clone()).ok().filter(|()| applies)?;
        if let (Some(RangeCondition::Date(_)), Some(date)) =
            (&request.conditions.if_range, fields.get(header::IF_RANGE))
        {
            // The date is the upstream's own, and the upstream checks it again.
            part.insert_header(header::IF_RANGE, date.clone()).ok()?;
        }
        Some(part)
    }

    /// True if a part could be of a state other than the one that its tag, or `If-Range`, names.
    pub(crate) async fn is_of_another_state(
        &self,
        request: &Request,
        snapshot: Option<&Snapshot>,
        response: &ResponseHeader,
    ) -> bool {
        match (&request.rules().etag, response.status) {
            (TagSource::Upstream | TagSource::Delegate, StatusCode::PARTIAL_CONTENT)
                if self.knowledge.has_coarse_tags(request)
                    || matches!(request.conditions.if_range, Some(RangeCondition::Date(_))) =>
            {
                self.was_touched(request, snapshot).await
            }
            (TagSource::Upstream | TagSource::Delegate, _) => false,
            (TagSource::Header(field), StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE) => {
                let modified = modified(response, snapshot);
                let spelling = self.knowledge.spelling(request, snapshot);
                let tag = tag_from_field(&response.headers, field).and_then(|tag| spelling.issued(&tag));
                !range_applies(&request.conditions, &Representation::Present(Validators { tag, modified }))
                    || self.knowledge.has_coarse_tags(request) && self.was_touched(request, snapshot).await
            }
            (_, StatusCode::PARTIAL_CONTENT) if !request.rules().other_writers => {
                self.was_touched(request, snapshot).await
            }
            _ => false,
        }
    }

    /// True if a write is in flight or in doubt, or has begun since the record was read. A client joins parts with the
    /// same tag, so a part must be neither older nor newer than its tag.
    async fn was_touched(&self, request: &Request, snapshot: Option<&Snapshot>) -> bool {
        match snapshot {
            Some(snapshot) if !snapshot.has_no_pending_writes() => true,
            Some(snapshot) => !self.knowledge.is_untouched(request, snapshot).await,
            None => false,
        }
    }
}

/// The modification date of a response, by the record as it was read before.
fn modified(response: &ResponseHeader, snapshot: Option<&Snapshot>) -> Option<Modified> {
    Modified::from_headers(&response.headers).map(|modified| modified.by_record(first_date(snapshot)))
}

/// The response to a read whose whole body may have been read: all of it, or the part that the client requests.
pub(crate) async fn whole_or_part(
    request: &Request,
    mut head: Box<ResponseHeader>,
    whole: BufferedBody,
    exchange: Exchange,
    current: &Representation,
) -> Result<Answer, Halt> {
    let BufferedBody::Complete(mut body) = whole else { return Answer::read_so_far(head, whole, exchange).await };
    if !names_bytes(request.rules()) || !request.is_named_by_head() || head.status != StatusCode::OK {
        return Answer::read_so_far(head, BufferedBody::Complete(body), exchange).await;
    }
    head.insert_header(header::ACCEPT_RANGES, "bytes")?;
    let len = body.len() as u64;
    let is_wanted = request.method == Method::GET && range_applies(&request.conditions, current);
    match if is_wanted { wanted(&request.head.headers, len) } else { WantedRange::Whole } {
        WantedRange::Whole => return Answer::read_so_far(head, BufferedBody::Complete(body), exchange).await,
        WantedRange::Part { first, last } => {
            let part = first..last.saturating_add(1);
            label_part(&mut head, &part, len)?;
            body = body.part(part);
        }
        WantedRange::Nothing => {
            label_unsatisfiable(&mut head, len)?;
            for name in &OF_REPRESENTATION {
                head.remove_header(name);
            }
            body = body.part(0..0);
        }
    }
    for name in &OF_CONTENT {
        head.remove_header(name);
    }
    exchange.finish().await;
    head.insert_header(header::CONTENT_LENGTH, body.len())?;
    Ok(Answer::Relayed(Box::new(Relayed { head, begun: body, rest: None })))
}

/// True if the route's tags cover all bytes of a body, so that parts with the same tag are parts of one body.
fn names_bytes(rules: &GuardRules) -> bool {
    rules.etag == TagSource::Content && !rules.hashes_parts()
}

/// Labels a head as that of a part of `length` bytes (RFC 9110 section 15.3.7).
pub(crate) fn label_part(head: &mut ResponseHeader, part: &Range<u64>, length: u64) -> pingora::Result<()> {
    head.set_status(StatusCode::PARTIAL_CONTENT)?;
    let last = part.end.saturating_sub(1);
    head.insert_header(header::CONTENT_RANGE, format!("bytes {}-{last}/{length}", part.start))?;
    head.insert_header(header::CONTENT_LENGTH, part.end.saturating_sub(part.start))
}

/// Labels a head as the answer that a body of `length` bytes has no such part (RFC 9110 section 15.5.17).
pub(crate) fn label_unsatisfiable(head: &mut ResponseHeader, length: u64) -> pingora::Result<()> {
    head.set_status(StatusCode::RANGE_NOT_SATISFIABLE)?;
    head.insert_header(header::CONTENT_RANGE, format!("bytes */{length}"))
}
