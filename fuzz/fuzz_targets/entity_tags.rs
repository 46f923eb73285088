//! Lists of tags: no value makes the reader panic, and what it accepts is read again as the same list.
//!
//! A line feed in the input separates field lines.
#![no_main]

use http::{
    HeaderMap, HeaderValue,
    header::{IF_MATCH, IF_RANGE},
};
use ifmatch::core::tags::precondition::{Preconditions, TagCondition};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let mut headers = HeaderMap::new();
    for line in input.split(|&byte| byte == b'\n') {
        let Ok(value) = HeaderValue::from_bytes(line) else { return };
        headers.append(IF_MATCH, value.clone());
        headers.append(IF_RANGE, value);
    }
    let lenient = Preconditions::parse_for_read(&headers);
    let Ok(strict) = Preconditions::parse(&headers) else {
        assert_eq!(lenient.if_match, None);
        return;
    };
    assert_eq!(strict, lenient);
    let Some(TagCondition::Tags(tags)) = strict.if_match else { return };
    headers.clear();
    for tag in &tags {
        headers.append(IF_MATCH, tag.to_header_value());
    }
    let again = Preconditions::parse(&headers).map(|conditions| conditions.if_match);
    assert_eq!(again, Ok(Some(TagCondition::Tags(tags))));
});
