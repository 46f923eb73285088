//! Conditional fields: no values make a reader panic, and what is read strictly reads the same leniently.
//!
//! Each line of the input is a field: its first byte says which.
#![no_main]

use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, RANGE},
};
use ifmatch::core::{
    http::range,
    tags::{http_date::HttpDate, precondition::Preconditions},
};
use libfuzzer_sys::fuzz_target;

const FIELDS: [HeaderName; 6] = [IF_MATCH, IF_NONE_MATCH, IF_MODIFIED_SINCE, IF_UNMODIFIED_SINCE, IF_RANGE, RANGE];

fuzz_target!(|input: &[u8]| {
    let mut headers = HeaderMap::new();
    for line in input.split(|&byte| byte == b'\n') {
        let Some((&which, value)) = line.split_first() else { continue };
        let Ok(value) = HeaderValue::from_bytes(value) else { continue };
        if let Some(date) = HttpDate::parse(value.as_bytes()) {
            assert_eq!(HttpDate::parse(date.to_string().as_bytes()), Some(date));
        }
        headers.append(FIELDS[usize::from(which) % FIELDS.len()].clone(), value);
    }
    let lenient = Preconditions::parse_for_read(&headers);
    if let Ok(strict) = Preconditions::parse(&headers) {
        assert_eq!(strict, lenient);
    }
    let _wanted = range::wanted(&headers, input.len() as u64);
});
