//! The version that a write names elsewhere than in `If-Match` (`precondition`): in its body, or in its query.
//!
//! A backend may look for it there itself, and read the request in another way. So a version counts only if no reader
//! finds another one.

use http::{HeaderMap, HeaderValue};

use super::query;
use crate::core::{
    refusal::{Code, Refusal},
    tags::{
        entity_tag::EntityTag,
        precondition::{Preconditions, TagCondition},
    },
};

/// Returns the version that a text of the request names.
///
/// # Errors
///
/// No version is spelled so.
pub fn version_of(text: &[u8]) -> Result<EntityTag, Refusal> {
    EntityTag::of_text(text).ok_or_else(|| {
        malformed("send the version that you have read: the one in the request is empty, or a broken entity-tag")
    })
}

/// Returns each version that the query of a target names by this parameter.
///
/// # Errors
///
/// Those of [`version_of`].
pub fn versions_in_query(target: &[u8], name: &str) -> Result<Vec<EntityTag>, Refusal> {
    query::values(target, name).map(|value| version_of(&value)).collect()
}

/// Returns the `If-Match` of a write that names these versions; `None` if it names none, or has it already.
///
/// # Errors
///
/// The versions differ from each other, or from what `If-Match` says.
pub fn stated_condition(headers: &HeaderMap, versions: &[EntityTag]) -> Result<Option<HeaderValue>, Refusal> {
    let Some((version, others)) = versions.split_first() else { return Ok(None) };
    if others.iter().any(|other| other != version) {
        return Err(malformed("the request names two versions: send one, or the same one everywhere"));
    }
    // A field that cannot be read is refused when it is judged.
    let Ok(conditions) = Preconditions::parse(headers) else { return Ok(None) };
    match conditions.if_match {
        None => Ok(Some(version.to_header_value())),
        Some(TagCondition::Tags(tags)) if tags == [version.clone()] => Ok(None),
        Some(_) => Err(malformed("If-Match names another version than the rest of the request: send one of the two")),
    }
}

/// Returns the refusal of a request whose version is not certain.
pub fn malformed(detail: impl Into<std::borrow::Cow<'static, str>>) -> Refusal {
    Refusal::new(Code::MalformedPrecondition, detail)
}

#[cfg(test)]
mod tests {
    use http::header::IF_MATCH;

    use super::*;

    fn tag(opaque: &str) -> EntityTag {
        EntityTag::strong(opaque).unwrap()
    }

    /// Rule 18: each parameter that a backend could read under the name counts.
    #[test]
    fn every_reading_of_the_parameter_counts() {
        for (target, expected) in [
            ("/doc", &[][..]),
            ("/doc?rev=3-a", &["3-a"]),
            ("/doc?revs=1&rev=%223%22", &["3"]),
            ("/doc?rev=1&Rev=2&re%76=3", &["1", "2", "3"]),
        ] {
            let expected: Vec<EntityTag> = expected.iter().map(|opaque| tag(opaque)).collect();
            assert_eq!(versions_in_query(target.as_bytes(), "rev"), Ok(expected), "{target}");
        }
        assert!(versions_in_query(b"/doc?rev=", "rev").is_err());
    }

    #[test]
    fn two_versions_that_differ_are_refused() {
        let headers = |value: &str| HeaderMap::from_iter([(IF_MATCH, value.parse().unwrap())]);
        let none = HeaderMap::new();
        assert_eq!(stated_condition(&none, &[]), Ok(None));
        assert_eq!(stated_condition(&none, &[tag("1"), tag("1")]), Ok(Some("\"1\"".parse().unwrap())));
        assert_eq!(stated_condition(&headers("\"1\""), &[tag("1")]), Ok(None));
        for (headers, versions) in [
            (none, [tag("1"), tag("2")]),
            (headers("\"2\""), [tag("1"), tag("1")]),
            (headers("\"1\", \"2\""), [tag("1"), tag("1")]),
            (headers("*"), [tag("1"), tag("1")]),
        ] {
            let refusal = stated_condition(&headers, &versions).unwrap_err();
            assert_eq!(refusal.code, Code::MalformedPrecondition);
        }
    }
}
