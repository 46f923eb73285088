//! The preconditions of a request, as its head shows them to the upstream.

use std::sync::Arc;

use http::{HeaderName, HeaderValue, header};
use pingora::http::RequestHeader;

use super::Request;
use crate::{
    core::tags::{
        entity_tag::EntityTag,
        precondition::{Preconditions, RangeCondition, TagCondition},
    },
    upstream::fields::FieldsOfHead as _,
};

/// Conditional fields (RFC 9110 section 13.1).
const CONDITIONS: [HeaderName; 5] =
    [header::IF_MATCH, header::IF_NONE_MATCH, header::IF_MODIFIED_SINCE, header::IF_UNMODIFIED_SINCE, header::IF_RANGE];

impl Request {
    /// Makes the request demand this of its resource, in its head too.
    pub(crate) fn demand(&mut self, mut conditions: Preconditions) {
        conditions.restore(&self.rules().etag_suffixes, self.rules().accept_weak_own);
        if conditions.if_none_match == Some(TagCondition::Any) {
            let _ = Arc::make_mut(&mut self.head).insert_header(header::IF_NONE_MATCH, HeaderValue::from_static("*"));
        }
        self.conditions = conditions;
        show_tags(Arc::make_mut(&mut self.head), &self.conditions);
    }
}

/// Puts the judged tags into a request, so that an upstream that knows its own tags gets them.
pub(crate) fn show_tags(head: &mut RequestHeader, conditions: &Preconditions) {
    for (name, condition) in
        [(header::IF_MATCH, &conditions.if_match), (header::IF_NONE_MATCH, &conditions.if_none_match)]
    {
        let Some(TagCondition::Tags(tags)) = condition else { continue };
        let tags: Vec<HeaderValue> = tags.iter().map(EntityTag::to_header_value).collect();
        let list = tags.iter().map(HeaderValue::as_bytes).collect::<Vec<_>>().join(&b", "[..]);
        // A list of valid field values is a valid value too.
        if let Ok(list) = HeaderValue::from_maybe_shared(bytes::Bytes::from(list)) {
            let _ = head.insert_header(name, list);
        }
    }
    if let Some(RangeCondition::Tag(tag)) = &conditions.if_range {
        let _ = head.insert_header(header::IF_RANGE, tag.to_header_value());
    }
}

/// Puts the judged tags into a read, and removes the conditions that could not be parsed: the upstream might parse
/// them.
pub(crate) fn show_tags_alone(head: &mut RequestHeader, conditions: &Preconditions) {
    if conditions.if_match.is_none() {
        head.remove_header(&header::IF_MATCH);
    }
    if conditions.if_none_match.is_none() {
        head.remove_header(&header::IF_NONE_MATCH);
    }
    if conditions.if_range == Some(RangeCondition::Malformed) {
        head.remove_header(&header::RANGE);
    }
    show_tags(head, conditions);
}

/// Removes the conditions, which an upstream cannot judge if it does not know our tags.
pub(crate) fn remove_conditions(head: &mut RequestHeader) {
    head.remove_all(|name| CONDITIONS.contains(name));
}
