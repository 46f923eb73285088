//! Entity-tags and their two comparisons (RFC 9110 section 8.8.3).

use bytes::Bytes;
use http::HeaderValue;
use memchr::memchr;

/// One entity-tag: opaque bytes that name a state of a representation, and whether they name it weakly.
///
/// `==` compares the spelling of two tags. The comparisons of HTTP are these two functions:
///
/// | one | other | [`strong_matches`](Self::strong_matches) | [`weak_matches`](Self::weak_matches) |
/// |---|---|---|---|
/// | `W/"1"` | `W/"1"` | no | yes |
/// | `W/"1"` | `W/"2"` | no | no |
/// | `W/"1"` | `"1"` | no | yes |
/// | `"1"` | `"1"` | yes | yes |
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EntityTag {
    weak: bool,
    /// The tag with its quotes and weakness mark, ready to send: a tag is read once and sent many times.
    spelling: HeaderValue,
}

/// The reason why bytes are not an entity-tag. No message repeats the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MalformedTag {
    /// The tag does not begin with a double quote.
    #[error("an entity-tag is enclosed in double quotes: \"abc\"")]
    Unquoted,
    /// The weakness mark is written `w/`.
    #[error("a weak entity-tag begins with an upper-case W: W/\"abc\"")]
    LowerCaseMark,
    /// The second double quote is missing.
    #[error("the double quote that ends the entity-tag is missing")]
    Unterminated,
    /// There is a space, a control character, or a double quote between the quotes.
    #[error("an entity-tag contains no spaces, control characters or double quotes")]
    ForbiddenByte,
    /// Something follows the tag.
    #[error("something other than a comma follows the entity-tag; a backslash does not escape a double quote")]
    Trailing,
}

impl EntityTag {
    /// Makes a strong tag of the bytes between the quotes.
    pub fn strong(opaque: impl AsRef<[u8]>) -> Result<Self, MalformedTag> {
        Self::new(false, opaque.as_ref())
    }

    /// Makes a weak tag of the bytes between the quotes.
    pub fn weak(opaque: impl AsRef<[u8]>) -> Result<Self, MalformedTag> {
        Self::new(true, opaque.as_ref())
    }

    /// Reads a field value that is exactly one tag, with optional whitespace around it.
    pub fn parse(field_value: &[u8]) -> Result<Self, MalformedTag> {
        let (tag, rest) = Self::take(trim_start(field_value))?;
        if trim_start(rest).is_empty() { Ok(tag) } else { Err(MalformedTag::Trailing) }
    }

    /// Reads a field value that ought to be a tag. If only the quotes are missing, this function adds them: `abc`
    /// becomes `"abc"`, and `W/abc` becomes `W/"abc"`.
    pub fn parse_unquoted(field_value: &[u8]) -> Result<Self, MalformedTag> {
        let quote = |malformed| match malformed {
            MalformedTag::Unquoted => {
                let value = field_value.trim_ascii();
                let of_weak = value.strip_prefix(b"W/");
                // An empty value names no state.
                let opaque = Some(of_weak.unwrap_or(value)).filter(|opaque| !opaque.is_empty()).ok_or(malformed)?;
                Self::new(of_weak.is_some(), opaque)
            }
            malformed => Err(malformed),
        };
        Self::parse(field_value).or_else(quote)
    }

    /// Returns the tag for a text that its author need not have written as one. A text that is a tag stays, and any
    /// other becomes a strong tag of its bytes. Bytes that a tag cannot hold, or that do not always survive a header
    /// field, are written as `%` and two digits. So is a `%` that could be mistaken for such an escape, so that no
    /// two texts get one tag. Returns `None` for the empty text and for a broken tag, for example `"abc`.
    pub fn of_text(text: &[u8]) -> Option<Self> {
        match Self::parse(text) {
            Ok(tag) => Some(tag),
            Err(MalformedTag::Unquoted) if !text.is_empty() => Self::strong(escaped(text)).ok(),
            Err(_) => None,
        }
    }

    /// Reads the tag that `input` begins with. Also returns the rest of `input`.
    pub(super) fn take(input: &[u8]) -> Result<(Self, &[u8]), MalformedTag> {
        let (weak, quoted) = match input {
            [b'W', b'/', quoted @ ..] => (true, quoted),
            [b'w', b'/', ..] => return Err(MalformedTag::LowerCaseMark),
            _ => (false, input),
        };
        let content = quoted.strip_prefix(b"\"").ok_or(MalformedTag::Unquoted)?;
        let end = memchr(b'"', content).ok_or(MalformedTag::Unterminated)?;
        let (opaque, rest) = content.split_at_checked(end).ok_or(MalformedTag::Unterminated)?;
        Ok((Self::new(weak, opaque)?, rest.strip_prefix(b"\"").unwrap_or(rest)))
    }

