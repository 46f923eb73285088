//! Tags that an intermediary on the way to the client has changed, such as a proxy that compresses (`etag_suffixes`,
//! `accept_weak_own`).

use super::{Preconditions, TagCondition};
use crate::core::tags::entity_tag::EntityTag;

impl Preconditions {
    /// Adds to the tags of `If-Match` and `If-None-Match` the forms in which they may have been issued, and returns
    /// whether there were any. An added tag counts like a sent one: it makes a condition true only if it is the
    /// current tag itself, and so was issued for the current state. `weakened` says that a weak tag may have been strong.
    ///
    /// `If-Range` is left alone: it requests a part of what the client has, which is the changed representation.
    pub fn restore(&mut self, suffixes: &[String], weakened: bool) -> bool {
        let conditions = [(&mut self.if_match, weakened), (&mut self.if_none_match, false)];
        let mut restored = false;
        for (condition, strengthens) in conditions {
            if let Some(TagCondition::Tags(tags)) = condition {
                let earlier: Vec<EntityTag> =
                    tags.iter().flat_map(|tag| earlier_forms(tag, suffixes, strengthens)).collect();
                restored |= !earlier.is_empty();
                tags.extend(earlier);
            }
        }
        restored
    }
}

/// The forms that a tag may have had before.
fn earlier_forms(tag: &EntityTag, suffixes: &[String], strengthens: bool) -> Vec<EntityTag> {
    let without = |suffix: &String| tag.opaque().strip_suffix(suffix.as_bytes()).filter(|opaque| !opaque.is_empty());
    let opaques = suffixes.iter().filter_map(without);
    if !strengthens || !tag.is_weak() {
        return opaques.filter_map(|opaque| tag.respelled(opaque)).collect();
    }
    opaques.chain([tag.opaque()]).filter_map(|opaque| EntityTag::strong(opaque).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn restored(tags: &str, suffixes: &[&str], weakens: bool) -> Vec<String> {
        let headers = http::HeaderMap::from_iter([
            (http::header::IF_MATCH, tags.parse().unwrap()),
            (http::header::IF_NONE_MATCH, tags.parse().unwrap()),
        ]);
        let mut conditions = Preconditions::parse(&headers).unwrap();
        let suffixes: Vec<_> = suffixes.iter().map(ToString::to_string).collect();
        let sent = conditions.clone();
        assert_eq!(conditions.restore(&suffixes, weakens), conditions != sent);
        let Some(TagCondition::Tags(tags)) = &conditions.if_match else { panic!("a list") };
        tags.iter().map(|tag| tag.to_header_value().to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn a_tag_is_restored_by_what_the_route_says() {
        let (gzip, no_suffix) = (&["-gzip", ";gzip"][..], &[][..]);
        for (tags, suffixes, weakens, expected) in [
            ("\"a-gzip\"", no_suffix, false, &["\"a-gzip\""][..]),
            ("\"a-gzip\"", gzip, false, &["\"a-gzip\"", "\"a\""]),
            ("\"a;gzip\", \"b\"", gzip, true, &["\"a;gzip\"", "\"b\"", "\"a\""]),
            ("\"a-gzip-gzip\"", gzip, false, &["\"a-gzip-gzip\"", "\"a-gzip\""]),
            ("\"-gzip\"", gzip, false, &["\"-gzip\""]),
            ("W/\"a-gzip\"", gzip, false, &["W/\"a-gzip\"", "W/\"a\""]),
            ("W/\"a-gzip\"", gzip, true, &["W/\"a-gzip\"", "\"a\"", "\"a-gzip\""]),
            ("W/\"a\"", no_suffix, true, &["W/\"a\"", "\"a\""]),
            ("W/\"a\"", no_suffix, false, &["W/\"a\""]),
            ("\"a\"", gzip, true, &["\"a\""]),
        ] {
            assert_eq!(restored(tags, suffixes, weakens), expected, "{tags} {suffixes:?} {weakens}");
        }
    }

    /// `If-None-Match` compares weakly anyway (RFC 9110 section 13.1.2).
    #[test]
    fn what_is_compared_weakly_needs_no_strong_form() {
        let headers = http::HeaderMap::from_iter([(http::header::IF_NONE_MATCH, "W/\"a\"".parse().unwrap())]);
        let mut conditions = Preconditions::parse(&headers).unwrap();
        assert!(!conditions.restore(&[], true));
    }

    #[test]
    fn any_needs_no_restoring() {
        let headers = http::HeaderMap::from_iter([(http::header::IF_MATCH, "*".parse().unwrap())]);
        let mut conditions = Preconditions::parse(&headers).unwrap();
        assert!(!conditions.restore(&["-gzip".to_owned()], true));
    }
}
