//! Parts of a body that is here as a whole, because its tag was made of it.

use std::ops::Range;

/// What a range selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selected {
    /// All of it: there is no range that is served.
    Whole,
    /// These bytes.
    Part(Range<u64>),
    /// Nothing: 416.
    Nothing,
}

/// What `bytes=FIRST-LAST` or `bytes=FIRST-` selects of so many bytes (RFC 9110 section 14.1.2); Azure knows no others.
pub fn select(range: &[u8], length: u64) -> Selected {
    let read = || {
        let (first, last) = std::str::from_utf8(range).ok()?.trim().strip_prefix("bytes=")?.split_once('-')?;
        let first: u64 = first.parse().ok()?;
        let last = if last.is_empty() { u64::MAX } else { last.parse().ok()? };
        (first <= last).then_some((first, last))
    };
    match read() {
        None => Selected::Whole,
        Some((first, _)) if first >= length => Selected::Nothing,
        Some((first, last)) => Selected::Part(first..last.saturating_add(1).min(length)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9110 sections 14.1.2 and 15.5.17.
    #[test]
    fn a_range_selects_what_there_is_of_it() {
        for (range, length, expected) in [
            ("bytes=0-33554431", 5, Selected::Part(0..5)),
            ("bytes=1-2", 5, Selected::Part(1..3)),
            ("bytes=4-", 5, Selected::Part(4..5)),
            ("bytes=0-18446744073709551615", 5, Selected::Part(0..5)),
            ("bytes=5-", 5, Selected::Nothing),
            ("bytes=0-0", 0, Selected::Nothing),
            ("bytes=3-2", 5, Selected::Whole),
            ("bytes=-2", 5, Selected::Whole),
            ("bytes=0-1,3-4", 5, Selected::Whole),
            ("lines=0-1", 5, Selected::Whole),
            ("", 5, Selected::Whole),
        ] {
            assert_eq!(select(range.as_bytes(), length), expected, "{range} of {length}");
        }
    }
}
