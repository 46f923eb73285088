//! Properties of tags, dates and lists over generated input, and a check of every short value against the grammar.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use http::{HeaderMap, HeaderValue, header};
use ifmatch::core::tags::{
    entity_tag::EntityTag,
    http_date::HttpDate,
    precondition::{Preconditions, TagCondition},
};
use proptest::{collection::vec, prelude::*};

fn opaque() -> impl Strategy<Value = Vec<u8>> {
    vec(prop_oneof![Just(0x21_u8), 0x23..=0x7e_u8, 0x80..=0xff_u8], 0..12)
}

fn entity_tag() -> impl Strategy<Value = EntityTag> {
    (any::<bool>(), opaque())
        .prop_map(|(weak, opaque)| if weak { EntityTag::weak(opaque) } else { EntityTag::strong(opaque) }.unwrap())
}

/// Any bytes that a header field can carry, those that mean something in a list more often than others.
fn field_value() -> impl Strategy<Value = HeaderValue> {
    let byte =
        prop_oneof![4 => prop::sample::select(b"\"\", \tWw/\\*a".to_vec()), 1 => 0x20..=0x7e_u8, 1 => 0x80..=0xff_u8];
    vec(byte, 0..40).prop_map(|bytes| HeaderValue::from_bytes(&bytes).unwrap())
}

fn if_match(lines: impl IntoIterator<Item = HeaderValue>) -> HeaderMap {
    lines.into_iter().map(|line| (header::IF_MATCH, line)).fold(HeaderMap::new(), |mut headers, (name, line)| {
        headers.append(name, line);
        headers
    })
}

proptest! {
    #[test]
    fn no_bytes_make_a_reader_panic(bytes in vec(any::<u8>(), 0..64)) {
        let read = EntityTag::parse(&bytes);
        if let Ok(tag) = read {
            prop_assert_eq!(EntityTag::parse(tag.to_header_value().as_bytes()), Ok(tag));
        }
        if let Some(date) = HttpDate::parse(&bytes) {
            prop_assert_eq!(HttpDate::parse(date.to_string().as_bytes()), Some(date));
        }
    }

    #[test]
    fn a_value_read_strictly_reads_the_same_leniently(lines in vec(field_value(), 1..4)) {
        let headers = if_match(lines);
        let lenient = Preconditions::parse_for_read(&headers);
        match Preconditions::parse(&headers) {
            Ok(strict) => prop_assert_eq!(strict, lenient),
            Err(_) => prop_assert!(lenient.is_empty()),
        }
    }

    #[test]
    fn several_lines_read_like_one_line_joined_by_commas(lines in vec(field_value(), 2..4)) {
        let joined = lines.iter().map(HeaderValue::as_bytes).collect::<Vec<_>>().join(&b", "[..]);
        let joined = if_match([HeaderValue::from_bytes(&joined).unwrap()]);
        prop_assert_eq!(Preconditions::parse(&if_match(lines)).ok(), Preconditions::parse(&joined).ok());
    }

    #[test]
    fn a_printed_list_reads_as_the_same_tags(
        tags in vec((entity_tag(), prop::sample::select(vec![",", ", ", " ,\t", ",,", ", ,"])), 1..20),
    ) {
        let mut list = Vec::new();
        for (tag, separator) in &tags {
            list.extend_from_slice(tag.to_header_value().as_bytes());
            list.extend_from_slice(separator.as_bytes());
        }
        let headers = if_match([HeaderValue::from_bytes(&list).unwrap()]);
        let tags = tags.into_iter().map(|(tag, _)| tag).collect();
        prop_assert_eq!(Preconditions::parse(&headers).unwrap().if_match, Some(TagCondition::Tags(tags)));
    }

    /// RFC 9110 section 8.8.3.2.
    #[test]
    fn a_strong_match_is_a_weak_match_and_both_are_mutual(one in entity_tag(), other in entity_tag(), same: bool) {
        let other = if same { EntityTag::strong(one.opaque()).unwrap() } else { other };
        prop_assert_eq!(one.strong_matches(&other), other.strong_matches(&one));
        prop_assert_eq!(one.weak_matches(&other), other.weak_matches(&one));
        prop_assert!(!one.strong_matches(&other) || one.weak_matches(&other));
        prop_assert_eq!(one.strong_matches(&one), !one.is_weak());
    }

    /// RFC 9110 section 5.6.7.
    #[test]
    fn a_printed_date_reads_as_the_same_second(seconds in 0..253_402_300_800_u64) {
        let date = HttpDate::from_unix_seconds(seconds);
        prop_assert_eq!(date.unix_seconds(), seconds);
        prop_assert_eq!(HttpDate::parse(date.to_string().as_bytes()), Some(date));
    }
}

/// Returns the result of the grammar of RFC 9110 section 13.1.1 for a value: `None` if it is malformed, else its
/// members.
fn by_grammar(value: &str) -> Option<Vec<String>> {
    if value.trim() == "*" {
        return Some(vec!["*".to_owned()]);
    }
    let (mut members, mut member, mut quoted) = (vec![], String::new(), false);
    for character in value.chars().chain([',']) {
        quoted ^= character == '"';
        if character == ',' && !quoted {
            members.push(member.trim().to_owned());
            member.clear();
        } else {
            member.push(character);
        }
    }
    members.retain(|member| !member.is_empty());
    let is_tag = |member: &String| {
        let quoted = member.strip_prefix("W/").unwrap_or(member);
        let content = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        content.is_some_and(|content| !content.contains(['"', ' ']))
    };
    (!quoted && !members.is_empty() && members.iter().all(is_tag)).then_some(members)
}

/// RFC 9110 section 13.1.1: all values of up to seven of the characters that matter.
#[test]
fn every_short_value_is_read_as_the_grammar_says() {
    let alphabet = ["\"", ",", " ", "W/", "*", "a", "\\"];
    let mut values = vec![String::new()];
    let mut well_formed = 0;
    for _ in 0..7 {
        values = values.iter().flat_map(|value| alphabet.map(|next| format!("{value}{next}"))).collect();
        for value in &values {
            let read = Preconditions::parse(&if_match([value.parse().unwrap()])).ok().and_then(|read| read.if_match);
            let read = read.map(|condition| match condition {
                TagCondition::Any => vec!["*".to_owned()],
                TagCondition::Tags(tags) => {
                    tags.iter().map(|tag| tag.to_header_value().to_str().unwrap().to_owned()).collect()
                }
            });
            assert_eq!(read, by_grammar(value), "{value}");
            well_formed += usize::from(read.is_some());
        }
    }
    assert!(well_formed > 1_000, "{well_formed} values were well-formed");
}
