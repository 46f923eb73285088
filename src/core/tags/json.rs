//! Fields of JSON texts, for tags: a text is read once, and only the requested field is kept.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::entity_tag::EntityTag;

/// The longest value that a tag is made of, in bytes: header fields hold no more than a few kilobytes anywhere.
const TEXT_MAX: usize = 1024;

/// The place of a value in a JSON text (RFC 6901): `/a/b/0` is the first element of the member `b` of the member `a`.
/// It names a member or an element, never the whole text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonPointer(Vec<String>);

impl JsonPointer {
    /// Reads a pointer; `None` if it does not begin with a slash, or holds a `~` that is neither `~0` nor `~1`.
    pub fn parse(text: &str) -> Option<Self> {
        let token = |escaped: &str| {
            let is_escape = |rest: &str| rest.starts_with(['0', '1']);
            let is_valid = escaped.split('~').skip(1).all(is_escape);
            is_valid.then(|| escaped.replace("~1", "/").replace("~0", "~"))
        };
        text.strip_prefix('/')?.split('/').map(token).collect::<Option<_>>().map(Self)
    }

    /// The names of the members on the way to the value, the last one among them.
    pub fn tokens(&self) -> &[String] {
        &self.0
    }
}

impl fmt::Display for JsonPointer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut tokens = self.0.iter().map(|token| token.replace('~', "~0").replace('/', "~1"));
        tokens.try_for_each(|token| write!(formatter, "/{token}"))
    }
}

/// The tag that a field of a JSON text stands for: a string or a number as [`EntityTag::of_text`] reads it, a number
/// in its original spelling. `None` if the text is not JSON, lacks the field or has it twice. `None` also if the field
/// is something else or is longer than a kilobyte.
pub fn tag_from_json(text: &[u8], pointer: &JsonPointer) -> Option<EntityTag> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let place = At { tokens: &pointer.0 };
    let value = place.deserialize(&mut deserializer).ok()?;
    deserializer.end().ok()?;
    let text = match value? {
        Value::String(text) => text,
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    EntityTag::of_text(text.as_bytes()).filter(|_| text.len() <= TEXT_MAX)
}

/// A JSON text without some of its members, in one form. Two texts get the same form if and only if they differ only
/// in those members, in white space and in the order of members. `None` if the text is not JSON. Of a member that
/// occurs twice the last one counts. Numbers are compared as they are spelled.
pub fn json_without(text: &[u8], left_out: &[JsonPointer]) -> Option<Vec<u8>> {
    let mut value: Value = serde_json::from_slice(text).ok()?;
    for pointer in left_out {
        leave_out(&mut value, &pointer.0);
    }
    serde_json::to_vec(&value).ok()
}

/// Removes the value at this place. An element of an array becomes null instead, so that the others keep their places.
fn leave_out(value: &mut Value, tokens: &[String]) {
    match (value, tokens) {
        (Value::Object(members), [last]) => drop(members.remove(last)),
        (Value::Object(members), [first, below @ ..]) => {
            if let Some(member) = members.get_mut(first) {
                leave_out(member, below);
            }
        }
        (Value::Array(elements), [first, below @ ..]) => match index(first).and_then(|index| elements.get_mut(index)) {
            Some(element) if below.is_empty() => *element = Value::Null,
            Some(element) => leave_out(element, below),
            None => {}
        },
        _ => {}
    }
}

/// The value at a place below the value that is read next, if it exists.
#[derive(Clone, Copy)]
struct At<'a> {
    tokens: &'a [String],
}

impl<'a> At<'a> {
    /// The first step of the way, and the place as seen from there.
    fn step(self) -> Option<(&'a String, Self)> {
        self.tokens.split_first().map(|(token, tokens)| (token, Self { tokens }))
    }
}

impl<'de> DeserializeSeed<'de> for At<'_> {
    type Value = Option<Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        match self.tokens {
            [] => serde::Deserialize::deserialize(deserializer).map(Some),
            _ => deserializer.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for At<'_> {
    type Value = Option<Value>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let Some((token, below)) = self.step() else { return Ok(None) };
        let mut found = None;
        while let Some(name) = members.next_key::<String>()? {
            if name != *token {
                members.next_value::<IgnoredAny>()?;
            } else if found.is_none() {
                found = Some(members.next_value_seed(below)?);
            } else {
                // Parsers differ on which of the two counts.
                return Err(serde::de::Error::custom("a member that occurs twice has no one value"));
            }
        }
        Ok(found.flatten())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
        let Some((token, below)) = self.step() else { return Ok(None) };
        let wanted = index(token);
        let (mut found, mut at) = (None, 0_usize);
        loop {
            if wanted == Some(at) {
                let Some(value) = elements.next_element_seed(below)? else { break };
                found = value;
            } else if elements.next_element::<IgnoredAny>()?.is_none() {
                break;
            }
            at += 1;
        }
        Ok(found)
    }
}