    fn new(weak: bool, opaque: &[u8]) -> Result<Self, MalformedTag> {
        // Most tags are allowed, and a look at every byte without a branch is several bytes at a time.
        let is_allowed = |byte: &u8| matches!(byte, 0x21 | 0x23..=0x7e | 0x80..=0xff);
        if !opaque.iter().fold(true, |all, byte| all & is_allowed(byte)) {
            return Err(MalformedTag::ForbiddenByte);
        }
        let mark: &[u8] = if weak { b"W/" } else { b"" };
        let mut spelling = Vec::with_capacity(mark.len() + opaque.len() + 2);
        spelling.extend_from_slice(mark);
        spelling.push(b'"');
        spelling.extend_from_slice(opaque);
        spelling.push(b'"');
        let spelling =
            HeaderValue::from_maybe_shared(Bytes::from(spelling)).map_err(|_invalid| MalformedTag::ForbiddenByte)?;
        Ok(Self { weak, spelling })
    }

    /// Returns the tag of the same strength with these opaque bytes, if a tag can have them.
    pub fn respelled(&self, opaque: &[u8]) -> Option<Self> {
        Self::new(self.weak, opaque).ok()
    }

    /// True if the tag is weak.
    pub fn is_weak(&self) -> bool {
        self.weak
    }

    /// Returns the bytes between the quotes: visible ASCII except the double quote, and 0x80 to 0xff.
    pub fn opaque(&self) -> &[u8] {
        let spelling = self.spelling.as_bytes();
        let start = if self.weak { 3 } else { 1 };
        spelling.get(start..spelling.len() - 1).unwrap_or_default()
    }

    /// The strong comparison: whether both tags are strong and their opaque bytes are the same.
    pub fn strong_matches(&self, other: &Self) -> bool {
        !self.weak && !other.weak && self.opaque() == other.opaque()
    }

    /// The weak comparison: whether their opaque bytes are the same.
    pub fn weak_matches(&self, other: &Self) -> bool {
        self.opaque() == other.opaque()
    }

    /// Returns the tag as a field value.
    pub fn to_header_value(&self) -> HeaderValue {
        self.spelling.clone()
    }
}

fn escaped(text: &[u8]) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [byte, following @ ..] = rest {
        let looks_escaped = *byte == b'%' && matches!(following, [a, b, ..] if is_upper_hex(*a) && is_upper_hex(*b));
        if matches!(byte, 0x21 | 0x23..=0x7e) && !looks_escaped {
            escaped.push(*byte);
        } else {
            escaped.extend_from_slice(format!("%{byte:02X}").as_bytes());
        }
        rest = following;
    }
    escaped
}

const fn is_upper_hex(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'A'..=b'F')
}

