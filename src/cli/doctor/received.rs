//! An answer as `doctor` received it, and what its fields say.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, StatusCode, header};

use crate::core::{
    http::via::PSEUDONYM,
    tags::{entity_tag::EntityTag, http_date::HttpDate},
};

/// Whether the value of a field says that a cache gave the answer.
type SaysCached = fn(&str) -> bool;

/// One answer.
#[derive(Clone, Debug)]
pub(super) struct ReceivedAnswer {
    pub(super) status: StatusCode,
    pub(super) fields: HeaderMap,
    pub(super) body: Bytes,
}

impl ReceivedAnswer {
    /// Returns the tag that a client can send back: that of `ETag`, else that of another field.
    pub(super) fn tag(&self) -> Option<EntityTag> {
        self.entity_tag().or_else(|| self.mirrored_tag().map(|(_, tag)| tag))
    }

    /// Returns the tag of `ETag`, if it is one.
    pub(super) fn entity_tag(&self) -> Option<EntityTag> {
        EntityTag::parse(self.fields.get(header::ETAG)?.as_bytes()).ok()
    }

    /// Returns another field whose value is an entity-tag, as `mirror_header` makes one.
    pub(super) fn mirrored_tag(&self) -> Option<(&HeaderName, EntityTag)> {
        let others = self.fields.iter().filter(|(name, _)| *name != header::ETAG);
        others.into_iter().find_map(|(name, value)| Some((name, EntityTag::parse(value.as_bytes()).ok()?)))
    }

    /// True if two answers show one state. Their tags may differ: ifmatch names the query in some of them.
    pub(super) fn shows_the_same(&self, other: &Self) -> bool {
        (self.status, &self.body) == (other.status, &other.body)
    }

    /// True if the body has a content coding such as gzip.
    pub(super) fn is_coded(&self) -> bool {
        self.fields.get(header::CONTENT_ENCODING).is_some_and(|coding| coding != "identity")
    }

    /// True if the answer names ifmatch as one of the proxies that it passed.
    pub(super) fn names_ifmatch(&self) -> bool {
        let received_by = |entry: &str| entry.split_whitespace().nth(1) == Some(PSEUDONYM);
        let first = |entry: &str| entry.split(';').next().is_some_and(|name| name.trim() == PSEUDONYM);
        self.texts("via").any(|value| value.split(',').any(received_by))
            || self.texts("proxy-status").any(|value| value.split(',').any(first))
    }

    /// Returns the name of the field by which a cache says that it gave the answer.
    pub(super) fn cached_by(&self) -> Option<&'static str> {
        let has = |name, says: SaysCached| self.texts(name).any(says);
        let is_hit = |value: &str| value.to_ascii_lowercase().contains("hit");
        let says: [(&str, SaysCached); 5] = [
            ("Age", |value| value.trim().parse::<u64>().is_ok_and(|age| age > 0)),
            // Varnish writes a second number: that of the request which brought the answer into the cache.
            ("X-Varnish", |value| value.split_whitespace().count() > 1),
            ("X-Cache", is_hit),
            ("Cache-Status", is_hit),
            ("CF-Cache-Status", is_hit),
        ];
        says.into_iter().find_map(|(name, says)| has(name, says).then_some(name))
    }

    /// Returns the date in a field.
    pub(super) fn date(&self, name: HeaderName) -> Option<HttpDate> {
        HttpDate::parse(self.fields.get(name)?.as_bytes())
    }

    fn texts(&self, name: &str) -> impl Iterator<Item = &str> {
        self.fields.get_all(name).into_iter().filter_map(|value| value.to_str().ok())
    }
}

/// Returns a tag as text, shortened if it is long.
pub(super) fn shown(tag: &EntityTag) -> String {
    const LONGEST: usize = 40;
    let text = String::from_utf8_lossy(tag.to_header_value().as_bytes()).into_owned();
    if text.chars().count() <= LONGEST { text } else { text.chars().take(LONGEST).chain("...".chars()).collect() }
}

#[cfg(test)]
pub(super) fn received(status: u16, fields: &[(&str, &str)], body: &str) -> ReceivedAnswer {
    let mut map = HeaderMap::new();
    for (name, value) in fields {
        map.append(name.parse::<HeaderName>().expect("a name"), value.parse().expect("a value"));
    }
    let status = StatusCode::from_u16(status).expect("a status");
    ReceivedAnswer { status, fields: map, body: Bytes::copy_from_slice(body.as_bytes()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(fields: &[(&str, &str)]) -> ReceivedAnswer {
        received(200, fields, "")
    }

    #[test]
    fn the_tag_is_that_of_etag_or_of_another_field() {
        let tag = |fields: &[(&str, &str)]| with(fields).tag().map(|tag| shown(&tag));
        assert_eq!(tag(&[("X-ETag", "\"b\""), ("ETag", "W/\"a\"")]), Some("W/\"a\"".to_owned()));
        assert_eq!(tag(&[("X-ETag", "\"b\""), ("Server", "x")]), Some("\"b\"".to_owned()));
        assert_eq!(tag(&[("ETag", "unquoted")]), None);
        assert_eq!(tag(&[]), None);
    }

    #[test]
    fn a_long_tag_is_shown_short() {
        let tag = EntityTag::strong("x".repeat(60)).expect("a tag");
        assert_eq!(shown(&tag), format!("\"{}...", "x".repeat(39)));
    }

    #[test]
    fn via_and_proxy_status_name_ifmatch() {
        for (field, value, expected) in [
            ("Via", "1.1 ifmatch", true),
            ("Via", "1.1 other, 2 ifmatch (x)", true),
            ("Via", "1.1 notifmatch", false),
            ("Via", "1.1 varnish (ifmatch)", false),
            ("Proxy-Status", "ifmatch; error=http_request_denied", true),
            ("Proxy-Status", "other; next-hop=ifmatch", false),
            ("Server", "ifmatch", false),
        ] {
            assert_eq!(with(&[(field, value)]).names_ifmatch(), expected, "{field}: {value}");
        }
    }

    #[test]
    fn caches_say_that_they_answer() {
        for (field, value, expected) in [
            ("Age", "0", None),
            ("Age", "7", Some("Age")),
            ("Age", "x", None),
            ("X-Varnish", "32770", None),
            ("X-Varnish", "32772 32771", Some("X-Varnish")),
            ("X-Cache", "MISS", None),
            ("X-Cache", "Hit from cloudfront", Some("X-Cache")),
            ("Cache-Status", "edge; hit; ttl=3", Some("Cache-Status")),
            ("Cache-Status", "edge; fwd=miss", None),
            ("CF-Cache-Status", "HIT", Some("CF-Cache-Status")),
            ("CF-Cache-Status", "DYNAMIC", None),
        ] {
            assert_eq!(with(&[(field, value)]).cached_by(), expected, "{field}: {value}");
        }
    }

    #[test]
    fn identity_is_no_coding() {
        assert!(with(&[("Content-Encoding", "gzip")]).is_coded());
        assert!(!with(&[("Content-Encoding", "identity")]).is_coded());
        assert!(!with(&[]).is_coded());
    }
}