/// The index that a token names in an array: digits without a leading zero.
fn index(token: &str) -> Option<usize> {
    let is_canonical = token == "0" || !token.starts_with(['0', '+']);
    token.parse().ok().filter(|_| is_canonical)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pointer(text: &str) -> JsonPointer {
        JsonPointer::parse(text).expect(text)
    }

    /// RFC 6901 sections 3 and 5.
    #[test]
    fn pointers_are_read_and_shown() {
        for text in ["/a", "/a/b/0", "/", "/a~1b", "/m~0n", "/~01"] {
            assert_eq!(pointer(text).to_string(), text);
        }
        assert_eq!(pointer("/~01"), JsonPointer(vec!["~1".to_owned()]));
        for text in ["", "a", "a/b", "/~", "/~2", "/a~"] {
            assert_eq!(JsonPointer::parse(text), None, "{text}");
        }
    }

    /// RFC 6901 section 4.
    #[test]
    fn a_field_becomes_the_tag() {
        let text = br#" {"list": [{"v": 1}, {"v": "two"}], "a/b": 3, "m~n": 4, "": 5, "version": 7, "_etag": "\"abc\"",
            "updated_at": "2024-01-01 10:00:00", "10": 8, "large": 123456789012345678901234567890, "small": 1.10} "#;
        for (at, expected) in [
            ("/version", Some("\"7\"")),
            ("/_etag", Some("\"abc\"")),
            ("/updated_at", Some("\"2024-01-01%2010:00:00\"")),
            ("/list/0/v", Some("\"1\"")),
            ("/list/1/v", Some("\"two\"")),
            ("/a~1b", Some("\"3\"")),
            ("/m~0n", Some("\"4\"")),
            ("/", Some("\"5\"")),
            ("/10", Some("\"8\"")),
            ("/large", Some("\"123456789012345678901234567890\"")),
            ("/small", Some("\"1.10\"")),
            ("/list/2/v", None),
            ("/list/00/v", None),
            ("/list/-", None),
            ("/list/x", None),
            ("/list", None),
            ("/version/x", None),
            ("/absent", None),
        ] {
            let expected = expected.map(|tag| EntityTag::parse(tag.as_bytes()).unwrap());
            assert_eq!(tag_from_json(text, &pointer(at)), expected, "{at}");
        }
    }

    #[test]
    fn a_text_that_has_no_one_such_field_gives_no_tag() {
        let long = format!("{{\"v\": \"{}\"}}", "a".repeat(TEXT_MAX + 1));
        for text in [
            "",
            "7",
            "null",
            "{\"v\": null}",
            "{\"v\": true}",
            "{\"v\": \"\"}",
            "{\"v\": {}}",
            "{\"v\": [1]}",
            "{\"v\": 1",
            "{\"v\": 1} {\"v\": 1}",
            "{\"v\": 1, \"v\": 2}",
            "{\"v\": 1, \"v\": 1}",
            "{\"v\": 1, \"w\": \"\u{0}\"}",
            "v: 1",
            &long,
        ] {
            assert_eq!(tag_from_json(text.as_bytes(), &pointer("/v")), None, "{text}");
        }
    }

    #[test]
    fn what_is_left_out_and_how_it_is_spelled_makes_no_difference() {
        let left_out = [pointer("/now"), pointer("/meta/now"), pointer("/list/1"), pointer("/list/0/now")];
        let form = |text: &str| json_without(text.as_bytes(), &left_out);
        let one = form(r#"{"a": 1, "now": 1, "meta": {"now": 2, "b": "c"}, "list": [{"now": 3}, 4, 5]}"#);
        assert!(one.is_some());
        for same in [
            r#"{"a":1,"now":7,"meta":{"now":8,"b":"c"},"list":[{"now":9},10,5]}"#,
            r#"{"list": [{}, null, 5], "meta": {"b": "\u0063"}, "a": 1}"#,
        ] {
            assert_eq!(form(same), one, "{same}");
        }
        for other in [
            r#"{"a": 2, "meta": {"b": "c"}, "list": [{}, 4, 5]}"#,
            r#"{"a": 1.0, "meta": {"b": "c"}, "list": [{}, 4, 5]}"#,
            r#"{"a": "1", "meta": {"b": "c"}, "list": [{}, 4, 5]}"#,
            r#"{"a": 1, "meta": {"b": "c"}, "list": [{}, 5]}"#,
            r#"{"a": 1, "meta": {"b": "c"}, "list": [{}, 4, 5], "more": null}"#,
            r#"{"a": 10000000000000000000000001, "meta": {"b": "c"}, "list": [{}, 4, 5]}"#,
        ] {
            assert!(form(other).is_some_and(|form| Some(form) != one), "{other}");
        }
        let large = |number: &str| form(&format!("{{\"a\": {number}}}"));
        assert_ne!(large("10000000000000000000000001"), large("10000000000000000000000002"));
        assert_eq!(form("{\"a\": 1"), None);
        assert_eq!(form("7"), Some(b"7".to_vec()));
    }

    #[test]
    fn a_text_that_is_nested_too_deeply_gives_no_tag() {
        let text = format!("{{\"a\": {}{}, \"v\": 1}}", "[".repeat(10_000), "]".repeat(10_000));
        // A skipped value takes no stack. The depth of a value that is read is bounded.
        assert!(tag_from_json(text.as_bytes(), &pointer("/v")).is_some());
        assert_eq!(tag_from_json(text.as_bytes(), &pointer("/a/0")), None);
    }
}
