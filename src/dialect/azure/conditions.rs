//! Conditional fields by Azure's rules: the permitted combinations, and the spelling of values.

use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_UNMODIFIED_SINCE},
};

use super::{
    AzureOperation, AzureResource,
    refusals::{bad_field, no_conditions, too_many_conditions, unknown_field, unsatisfiable},
};
use crate::core::{
    refusal::Refusal,
    tags::{
        entity_tag::EntityTag,
        http_date::HttpDate,
        precondition::{Combination, Preconditions, TagCondition},
    },
};

/// Returns the conditions of a request.
///
/// A container operation takes only dates. Creating a container always demands that none exists yet.
///
/// # Errors
///
/// A value cannot be read, or the fields cannot be combined.
pub(super) fn read(operation: AzureOperation, headers: &HeaderMap) -> Result<Preconditions, Refusal> {
    if operation.resource() != AzureResource::Blob {
        for name in [&IF_MATCH, &IF_NONE_MATCH] {
            if headers.contains_key(name) {
                return Err(unknown_field(name.as_str()));
            }
        }
    }
    let none = [&IF_MATCH, &IF_NONE_MATCH, &IF_MODIFIED_SINCE, &IF_UNMODIFIED_SINCE];
    let takes_none =
        matches!(operation, AzureOperation::PutBlock | AzureOperation::ListBlobs | AzureOperation::ListContainers);
    if takes_none && none.into_iter().any(|name| headers.contains_key(name)) {
        return Err(no_conditions());
    }
    let mut conditions = Preconditions {
        if_match: tags(operation, headers, &IF_MATCH)?,
        if_none_match: tags(operation, headers, &IF_NONE_MATCH)?,
        if_modified_since: date(headers, &IF_MODIFIED_SINCE)?,
        if_unmodified_since: date(headers, &IF_UNMODIFIED_SINCE)?,
        has_unreadable_date: false,
        if_range: None,
        lease_suffices: false,
        combination: Combination::Azure,
    };
    let is_any = conditions.if_none_match == Some(TagCondition::Any);
    if operation.is_read() {
        return if is_any { Err(unsatisfiable()) } else { Ok(conditions) };
    }
    if !can_stand_together(&conditions) {
        return Err(too_many_conditions());
    }
    if operation == AzureOperation::CreateContainer {
        conditions = Preconditions {
            if_none_match: Some(TagCondition::Any),
            combination: Combination::Azure,
            ..Preconditions::default()
        };
    } else if is_any && !operation.overwrites() {
        // `*` is meant for operations that could overwrite something.
        conditions.if_none_match = None;
    }
    Ok(conditions)
}

/// True if the conditions of a write can be combined: one condition or one of two pairs, with one tag each.
fn can_stand_together(conditions: &Preconditions) -> bool {
    let is_list =
        |condition: &Option<TagCondition>| matches!(condition, Some(TagCondition::Tags(tags)) if tags.len() > 1);
    let given = (
        conditions.if_match.is_some(),
        conditions.if_none_match.is_some(),
        conditions.if_modified_since.is_some(),
        conditions.if_unmodified_since.is_some(),
    );
    let is_pair = matches!(given, (true, false, false, true) | (false, true, true, false));
    let count = [given.0, given.1, given.2, given.3].into_iter().filter(|given| *given).count();
    (count <= 1 || is_pair) && !is_list(&conditions.if_match) && !is_list(&conditions.if_none_match)
}

/// Reads `*`, or tags with or without their quotes.
fn tags(operation: AzureOperation, headers: &HeaderMap, name: &HeaderName) -> Result<Option<TagCondition>, Refusal> {
    let lines: Vec<&[u8]> = headers.get_all(name).iter().map(HeaderValue::as_bytes).collect();
    if lines.is_empty() {
        return Ok(None);
    }
    let bad = || bad_field(name.as_str(), "* or an ETag");
    let list = lines.join(&b',');
    let members = split(&list);
    match members.as_slice() {
        [b"*"] => Ok(Some(TagCondition::Any)),
        [] => Err(bad()),
        // A read takes a list, of which one member has to match.
        list if operation.is_read() && *name == IF_MATCH && list.contains(&b"*".as_slice()) => {
            Ok(Some(TagCondition::Any))
        }
        _ => {
            // No state has a tag that cannot be spelled, so `If-Match` is false of it. The opposite condition would be
            // true of every state, and the write would go through: it is refused.
            let is_served = |tag: &Result<EntityTag, ()>| tag.is_ok() || *name != IF_MATCH;
            let is_any = members.contains(&b"*".as_slice());
            let tags = members.into_iter().map(tag).filter(|tag| is_any || is_served(tag));
            let tags = tags.collect::<Result<Vec<_>, _>>().map_err(|()| bad())?;
            Ok(Some(TagCondition::Tags(tags)))
        }
    }
}

/// Splits a list. A comma inside quotes is part of a tag.
fn split(list: &[u8]) -> Vec<&[u8]> {
    let mut quoted = false;
    let members = list.split(|&octet| {
        quoted ^= octet == b'"';
        octet == b',' && !quoted
    });
    members.map(<[u8]>::trim_ascii).filter(|member| !member.is_empty()).collect()
}

fn tag(member: &[u8]) -> Result<EntityTag, ()> {
    let is_spelled_out = member.contains(&b'"');
    let tag = if is_spelled_out { EntityTag::parse(member) } else { EntityTag::strong(member) };
    tag.ok().filter(|_| member != b"*").ok_or(())
}

fn date(headers: &HeaderMap, name: &HeaderName) -> Result<Option<HttpDate>, Refusal> {
    let mut lines = headers.get_all(name).iter();
    match (lines.next(), lines.next()) {
        (None, _) => Ok(None),
        (Some(line), None) => match HttpDate::parse(line.as_bytes()) {
            Some(date) => Ok(Some(date)),
            None => Err(bad_field(name.as_str(), "a date")),
        },
        (Some(_), Some(_)) => Err(bad_field(name.as_str(), "one date")),
    }
}

#[cfg(test)]
#[path = "conditions_tests.rs"]
mod tests;
