//! The `Range` field of a GET (RFC 9110 section 14.2), of which only one range of bytes is supported here.

use http::{HeaderMap, header};

/// The part of a representation that a request wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WantedRange {
    /// All of it: the request names no range, or one that may be ignored (several at once, another unit, or malformed).
    Whole,
    /// This range of bytes.
    Part {
        /// The place of the first byte, from 0.
        first: u64,
        /// The place of the last byte.
        last: u64,
    },
    /// Bytes that the representation does not have: 416 (section 15.5.17).
    Nothing,
}

/// Returns what the request with these fields wants of a representation of `len` bytes, `If-Range` aside.
pub fn wanted(request: &HeaderMap, len: u64) -> WantedRange {
    let mut lines = request.get_all(header::RANGE).iter();
    let (Some(line), None) = (lines.next(), lines.next()) else { return WantedRange::Whole };
    line.to_str().ok().and_then(|line| one_range(line, len)).unwrap_or(WantedRange::Whole)
}

/// Reads one range of bytes; `None` if the line is anything else.
fn one_range(line: &str, len: u64) -> Option<WantedRange> {
    let (unit, range) = line.split_once('=')?;
    let (first, last) = range.trim().split_once('-')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    let Some(end) = len.checked_sub(1) else {
        // An empty representation has no part, and a suffix of it is the whole.
        return number(first).map(|_| WantedRange::Nothing);
    };
    match (first, last) {
        ("", last) => Some(match number(last)? {
            0 => WantedRange::Nothing,
            suffix => WantedRange::Part { first: len.saturating_sub(suffix), last: end },
        }),
        (first, last) => {
            let first = number(first)?;
            let last = if last.is_empty() { end } else { number(last)? };
            if last < first && first <= end {
                return None;
            }
            Some(if first > end { WantedRange::Nothing } else { WantedRange::Part { first, last: last.min(end) } })
        }
    }
}

/// Reads a number of digits only; one that is too large becomes the largest.
fn number(digits: &str) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.bytes().all(|octet| octet.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn of(lines: &[&'static str], len: u64) -> WantedRange {
        let lines = lines.iter().map(|line| (header::RANGE, HeaderValue::from_static(line)));
        wanted(&lines.collect(), len)
    }

    #[test]
    fn one_range_of_bytes_is_a_part() {
        let cases = [
            ("bytes=0-0", 0, 0),
            ("bytes=2-4", 2, 4),
            ("Bytes = 2-4 ", 2, 4),
            ("bytes=7-", 7, 9),
            ("bytes=7-99999999999999999999999999", 7, 9),
            ("bytes=-3", 7, 9),
            ("bytes=-99", 0, 9),
        ];
        for (line, first, last) in cases {
            assert_eq!(of(&[line], 10), WantedRange::Part { first, last }, "{line}");
        }
    }

    /// RFC 9110 section 14.1.2.
    #[test]
    fn what_lies_behind_the_end_cannot_be_satisfied() {
        for line in ["bytes=10-", "bytes=10-12", "bytes=99999999999999999999999999-", "bytes=-0"] {
            assert_eq!(of(&[line], 10), WantedRange::Nothing, "{line}");
        }
        assert_eq!(of(&["bytes=0-"], 0), WantedRange::Nothing);
        assert_eq!(of(&["bytes=-1"], 0), WantedRange::Whole);
    }

    /// RFC 9110 section 14.2: a server may ignore the field.
    #[test]
    fn all_else_is_the_whole() {
        for line in ["bytes=0-1,3-4", "bytes=4-2", "bytes=a-", "bytes=-", "bytes=+1-2", "lines=0-1", "0-1", ""] {
            assert_eq!(of(&[line], 10), WantedRange::Whole, "{line}");
        }
        assert_eq!(of(&["bytes=0-1", "bytes=2-3"], 10), WantedRange::Whole);
        assert_eq!(of(&[], 10), WantedRange::Whole);
    }
}