/// Returns `value` without the optional whitespace at its beginning (RFC 9110 section 5.6.3).
pub(super) fn trim_start(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = value {
        value = rest;
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag(spelling: &str) -> EntityTag {
        EntityTag::parse(spelling.as_bytes()).expect(spelling)
    }

    /// RFC 9110 section 8.8.3.2, table 3.
    #[test]
    fn comparisons_follow_the_truth_table() {
        for (one, other, strong, weak) in [
            (r#"W/"1""#, r#"W/"1""#, false, true),
            (r#"W/"1""#, r#"W/"2""#, false, false),
            (r#"W/"1""#, r#""1""#, false, true),
            (r#""1""#, r#""1""#, true, true),
            (r#""1""#, r#""2""#, false, false),
        ] {
            let (one, other) = (tag(one), tag(other));
            assert_eq!(one.strong_matches(&other), strong, "{one:?} strongly {other:?}");
            assert_eq!(other.strong_matches(&one), strong, "{other:?} strongly {one:?}");
            assert_eq!(one.weak_matches(&other), weak, "{one:?} weakly {other:?}");
            assert_eq!(other.weak_matches(&one), weak, "{other:?} weakly {one:?}");
        }
    }

    /// RFC 9110 section 8.8.3: etagc is any visible ASCII but the double quote, and obs-text.
    #[test]
    fn a_tag_may_hold_exactly_the_bytes_of_the_grammar() {
        for byte in 0..=u8::MAX {
            let allowed = byte == b'!' || (b'#'..=b'~').contains(&byte) || byte >= 0x80;
            assert_eq!(EntityTag::strong(vec![byte]).is_ok(), allowed, "byte {byte:#04x}");
        }
    }

    /// RFC 9110 section 8.8.3.
    #[test]
    fn well_formed_tags_are_read() {
        for (value, weak, opaque) in [
            (&b"\"\""[..], false, &b""[..]),
            (b"\"*\"", false, b"*"),
            (b" \t\"a,b\"\t ", false, b"a,b"),
            (b"\"a\\\"", false, b"a\\"),
            (b"W/\"W/\"", true, b"W/"),
            (b"\"\x80\xff\"", false, b"\x80\xff"),
        ] {
            let tag = EntityTag::parse(value).expect("a tag");
            assert_eq!((tag.is_weak(), tag.opaque()), (weak, opaque));
        }
    }

    /// RFC 9110 section 8.8.3: the weakness mark is case-sensitive and the quotes are part of a tag.
    #[test]
    fn malformed_tags_are_refused_with_their_reason() {
        for (value, reason) in [
            (r"abc", MalformedTag::Unquoted),
            (r"", MalformedTag::Unquoted),
            (r"*", MalformedTag::Unquoted),
            (r#"W"abc""#, MalformedTag::Unquoted),
            (r#"W/ "abc""#, MalformedTag::Unquoted),
            (r"W/abc", MalformedTag::Unquoted),
            (r"'abc'", MalformedTag::Unquoted),
            (r#"w/"abc""#, MalformedTag::LowerCaseMark),
            (r#"""#, MalformedTag::Unterminated),
            (r#"W/"abc"#, MalformedTag::Unterminated),
            (r#""a b""#, MalformedTag::ForbiddenByte),
            ("\"a\x7f\"", MalformedTag::ForbiddenByte),
            (r#""a\"b""#, MalformedTag::Trailing),
            (r#""a""b""#, MalformedTag::Trailing),
            (r#""a", "b""#, MalformedTag::Trailing),
            (r#""a","#, MalformedTag::Trailing),
        ] {
            assert_eq!(EntityTag::parse(value.as_bytes()), Err(reason), "{value}");
        }
    }

    #[test]
    fn quotes_that_are_missing_are_supplied() {
        for (value, expected) in [
            ("abc", Ok("\"abc\"")),
            (" W/abc ", Ok("W/\"abc\"")),
            ("W/\"abc\"", Ok("W/\"abc\"")),
            ("W/", Err(MalformedTag::Unquoted)),
            ("", Err(MalformedTag::Unquoted)),
            ("a b", Err(MalformedTag::ForbiddenByte)),
            ("abc\"", Err(MalformedTag::ForbiddenByte)),
            ("\"abc", Err(MalformedTag::Unterminated)),
        ] {
            assert_eq!(EntityTag::parse_unquoted(value.as_bytes()), expected.map(tag), "{value}");
        }
    }

    #[test]
    fn a_text_becomes_a_tag() {
        for (text, expected) in [
            ("7", Some("\"7\"")),
            ("\"7\"", Some("\"7\"")),
            ("W/\"7\"", Some("W/\"7\"")),
            ("2024-01-01T10:00:00+01:00", Some("\"2024-01-01T10:00:00+01:00\"")),
            ("2024-01-01 10:00", Some("\"2024-01-01%2010:00\"")),
            ("a\"b", Some("\"a%22b\"")),
            ("50%", Some("\"50%\"")),
            ("50%20", Some("\"50%2520\"")),
            ("ä\n", Some("\"%C3%A4%0A\"")),
            ("\"7", None),
            ("", None),
        ] {
            assert_eq!(EntityTag::of_text(text.as_bytes()), expected.map(tag), "{text}");
        }
    }

    /// The texts have up to four bytes and are hard to distinguish once they are escaped.
    #[test]
    fn no_two_texts_get_one_tag() {
        let mut texts = vec![Vec::new()];
        for length in 0..4 {
            let longer = texts.iter().filter(|text| text.len() == length);
            let longer: Vec<Vec<u8>> =
                longer.flat_map(|text| b"% 2F5a".map(|byte| [text.as_slice(), &[byte]].concat())).collect();
            texts.extend(longer);
        }
        let tags: std::collections::HashSet<EntityTag> =
            texts.iter().filter_map(|text| EntityTag::of_text(text)).collect();
        assert_eq!(tags.len(), texts.len() - 1, "all but the empty one");
    }

    #[test]
    fn a_tag_is_sent_as_it_was_spelled() {
        assert_eq!(tag(" W/\"a,\\b\" ").to_header_value(), "W/\"a,\\b\"");
        assert_eq!(EntityTag::strong("v1").unwrap().to_header_value(), "\"v1\"");
        assert_eq!(EntityTag::weak("v1").unwrap().to_header_value(), "W/\"v1\"");
    }
}
